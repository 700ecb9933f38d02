/* SPDX-License-Identifier: MIT */
/*
 * log: reads what the library wrote.
 *
 * The writer may be running, may have been killed anywhere, and the file may
 * be truncated, foreign or made to deceive: nothing in it is believed before
 * it is checked, strings are copied with control characters replaced, and no
 * field sizes an allocation unchecked.  Times come out in ns.
 */
#ifndef MMGATE_LOG_H
#define MMGATE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "hist.h"
#include "record.h"
#include "source.h"

/* One op of one process, all stripes added up. */
struct log_op {
	uint64_t count;
	uint64_t errors;
	uint64_t bytes;
	uint64_t gated;
	uint64_t bypassed[BYPASS_COUNT];
	struct hist wait, kernel;
};

struct log_process {
	uint32_t pid, ppid, epoch;
	uint64_t started_unix_ns;
	uint64_t started_ns;  /* CLOCK_MONOTONIC */
	uint64_t duration_ns; /* to exit(), or to the last sign of life */
	bool exited;          /* exit() was seen, duration is exact */
	uint64_t threads;
	uint64_t thread_ns; /* time that its threads lived, as far as seen */
	uint64_t opened;    /* times the gate opened */
	uint64_t clamped;
	uint64_t second_libc; /* copies of libc that nothing catches */
	uint64_t unrecorded;  /* calls that are in no figure: no room */
	uint64_t events_kept, events_overwritten, events_torn, events_lost;
	uint64_t events_without; /* calls that no event was written for */
	bool has_rings;          /* the log has room for single events */
	bool was_set;            /* it followed `set`, once at least */
	struct log_op op[OP_COUNT];
	struct hist wake;
	uint64_t lock_changes;      /* while it ran, by `set` and auto */
	uint8_t lock_now[OP_COUNT]; /* LOCK_COUNT: not known */
	char comm[17];
	char exe[1025];
	char image[256]; /* the name that it was started by */
	char settings[2049];
	char hooks[1025];
	char coverage[513];
	char limits[513];
};

/* One event, converted; its address fields are as recorded. */
struct log_event {
	struct record_event raw;
	uint64_t time_ns; /* CLOCK_MONOTONIC at entry */
	uint64_t wait_ns, kernel_ns;
};

struct log; /* an open log file */

/* Opens and checks one log.  NULL: `why` holds one line without the path
 * ("is truncated: 100 of 8192 bytes", "was written by a newer mmgate (format
 * 9)", ...). */
struct log *log_open(const char *path, char why[256]);
/* The same, but one that a process is making right now gets a fifth of a second
 * to begin. */
struct log *log_open_new(const char *path, char why[256]);
const struct log_process *log_process(const struct log *log);

/* Is it known that the process still runs? */
bool log_process_runs(const struct log_process *p);
/* When a process was started, as CLOCK_BOOTTIME in ns; 0: there is none, or no
 * telling. */
uint64_t log_pid_started(uint32_t pid);
/* Is there none, or one that waits for its parent to notice its end? */
bool log_pid_ended(uint32_t pid);

/* Calls `each` for every whole event, oldest first (merged over the rings by
 * time, see merge.h); memory does not grow with their number.  Stops when
 * `each` returns non-zero and returns that; -1 with a warning when the file
 * cannot be read any more.  Fills the events_* counts of log_process()
 * too: they are of the rings as they are while reading. */
int log_each_event(struct log *log,
		   int (*each)(void *context, const struct log_event *event),
		   void *context);
/* Calls `tick` now and then while events are read, with the number of those
 * since the last time; NULL: no more. */
void log_watch(void (*tick)(uint64_t events));
void log_close(struct log *log);

/* --- for samples.c --- */

/* What no log of ours goes beyond. */
enum {
	LOG_MOST_SAMPLES = 1 << 16, /* of a pool */
	LOG_MOST_MODULES = 1 << 20, /* slots of them */
	LOG_MOST_COPIED = 1 << 16,  /* bytes of one stack */
};

/* Opens its file again, if it still is the same one; else false and why. */
bool log_reopen(const struct log *log, struct source *source, char why[256]);
const char *log_path(const struct log *log);
/* As its header had it when it was opened: its places are checked, its counts
 * are not. */
const struct record_stacks *log_stacks(const struct log *log);
/* Places for samples in it. */
uint32_t log_samples(const struct log *log);
/* Is it this file? */
bool log_is(const struct log *log, dev_t device, ino_t inode);
struct log_event log_convert(const struct log *log,
			     const struct record_event *event);
uint64_t log_time_ns(const struct log *log, uint64_t ticks);

/* Is that this build's RECORD_VERSION?  If not, `why` says so. */
bool log_is_this_format(uint32_t version, char why[256]);
/* Its header, as it is now: 0 or -errno.  No time is taken in which settings
 * are being written. */
int log_read_header(struct source *source, struct record_header *h);
/* Has it room for single events? */
bool log_has_rings(const struct log *log);
/* Adds one op's figures to another's, all zero at first; gives back what it
 * took. */
void log_op_add(struct log_op *into, const struct log_op *from);
void log_op_drop(struct log_op *op);

/* "reentry", "timeout", "long". */
const char *log_bypass_name(unsigned reason);

/* Value of `name` in a "name=value\n" list such as settings, copied to
 * `value` (empty when it is not there). */
void log_setting(const char *list, const char *name, char *value, size_t size);

/* What a lock_now says: "madvise:mutex", "none".  In memory of its own. */
char *log_lock_now(const struct log_process *p);
/* Is that what the settings say anyway? */
bool log_lock_as_set(const struct log_process *p);

/* What goes unseen by what the library said of a layer, for people ("off
 * (--hooks symbols)", "symbols only: REASON"), or NULL: nothing. */
const char *log_gap(const char *outcome);
/* Is some of the layer seen all the same? */
bool log_gap_is_partial(const char *gap);

/* The logs of a directory, oldest first. */
struct log_dir {
	char *path;
	bool has_info; /* RECORD_DIR_NAME was there and sound */
	struct record_dir info;
	/* What is wrong with it, said in a warning too; "": nothing, or there
	 * is none. */
	char strange[256];
	struct log **logs;
	size_t count;
	size_t broken; /* logs that were refused, each with a warning */
};

/* Reads the directory; each broken log is one warning on stderr and does not
 * hide the others.  NULL when the directory cannot be read or holds no log at
 * all: `why` holds one line with the path. */
struct log_dir *log_dir_try(const char *path, char **why);
/* The same, or dies of it (EXIT_FAILED). */
struct log_dir *log_dir_open(const char *path);
/* The path of the newest log of a process in a directory, in memory of its own;
 * NULL: none, `why` holds one line with the path. */
char *log_dir_newest(const char *path, uint32_t pid, char **why);
void log_dir_close(struct log_dir *dir);

/* What no figure of the directory holds: processes that got no log, or that it
 * is not known whether there are any.  A sentence without its end, in memory of
 * its own; NULL: nothing is missing that is known of. */
char *log_dir_gap(const struct log_dir *dir);
/* The same of `count` processes, the first of which says why. */
char *log_unlogged(uint64_t count, const char *why);
/* Makes the texts of one that was read printable. */
void log_clean_info(struct record_dir *info);

#endif
