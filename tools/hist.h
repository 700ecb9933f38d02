/* SPDX-License-Identifier: MIT */
/*
 * hist: histograms in ns, made of record_hists in ticks.
 *
 * A histogram keeps the buckets of its first writer's ticks, so percentiles
 * are as exact as the record is: within 1/64.  Adding one from a writer with
 * another clock rate moves its counts to the buckets that fit, which can cost
 * another 1/64.  Memory is as large as the span of its buckets in use, so
 * that thousands of processes fit.
 */
#ifndef MMGATE_HIST_H
#define MMGATE_HIST_H

#include <stdint.h>

#include "record.h"

/* All zero is an empty histogram. */
struct hist {
	uint64_t count;
	double ns_per_tick; /* 0 while empty */
	double sum_ns;
	double max_ns;
	unsigned first; /* number of bucket[0] */
	unsigned width; /* buckets that are kept; the others are 0 */
	uint64_t *bucket;
};

/* Adds the writer's histogram, whose ticks last `ns_per_tick` each. */
void hist_add_record(struct hist *into, const struct record_hist *from,
		     double ns_per_tick);
void hist_add(struct hist *into, const struct hist *from);
/* Adds `count` values of so many ns to a histogram that holds only such. */
void hist_add_ns(struct hist *into, uint64_t ns, uint64_t count);

/* The value in ns that a share `p` (0 < p <= 1) of the values does not exceed,
 * within 1.6 % (middle of its bucket); never above the exact maximum.  0 when
 * empty. */
double hist_percentile(const struct hist *h, double p);

/* Middle of the bucket of that number, in ns. */
double hist_middle(const struct hist *h, unsigned bucket);

/* Empties it and gives its memory back. */
void hist_drop(struct hist *h);

#endif
