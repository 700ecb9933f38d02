/* SPDX-License-Identifier: MIT */
/* The statistics of compare, on noise that is made here: its seed is fixed, so
 * each figure is the same every time. */
#include <math.h>

#include "../../tools/ratio.h"
#include "check.h"

enum { TRIALS = 100, DEFAULT_ROUNDS = 20 };

static uint64_t state = 42;

/* Between 0 and 1, neither included. */
static double uniform(void)
{
	return ((double)ratio_random(&state, 1u << 30) + 0.5) / (1u << 30);
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

static bool happens(double probability)
{
	return uniform() < probability;
}

/* The logarithm of what one run's time is multiplied by.  `machine` is the
 * state of the machine in this round, the same for all configurations. */
static double quiet(double machine)
{
	(void)machine;
	return 0.02 * normal();
}

static double lognormal(double machine)
{
	(void)machine;
	return 0.07 * normal();
}

static double skewed(double machine)
{
	(void)machine;
	return -0.06 * log(uniform());
}

static double outliers(double machine)
{
	(void)machine;
	return 0.025 * normal() + (happens(0.05) ? -0.5 * log(uniform()) : 0);
}

static double two_modes(double machine)
{
	(void)machine;
	return 0.02 * normal() + (happens(0.5) ? 0.12 : 0);
}

static double rare_mode(double machine)
{
	(void)machine;
	return 0.02 * normal() + (happens(0.25) ? 0.15 : 0);
}

static double drifting(double machine)
{
	return machine + 0.04 * normal();
}

static const struct {
	const char *name;
	double (*run)(double machine);
} noises[] = {
	{"hardly any noise", quiet},
	{"lognormal noise", lognormal},
	{"skewed noise", skewed},
	{"outliers", outliers},
	{"two modes", two_modes},
	{"a rare second mode", rare_mode},
	{"a machine that drifts", drifting},
};

enum { NOISES = sizeof(noises) / sizeof(noises[0]) };

/* One compare of times, of which the second are `factor` of the first. */
static enum ratio_verdict trial(double (*run)(double), size_t rounds,
				double factor)
{
	double base[DEFAULT_ROUNDS], other[DEFAULT_ROUNDS], machine = 0;
	struct ratio r;

	for (size_t i = 0; i < rounds; i++) {
		machine = 0.8 * machine + 0.06 * normal();
		base[i] = exp(run(machine));
		other[i] = exp(run(machine)) * factor;
	}
	r = ratio_of(base, other, rounds, true);
	return ratio_judge(&r);
}

static unsigned count(double (*run)(double), size_t rounds, double factor,
		      enum ratio_verdict verdict)
{
	unsigned n = 0;

	for (int i = 0; i < TRIALS; i++)
		n += trial(run, rounds, factor) == verdict;
	return n;
}

static void test_equals(void)
{
	static const size_t rounds[] = {3, 5, 10, DEFAULT_ROUNDS};

	for (size_t r = 0; r < sizeof(rounds) / sizeof(rounds[0]); r++)
		for (size_t i = 0; i < NOISES; i++)
			check_between(
				TRIALS - 10, TRIALS,
				count(noises[i].run, rounds[r], 1, RATIO_SAME),
				"%zu rounds of equals are equal: %s", rounds[r],
				noises[i].name);
}

static void test_differences(void)
{
	for (size_t i = 0; i < NOISES; i++) {
		check_between(90, TRIALS,
			      count(noises[i].run, DEFAULT_ROUNDS, 1 / 1.1,
				    RATIO_FASTER),
			      "10 %% better is found: %s", noises[i].name);
		check_between(
			90, TRIALS,
			count(noises[i].run, DEFAULT_ROUNDS, 1.1, RATIO_SLOWER),
			"10 %% worse is found: %s", noises[i].name);
	}
}

/* Share of trials whose interval holds the truth. */
static void test_coverage(void)
{
	for (size_t i = 0; i < NOISES; i++) {
		unsigned held = 0;

		for (int t = 0; t < TRIALS; t++) {
			double base[10], other[10];
			struct ratio r;

			for (int j = 0; j < 10; j++) {
				base[j] = exp(noises[i].run(0));
				other[j] = 1.3 * exp(noises[i].run(0));
			}
			r = ratio_of(base, other, 10, false);
			held += r.low <= 1.3 && 1.3 <= r.high;
		}
		check_between(90, TRIALS, held, "the interval holds 1.3: %s",
			      noises[i].name);
	}
}

static void test_exact(void)
{
	static const double ones[] = {1, 1, 1, 1}, twos[] = {2, 2, 2, 2};
	struct ratio r = ratio_of(ones, twos, 4, false);

	check_between(2, 2, r.value, "without noise the ratio is exact");
	check_between(2, 2, r.low, "and so is its lower end");
	check_between(2, 2, r.high, "and its upper end");
	check_int(RATIO_FASTER, ratio_judge(&r), "twice as many is faster");
	r = ratio_of(ones, twos, 4, true);
	check_between(0.5, 0.5, r.value, "of what should be little, half");
	check_int(RATIO_SLOWER, ratio_judge(&r), "twice as long is slower");
	r = ratio_of(ones, ones, 4, true);
	check_int(RATIO_SAME, ratio_judge(&r), "the same is the same");
	check_u64(0, ratio_more_rounds(&r, 4), "and needs no more rounds");
}

static void test_pseudo_median(void)
{
	static const double wild[] = {1, 2, 3, 1000};
	static const double one[] = {7};
	struct ratio r = ratio_center(wild, 4);

	/* 1 1.5 2 2 2.5 | 3 500.5 501 501.5 1000 */
	check_between(2.75, 2.75, r.value, "the median of means of pairs");
	r = ratio_center(one, 1);
	check_between(7, 7, r.value, "one round is its own estimate");
	check_true(isinf(r.low) && isinf(r.high), "and has no interval");
}

static void test_judge(void)
{
	static const struct {
		const char *name;
		struct ratio r;
		enum ratio_verdict verdict;
	} rows[] = {
		{"1.05 [1.02, 1.08]", {1.05, 1.02, 1.08}, RATIO_FASTER},
		{"0.95 [0.92, 0.98]", {0.95, 0.92, 0.98}, RATIO_SLOWER},
		{"1.05 [0.99, 1.08]", {1.05, 0.99, 1.08}, RATIO_SAME},
		{"1.005 [1.003, 1.007]", {1.005, 1.003, 1.007}, RATIO_SAME},
		{"0.995 [0.993, 0.997]", {0.995, 0.993, 0.997}, RATIO_SAME},
		{"1.01 [1.005, 1.015]", {1.01, 1.005, 1.015}, RATIO_FASTER},
		{"0.99 [0.985, 0.995]", {0.99, 0.985, 0.995}, RATIO_SLOWER},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_int(rows[i].verdict, ratio_judge(&rows[i].r), "%s",
			  rows[i].name);
}

static void test_more_rounds(void)
{
	const struct ratio wide = {1.05, 0.95, 1.16};
	const struct ratio narrow = {1.005, 0.99, 1.02};
	const struct ratio found = {1.2, 1.1, 1.3};
	const struct ratio hopeless = {1, 0.2, 5};
	const struct ratio one = {1.5, 0, INFINITY};
	const struct ratio two = {1.5, 0.4, 5.6};
	static const struct {
		const char *name;
		struct ratio r;
		double least, most;
	} rows[] = {
		{"the arm across 1 counts, above", {1.2, 0.98, 1.38}, 20, 30},
		{"the arm across 1 counts, below", {0.83, 0.7, 1.02}, 20, 30},
		{"2 % is not excluded: a verdict is near",
		 {1.018, 0.999, 1.038},
		 15,
		 25},
		{"the arm across 2 % counts", {1.005, 0.99, 1.03}, 70, 85},
		{"above 1, by less than 1 %", {1.009, 1.001, 1.03}, 90, 120},
		/* As many again: half of all would be settled by one more. */
		{"an end that is 1", {1.1, 1, 1.2}, 15, 20},
	};

	/* Half of the width for every second time, two thirds of that for four
	 * of five: eight times the rounds, and less for the stretch. */
	check_between(110, 140, (double)ratio_more_rounds(&wide, 20),
		      "twice too wide wants eight times the rounds");
	check_u64(0, ratio_more_rounds(&narrow, 20),
		  "less than 2 %% either way is settled");
	check_u64(0, ratio_more_rounds(&found, 20), "a verdict is settled");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_between(rows[i].least, rows[i].most,
			      (double)ratio_more_rounds(&rows[i].r, 20), "%s",
			      rows[i].name);
	check_true(ratio_more_rounds(&hopeless, 5) > RATIO_MOST_ROUNDS,
		   "hopeless is more than can be asked for");
	check_u64(19, ratio_more_rounds(&one, 1),
		  "one round wants the default");
	check_u64(18, ratio_more_rounds(&two, 2), "and so do two");
}

static struct ratio measured(double noise, size_t rounds, double factor)
{
	double base[200], other[200];

	for (size_t i = 0; i < rounds; i++) {
		base[i] = exp(noise * normal());
		other[i] = factor * exp(noise * normal());
	}
	return ratio_of(base, other, rounds, false);
}

/* The interval of the default rounds, as it mostly is, about the truth. */
static struct ratio typical(double noise, double factor)
{
	double below = 0, above = 0;

	for (int i = 0; i < TRIALS; i++) {
		struct ratio r = measured(noise, DEFAULT_ROUNDS, factor);

		below += log(r.value / r.low) / TRIALS;
		above += log(r.high / r.value) / TRIALS;
	}
	return (struct ratio){factor, factor * exp(-below),
			      factor * exp(above)};
}

/* That many rounds do settle it, in four of five trials. */
static void test_promise(void)
{
	static const struct {
		const char *name;
		double noise, factor;
	} rows[] = {
		{"10 % worse", 0.17, 0.9},
		{"the same", 0.033, 1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ratio r = typical(rows[i].noise, rows[i].factor);
		size_t more = ratio_more_rounds(&r, DEFAULT_ROUNDS);
		unsigned settled = 0;

		check_between(10, 150, (double)more, "%s: more are needed",
			      rows[i].name);
		for (int t = 0; t < TRIALS; t++) {
			r = measured(rows[i].noise, DEFAULT_ROUNDS + more,
				     rows[i].factor);
			settled += ratio_is_settled(&r);
		}
		check_between(70, 92, settled, "%s: %zu more settle it",
			      rows[i].name, more);
	}
}

enum { SLOPE_ROUNDS = 12, SLOPE_CONFIGS = 3 };

/* Of values that grow by `rise` for each unit, with that much noise. */
static struct ratio slope(double rise, double noise)
{
	static const double x[SLOPE_CONFIGS] = {0, 5, 10};
	double y[SLOPE_CONFIGS][SLOPE_ROUNDS];
	const double *values[SLOPE_CONFIGS] = {y[0], y[1], y[2]};

	for (size_t j = 0; j < SLOPE_CONFIGS; j++)
		for (size_t i = 0; i < SLOPE_ROUNDS; i++)
			y[j][i] = 3 * (1 + rise * x[j]) * exp(noise * normal());
	return ratio_slope(values, x, SLOPE_CONFIGS, SLOPE_ROUNDS);
}

static void test_slope(void)
{
	struct ratio r = slope(0.02, 0);
	unsigned held = 0, none = 0;

	check_between(0.02 - 1e-9, 0.02 + 1e-9, r.value,
		      "2 %% a unit, without noise");
	for (int i = 0; i < TRIALS; i++) {
		r = slope(0.02, 0.03);
		held += r.low <= 0.02 && 0.02 <= r.high && r.low > 0;
		r = slope(0, 0.03);
		none += r.low <= 0 && 0 <= r.high;
	}
	check_between(90, TRIALS, held, "the interval holds a slope");
	check_between(90, TRIALS, none, "and that there is none");
}

/* A delay that takes most of the time: what is small is as well known. */
static void test_steep_slope(void)
{
	unsigned held = 0, wild = 0;

	for (int i = 0; i < TRIALS; i++) {
		struct ratio r = slope(20, 0.05);

		held += r.low <= 20 && 20 <= r.high;
		wild += r.low < 15 || r.high > 25;
	}
	check_between(90, TRIALS, held, "the interval holds a steep slope");
	check_u64(0, wild, "and is as narrow as the noise");
}

static void test_widen(void)
{
	struct ratio r = {1.2, 1.2, 1.2};

	ratio_widen(&r, 0.1);
	check_between(1.2 / 1.106, 1.2 / 1.105, r.low, "an end goes down");
	check_between(1.2 * 1.105, 1.2 * 1.106, r.high, "and the other up");
	check_between(1.2, 1.2, r.value, "and the ratio stays");
}

static void test_scatter(void)
{
	static const double x[] = {4, 1, 3, 2, 100};
	double noise[300];

	check_between(3, 3, ratio_median(x, 5), "an odd median");
	check_between(2.5, 2.5, ratio_median(x, 4), "an even median");
	check_between(0, 0, ratio_scatter(x, 1), "one value does not scatter");
	for (size_t i = 0; i < 300; i++)
		noise[i] = 7 * (1 + 0.05 * normal());
	check_between(0.04, 0.06, ratio_scatter(noise, 300),
		      "scatter is the standard deviation of what is normal");
}

static void test_random(void)
{
	unsigned seen[6] = {0};
	uint64_t seed = 1;

	for (int i = 0; i < 6000; i++)
		seen[ratio_random(&seed, 6)]++;
	for (int i = 0; i < 6; i++)
		check_between(850, 1150, seen[i], "side %d of a die", i + 1);
}

int main(void)
{
	test_exact();
	test_pseudo_median();
	test_judge();
	test_more_rounds();
	test_promise();
	test_slope();
	test_steep_slope();
	test_widen();
	test_scatter();
	test_random();
	test_equals();
	test_differences();
	test_coverage();
	return check_done();
}
