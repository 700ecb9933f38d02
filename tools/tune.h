/* SPDX-License-Identifier: MIT */
/*
 * tune: looks for the settings that a program runs best under.
 *
 * One run with a log shows what it does.  Candidates then run beside each other
 * in rounds, and after each stage the worse half goes.  What is left runs in
 * fresh rounds against the program as it is, so that what is said of it does
 * not come from the rounds that chose it.  A remedy has to be faster than both
 * the program without the library and the library without a lock, by a verdict
 * as in ratio.h.  Of two that do the same the simpler one is taken.
 */
#ifndef MMGATE_TUNE_H
#define MMGATE_TUNE_H

#include <stdbool.h>
#include <stddef.h>

#include "comparison.h"
#include "profile.h"
#include "progress.h"
#include "rounds.h"
#include "search.h"
#include "target.h"

/* What became of a candidate in the search. */
struct tune_try {
	size_t rounds;      /* that it took part in */
	struct ratio ratio; /* to the program as it is */
	char *failure;      /* a line, or NULL */
};

/* Rows of the fresh rounds. */
enum {
	TUNE_BARE,
	TUNE_NONE,
	TUNE_WINNER,
	TUNE_SIMPLER, /* if it is another */
	TUNE_ROWS,
};

struct tune {
	/* The caller's. */
	struct target *target;
	char **command;
	double budget_s;

	double started_s, spent_s; /* on its clock; how long it took */
	size_t runs;
	double longest_s; /* a run under a setting; 0: the budget says it */
	double timed_s;   /* of them, those of rounds took so long */
	size_t timed;
	struct progress progress;
	char *reference; /* output to compare with, or NULL */

	struct profile profile; /* of the program under lock=none */
	struct search_list list;
	struct tune_try *tries; /* one a candidate */
	size_t untried;         /* candidates that there was no time for */

	size_t winner, simpler;          /* candidates; 0: none */
	struct rounds fresh;             /* .config_count 0: there are none */
	struct comparison *comparison;   /* of them, or NULL */
	struct ratio to_none[TUNE_ROWS]; /* their rows against lock=none */

	size_t chosen;  /* row of the fresh rounds to take; 0: leave it alone */
	bool confirmed; /* the fresh rounds ended by themselves, and were enough
			 */
	char *reason;   /* why, one line */
	double needed_s;      /* a budget that would do; 0: it did */
	struct profile waits; /* of a run of the chosen, if it has a lock */

	/* What ended it early. */
	int asked;             /* a signal */
	struct rounds *failed; /* rounds with a failure of the program's own */
};

/* Does all of it.  pre: signals are held (target_begin). */
enum rounds_end tune_run(struct tune *tune);

/* The candidate of a row of the fresh rounds; NULL for lock=none. */
const struct search_candidate *tune_candidate(const struct tune *tune,
					      size_t row);

/* How many more fresh rounds would say whether the winner is better; 0: it is
 * said.  pre: there were fresh rounds of it. */
size_t tune_more_rounds(const struct tune *tune);

/* "CONFIG: LINE" of what ended it, in memory of its own.
 * pre: .failed is not NULL. */
char *tune_failure(const struct tune *tune);

/* The configuration of the row that was chosen. */
const struct config *tune_config(const struct tune *tune);

#endif
