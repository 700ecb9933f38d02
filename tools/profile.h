/* SPDX-License-Identifier: MIT */
/*
 * profile: what one run with a log shows, as far as a choice of settings needs
 * it.
 *
 * The log lies in a directory of its own that is gone afterwards: in memory
 * where there is room for that.
 */
#ifndef MMGATE_PROFILE_H
#define MMGATE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "hist.h"
#include "log.h"
#include "ops.h"
#include "spenders.h"

struct profile_op {
	uint64_t count;
	double kernel_ns, wait_ns;
};

/* All processes together. */
struct profile {
	bool known;
	double wall_s, value; /* the run's, by who made it: its metric, too */
	uint64_t processes, calls, gated, opened;
	uint64_t threads; /* of the process that has most of them */
	double kernel_ns, thread_ns;
	struct profile_op op[OP_COUNT];
	/* Of the calls: libc's own, as for malloc and thread stacks. */
	double libc_share;
	/* Of the calls: those that are not of the thread of their process that
	 * makes most. */
	double spread;
	double wait_ns, wait_p99_ns, wait_max_ns;
	double kernel_p99_ns, kernel_max_ns;
	/* CPU time that was seen to be spent by processes without a log, such
	 * as this one. */
	double unlogged_s;
	char unlogged_name[GROUP_NAME];
};

/* A directory for a log, in memory if there is room; NULL: `why` has a line. */
char *profile_directory(char why[256]);

/* A launch's variables with a log, "MMGATE_LOG=DIRECTORY", which they leave
 * out: an array that is the caller's to free, not what it points to. */
char **profile_variables(char **variables, char *log);

/* Reads what was left there, by the run of which these spent the time.  False:
 * no process left a log. */
bool profile_read(struct profile *profile, const char *directory,
		  const struct spenders *spenders);

/* Takes the directory away, or says that it cannot, and frees its name. */
void profile_drop(char *directory);

#endif
