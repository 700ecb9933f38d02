/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "comparison.h"
#include "config.h"
#include "die.h"
#include "opts.h"
#include "output.h"
#include "rounds.h"
#include "target.h"

enum { DEFAULT_WARMUP = 1, MOST_WARMUP = 1000 };

struct format {
	const char *name;
	void (*print)(const struct comparison *c, FILE *out);
};

static const struct format formats[] = {
	{"text", comparison_print_text},
	{"json", comparison_print_json},
	{"markdown", comparison_print_markdown},
};

struct compare {
	struct target target;
	size_t rounds, warmup;
	const char *output;
	const struct format *format;
	struct config *configs;
	size_t config_count;
	FILE *out;
};

enum { OPT_WARMUP = TARGET_OPTIONS_END, OPT_FORMAT, OPT_CONFIG };

static const struct option longs[] = {
	{"warmup", required_argument, NULL, OPT_WARMUP},
	{"format", required_argument, NULL, OPT_FORMAT},
	{"config", required_argument, NULL, OPT_CONFIG},
	TARGET_OPTIONS,
	{0},
};

static const struct format *find_format(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(formats[i].name, name) == 0)
			return &formats[i];
	die(EXIT_USAGE,
	    "compare: --format %s: accepted are text, json and markdown", name);
}

static void add_config(struct compare *c, const char *text)
{
	c->configs = xrealloc(c->configs,
			      (c->config_count + 1) * sizeof(*c->configs));
	config_parse(&c->configs[c->config_count++], "compare: --config", text);
}

static void take_option(struct compare *c, int option)
{
	if (target_option(&c->target, option))
		return;
	switch (option) {
	case 'n':
		c->rounds = target_number(&c->target, "-n", optarg, 1,
					  RATIO_MOST_ROUNDS);
		break;
	case 'o':
		c->output = optarg;
		break;
	case OPT_WARMUP:
		c->warmup = target_number(&c->target, "--warmup", optarg, 0,
					  MOST_WARMUP);
		break;
	case OPT_FORMAT:
		c->format = find_format(optarg);
		break;
	default:
		add_config(c, optarg);
	}
}

static char **parse(struct compare *c, int argc, char **argv)
{
	int option;

	while ((option = opts_next(argc, argv, "+:n:o:", longs)) != -1)
		take_option(c, option);
	if (c->config_count < 2)
		die(EXIT_USAGE, "compare: give two configurations or more, "
				"such as --config lock=none --config "
				"lock=mutex");
	if (argv[optind] == NULL)
		die(EXIT_USAGE, "compare: which command? mmgate compare "
				"--config ... -- CMD ARG...");
	return argv + optind;
}

static bool all_bare(const struct compare *c)
{
	for (size_t i = 0; i < c->config_count; i++)
		if (!c->configs[i].bare)
			return false;
	return true;
}

static char ***variables_of(const struct compare *c)
{
	char ***variables = xcalloc(c->config_count, sizeof(*variables));

	for (size_t i = 0; i < c->config_count; i++)
		variables[i] =
			config_variables(&c->configs[i], c->target.library,
					 c->target.preflight.runtimes, NULL);
	return variables;
}

static enum rounds_end measure(const struct compare *c, struct rounds *rounds)
{
	enum rounds_end end;

	progress_begin(rounds->progress,
		       (c->warmup + c->rounds) * c->config_count);
	rounds_begin(rounds);
	end = rounds_warm_up(rounds, c->warmup);
	if (end == ROUNDS_DONE)
		end = rounds_measure(rounds, c->rounds);
	progress_end(rounds->progress);
	return end;
}

static void print(const struct compare *c, const struct rounds *rounds)
{
	struct comparison *comparison = comparison_new(rounds, c->rounds);

	output_begin(c->out, c->output);
	c->format->print(comparison, c->out);
	output_close(c->out, c->output);
	comparison_free(comparison);
}

/* Reports what there is; returns the exit status. */
static int conclude(const struct compare *c, const struct rounds *rounds,
		    enum rounds_end end)
{
	if (rounds->done > 0)
		print(c, rounds);
	else if (end == ROUNDS_ASKED)
		warn("compare: interrupted before the first round was whole: "
		     "nothing to report");
	if (end == ROUNDS_FAILED) {
		rounds_tell_failure(rounds);
		return EXIT_FAILED;
	}
	return end == ROUNDS_ASKED ? 128 + rounds->asked : EXIT_DONE;
}

static int run(int argc, char **argv)
{
	struct compare c = {
		.rounds = RATIO_DEFAULT_ROUNDS,
		.warmup = DEFAULT_WARMUP,
		.format = &formats[0],
	};
	struct progress progress;
	struct rounds rounds = {.progress = &progress};
	enum rounds_end end;
	char **command;

	target_init(&c.target, "compare");
	command = parse(&c, argc, argv);
	target_check(&c.target, command, all_bare(&c));
	rounds.measure = &c.target.measure;
	rounds.metric = &c.target.metric;
	rounds.check_output = c.target.check_output;
	rounds.configs = c.configs;
	rounds.config_count = c.config_count;
	rounds.variables = variables_of(&c);
	rounds.profiles = xcalloc(c.config_count, sizeof(*rounds.profiles));
	c.out = output_hold(c.output);
	target_begin(&c.target, command);
	end = measure(&c, &rounds);
	target_end(&c.target);
	return conclude(&c, &rounds, end);
}

const struct command cmd_compare = {
	.name = "compare",
	.summary = "measures configurations of the gate beside each other",
	.synopsis =
		"compare [options] --config C --config C... [--] CMD ARG...",
	.help = "Runs CMD under each configuration, round by round in random "
		"order, and says\n"
		"how much better each is than the first: the ratio, its 95 % "
		"interval, and a\n"
		"verdict, which needs an interval that excludes 1 and a "
		"difference of 1 %.\n"
		"\n"
		"  --config C       a configuration: words NAME=VALUE, named "
		"like the options\n"
		"                   of run (lock=mutex calls=munmap "
		"place=thread ...); bare is\n"
		"                   without the library; cpus=N is on N CPUs "
		"only, cpus=LIST on\n"
		"                   these (0,2-3; 2-2 is CPU 2).  What it does "
		"not say is as\n"
		"                   the environment says\n"
		"  -n ROUNDS        1 to 1000, default 20; ten and fewer find "
		"large differences\n"
		"                   only\n"
		"  --warmup N       rounds before those, default "
		"1\n" TARGET_HELP
		"  --format F       text (the default), json or markdown\n"
		"  -o FILE          write to FILE, not to standard output\n"
		"\n"
		"CMD gets an empty stdin, its output is kept in memory, and "
		"nothing is logged.\n"
		"A run that fails is an error and not a time: its output is "
		"shown, exit 1, behind\n"
		"the report of the whole rounds before it.  Ctrl-C ends the "
		"run and reports the\n"
		"whole rounds that there are, exit 130.\n"
		"When configurations differ in a delay of one call only "
		"(delay=none,\n"
		"delay=munmap:5us, ...), it is said how much longer the "
		"program takes for it: much\n"
		"means that it depends on that call; little, that threads "
		"overlap, or queue for it.\n"
		"\n"
		"Example:\n"
		"  mmgate compare --config lock=none --config lock=mutex "
		"--config bare -- \\\n"
		"      xz -T4 -k -f big.tar\n",
	.run = run,
};
