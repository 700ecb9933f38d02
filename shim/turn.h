/* SPDX-License-Identifier: MIT */
/*
 * turn: what one thread at a time does, and others may leave out.
 */
#ifndef MMGATE_TURN_H
#define MMGATE_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

/* Since when somebody has it, ns; 0: nobody. */
struct turn {
	uint64_t since;
};

/* Is it taken?  Who keeps it for seconds was torn away (killed, or by a jump
 * out of a handler), and it goes to the next. */
static inline bool turn_is_taken(const struct turn *turn)
{
	const uint64_t torn_away_ns = 5000000000;
	uint64_t since = __atomic_load_n(&turn->since, __ATOMIC_RELAXED);

	return since != 0 && clock_monotonic() < since + torn_away_ns;
}

/* Takes it.  False: another thread has it. */
static inline bool turn_begin(struct turn *turn)
{
	uint64_t now = clock_monotonic();
	uint64_t since = __atomic_load_n(&turn->since, __ATOMIC_RELAXED);

	if (turn_is_taken(turn))
		return false;
	return __atomic_compare_exchange_n(&turn->since, &since, now, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* In a forked child, too: whoever had it stayed in the parent. */
static inline void turn_end(struct turn *turn)
{
	__atomic_store_n(&turn->since, 0, __ATOMIC_RELEASE);
}

#endif
