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
#include "sys.h"

/* What a new log says about its process. */
struct log_about {
	const char *exe;
	const char *comm;
	const char *hooks; /* as the header has them */
	const char *coverage;
	const char *libc; /* its path, NULL: not known */
	uint32_t epoch;
	struct record_pair start;
};

/* Makes the log of this process in knobs->log and leaves the one it had, its
 * parent's, alone.  False: there is none, and `why`, empty before, says why in
 * a few words; so does the directory, which counts such processes, if it can.
 */
bool log_open(const struct knobs *knobs, const struct log_about *about,
	      struct text *why);

/* Forgets the log without a trace in it: it is another process's. */
void log_forget(void);

/* Registers a thread: the number of its stripe, whose head is ready. */
uint32_t log_thread(void);

/* Gives the event number `*number` (from 0) in the stripe's ring and its slot;
 * NULL when it has no room.  The caller fills it and then seals it. */
struct record_event *log_claim(uint32_t stripe, uint64_t *number);

/* Counts an opening of the gate. */
void log_opened(void);

/* Notes that an executable file was mapped.  A second copy of libc (dlmopen)
 * makes calls that nothing catches. */
void log_mapped(const struct sys_file *file);

/* Room for samples, at most: in a pool, and for the worst. */
enum { LOG_MOST_SLOTS = 4096, LOG_MOST_WORST = 64 };

/* Where modules and stacks are in the log, all 0 where there are none; as it
 * was laid out, whatever others do to the file. */
const struct record_stacks *log_layout(void);

/* The same in the file, for the counts in it. */
struct record_stacks *log_stacks(void);

/* What is at `offset` of the file.  Its memory comes with log_fill(). */
void *log_at(uint64_t offset);

/* Memory for a part of the file; false, and said in the log: there is none. */
bool log_fill(uint64_t offset, uint64_t bytes);

/* Of what log_fill() gave, so much was counted by another thread too, which
 * asked for the same at the same time. */
void log_filled_twice(uint64_t bytes);

/* A request of that serial: its text, "name=value\n" each.  False: it is not
 * whole.  Each at most once. */
bool log_read_request(uint32_t serial, char *text, size_t size);

/* Says that it was looked at.  pre: it says what is in force by now. */
void log_answer(uint32_t serial, bool refused);

/* Says which settings are in force.  One thread at a time. */
void log_settings(const struct knobs *knobs);

/* Says which lock an op takes (enum lock_id). */
void log_lock(enum op op, uint8_t lock);

/* Counts a change of locks, of however many ops. */
void log_locks_changed(void);

/* Corrects what log_open() was told of hooks and coverage.  One thread at a
 * time. */
void log_correct(const char *hooks, const char *coverage);

/* exit() came this far. */
void log_end(void);

/* What every call needs, so that the functions below can be inline. */
struct log_hot {
	bool in_use; /* there is a log; when it is left its memory stays, for a
		      * call that a handler interrupted and forked from */
	char *stripes;
	const struct record_control *control;
	uint64_t next_look; /* ticks: the clocks are due to be compared */
	uint32_t ready[RECORD_MAX_STRIPES]; /* parts with memory, a bit each */
};

extern struct log_hot log_hot;

/* The slow halves of the functions below. */
bool log_get_op(uint32_t *stripe, enum op op);
bool log_get_wake(uint32_t stripe);
bool log_compare_clocks(uint64_t now);

static inline bool log_is_open(void)
{
	return log_hot.in_use;
}

/* The last request to change settings; 0: none.  pre: the log is open. */
static inline uint32_t log_request(void)
{
	return __atomic_load_n(&log_hot.control->serial, __ATOMIC_ACQUIRE);
}

static inline struct record_stripe *log_stripe(uint32_t stripe)
{
	return (void *)(log_hot.stripes + stripe * RECORD_STRIPE_BYTES);
}

/* Parts of a stripe, each with memory or without; the ops come first. */
enum log_part { PART_WAKE = OP_COUNT, PART_HEAD };

static inline bool log_has(uint32_t stripe, unsigned part)
{
	return __atomic_load_n(&log_hot.ready[stripe], __ATOMIC_ACQUIRE) >>
		       part &
	       1;
}

/* Gets memory for the figures of an op in the stripe, or where there is none
 * any more sends them to the first one; false when they have no place at all
 * (the call is then counted as unrecorded). */
static inline bool log_need_op(uint32_t *stripe, enum op op)
{
	return log_has(*stripe, op) || log_get_op(stripe, op);
}

static inline bool log_need_wake(uint32_t stripe)
{
	return log_has(stripe, PART_WAKE) || log_get_wake(stripe);
}

/* Notes that the process lived at `now` (ticks).  True, now and then: the
 * clocks were compared anew, so what was derived from their ratio can be
 * refreshed. */
static inline bool log_alive(uint64_t now)
{
	return now >= __atomic_load_n(&log_hot.next_look, __ATOMIC_RELAXED) &&
	       log_compare_clocks(now);
}

/* Makes a filled event valid. */
static inline void log_seal(struct record_event *event, uint64_t number)
{
	event->check = record_event_check(event);
	__atomic_store_n(&event->seq, (uint32_t)(number + 1), __ATOMIC_RELEASE);
}

#endif
