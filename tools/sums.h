/* SPDX-License-Identifier: MIT */
/*
 * sums: what a verdict's facts come to, and the words that it is made of.
 */
#ifndef MMGATE_SUMS_H
#define MMGATE_SUMS_H

#include "verdict.h"

/* Shares of the threads' time from which something is worth a word, is part of
 * the problem, is the problem. */
#define SUMS_TRACE 0.01
#define SUMS_PART 0.02
#define SUMS_MUCH 0.05
/* Share of the calls from which what they show is the whole run. */
#define SUMS_WHOLE 0.9
/* Share of the calls' time from which a habit is worth a remedy. */
#define SUMS_HABIT 0.1

struct sums {
	const struct verdict_facts *facts;
	double lived;        /* thread time */
	double kernel, gate; /* in calls, waiting at the gate */
	double gate_shared;  /* for calls that the kernel runs side by side */
	double calls, cost;  /* number, and time of all */
	double scale;        /* from the events that are kept to all calls */
	double kept;         /* share of the calls that are there as events */
	bool seen;           /* events show who was inside */
	bool shown;          /* and that they were waited for */
	struct crowd_range kernel_waits;
	double sleeps; /* of it, maps of memory behind no other call */
	double stalls; /* of calls that came in alone */
	double queue;  /* part of the calls' time without a CPU */
	double blocked[KIND_COUNT + 1], blocked_all; /* shares of all */
	char lock[64];
};

struct sums sums_of(const struct verdict_facts *facts);

/* NULL without events. */
const struct habits *sums_habits(const struct sums *s);
/* Of what was seen to all there was. */
double sums_scaled(const struct sums *s, const struct habits_sum *sum);
double sums_kind_ns(const struct sums *s, enum kind kind);
/* Does it make up enough of the calls' time, and of all, to be a habit? */
bool sums_matters(const struct sums *s, double ns);
/* Are calls that matter in no figure, as the log had no room? */
bool sums_is_blind(const struct sums *s);
/* Do page faults of other threads seem to hold the calls up? */
bool sums_faults_meet_calls(const struct sums *s);
/* TLB shoot-downs: are they the calls' time?  How many for each, and up to how
 * much time. */
bool sums_shootdowns(const struct sums *s, double *per_call, double *ns);

/* part / whole, or 0 */
double sums_ratio(double part, double whole);
/* Text in memory of its own. */
char *sums_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Good for a few calls: "12.3 k", "1.20 s (3.1 % of the threads' time)". */
const char *sums_count(double count);
const char *sums_time(const struct sums *s, double ns);
/* Who made such calls, in memory of its own. */
char *sums_name(const struct sums *s, const struct crowd_caller *caller);

#endif
