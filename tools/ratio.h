/* SPDX-License-Identifier: MIT */
/*
 * ratio: what a few noisy rounds allow to say.
 *
 * Rounds are blocks: each holds one value of every configuration, so that what
 * slows the whole machine for a while slows them all.  What is estimated comes
 * from one number a round (the logarithm of a ratio, a slope) and is their
 * pseudo-median (Hodges and Lehmann): the median of the means of all pairs,
 * each round with itself included.  Few wild rounds do not move it, and where
 * values have two modes it lies between them and does not jump.
 *
 * The 95 % interval is the percentile interval of a bootstrap over rounds.
 * That one is too narrow for few rounds (a tenth to a sixth of pairs of equals
 * look different), so it is stretched about the estimate by what Student's t is
 * wider than the normal law, and by the n / (n - 1) that a bootstrap forgets.
 * Fewer than five rounds are too few to draw from: their interval is Student's
 * own.  One round has none: it is infinite.
 *
 * The same numbers always give the same answer.
 */
#ifndef MMGATE_RATIO_H
#define MMGATE_RATIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	RATIO_MOST_ROUNDS = 1000,
	RATIO_DEFAULT_ROUNDS = 20,
	RATIO_FEW_ROUNDS = 3, /* fewer do not say how noisy they are */
};

struct ratio {
	double value, low, high;
};

enum ratio_verdict { RATIO_SAME, RATIO_FASTER, RATIO_SLOWER };

/* The pseudo-median of one number a round.  pre: n > 0. */
struct ratio ratio_center(const double *x, size_t n);

/* How much better `other` is than `base`: above 1 when its values are larger
 * or, with `lower`, smaller.  pre: all values are positive; n > 0. */
struct ratio ratio_of(const double *base, const double *other, size_t n,
		      bool lower);

/* Makes the interval wider by this part of its ends, each way. */
void ratio_widen(struct ratio *ratio, double part);

/* Faster and slower: the interval excludes 1, and the ratio is off by 1 % or
 * more. */
enum ratio_verdict ratio_judge(const struct ratio *ratio);

/* Settled: faster, slower, or an interval within 2 % of 1. */
bool ratio_is_settled(const struct ratio *ratio);

/* How many more rounds, of such as the n there are, would settle it in four of
 * five cases, if the ratio stayed: they would show a difference, or that there
 * is none of 2 %, whichever is first.  With fewer than RATIO_FEW_ROUNDS, what
 * is missing to the default.  0: it is settled. */
size_t ratio_more_rounds(const struct ratio *ratio, size_t n);

/* What a line through (x[j], values[j][round]) rises by for each unit of x, as
 * a part of the value at 0: from the lines of the single rounds.
 * pre: not all x are equal, one is 0; all values are positive; n > 0. */
struct ratio ratio_slope(const double *const *values, const double *x,
			 size_t count, size_t n);

/* pre: n > 0, as in the next. */
double ratio_median(const double *x, size_t n);

/* How far one value is from the next, as a part of them: what would be the
 * standard deviation if they were normal, by the middle half of them. */
double ratio_scatter(const double *x, size_t n);

/* A number below `count`, from a state of the caller's. */
size_t ratio_random(uint64_t *state, size_t count);

#endif
