/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "../../tools/hist.h"
#include "check.h"
#include "make_log.h"

#define check_near(wanted, got, tolerance, ...)                                \
	check_between((wanted) * (1 - (tolerance)),                            \
		      (wanted) * (1 + (tolerance)), got, __VA_ARGS__)

enum { VALUES = 20000 };

static const double shares[] = {0.001, 0.01,  0.1,    0.5, 0.9,
				0.99,  0.999, 0.9999, 1};

static uint64_t values[VALUES];
static struct record_hist record;

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void draw(uint64_t (*value)(void))
{
	size_t i;

	memset(&record, 0, sizeof(record));
	for (i = 0; i < VALUES; i++) {
		values[i] = value();
		make_log_value(&record, values[i]);
	}
	qsort(values, VALUES, sizeof(*values), by_size);
}

static uint64_t any_below_2_to_41(void)
{
	return check_random() >> (23 + check_random() % 40);
}

static uint64_t like_calls(void)
{
	uint64_t v = 2000 + check_random() % 1000;

	return check_random() % 100 ? v : v * 500;
}

static uint64_t zeros(void)
{
	return 0;
}

static uint64_t small(void)
{
	return check_random() % 64;
}

static double exact(double share, double ns_per_tick)
{
	size_t rank = (size_t)ceil(share * VALUES);

	return (double)values[(rank ? rank : 1) - 1] * ns_per_tick;
}

static void check_percentiles(const char *of, const struct hist *h,
			      double ns_per_tick, double tolerance)
{
	size_t i;

	for (i = 0; i < sizeof(shares) / sizeof(*shares); i++)
		check_near(exact(shares[i], ns_per_tick),
			   hist_percentile(h, shares[i]), tolerance,
			   "%s: share %g of the sorted values", of, shares[i]);
}

static void test_drawn(const char *of, uint64_t (*value)(void),
		       double ns_per_tick, double tolerance)
{
	struct hist h = {0};
	uint64_t sum = 0;
	size_t i;

	draw(value);
	for (i = 0; i < VALUES; i++)
		sum += values[i];
	hist_add_record(&h, &record, ns_per_tick);
	check_u64(VALUES, h.count, "%s: count is exact", of);
	check_near((double)sum * ns_per_tick, h.sum_ns, 0, "%s: sum is exact",
		   of);
	check_near((double)values[VALUES - 1] * ns_per_tick, h.max_ns, 0,
		   "%s: maximum is exact", of);
	check_percentiles(of, &h, ns_per_tick, tolerance);
	hist_drop(&h);
}

static void test_bounds(void)
{
	unsigned bucket, wrong = 0, wide = 0;

	for (bucket = 0; bucket + 1 < RECORD_BUCKETS; bucket++) {
		uint64_t floor = record_bucket_floor(bucket);
		uint64_t next = record_bucket_floor(bucket + 1);

		wrong += record_bucket(floor) != bucket;
		wrong += record_bucket(next - 1) != bucket;
		wide += (double)(next - 1 - floor) / 2 > (double)floor / 64;
	}
	check_u64(0, wrong,
		  "every bucket begins and ends where its number says");
	check_u64(0, wide, "no bucket is wider than 1/32 of its values");
	check_u64(RECORD_BUCKETS - 1, record_bucket(UINT64_MAX),
		  "values beyond the last bucket go there");
}

static void test_empty(void)
{
	struct hist h = {0}, other = {0};

	check_near(0, hist_percentile(&h, 0.5), 0,
		   "an empty one has no percentile");
	hist_add(&h, &other);
	memset(&record, 0, sizeof(record));
	hist_add_record(&h, &record, 2);
	check_u64(0, h.count, "adding nothing leaves it empty");
	check_near(0, h.ns_per_tick, 0, "and without a rate");
	hist_drop(&h);
}

static void test_one(void)
{
	struct hist h = {0};

	memset(&record, 0, sizeof(record));
	make_log_value(&record, 1000);
	hist_add_record(&h, &record, 1);
	check_true(hist_percentile(&h, 1) <= 1000, "never above the maximum");
	hist_drop(&h);
	memset(&record, 0, sizeof(record));
	make_log_value(&record, UINT64_C(1) << 50);
	hist_add_record(&h, &record, 1);
	check_near(0x1p50, hist_percentile(&h, 0.5), 0,
		   "a value beyond the last bucket is its maximum");
	hist_drop(&h);
}

/* The same values, split over two writers. */
static void test_two(double rate, double other_rate, double tolerance,
		     const char *of)
{
	struct record_hist *part = calloc(2, sizeof(*part));
	struct hist h = {0}, second = {0};
	size_t i;

	draw(like_calls);
	for (i = 0; i < VALUES; i++)
		make_log_value(&part[i % 2],
			       i % 2 ? (uint64_t)llround((double)values[i] *
							 rate / other_rate)
				     : values[i]);
	hist_add_record(&h, &part[0], rate);
	hist_add_record(&second, &part[1], other_rate);
	hist_add(&h, &second);
	check_u64(VALUES, h.count, "%s: count is exact", of);
	check_percentiles(of, &h, rate, tolerance);
	hist_drop(&h);
	hist_drop(&second);
	free(part);
}

int main(void)
{
	test_bounds();
	test_empty();
	test_one();
	test_drawn("all magnitudes", any_below_2_to_41, 1, 0.016);
	test_drawn("calls at 2.5 GHz", like_calls, 0.4, 0.016);
	test_drawn("zeros", zeros, 1, 0);
	test_drawn("small values are exact", small, 1, 0);
	test_two(0.4, 0.4, 0.016, "one clock, two writers");
	test_two(0.4, 0.40001, 0.017, "one clock, measured twice");
	test_two(0.4, 1, 0.032, "two clocks");
	return check_done();
}
