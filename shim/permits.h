/* SPDX-License-Identifier: MIT */
/*
 * permits: a counted lock, of which limit and rw are two uses.
 *
 * There are `total` permits.  A thread takes `wanted` of them at once, or
 * sleeps; a running thread may take free ones first.  Contract as lock.h.
 */
#ifndef MMGATE_PERMITS_H
#define MMGATE_PERMITS_H

#include "lock.h"

/* Who takes that many has the lock for itself; all others together never do. */
enum { PERMITS_MOST = 0xffff };

bool permits_take(struct lock *lock, uint32_t wanted, uint32_t total);

int permits_acquire(struct lock *lock, uint32_t wanted, uint32_t total,
		    struct lock_wait *wait);

/* Gives `had` permits back.  Sleepers are of use when at most `few` are out
 * then. */
void permits_release(struct lock *lock, uint32_t had, uint32_t few);

#endif
