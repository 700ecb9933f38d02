/* SPDX-License-Identifier: MIT */
/*
 * opts: command lines, help texts and settings.
 *
 * The options that set a knob, their help and their checks all come from the
 * knob table; nothing here knows a setting by name.
 * What is wrong with a command line ends the program: one line, EXIT_USAGE.
 */
#ifndef MMGATE_OPTS_H
#define MMGATE_OPTS_H

#include <getopt.h>
#include <stddef.h>

#include "knobs.h"

struct command;

/* In a command's help text: here stands the list of all settings. */
#define OPTS_SETTINGS "\f"

/* Set by the launcher for the process it starts: a variable, not a setting. */
#define OPTS_STARTED "MMGATE_STARTED"

/* Usage, summary and help of a command, on stdout. */
void opts_print_help(const struct command *command);

/* getopt_long with our messages; argv[0] is the command's name.  `shorts` must
 * have ':' in front, or "+:" to stop at the first word that is no option. */
int opts_next(int argc, char **argv, const char *shorts,
	      const struct option *longs);

/* The same tables with one option more for each knob. */
struct option *opts_longs_with_knobs(const struct option *own);
char *opts_shorts_with_knobs(const char *own);
/* Number of the knob whose option opts_next() returned, or -1. */
int opts_knob(int option);

/* A word as a shell takes it back, in memory of its own, without a byte that a
 * terminal would obey. */
char *opts_quote(const char *word);

/* The candidate that is most like `word`, so far. */
struct opts_guess {
	const char *word;
	const char *best; /* NULL: none is like it */
	size_t distance;
};

void opts_guess(struct opts_guess *guess, const char *candidate);

enum opts_source { OPTS_DEFAULT, OPTS_VARIABLE, OPTS_OPTION };

/* The settings in force, and where each comes from. */
struct opts_given {
	const char *value; /* as given; NULL: the default */
	enum opts_source source;
};

struct opts_settings {
	struct knobs knobs;
	struct opts_given *given; /* one a knob */
};

void opts_settings_init(struct opts_settings *settings);

/* 0, or the parser's error with one line in `complaint`. */
int opts_settings_set(struct opts_settings *settings, size_t knob,
		      const char *value, enum opts_source source,
		      struct text *complaint);

/* Takes one "NAME=VALUE" of the environment.  0 also when it is none of ours,
 * or -EINVAL, -ENOSYS with one line in `complaint`. */
int opts_settings_inherit(struct opts_settings *settings, const char *variable,
			  struct text *complaint);

/* Where nothing was given, the defaults that `run` has of its own. */
void opts_settings_of_run(struct opts_settings *settings);

/* All of the environment, and one option's value, or die. */
void opts_settings_environment(struct opts_settings *settings);
void opts_settings_option(struct opts_settings *settings, size_t knob,
			  const char *value);

#endif
