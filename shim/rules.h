/* SPDX-License-Identifier: MIT */
/*
 * rules: the settings in force, but for what each op meets (ways.h).
 *
 * Other threads may be under way while `mmgate set` changes some: what a call
 * needs of them stands in words of its own, each right by itself.
 */
#ifndef MMGATE_RULES_H
#define MMGATE_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "hot.h"
#include "knobs.h"

/* Beside enum knob_events in `events`: the log has room for stacks. */
enum { RULES_STACKS = 1 << 7 };

struct rules {
	uint8_t long_gated;
	uint8_t events;
	uint32_t every;      /* N of events=every:N */
	uint64_t slow_ticks; /* of events=slow:DURATION */
	uint64_t max_wait_ns;
};

extern HIDDEN struct rules rules;

#define RULE(field) __atomic_load_n(&rules.field, __ATOMIC_RELAXED)

/* enum knob_events. */
static inline unsigned rules_events(void)
{
	return RULE(events) & ~RULES_STACKS;
}

/* Once, at start.  Strings are not copied. */
void rules_init(const struct knobs *knobs);

/* All of them, as the user has them. */
const struct knobs *rules_settings(void);

/* Changes those that the text names, "name=value\n" each.  False: it is not
 * understood, and nothing has changed.  One thread at a time. */
bool rules_change(char *text);

/* The clocks were compared anew. */
void rules_derive(void);

#endif
