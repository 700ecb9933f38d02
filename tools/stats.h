/* SPDX-License-Identifier: MIT */
/*
 * stats: what a run cost as a whole.
 *
 * Evidence from outside the calls (the system's own counters), and the sums
 * over all logs of a run.
 */
#ifndef MMGATE_STATS_H
#define MMGATE_STATS_H

#include <stdint.h>
#include <sys/resource.h>

#include "log.h"

/* TLB shoot-down interrupts of the whole machine since it started; 0 where
 * the kernel does not count them. */
uint64_t stats_tlb_shootdowns(void);

/* Copies what wait4 told of a command to its record. */
void stats_take_usage(struct record_dir *info, const struct rusage *usage);

struct stats_total {
	uint64_t calls, errors, gated, opened;
	uint64_t bypassed[BYPASS_COUNT];
	uint64_t unrecorded, second_libc;
	uint64_t events_overwritten, events_lost;
	double wait_ns, kernel_ns, thread_ns;
};

/* Sums over all processes of a directory. */
struct stats_total stats_sum(const struct log_dir *dir);

#endif
