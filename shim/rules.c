/* SPDX-License-Identifier: MIT */
#include "rules.h"

#include "clock.h"
#include "lock.h"
#include "stack.h"

#include "poison.h"

struct rules rules;

static uint64_t slow_ns; /* of events=slow:DURATION */

/* The same as settings, for those who change some of them. */
static struct knobs settings;

#define SET(field, value)                                                      \
	__atomic_store_n(&rules.field, (value), __ATOMIC_RELAXED)

void rules_derive(void)
{
	stack_derive();
	SET(slow_ticks,
	    clock_from_ns(__atomic_load_n(&slow_ns, __ATOMIC_RELAXED)));
}

/* Whose stack is where is followed from the start to the end, or not at all: a
 * gap would leave stacks that are gone. */
static void follow_events(void)
{
	unsigned stacks = knobs_has_stacks(&settings)
				  ? RULES_STACKS
				  : RULE(events) & RULES_STACKS;

	if (settings.events == EVENTS_SLOW)
		__atomic_store_n(&slow_ns, settings.events_arg,
				 __ATOMIC_RELAXED);
	if (settings.events == EVENTS_EVERY)
		SET(every, (uint32_t)settings.events_arg);
	rules_derive();
	SET(events, (uint8_t)(settings.events | stacks));
}

static void follow_settings(void)
{
	if (settings.limit != 0)
		lock_permits = settings.limit;
	SET(long_gated, settings.long_gated);
	SET(max_wait_ns, settings.max_wait_ns);
	follow_events();
}

void rules_init(const struct knobs *knobs)
{
	settings = *knobs;
	follow_settings();
}

const struct knobs *rules_settings(void)
{
	return &settings;
}

bool rules_change(char *text)
{
	if (knobs_change(&settings, text) != 0)
		return false;
	follow_settings();
	stack_follow(&settings);
	return true;
}
