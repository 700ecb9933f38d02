/* SPDX-License-Identifier: MIT */
/*
 * comparison: what measured rounds say, each configuration against the first.
 */
#ifndef MMGATE_COMPARISON_H
#define MMGATE_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ratio.h"
#include "rounds.h"

/* Figures are medians over the rounds. */
struct comparison_row {
	const char *config;
	double *values; /* one a round */
	double median;
	struct ratio ratio; /* see ratio.h; above 1 is better than the first */
	enum ratio_verdict verdict;
	size_t more_rounds; /* that would settle it; 0: it is, or: */
	bool coarse;        /* the metric has too few digits to settle it */
	double rounding;    /* what they may have moved the ratio's ends by */
	double cpu_s, voluntary, involuntary, faults, peak_rss_bytes;
};

/* How much of a program's time depends on one call: from configurations that
 * differ in a delay of that call alone. */
struct comparison_slope {
	const char *op;      /* NULL: there is none to tell */
	bool unbased;        /* as no configuration is without the delay */
	struct ratio per_us; /* part of the time, for each us added to a call */
	/* Of each second added to its calls, what the program takes longer.
	 * Not known: the number of calls is not (a server makes some before the
	 * load and behind it), or the metric tells nothing of the time that
	 * passes: it is CPU time, or what is better the less it is (a
	 * latency). */
	bool has_per_second;
	struct ratio per_second;
	/* Its calls, with what they wait, in all threads' time; 0: not known.
	 * Where that is much and the slope is hardly any they queue: who waits
	 * anyway spends a delay instead, and the slope tells nothing. */
	double thread_share;
	bool queues;
};

struct comparison {
	const struct metric *metric;
	size_t rounds, wanted; /* measured, asked for */
	char *failure; /* what ended them, with its configuration; or NULL */
	struct comparison_row *rows;
	size_t count;
	double noise; /* scatter of one run, see ratio.h; the median of all */
	double others, stolen; /* parts of the CPUs' time, see machine.h */
	struct comparison_slope slope;
};

/* pre: at least one round is done. */
struct comparison *comparison_new(const struct rounds *rounds, size_t wanted);
void comparison_free(struct comparison *comparison);

/* A configuration against another, in the first n rounds, and by what part the
 * ends of that interval may be off because the metric has few digits: as much
 * as is possible where no noise moves the last one, 0 where it does. */
struct ratio comparison_ratio(const struct rounds *rounds, size_t base,
			      size_t config, size_t n);
double comparison_rounding(const struct rounds *rounds, size_t base,
			   size_t config, size_t n);

/* "baseline", "faster", "slower", "no difference" */
const char *comparison_verdict(const struct comparison *c, size_t row);

void comparison_print_text(const struct comparison *c, FILE *out);
void comparison_print_markdown(const struct comparison *c, FILE *out);
void comparison_print_json(const struct comparison *c, FILE *out);

#endif
