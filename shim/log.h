/* SPDX-License-Identifier: MIT */
/*
 * log: this process's file of figures and events.
 *
 * The file is shared memory and always current: whatever ends the process,
 * nothing is lost.  It is opened, sized, mapped and closed in one go; later
 * growth is a madvise(MADV_POPULATE_WRITE) on the mapping, which gets memory
 * and disk space or fails cleanly where a plain store would raise SIGBUS.
 * Where that advice is unknown (before Linux 5.14) the whole file is allocated
 * at the start.
 *
 * Functions may run in any thread at any time after log_open(); none allocates
 * in the program's heap, waits, or touches errno.
 */
#ifndef MMGATE_LOG_H
#define MMGATE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "knobs.h"
#include "record.h"

/* What a new log says about its process. */
struct log_about {
	const char *exe;
	const char *comm;
	const char *hooks; /* "layer=outcome\n" each */
	uint32_t epoch;
	struct record_pair start;
};

/* Makes the log of this process in knobs->log and leaves the one it had, its
 * parent's, alone.  False: there is none, and `why` says why in a few words. */
bool log_open(const struct knobs *knobs, const struct log_about *about,
	      struct text *why);

bool log_is_open(void);

/* Forgets the log without a trace in it: it is another process's. */
void log_forget(void);

/* Registers a thread: the number of its stripe, which is ready for use. */
uint32_t log_thread(void);
struct record_stripe *log_stripe(uint32_t stripe);

/* Gives the event number `*number` (from 0) in the stripe's ring and its slot;
 * NULL when it has no room.  The caller fills it and then seals it. */
struct record_event *log_claim(uint32_t stripe, uint64_t *number);
void log_seal(struct record_event *event, uint64_t number);

/* Notes that the process lived at `now` (ticks).  True, now and then: the
 * clocks were compared anew, so what was derived from their ratio can be
 * refreshed. */
bool log_alive(uint64_t now);

/* Counts an opening of the gate. */
void log_opened(void);

/* exit() came this far. */
void log_end(void);

#endif
