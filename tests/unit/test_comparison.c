/* SPDX-License-Identifier: MIT */
/* What is made of rounds that were measured, without measuring any. */
#include <stdlib.h>

#include "../../tools/comparison.h"
#include "../../tools/die.h"
#include "check.h"

enum { ROUNDS = 6, CONFIGS = 3 };

static const char *metric_text;
static bool metric_lower;
static struct metric metric;
static struct config configs[CONFIGS];
static struct profile *profiles;
static struct rounds_sample samples[ROUNDS * CONFIGS];

/* The delays of the configurations; NULL: none is given. */
static void set_delays(const char *const delays[CONFIGS])
{
	for (size_t i = 0; i < CONFIGS; i++) {
		configs[i] = (struct config){.text = xstrdup("a config")};
		opts_settings_init(&configs[i].settings);
		for (size_t k = 0; k < knob_count(); k++)
			if (strcmp(knob_at(k)->option, "delay") == 0)
				configs[i].settings.given[k].value = delays[i];
	}
}

static void drop(struct comparison *c)
{
	comparison_free(c);
	for (size_t i = 0; i < CONFIGS; i++)
		config_free(&configs[i]);
	metric_free(&metric);
}

static struct comparison *compare(const double values[CONFIGS])
{
	struct rounds rounds = {
		.metric = &metric,
		.configs = configs,
		.config_count = CONFIGS,
		.samples = samples,
		.profiles = profiles,
		.done = ROUNDS,
	};
	char why[METRIC_LINE];

	metric_set(&metric, metric_text, metric_lower, why);
	for (size_t i = 0; i < ROUNDS * CONFIGS; i++)
		samples[i].value = values[i % CONFIGS];
	return comparison_new(&rounds, ROUNDS);
}

static void check_slope(const char *name, const char *const delays[CONFIGS],
			const double values[CONFIGS], const char *op,
			double per_us)
{
	struct comparison *c;

	set_delays(delays);
	c = compare(values);
	check_text(op, c->slope.op, "%s: the call", name);
	check_between(per_us - 1e-9, per_us + 1e-9, c->slope.per_us.value,
		      "%s: the slope", name);
	drop(c);
}

static void test_slopes(void)
{
	static const double times[] = {2, 2.2, 2.4}, rates[] = {10, 8, 5};
	static const double equals[] = {1, 1, 1};
	static const char *const munmap[] = {"none", "munmap:5us",
					     "munmap:10us"};
	static const char *const unset[] = {NULL, "mmap:5us", "mmap:10000ns"};
	static const char *const mixed[] = {"none", "mmap:5us", "munmap:5us"};
	static const char *const several[] = {"none", "mmap:5us,munmap:5us",
					      "mmap:9us"};
	static const char *const all[] = {"mmap:5us", "mmap:5us", "mmap:5us"};

	metric_text = "wall";
	check_slope("times", munmap, times, "munmap", 0.02);
	check_slope("no delay given", unset, times, "mmap", 0.02);
	check_slope("no slope", munmap, equals, "munmap", 0);
	check_slope("two calls", mixed, times, NULL, 0);
	check_slope("a list of calls", several, times, NULL, 0);
	check_slope("one delay", all, times, NULL, 0);
	metric_text = "x(.)";
	check_slope("a rate", munmap, rates, "munmap",
		    /* 0.1, 0.125 and 0.2 a unit of work */
		    0.01 / (0.425 / 3 - 0.05));
}

static void test_share(void)
{
	static const char *const munmap[] = {"none", "munmap:5us",
					     "munmap:10us"};
	static const double times[] = {2, 2.2, 2.4};
	struct profile known[CONFIGS] = {{.known = true, .wall_s = 2}};
	struct comparison *c;

	/* 0.04 s longer for each us added to 100,000 calls: 0.1 s. */
	known[0].op[OP_MUNMAP].count = 100000;
	metric_text = "wall";
	set_delays(munmap);
	profiles = known;
	c = compare(times);
	check_between(0.3999, 0.4001, c->slope.per_second.value,
		      "of each second added");
	drop(c);
	set_delays(munmap);
	known[0].op[OP_MUNMAP].count = 0;
	c = compare(times);
	check_between(0, 0, c->slope.per_second.value, "of no calls");
	drop(c);
	profiles = NULL;
}

/* Of what is measured, not of the time that passes. */
static void test_share_of_others(void)
{
	static const struct {
		const char *name, *metric;
		bool lower;
		double least, most;
	} rows[] = {
		{"the time that passed", "wall", true, 0.3999, 0.4001},
		{"a rate", "x(.)", false, 0.3, 0.5},
		{"CPU time", "cpu", true, 0, 0},
		{"a latency", "x(.)", true, 0, 0},
	};
	static const char *const munmap[] = {"none", "munmap:5us",
					     "munmap:10us"};
	static const double times[] = {2, 2.2, 2.4}, rates[] = {12, 11, 10};
	struct profile known[CONFIGS] = {{.known = true, .wall_s = 2}};

	known[0].op[OP_MUNMAP].count = 100000;
	profiles = known;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct comparison *c;

		metric_text = rows[i].metric;
		metric_lower = rows[i].lower;
		set_delays(munmap);
		c = compare(rows[i].lower ? times : rates);
		check_text("munmap", c->slope.op, "there is a slope");
		check_between(rows[i].least, rows[i].most,
			      c->slope.per_second.value,
			      "of each second added, by %s", rows[i].name);
		drop(c);
	}
	metric_lower = false;
	profiles = NULL;
}

static void test_other_differences(void)
{
	static const char *const munmap[] = {"none", "munmap:5us",
					     "munmap:10us"};
	static const double times[] = {2, 2.2, 2.4};
	struct comparison *c;

	metric_text = "wall";
	set_delays(munmap);
	configs[1].settings.knobs.lock = LOCK_mutex;
	c = compare(times);
	check_text(NULL, c->slope.op, "another lock: no slope");
	drop(c);
	set_delays(munmap);
	configs[2].has_cpus = true;
	c = compare(times);
	check_text(NULL, c->slope.op, "other CPUs: no slope");
	drop(c);
	set_delays(munmap);
	configs[0].bare = true;
	c = compare(times);
	check_text(NULL, c->slope.op, "bare: no slope");
	drop(c);
}

static void test_rows(void)
{
	static const char *const none[CONFIGS] = {NULL};
	static const double times[] = {2, 1, 2};
	struct comparison *c;

	metric_text = "wall";
	set_delays(none);
	c = compare(times);
	check_text("baseline", comparison_verdict(c, 0), "the first");
	check_text("faster", comparison_verdict(c, 1), "half the time");
	check_text("no difference", comparison_verdict(c, 2), "the same");
	check_between(2, 2, c->rows[1].ratio.value, "half the time is 2");
	check_between(1, 1, c->rows[1].median, "and its median is its own");
	check_between(0, 0, c->noise, "there was no noise");
	drop(c);
}

int main(void)
{
	test_rows();
	test_slopes();
	test_share();
	test_share_of_others();
	test_other_differences();
	return check_done();
}
