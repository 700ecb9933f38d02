/* SPDX-License-Identifier: MIT */
#include "request.h"

#include <stddef.h>

#include "clock.h"
#include "rules.h"
#include "ways.h"

#include "poison.h"

uint32_t request_seen;

/* Who follows one: since when, ns; 0: nobody.  One that never ends was torn
 * away, and another takes over. */
static uint64_t following;

static bool begin(void)
{
	const uint64_t torn_away_ns = 5000000000;
	uint64_t now = clock_monotonic();
	uint64_t since = __atomic_load_n(&following, __ATOMIC_RELAXED);

	if (since != 0 && now < since + torn_away_ns)
		return false;
	return __atomic_compare_exchange_n(&following, &since, now, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void end(void)
{
	__atomic_store_n(&following, 0, __ATOMIC_RELEASE);
}

/* False: it is not understood. */
static bool change_settings(struct thread *t, char *text)
{
	struct knobs before = *rules_settings();

	if (!rules_change(text))
		return false;
	ways_follow(t, &before);
	log_settings(rules_settings());
	return true;
}

void request_follow(struct thread *t)
{
	/* Not on a signal handler's small stack. */
	static char text[sizeof(((struct record_control *)NULL)->text)];
	uint32_t serial;

	if (!begin())
		return;
	serial = log_request();
	if (serial != __atomic_load_n(&request_seen, __ATOMIC_RELAXED)) {
		log_answer(serial,
			   !log_read_request(serial, text, sizeof(text)) ||
				   !change_settings(t, text));
		__atomic_store_n(&request_seen, serial, __ATOMIC_RELAXED);
	}
	end();
}

void request_begin_child(void)
{
	__atomic_store_n(&request_seen, 0, __ATOMIC_RELAXED);
	end();
}
