/* SPDX-License-Identifier: MIT */
/*
 * clock: ticks.
 *
 * A tick is a cycle of the time-stamp counter where the kernel trusts that
 * counter itself and lets this process read it, and a nanosecond of
 * CLOCK_MONOTONIC (from the vDSO, so without a system call) elsewhere.  The
 * log's reader converts; in here only ratios such as the longest wait do.
 */
#ifndef MMGATE_CLOCK_H
#define MMGATE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

extern bool clock_is_tsc;

/* Chooses the clock; vdso: its ELF header, or NULL; precise: ticks are going to
 * be recorded, so it is worth asking the kernel.  Once, at start. */
void clock_init(const void *vdso, bool precise);

/* CLOCK_MONOTONIC in ns, without a system call where the vDSO has it. */
uint64_t clock_monotonic(void);

/* CLOCK_REALTIME in ns; a system call. */
uint64_t clock_realtime(void);

static inline uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
	if (clock_is_tsc)
		return __builtin_ia32_rdtsc();
#endif
	return clock_monotonic();
}

/* The same, not before everything that came earlier is done: a CPU may read
 * the counter ahead of a lock that it waits for. */
static inline uint64_t clock_ticks_after(void)
{
#if defined(__x86_64__)
	__asm__ volatile("lfence" ::: "memory");
#else
	__asm__ volatile("isb" ::: "memory");
#endif
	return clock_ticks();
}

/* Both clocks at one instant. */
struct record_pair clock_pair(void);

/* Ticks that last about `ns`, by the rate since the start: the later, the
 * more exact (a tenth of a percent after 50 us). */
uint64_t clock_from_ns(uint64_t ns);

#endif
