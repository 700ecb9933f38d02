/* SPDX-License-Identifier: MIT */
/*
 * metric: the number that runs are compared by.
 *
 * Time that passed, CPU time, or what a POSIX extended regular expression finds
 * in the program's output: its last match, the first group of it.  ^ and $ are
 * at every line.
 */
#ifndef MMGATE_METRIC_H
#define MMGATE_METRIC_H

#include <regex.h>
#include <stdbool.h>

enum metric_kind { METRIC_WALL, METRIC_CPU, METRIC_REGEX };

struct metric {
	enum metric_kind kind;
	const char *text; /* as given */
	bool lower;       /* less is better */
	regex_t regex;
};

enum { METRIC_LINE = 512 };

/* "wall", "cpu" or a regular expression.  `lower` counts for the last; times
 * are the better the less they are.  False: `why` has one line. */
bool metric_set(struct metric *metric, const char *text, bool lower,
		char why[METRIC_LINE]);

/* pre: metric_set() was true. */
void metric_free(struct metric *metric);

struct metric_number {
	double value;
	double unit; /* of its last digit: 0.01 of "1.25", 100 of "1.5e3" */
};

/* The number in an output.  False: `why` has one line. */
bool metric_find(const struct metric *metric, const char *output,
		 struct metric_number *number, char why[METRIC_LINE]);

/* Takes from an output what differs by nature: the first group of each match.
 * pre: the metric is a regular expression. */
void metric_mask(const struct metric *metric, char *output);

#endif
