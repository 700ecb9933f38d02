/* SPDX-License-Identifier: MIT */
/*
 * rounds: runs configurations of a program beside each other.
 *
 * Each round runs each of them once, in a random order, so that neither the
 * machine's drift nor what one run leaves to the next favours any.  A run that
 * fails, or whose output differs, is no measurement: it ends the rounds.  Nor
 * is one that the library never got into: the warm-up finds out by a log.
 */
#ifndef MMGATE_ROUNDS_H
#define MMGATE_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "machine.h"
#include "measure.h"
#include "metric.h"
#include "profile.h"
#include "progress.h"

struct rounds_sample {
	double value; /* of the metric; seconds, if it is a time */
	double unit;  /* of its last digit, see metric.h; 0: a time */
	struct measure_run run;
};

struct rounds {
	/* What to run; the caller's. */
	struct measure *measure;
	const struct metric *metric;
	const struct config *configs;
	char ***variables; /* of each configuration */
	bool *left_out;    /* those that take no part (any more); or NULL */
	size_t config_count;
	bool check_output; /* what is written to stdout must not differ from
			    * the first run of the first configuration */
	struct progress *progress;
	/* One a configuration, filled by the first round of a warm-up; or NULL:
	 * then it has no log. */
	struct profile *profiles;

	/* Whole rounds, configuration by configuration. */
	struct rounds_sample *samples;
	size_t done;
	struct machine machine; /* meanwhile */

	/* Why it ended early. */
	int asked;     /* a signal, or 0 */
	size_t failed; /* the configuration */
	char *failure; /* a line, or NULL */
	struct measure_run last;

	char *reference; /* output to compare with */
	bool *had; /* in a round that a failure left open, who had a run; or
		    * NULL */
	uint64_t random;
};

enum rounds_end { ROUNDS_DONE, ROUNDS_ASKED, ROUNDS_FAILED };

/* pre: the rest of it is zero. */
void rounds_begin(struct rounds *rounds);

/* Runs rounds that are not kept, or rounds that are. */
enum rounds_end rounds_warm_up(struct rounds *rounds, size_t count);
enum rounds_end rounds_measure(struct rounds *rounds, size_t count);

/* Forgets a failure, to go on without its configuration, when that is left out:
 * the next round to be measured is the rest of this one. */
void rounds_forgive(struct rounds *rounds);

/* Frees what rounds made, but for the reference: others may go on with it. */
void rounds_free(struct rounds *rounds);

/* Says on stderr what failed, with the output.
 * pre: ROUNDS_FAILED was returned. */
void rounds_tell_failure(const struct rounds *rounds);

const struct rounds_sample *rounds_sample(const struct rounds *rounds,
					  size_t round, size_t config);

#endif
