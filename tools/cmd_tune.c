/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "advice.h"
#include "cmd.h"
#include "die.h"
#include "opts.h"
#include "output.h"
#include "target.h"
#include "tune.h"

static const double default_budget_s = 300, most_budget_s = 7 * 24 * 3600;

struct format {
	const char *name;
	void (*print)(const struct tune *tune, FILE *out);
};

static const struct format formats[] = {
	{"text", advice_print_text},
	{"json", advice_print_json},
	{"markdown", advice_print_markdown},
};

struct request {
	struct target target;
	double budget_s;
	const char *output;
	const struct format *format;
};

enum { OPT_BUDGET = TARGET_OPTIONS_END, OPT_FORMAT };

static const struct option longs[] = {
	{"budget", required_argument, NULL, OPT_BUDGET},
	{"format", required_argument, NULL, OPT_FORMAT},
	TARGET_OPTIONS,
	{0},
};

/* What is looked for; the environment has no say in it. */
static const char *const searched[] = {"MMGATE_LOCK", "MMGATE_CALLS",
				       "MMGATE_PLACE", "MMGATE_DELAY"};

static const struct format *find_format(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	die(EXIT_USAGE,
	    "tune: --format %s: accepted are text, json and markdown", name);
}

static void take_option(struct request *r, int option)
{
	if (target_option(&r->target, option))
		return;
	switch (option) {
	case OPT_BUDGET:
		r->budget_s = target_seconds(&r->target, "--budget", optarg,
					     most_budget_s);
		break;
	case 'o':
		r->output = optarg;
		break;
	default:
		r->format = find_format(optarg);
	}
}

static char **parse(struct request *r, int argc, char **argv)
{
	int option;

	while ((option = opts_next(argc, argv, "+:o:", longs)) != -1)
		take_option(r, option);
	if (argv[optind] == NULL)
		die(EXIT_USAGE, "tune: which command? mmgate tune [options] -- "
				"CMD ARG...");
	return argv + optind;
}

static void clear_environment(void)
{
	for (size_t i = 0; i < sizeof(searched) / sizeof(searched[0]); i++) {
		const char *value = getenv(searched[i]);

		if (value == NULL)
			continue;
		warn("note: %s=%s is what is looked for, and has no "
		     "effect here",
		     searched[i], value);
		unsetenv(searched[i]);
	}
}

/* Reports what there is; returns the exit status. */
static int conclude(const struct tune *t, const struct request *r, FILE *out,
		    enum rounds_end end)
{
	if (end == ROUNDS_ASKED && !t->profile.known) {
		warn("tune: interrupted before the first run was done: "
		     "nothing to report");
		return 128 + t->asked;
	}
	if (end != ROUNDS_FAILED || t->tries != NULL || t->comparison != NULL) {
		output_begin(out, r->output);
		r->format->print(t, out);
		output_close(out, r->output);
	}
	if (end == ROUNDS_FAILED) {
		rounds_tell_failure(t->failed);
		return EXIT_FAILED;
	}
	if (end == ROUNDS_ASKED)
		return 128 + t->asked;
	return t->needed_s > 0 ? EXIT_FAILED : EXIT_DONE;
}

static int run(int argc, char **argv)
{
	struct request r = {
		.budget_s = default_budget_s,
		.format = &formats[0],
	};
	struct tune tune = {.target = &r.target};
	enum rounds_end end;
	FILE *out;

	target_init(&r.target, "tune");
	tune.command = parse(&r, argc, argv);
	tune.budget_s = r.budget_s;
	clear_environment();
	target_check(&r.target, tune.command, false);
	out = output_hold(r.output);
	target_begin(&r.target, tune.command);
	end = tune_run(&tune);
	target_end(&r.target);
	return conclude(&tune, &r, out, end);
}

const struct command cmd_tune = {
	.name = "tune",
	.summary = "looks for the settings that a program runs best under",
	.synopsis = "tune [options] [--] CMD ARG...",
	.help = "Runs CMD once with a log to see what it does, then under "
		"locks for the calls\n"
		"that matter, with other places for mappings and on fewer "
		"CPUs, beside each other\n"
		"in rounds; the worse half goes after each.  What is left runs "
		"in fresh rounds\n"
		"against CMD without the library and with lock=none: one "
		"recommendation with its\n"
		"interval, or leave it alone.\n"
		"\n"
		"  --budget T       how long it may take: 90s, 5m (the "
		"default), "
		"1h\n" TARGET_HELP
		"  --format F       text (the default), json or markdown\n"
		"  -o FILE          write to FILE, not to standard output\n"
		"\n"
		"A program of which no process has two threads that make such "
		"calls, or that makes\n"
		"few of them, is left alone at once.  A run that fails without "
		"a lock is an error,\n"
		"exit 1, behind what is known by then; a setting under which "
		"it fails is not\n"
		"recommended.  A budget that is too small for a verdict is "
		"said after one or two\n"
		"runs, or when it is spent, exit 1.\n"
		"Ctrl-C says what is known so far, exit 130.  A command that "
		"cannot be instrumented,\n"
		"executed or found: 125, 126, 127, as for run.\n"
		"\n"
		"Example:\n"
		"  mmgate tune --budget 2m --metric 'ops_per_second: (.*)' -- "
		"build/examples/remap -t 4\n"
		"  mmgate tune --load 'redis-benchmark -q -t set -n 100000' "
		"\\\n"
		"      --metric 'SET: ([0-9.]+)' -- redis-server --save ''\n",
	.run = run,
};
