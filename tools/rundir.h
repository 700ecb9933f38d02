/* SPDX-License-Identifier: MIT */
/*
 * rundir: the directory of a run, its RECORD_DIR_NAME, and its logs as files.
 *
 * Nothing is deleted or renamed but what is mmgate's own by name and content,
 * and no symbolic link is followed inside the directory.
 */
#ifndef MMGATE_RUNDIR_H
#define MMGATE_RUNDIR_H

#include <stdbool.h>
#include <sys/types.h>

#include "record.h"

enum rundir_state {
	RUNDIR_NEW,     /* will be made */
	RUNDIR_EMPTY,   /* is there, will be used */
	RUNDIR_EARLIER, /* of an earlier run, will be renamed */
};

struct rundir {
	char *path; /* absolute */
	char *old;  /* its name when a later run renames it */
	enum rundir_state state;
	bool on_disk; /* not on a memory file system */
	/* The directory, RECORD_DIR_NAME; once made */
	int fd, info;
	/* What is there already under the two names, and locked, until it is
	 * made; -1: nothing. */
	int present, replaced;
};

/* Decides what rundir_make() will do, and changes nothing.  Dies (EXIT_USAGE)
 * when the directory cannot be used, also when another run uses it: each holds
 * a lock on its directory, from here to rundir_close() or its own end. */
void rundir_check(struct rundir *dir, const char *path);

/* Makes it, with a RECORD_DIR_NAME that says `info`; or dies.  Checks again
 * when somebody else was faster. */
void rundir_make(struct rundir *dir, const struct record_dir *info);

/* Takes it away again, when nothing was started. */
void rundir_unmake(struct rundir *dir);

/* Forgets it; the directory stays. */
void rundir_close(struct rundir *dir);

/* Removes a directory that holds nothing but mmgate's files; else dies, or is
 * false, with an errno.  No matter when there is none. */
void rundir_remove(const char *path);
bool rundir_try_remove(const char *path);

/* Notes the started command. */
void rundir_started(const struct rundir *dir, pid_t pid);

/* Adds what `info` says about the whole run, and that it has ended. */
void rundir_finish(const struct rundir *dir, const struct record_dir *info);

/* What the page holds by now, the programs' part of it too; its texts are
 * printable.  False: it cannot be read. */
bool rundir_read(const struct rundir *dir, struct record_dir *info);

/* What became of it while the program ran, or NULL: what follows "DIR ". */
const char *rundir_trouble(const struct rundir *dir);

/* Number of logs in it; with `pid`, of that process. */
size_t rundir_logs(const struct rundir *dir, pid_t pid);

/* Replaces copies of stacks by call chains, unless `keep_raw`, and gives back
 * the parts of logs that hold only zeros.  Logs that anybody has open or
 * mapped, or whose process lives, are left alone. */
void rundir_trim(const struct rundir *dir, bool keep_raw);

#endif
