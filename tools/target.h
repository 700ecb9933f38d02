/* SPDX-License-Identifier: MIT */
/*
 * target: the program that is measured, and by what: the options and checks
 * that all commands which measure have in common.
 *
 * What is wrong with them ends the program, in the name of the command.
 */
#ifndef MMGATE_TARGET_H
#define MMGATE_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "measure.h"
#include "metric.h"
#include "opts.h"
#include "preflight.h"
#include "server.h"

struct target {
	const char *who; /* the command, for messages */
	const char *metric_text, *timeout_text, *ready_text, *stop_wait_text;
	bool lower, check_output;
	double timeout_s; /* 0: nothing was said */
	struct metric metric;
	struct server server; /* .load is NULL: none */
	struct preflight preflight;
	char *library;
	struct measure measure;
};

/* Of getopt_long: to stand in each command's table. */
enum {
	TARGET_METRIC = 256,
	TARGET_LOWER,
	TARGET_CHECK_OUTPUT,
	TARGET_TIMEOUT,
	TARGET_LOAD,
	TARGET_READY,
	TARGET_STOP_WAIT,
	TARGET_OPTIONS_END,
};

#define TARGET_OPTIONS                                                         \
	{"metric", required_argument, NULL, TARGET_METRIC},                    \
		{"lower", no_argument, NULL, TARGET_LOWER},                    \
		{"check-output", no_argument, NULL, TARGET_CHECK_OUTPUT},      \
		{"timeout", required_argument, NULL, TARGET_TIMEOUT},          \
		{"load", required_argument, NULL, TARGET_LOAD},                \
		{"ready", required_argument, NULL, TARGET_READY},              \
	{                                                                      \
		"stop-wait", required_argument, NULL, TARGET_STOP_WAIT         \
	}

/* What the help says of them. */
/* clang-format off */
#define TARGET_HELP \
	"  --metric wall    time that passed (the default); cpu: CPU time\n" \
	"  --metric REGEX   a number in CMD's output: the last match of a POSIX " \
	"extended\n" \
	"                   regular expression, its first group; in stdout or, " \
	"if there\n" \
	"                   is none, in stderr\n" \
	"  --lower          less of that number is better (of times it always " \
	"is)\n" \
	"  --check-output   stdout must be the same in each run, but for " \
	"REGEX's numbers\n" \
	"  --timeout T      a run (of --load's, where there is one) that takes " \
	"longer\n" \
	"                   fails; without, one that takes far longer than those " \
	"before it\n" \
	"  --load CMD       the program is a server: when it is ready, sh -c CMD " \
	"runs beside\n" \
	"                   it, without the library; time and output are that " \
	"one's, CPU\n" \
	"                   time and the rest the server's, which is then ended " \
	"by SIGTERM\n" \
	"  --ready REGEX    the server is ready when what it wrote matches; " \
	"without, when\n" \
	"                   it listens on a TCP or local socket; 30 s at most\n" \
	"  --stop-wait T    how long the server may take to end before it is " \
	"killed: 5s\n" \
	"                   (the default), 2m\n"
/* clang-format on */

void target_init(struct target *target, const char *who);

/* True when the option was one of these. */
bool target_option(struct target *target, int option);

/* A number of an option. */
uint64_t target_number(const struct target *target, const char *option,
		       const char *value, uint64_t least, uint64_t most);

/* A duration of an option, in minutes or hours too; more than 0 s. */
double target_seconds(const struct target *target, const char *option,
		      const char *value, double most_s);

/* When all options are read: the command is what follows them.  `bare`: it
 * need not take the library. */
void target_check(struct target *target, char **command, bool bare);

/* From here to target_end() signals are held back.  That says what became of
 * the runs besides: what they left behind, servers that had to be killed. */
void target_begin(struct target *target, char **command);
void target_end(struct target *target);

#endif
