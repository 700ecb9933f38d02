/* SPDX-License-Identifier: MIT */
/*
 * launch: starts a program with the library in it, and waits for it.
 *
 * The program finds descriptors, signal mask and signal dispositions as they
 * would be without us, and outlives us if we are killed.
 */
#ifndef MMGATE_LAUNCH_H
#define MMGATE_LAUNCH_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "capture.h"
#include "group.h"
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

/* What `inherited` (may be NULL) names besides the library: LD_PRELOAD of a
 * program that shall run without it. */
char *launch_preload_without(const char *inherited);

/* LD_PRELOAD: `runtimes` (may be ""), the library, then what `inherited` (may
 * be NULL) names besides. */
char *launch_preload(const char *library, const char *runtimes,
		     const char *inherited);

/* The variables to add to the program's environment, "NAME=VALUE" each, NULL
 * at the end: the settings that were given, and LD_PRELOAD. */
char **launch_variables(const struct opts_settings *settings,
			const char *preload);

/* Signals as they are for us and the program, while we hold them back. */
struct launch_signals {
	sigset_t mask;
	struct sigaction child_action;
};

struct launch {
	const char *path; /* for execve */
	char **argv;
	char **variables; /* NAME alone takes that one away */

	/* Of launches that are watched; without, the program has ours. */
	const struct launch_signals *held; /* by the caller */
	int input;                         /* its descriptor 0 */
	struct capture *output;            /* two, of its descriptors 1 and 2 */
	const cpu_set_t *cpus;
	bool adopts;           /* what descends from us is its: group_adopt() */
	struct launch *beside; /* when that one ends, this one is ended */
	uint64_t limit_ns;     /* what it may take at most; 0: any time */

	pid_t pid;
	bool ended;
	int status; /* as wait4 says */
	struct rusage usage;
	uint64_t wall_ns;

	bool paused; /* with us: its time is none */
	uint64_t paused_ns;
	bool too_long;      /* it was ended at its limit */
	bool late;          /* launch_end() had to use force */
	bool forced;        /* it was killed, by us */
	bool left;          /* it ended by itself, and left this one behind */
	bool orphans_asked; /* to end: those that had left its group */
	char left_name[GROUP_NAME];
	int stopped_by; /* the signal that stopped it, for which it was ended */

	/* What to do meanwhile, in `tick_ns` and then each time after as many
	 * ns as it says; NULL: nothing. */
	uint64_t (*tick)(void *context);
	void *tick_context;
	uint64_t tick_ns;

	struct launch_signals signals;
	struct sigaction size_action;
	bool size_ignored;
	uint64_t started_ns, next_tick_ns;
};

/* From here on a write of ours beyond RLIMIT_FSIZE fails and does not kill us.
 * The program gets its SIGXFSZ as it was. */
void launch_ignore_size(struct launch *launch);

/* Holds all signals back but those that a fault of our own would raise. */
void launch_hold(struct launch_signals *signals);
void launch_release(const struct launch_signals *signals);

/* Starts it.  0, or the errno of the exec that failed.  From here to the end
 * of launch_wait() all signals are held back.  With `held` it gets a process
 * group of its own. */
int launch_start(struct launch *launch);

/* Waits for its end, passes on the signals that are sent to us alone, and
 * stops and continues with it. */
void launch_wait(struct launch *launch);

/* Waits for the end of a program that gets no signals of ours: those that ask
 * us to end do so to its process group, gently, and soon by force, and the
 * first of them is returned; else 0.  A program that stops does not go on by
 * itself, and one that writes more than is kept is no use: its group is ended
 * too; so it is when the one beside it ends, stops or writes that much.  When
 * we are stopped and continued, so is it. What is left of it after a tenth of a
 * second is killed, and gone when this returns, unless the kernel holds it up
 * for a second. pre: it was started with `held`. */
int launch_watch(struct launch *launch);

/* Sleeps up to so long, or until something happens.  True: it has ended, or
 * stopped, for which it is ended too.
 * pre: it was started with `held`. */
bool launch_look(struct launch *launch, uint64_t ns);

/* Asks its process group to end, and what it started in other groups when that
 * outlives it, and waits until all of it has; after so long, or when we are
 * asked to end meanwhile, by force.  What one that has ended already left is
 * killed, and one that is stopped.  All are gone when this returns, unless the
 * kernel holds them up for a second.
 * pre: it was started with `held`. */
void launch_end(struct launch *launch, uint64_t patience_ns);

/* Has it written more than is kept? */
bool launch_overflowed(const struct launch *launch);

/* Whom to look for in /proc. */
struct group launch_group(const struct launch *launch);

/* The next signal that asks us to end and waits to be taken, or 0.  One that we
 * were started to ignore, as by nohup, asks nothing.
 * pre: signals are held. */
int launch_asked(void);

/* Its status as a shell would say it. */
int launch_exit_status(int status);

#endif
