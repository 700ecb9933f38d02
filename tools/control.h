/* SPDX-License-Identifier: MIT */
/*
 * control: asks a running program for other settings, through its log.
 *
 * The request is a struct record_control in the log's header, which the
 * program looks at when a call of it ends.  It is written, not mapped: a log
 * that somebody truncates is an error, not a signal.
 */
#ifndef MMGATE_CONTROL_H
#define MMGATE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "knobs.h"
#include "log.h"
#include "record.h"

/* A value for some settings each, in memory of its own; NULL: as it is.  In the
 * order of knob_at(). */
struct control_values {
	char **of; /* knob_count() of them */
};

struct control {
	char *path;
	struct log *log; /* as control_open() or control_wait() saw it */
	int fd;
	struct record_control request; /* as it was found */
};

/* Opens the newest log of a process that runs.  `change`: for this caller
 * alone, who waits for another one, a while.  False: *why holds one line. */
bool control_open(struct control *c, const char *directory, uint32_t pid,
		  bool change, char **why);
void control_close(struct control *c);

/* What was asked for and not answered yet. */
struct control_values control_pending(const struct control *c);
void control_free(struct control_values *values);

/* Does the program have room in its log for what the setting would record?
 * NULL: yes.  Otherwise why not, for people. */
const char *control_no_room(const struct control *c, const struct knob *knob,
			    const char *value);

/* Writes the request.  0 or -errno; -E2BIG: it is too long. */
int control_ask(struct control *c, const struct control_values *values);

enum control_answer {
	CONTROL_DONE,
	CONTROL_REFUSED,
	CONTROL_SILENT, /* no answer for a while: it stands */
	CONTROL_ENDED,  /* nor will there be one */
};

/* Waits for the answer and reads the log anew. */
enum control_answer control_wait(struct control *c);

#endif
