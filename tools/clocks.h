/* SPDX-License-Identifier: MIT */
/*
 * clocks: the kernel's clocks, in one number.
 */
#ifndef MMGATE_CLOCKS_H
#define MMGATE_CLOCKS_H

#include <stdint.h>
#include <time.h>

/* The clock's time, ns. */
static inline uint64_t clocks_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Of CLOCK_MONOTONIC: for how long something takes. */
static inline uint64_t clocks_now(void)
{
	return clocks_ns(CLOCK_MONOTONIC);
}

#endif
