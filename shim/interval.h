/* SPDX-License-Identifier: MIT */
/*
 * interval: how many calls there are to the next that is picked, one in `n` in
 * the mean.  At random, so that a regular pattern of calls is not met in step.
 *
 * pre: 0 < n, and *random is not 0.
 */
#ifndef MMGATE_INTERVAL_H
#define MMGATE_INTERVAL_H

#include <stdint.h>

static inline uint64_t interval_random(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

/* From a pick to the next: 1 to 2 n - 1. */
static inline uint64_t interval_next(uint64_t n, uint64_t *random)
{
	return 1 + interval_random(random) % (2 * n - 1);
}

/* From any call on, as if calls had been picked for ever: what is left of an
 * interval at a random call.  So the first call of a thread is picked as often
 * as the thousandth.  It is the lesser of two different numbers of 2 n. */
static inline uint64_t interval_first(uint64_t n, uint64_t *random)
{
	uint64_t a = interval_random(random) % (2 * n);
	uint64_t b = interval_random(random) % (2 * n - 1);

	if (b >= a)
		b++;
	return 1 + (a < b ? a : b);
}

#endif
