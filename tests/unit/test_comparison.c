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
static struct measure *measure;
static double unit;
static char *failure;
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
		.measure = measure,
		.done = ROUNDS,
		.failure = failure,
	};
	char why[METRIC_LINE];

	metric_set(&metric, metric_text, metric_lower, why);
	for (size_t i = 0; i < ROUNDS * CONFIGS; i++) {
		samples[i].value = values[i % CONFIGS];
		samples[i].unit = unit;
	}
	return comparison_new(&rounds, failure != NULL ? 20 : ROUNDS);
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
		    /* 0.1, 0.125 and 0.2 a unit of work, of which the
		     * first weighs four times what the last does */
		    0.26 / 3);
}

static char *text_of(const struct comparison *c)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	comparison_print_text(c, out);
	fclose(out);
	return text;
}

static void check_part(const struct comparison *c, const char *part,
		       bool wanted, const char *name)
{
	char *text = text_of(c);

	check_true((strstr(text, part) != NULL) == wanted, "%s: %s '%s'", name,
		   wanted ? "says" : "does not say", part);
	free(text);
}

/* Of what would the slope be a part? */
static void test_no_base(void)
{
	static const char *const some[] = {"munmap:1us", "munmap:5us",
					   "munmap:10us"};
	static const double times[] = {2, 2.2, 2.4};
	struct comparison *c;

	metric_text = "wall";
	set_delays(some);
	c = compare(times);
	check_text(NULL, c->slope.op, "none without the delay: no slope");
	check_part(c, "a configuration without the delay is missing", true,
		   "none without the delay");
	drop(c);
}

/* Eight threads, whose calls take nearly all of their time. */
static void test_queue(void)
{
	static const struct {
		const char *name, *metric;
		double times[CONFIGS], kernel_s;
		bool queues;
	} rows[] = {
		{"they queue", "wall", {2, 2, 2}, 14, true},
		{"they queue, and faster", "wall", {2, 1.99, 1.98}, 14, true},
		{"they overlap", "wall", {2, 2.06, 2.13}, 14, false},
		{"they take little time", "wall", {2, 2, 2}, 1, false},
		{"CPU time knows no queue", "cpu", {2, 2, 2}, 14, false},
	};
	static const char *const munmap[] = {"none", "munmap:5us",
					     "munmap:10us"};
	struct profile known[CONFIGS] = {
		{.known = true, .wall_s = 2, .thread_ns = 16e9}};

	known[0].op[OP_MUNMAP].count = 100000;
	known[0].op[OP_MUNMAP].wait_ns = 1e9;
	profiles = known;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct comparison *c;

		metric_text = rows[i].metric;
		known[0].op[OP_MUNMAP].kernel_ns = (rows[i].kernel_s - 1) * 1e9;
		set_delays(munmap);
		c = compare(rows[i].times);
		check_between(rows[i].kernel_s / 16 - 1e-9,
			      rows[i].kernel_s / 16 + 1e-9,
			      c->slope.thread_share, "%s: their share",
			      rows[i].name);
		check_true(c->slope.queues == rows[i].queues, "%s: queue?",
			   rows[i].name);
		check_part(c, "threads probably queue there", rows[i].queues,
			   rows[i].name);
		check_true(c->slope.has_per_second ==
				   (strcmp(rows[i].metric, "wall") == 0),
			   "%s: a slope of nothing is told too", rows[i].name);
		drop(c);
	}
	profiles = NULL;
}

/* The run that counts is the first, and slow; the work is the same. */
static void test_slow_first_run(void)
{
	static const char *const munmap[] = {"none", "munmap:5us",
					     "munmap:10us"};
	static const double times[] = {2, 2.2, 2.4};
	static const double rates[] = {12, 12 / 1.1, 10};
	struct profile known[CONFIGS] = {
		{.known = true, .wall_s = 3, .value = 8}};
	const struct server server = {.ready_ns = 1};
	struct measure with_server = {.server = &server};
	struct comparison *c;

	known[0].op[OP_MUNMAP].count = 100000;
	profiles = known;
	metric_text = "wall";
	set_delays(munmap);
	c = compare(times);
	check_between(0.3999, 0.4001, c->slope.per_second.value,
		      "of each second added, by the measured time");
	drop(c);
	metric_text = "x(.)";
	set_delays(munmap);
	c = compare(rates);
	check_between(0.3999, 0.4001, c->slope.per_second.value,
		      "of each second added, by the measured rate");
	drop(c);
	measure = &with_server;
	set_delays(munmap);
	c = compare(rates);
	check_true(!c->slope.has_per_second,
		   "a server's calls are not those of the load alone");
	drop(c);
	measure = NULL;
	profiles = NULL;
}

/* What is rounded may be half a unit off, and each run the same way. */
static void test_digits(void)
{
	static const char *const none[CONFIGS] = {NULL};
	static const struct {
		const char *name;
		double values[CONFIGS], unit;
		const char *verdict;
		bool coarse;
	} rows[] = {
		{"0.549 and 0.551",
		 {0.5, 0.6, 0.6},
		 0.1,
		 "no difference",
		 true},
		{"two units", {0.5, 0.7, 0.7}, 0.1, "faster", false},
		{"more digits", {0.5, 0.6, 0.6}, 0.01, "faster", false},
		{"equals", {0.5, 0.5, 0.5}, 0.1, "no difference", true},
		{"equals of many digits",
		 {0.5, 0.5, 0.5},
		 0.001,
		 "no difference",
		 false},
	};

	metric_text = "x(.)";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct comparison *c;
		const struct ratio *r;

		unit = rows[i].unit;
		set_delays(none);
		c = compare(rows[i].values);
		r = &c->rows[1].ratio;
		check_text(rows[i].verdict, comparison_verdict(c, 1), "%s",
			   rows[i].name);
		check_true(r->low < r->value && r->value < r->high,
			   "%s: the interval has a width", rows[i].name);
		check_true(c->rows[1].coarse == rows[i].coarse, "%s: coarse?",
			   rows[i].name);
		check_u64(0, c->rows[1].more_rounds,
			  "%s: more rounds do not help", rows[i].name);
		check_part(c, "too few digits to tell", rows[i].coarse,
			   rows[i].name);
		drop(c);
	}
	unit = 0;
}

/* Where noise carries values over a unit, the mean is not rounded. */
static void test_noisy_digits(void)
{
	static const char *const none[CONFIGS] = {NULL};
	struct comparison *c;
	struct rounds rounds = {
		.metric = &metric,
		.configs = configs,
		.config_count = CONFIGS,
		.samples = samples,
		.done = ROUNDS,
	};
	char why[METRIC_LINE];

	metric_set(&metric, "x(.)", false, why);
	set_delays(none);
	for (size_t i = 0; i < ROUNDS * CONFIGS; i++)
		samples[i] = (struct rounds_sample){
			.value = 10 + (double)(i / CONFIGS % 3), .unit = 1};
	check_between(0, 0, comparison_rounding(&rounds, 0, 1, ROUNDS),
		      "noise of more than a unit");
	samples[0].unit = 0.01;
	check_between(0, 0.001, comparison_rounding(&rounds, 0, 2, ROUNDS),
		      "the finest number says how they are printed");
	c = comparison_new(&rounds, ROUNDS);
	drop(c);
}

static void test_slope_of_few_digits(void)
{
	static const char *const munmap[] = {"none", "munmap:5us",
					     "munmap:10us"};
	static const double rates[] = {0.5, 0.5, 0.5};
	struct comparison *c;

	metric_text = "x(.)";
	unit = 0.1;
	set_delays(munmap);
	c = compare(rates);
	check_between(-0.0201, -0.0199, c->slope.per_us.low,
		      "a rounded slope may be less");
	check_between(0.0199, 0.0201, c->slope.per_us.high, "or more");
	drop(c);
	unit = 0;
}

static void test_failure(void)
{
	static const char *const none[CONFIGS] = {NULL};
	static const double times[] = {2, 1, 2};
	static char line[] = "exit status 3";
	struct comparison *c;

	metric_text = "wall";
	failure = line;
	set_delays(none);
	c = compare(times);
	check_part(c, "failed after 6 of 20 rounds: a config: exit status 3",
		   true, "rounds before a failure");
	check_part(c, "interrupted", false, "rounds before a failure");
	drop(c);
	failure = NULL;
}

/* Of any length. */
static void test_long_notes(void)
{
	static const char *const none[CONFIGS] = {NULL};
	static const double times[] = {2, 1, 2};
	char line[3000];
	struct comparison *c;

	memset(line, 'x', sizeof(line) - 2);
	line[sizeof(line) - 2] = '!';
	line[sizeof(line) - 1] = '\0';
	metric_text = "wall";
	failure = line;
	set_delays(none);
	c = compare(times);
	check_part(c, "xxx!", true, "a long line");
	drop(c);
	failure = NULL;
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
	check_true(!c->slope.has_per_second, "of no calls");
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
	struct profile known[CONFIGS] = {
		{.known = true, .wall_s = 2, .value = 12}};

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
	test_no_base();
	test_queue();
	test_slow_first_run();
	test_digits();
	test_noisy_digits();
	test_slope_of_few_digits();
	test_failure();
	test_long_notes();
	test_share();
	test_share_of_others();
	test_other_differences();
	return check_done();
}
