/* SPDX-License-Identifier: MIT */
/*
 * launch: starts a program with the library in it, and waits for it.
 *
 * The program finds descriptors, signal mask and signal dispositions as they
 * would be without us, and outlives us if we are killed.
 */
#ifndef MMGATE_LAUNCH_H
#define MMGATE_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "opts.h"

/* Opens /dev/null for each of descriptors 0 to 2 that we were started without,
 * so that no file of ours gets their number; the program will not see them.
 * Before anything else is opened. */
void launch_fill_descriptors(void);

/* Absolute path of this command's own file, or NULL. */
char *launch_own_path(void);

/* Absolute path of the library that belongs to this command.  NULL: there is
 * none, or it cannot stand in LD_PRELOAD; `why` has one line. */
char *launch_library(char why[512]);

/* LD_PRELOAD: `runtimes` (may be ""), the library, then what `inherited` (may
 * be NULL) names besides. */
char *launch_preload(const char *library, const char *runtimes,
		     const char *inherited);

/* The variables to add to the program's environment, "NAME=VALUE" each, NULL
 * at the end: the settings that were given, and LD_PRELOAD. */
char **launch_variables(const struct opts_settings *settings,
			const char *preload);

struct launch {
	const char *path; /* for execve */
	char **argv;
	char **variables;

	pid_t pid;
	int status; /* as wait4 says */
	struct rusage usage;
	uint64_t wall_ns;

	sigset_t mask; /* ours, and the program's */
	struct sigaction child_action, size_action;
	bool size_ignored;
	uint64_t started_ns;
};

/* From here on a write of ours beyond RLIMIT_FSIZE fails and does not kill us.
 * The program gets its SIGXFSZ as it was. */
void launch_ignore_size(struct launch *launch);

/* Starts it.  0, or the errno of the exec that failed.  From here to the end
 * of launch_wait() all signals are held back. */
int launch_start(struct launch *launch);

/* Waits for its end, passes on the signals that are sent to us alone, and
 * stops and continues with it. */
void launch_wait(struct launch *launch);

/* Its status as a shell would say it. */
int launch_exit_status(int status);

#endif
