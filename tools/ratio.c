/* SPDX-License-Identifier: MIT */
#include "ratio.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"

enum {
	LEAST_ROUNDS = 5, /* for a bootstrap */
	MOST_RESAMPLES = 4000,
	LEAST_RESAMPLES = 1000,
};

static const double normal = 1.959964;  /* 97.5 % of the normal law */
static const double noticed = 0.01;     /* a verdict's smallest effect */
static const double bounded = 0.02;     /* what is as good as none */
static const double often_enough = 0.8; /* that rounds settle it */

size_t ratio_random(uint64_t *state, size_t count)
{
	/* splitmix64: any state is a good one. */
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return (size_t)(((z >> 32) * count) >> 32);
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The mean of a pair of rounds. */
struct pair {
	double mean;
	uint32_t first, second;
};

static int by_mean(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return (x->mean > y->mean) - (x->mean < y->mean);
}

/* Of all n * (n + 1) / 2 pairs, sorted. */
static struct pair *new_pairs(const double *x, size_t n)
{
	struct pair *pairs = xcalloc(n * (n + 1) / 2, sizeof(*pairs));
	size_t count = 0;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = i; j < n; j++)
			pairs[count++] = (struct pair){(x[i] + x[j]) / 2, i, j};
	qsort(pairs, count, sizeof(*pairs), by_mean);
	return pairs;
}

/* How many pairs it is when each round is there `times` times. */
static uint64_t weight(const struct pair *pair, const uint32_t *times)
{
	uint64_t a = times[pair->first], b = times[pair->second];

	return pair->first == pair->second ? a * (a + 1) / 2 : a * b;
}

/* The median of the means, of n rounds in all. */
static double pseudo_median(const struct pair *pairs, const uint32_t *times,
			    size_t n)
{
	uint64_t all = n * (n + 1) / 2, below = 0;
	size_t i = 0, j;

	while ((below += weight(&pairs[i], times)) * 2 < all)
		i++;
	if (below * 2 > all)
		return pairs[i].mean;
	for (j = i + 1; weight(&pairs[j], times) == 0; j++)
		;
	return (pairs[i].mean + pairs[j].mean) / 2;
}

/* 97.5 % of Student's t: the law of few degrees of freedom as it is, of more
 * by its expansion about the normal one. */
static double student(size_t freedom)
{
	static const double few[] = {0, 12.7062, 4.3027, 3.1824, 2.7764};
	double f = (double)freedom, z = normal, z3 = z * z * z;

	if (freedom < sizeof(few) / sizeof(few[0]))
		return few[freedom];
	return z + (z3 + z) / (4 * f) +
	       (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * f * f) +
	       (3 * z3 * z3 * z + 19 * z3 * z * z + 17 * z3 - 15 * z) /
		       (384 * f * f * f);
}

static double stretch(size_t n)
{
	double count = (double)n;

	return student(n - 1) / normal * sqrt(count / (count - 1));
}

/* The time that it takes grows with n * n. */
static size_t resamples(size_t n)
{
	size_t count = 100000000 / (n * n);

	if (count > MOST_RESAMPLES)
		return MOST_RESAMPLES;
	return count < LEAST_RESAMPLES ? LEAST_RESAMPLES : count;
}

/* Estimates, sorted, from rounds drawn with repetition. */
static double *bootstrap(const struct pair *pairs, size_t n, size_t count)
{
	double *estimates = xcalloc(count, sizeof(*estimates));
	uint32_t *times = xcalloc(n, sizeof(*times));
	uint64_t state = n;

	for (size_t i = 0; i < count; i++) {
		memset(times, 0, n * sizeof(*times));
		for (size_t j = 0; j < n; j++)
			times[ratio_random(&state, n)]++;
		estimates[i] = pseudo_median(pairs, times, n);
	}
	qsort(estimates, count, sizeof(*estimates), by_value);
	free(times);
	return estimates;
}

static double estimate(const struct pair *pairs, size_t n)
{
	uint32_t *once = xcalloc(n, sizeof(*once));
	double value;

	for (size_t i = 0; i < n; i++)
		once[i] = 1;
	value = pseudo_median(pairs, once, n);
	free(once);
	return value;
}

static void student_interval(struct ratio *r, const double *x, size_t n)
{
	double mean = 0, squares = 0, half;

	for (size_t i = 0; i < n; i++)
		mean += x[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (x[i] - mean) * (x[i] - mean);
	half = student(n - 1) * sqrt(squares / (double)(n * (n - 1)));
	r->low = r->value - half;
	r->high = r->value + half;
}

static void bootstrap_interval(struct ratio *r, const struct pair *pairs,
			       size_t n)
{
	size_t count = resamples(n), tail = count / 40;
	double *estimates = bootstrap(pairs, n, count), wider = stretch(n);

	r->low = r->value - wider * (r->value - estimates[tail]);
	r->high = r->value + wider * (estimates[count - 1 - tail] - r->value);
	free(estimates);
}

struct ratio ratio_center(const double *x, size_t n)
{
	struct pair *pairs = new_pairs(x, n);
	struct ratio r = {estimate(pairs, n), -INFINITY, INFINITY};

	if (n >= LEAST_ROUNDS)
		bootstrap_interval(&r, pairs, n);
	else if (n > 1)
		student_interval(&r, x, n);
	free(pairs);
	return r;
}

struct ratio ratio_of(const double *base, const double *other, size_t n,
		      bool lower)
{
	double *logs = xcalloc(n, sizeof(*logs));
	struct ratio r;

	for (size_t i = 0; i < n; i++)
		logs[i] = lower ? log(base[i] / other[i])
				: log(other[i] / base[i]);
	r = ratio_center(logs, n);
	free(logs);
	return (struct ratio){exp(r.value), exp(r.low), exp(r.high)};
}

void ratio_widen(struct ratio *r, double part)
{
	r->low *= exp(-part);
	r->high *= exp(part);
}

enum ratio_verdict ratio_judge(const struct ratio *r)
{
	if (r->low > 1 && r->value >= 1 + noticed)
		return RATIO_FASTER;
	if (r->high < 1 && r->value <= 1 - noticed)
		return RATIO_SLOWER;
	return RATIO_SAME;
}

static bool is_within(const struct ratio *r)
{
	return r->low >= 1 - bounded && r->high <= 1 + bounded;
}

bool ratio_is_settled(const struct ratio *r)
{
	return ratio_judge(r) != RATIO_SAME || is_within(r);
}

/* The normal law: how often it is below. */
static double below(double deviations)
{
	return erfc(-deviations * M_SQRT1_2) / 2;
}

/* How far the logarithm's interval reaches to both sides, and its estimate;
 * `deviation` is how much narrower than an arm a standard deviation is. */
struct arms {
	double at, low, high, deviation;
};

/* Of so many rounds, if the estimate stays where n rounds have it. */
static struct arms arms_after(const struct ratio *r, size_t n, size_t rounds)
{
	double shrunk =
		stretch(rounds) / stretch(n) * sqrt((double)n / (double)rounds);
	double at = log(r->value);

	return (struct arms){at, shrunk * (at - log(r->low)),
			     shrunk * (log(r->high) - at),
			     1 / (normal * stretch(rounds))};
}

/* How often such an interval excludes 1 and the effect is no less than what is
 * noticed: the arm that reaches across counts. */
static double often_found(const struct arms *a)
{
	if (a->at > 0)
		return below((a->at - fmax(a->low, log1p(noticed))) /
			     (a->low * a->deviation));
	return below((-a->at - fmax(a->high, -log1p(-noticed))) /
		     (a->high * a->deviation));
}

/* How often it lies within the bounds, with both arms. */
static double often_within(const struct arms *a)
{
	double under =
		(a->at - a->low - log1p(-bounded)) / (a->low * a->deviation);
	double over =
		(log1p(bounded) - a->high - a->at) / (a->high * a->deviation);

	return below(under) + below(over) - 1;
}

size_t ratio_more_rounds(const struct ratio *r, size_t n)
{
	size_t rounds = n + 1;

	if (ratio_is_settled(r))
		return 0;
	if (n < RATIO_FEW_ROUNDS)
		return RATIO_DEFAULT_ROUNDS - n;
	for (; rounds < 100 * RATIO_MOST_ROUNDS; rounds++) {
		struct arms a = arms_after(r, n, rounds);

		if (fmax(often_found(&a), often_within(&a)) >= often_enough)
			break;
	}
	return rounds - n;
}

/* The mean of those at 0, of one round. */
static double base_of(const double *const *values, const double *x,
		      size_t count, size_t round)
{
	double sum = 0, n = 0;

	for (size_t j = 0; j < count; j++)
		if (x[j] == 0) {
			sum += values[j][round];
			n++;
		}
	return sum / n;
}

/* Of one round: least squares, of what each is off as a part of itself, as that
 * is how noise comes. */
static double slope_of(const double *const *values, const double *x,
		       size_t count, size_t round)
{
	double all = 0, mean_x = 0, mean_y = 0, xx = 0, xy = 0;

	for (size_t j = 0; j < count; j++) {
		double y = values[j][round], weight = 1 / (y * y);

		all += weight;
		mean_x += x[j] * weight;
		mean_y += y * weight;
	}
	mean_x /= all;
	mean_y /= all;
	for (size_t j = 0; j < count; j++) {
		double y = values[j][round], weight = 1 / (y * y);

		xx += (x[j] - mean_x) * (x[j] - mean_x) * weight;
		xy += (x[j] - mean_x) * (y - mean_y) * weight;
	}
	return xy / xx / base_of(values, x, count, round);
}

struct ratio ratio_slope(const double *const *values, const double *x,
			 size_t count, size_t n)
{
	double *slopes = xcalloc(n, sizeof(*slopes));
	struct ratio r;

	for (size_t i = 0; i < n; i++)
		slopes[i] = slope_of(values, x, count, i);
	r = ratio_center(slopes, n);
	free(slopes);
	return r;
}

static double *sorted(const double *x, size_t n)
{
	double *copy = xcalloc(n, sizeof(*copy));

	memcpy(copy, x, n * sizeof(*copy));
	qsort(copy, n, sizeof(*copy), by_value);
	return copy;
}

double ratio_median(const double *x, size_t n)
{
	double *copy = sorted(x, n), median;

	median = (copy[(n - 1) / 2] + copy[n / 2]) / 2;
	free(copy);
	return median;
}

/* Between the values that are there. */
static double quantile(const double *sorted_x, size_t n, double share)
{
	double at = share * (double)(n - 1);
	size_t below = (size_t)at;
	size_t above = below + 1 < n ? below + 1 : below;

	return sorted_x[below] +
	       (at - (double)below) * (sorted_x[above] - sorted_x[below]);
}

double ratio_scatter(const double *x, size_t n)
{
	double *copy = sorted(x, n), middle = quantile(copy, n, 0.5), half;

	half = quantile(copy, n, 0.75) - quantile(copy, n, 0.25);
	free(copy);
	return middle > 0 ? half / 1.349 / middle : 0;
}
