/* SPDX-License-Identifier: MIT */
/*
 * auto: which lock, found out while the program runs (MMGATE_LOCK=auto).
 *
 * Ops come in groups that are decided together: address space that is taken
 * and given back (mmap, munmap, mremap, brk), protection, and advice.  The
 * measure is the rate of calls: short windows of time under one choice each
 * are compared with windows under no lock in the same round, in changing
 * order.  A lock is chosen only when it is better by MIN_GAIN in the mean of
 * the rounds, and that by more than chance; and again in fresh ones.  Then it
 * stays, but for a glance at the other side now and then, and a new search
 * when the load has changed.
 *
 * No function allocates, waits or touches errno.  Any thread may call any of
 * them at any time.
 */
#ifndef MMGATE_AUTO_H
#define MMGATE_AUTO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "knobs.h"

enum auto_group { AUTO_SPACE, AUTO_PROTECT, AUTO_ADVICE, AUTO_GROUPS };

static inline enum auto_group auto_group(enum op op)
{
	switch (op) {
	case OP_MPROTECT:
	case OP_PKEY_MPROTECT:
		return AUTO_PROTECT;
	case OP_MADVISE:
		return AUTO_ADVICE;
	default:
		return AUTO_SPACE;
	}
}

/* Calls so far, by threads that hash to the same lines. */
enum { AUTO_LINES = 8 };

struct auto_counts {
	_Alignas(64) _Atomic uint64_t calls[AUTO_GROUPS];
};

extern struct auto_counts auto_counts[AUTO_LINES];

/* Counts a call.  `line`: any number that is the thread's. */
static inline void auto_count(unsigned line, enum op op)
{
	atomic_fetch_add_explicit(
		&auto_counts[line % AUTO_LINES].calls[auto_group(op)], 1,
		memory_order_relaxed);
}

/* Begins, or begins anew: nothing is known, and nothing is locked.  `groups`:
 * that are decided on, a bit each.  `alone`: no other thread is in here, though
 * it may look so in a forked child. */
void auto_begin(uint32_t groups, uint64_t now_ns, bool alone);

/* Looks at the clock and the counts, and goes on.  True: auto_kind() changed;
 * the caller is to act on it, and to call auto_done(): nobody else is told
 * until then.  pre: auto_begin() was called, and now_ns is of the same clock.
 */
bool auto_look(uint64_t now_ns);
void auto_done(void);

/* The lock of a group now; of groups that it does not decide on, LOCK_none. */
enum lock_id auto_kind(enum auto_group group);

/* Is this the outcome of a search, and not a window of one? */
bool auto_decided(void);

/* Calls between two looks of a thread. */
unsigned auto_patience(void);

#endif
