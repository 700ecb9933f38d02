/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "hist.h"

/* Makes room for the buckets from `first` up to before `end`. */
static void reach(struct hist *h, unsigned first, unsigned end)
{
	uint64_t *bucket;

	if (h->width > 0) {
		if (h->first <= first && end <= h->first + h->width)
			return;
		first = first < h->first ? first : h->first;
		if (end < h->first + h->width)
			end = h->first + h->width;
	}
	bucket = xcalloc(end - first, sizeof(*bucket));
	if (h->width > 0)
		memcpy(bucket + (h->first - first), h->bucket,
		       h->width * sizeof(*bucket));
	free(h->bucket);
	h->bucket = bucket;
	h->first = first;
	h->width = end - first;
}

static void put(struct hist *h, unsigned bucket, uint64_t count)
{
	reach(h, bucket, bucket + 1);
	h->bucket[bucket - h->first] += count;
	h->count += count;
}

/* Middle of a bucket in ticks. */
static double middle(unsigned bucket)
{
	return ((double)record_bucket_floor(bucket) +
		(double)(record_bucket_floor(bucket + 1) - 1)) /
	       2;
}

/* Two processes of one machine measure its clock a little differently; that
 * far below the width of a bucket a bucket is the same bucket. */
static bool same_rate(double a, double b)
{
	return fabs(a - b) < a / 1000;
}

/* Where a bucket of another clock belongs in a histogram of `scale` of its
 * ticks per tick. */
static unsigned moved(unsigned bucket, double scale)
{
	double ticks = middle(bucket) * scale;

	if (ticks >= 0x1p62)
		return RECORD_BUCKETS - 1;
	return record_bucket((uint64_t)llround(ticks));
}

static void add_buckets(struct hist *into, const uint64_t *bucket,
			unsigned first, unsigned width, double ns_per_tick)
{
	bool same = same_rate(into->ns_per_tick, ns_per_tick);
	double scale = ns_per_tick / into->ns_per_tick;
	unsigned i;

	for (i = 0; i < width; i++)
		if (bucket[i] > 0)
			put(into, same ? first + i : moved(first + i, scale),
			    bucket[i]);
}

static void add_totals(struct hist *into, double sum_ns, double max_ns)
{
	into->sum_ns += sum_ns;
	if (max_ns > into->max_ns)
		into->max_ns = max_ns;
}

void hist_add_record(struct hist *into, const struct record_hist *from,
		     double ns_per_tick)
{
	unsigned first = 0, end = RECORD_BUCKETS;

	while (first < end && from->bucket[first] == 0)
		first++;
	while (end > first && from->bucket[end - 1] == 0)
		end--;
	if (first == end)
		return;
	if (into->count == 0) {
		into->ns_per_tick = ns_per_tick;
		reach(into, first, end);
	}
	add_buckets(into, from->bucket + first, first, end - first,
		    ns_per_tick);
	add_totals(into, (double)from->sum * ns_per_tick,
		   (double)from->max * ns_per_tick);
}

void hist_add(struct hist *into, const struct hist *from)
{
	if (from->count == 0)
		return;
	if (into->count == 0) {
		into->ns_per_tick = from->ns_per_tick;
		reach(into, from->first, from->first + from->width);
	}
	add_buckets(into, from->bucket, from->first, from->width,
		    from->ns_per_tick);
	add_totals(into, from->sum_ns, from->max_ns);
}

void hist_add_ns(struct hist *into, uint64_t ns, uint64_t count)
{
	if (count == 0)
		return;
	if (into->count == 0)
		into->ns_per_tick = 1;
	put(into, record_bucket(ns), count);
	add_totals(into, (double)ns * (double)count, (double)ns);
}

/* Bucket of the value number `rank`, from 1, in ascending order. */
static unsigned find(const struct hist *h, double rank)
{
	double seen = 0;
	unsigned i;

	for (i = 0; i + 1 < h->width; i++) {
		seen += (double)h->bucket[i];
		if (seen >= rank)
			break;
	}
	return h->first + i;
}

double hist_percentile(const struct hist *h, double p)
{
	double rank = ceil(p * (double)h->count);
	unsigned bucket;

	if (h->count == 0)
		return 0;
	bucket = find(h, fmax(rank, 1));
	/* The last bucket has no upper end: only its maximum is known. */
	if (bucket == RECORD_BUCKETS - 1)
		return h->max_ns;
	return fmin(middle(bucket) * h->ns_per_tick, h->max_ns);
}

double hist_middle(const struct hist *h, unsigned bucket)
{
	return middle(bucket) * h->ns_per_tick;
}

void hist_drop(struct hist *h)
{
	free(h->bucket);
	memset(h, 0, sizeof(*h));
}
