/* SPDX-License-Identifier: MIT */
/*
 * mutex: sleep on a futex; a running thread may take a free lock first.
 *
 * word  0  free
 *       1  held, nobody sleeps
 *       2  held, somebody may sleep
 *       3  free, reserved for those who sleep
 *       LOCK_ABANDONED  the gate's word: for good
 *
 * 0 -> 1  whoever comes, before any thread that was woken for it (stealing:
 *         no idle time between a release and the sleeper's start)
 * 0 -> 2  a waiter that slept: others may sleep still; 3 -> 2 the same
 * 1 -> 2  a waiter, before it sleeps
 * 1 -> 0  the holder
 * 2 -> 0  the holder; it then wakes one sleeper
 * 2 -> 3  the holder, for some releases after a waiter starved; the same.
 *         Nobody steals then, and the futex serves sleepers in their order.
 * 3 -> 0  the same thread, when nobody slept after all
 *
 * So while somebody sleeps either the word is 2 and its holder will wake one,
 * or a woken thread is on its way to make it 2.  A waiter that times out takes
 * no wake-up with it (lock_sleep says so); one more look at the word then
 * covers a wake-up that was lost with a killed thread.
 *
 * Stealing alone lets one of 64 threads on 2 CPUs lose for more than a second,
 * and a wait that long opens the gate; hence 3.
 */
#include "lock.h"

#include <errno.h>

#include "poison.h"

enum { FREE, HELD, CONTENDED, RESERVED };

static bool change(struct lock *lock, uint32_t *from, uint32_t to)
{
	return atomic_compare_exchange_strong_explicit(&lock->word, from, to,
						       memory_order_acq_rel,
						       memory_order_relaxed);
}

static bool take(struct lock *lock, bool shared)
{
	uint32_t seen = FREE;

	(void)shared;
	return change(lock, &seen, HELD);
}

/* Takes the lock as `mine` if it is free, or reserved and the caller slept. */
static bool get(struct lock *lock, uint32_t mine, uint32_t *seen)
{
	*seen = FREE;
	do {
		if (change(lock, seen, mine))
			return true;
	} while (*seen == FREE || (*seen == RESERVED && mine == CONTENDED));
	return false;
}

static int acquire(struct lock *lock, struct lock_wait *wait)
{
	uint32_t mine = HELD, seen;
	int error = 0;

	for (;;) {
		if (get(lock, mine, &seen))
			return 0;
		if (seen == LOCK_ABANDONED)
			return -EOWNERDEAD;
		if (error != 0)
			return error;
		if (seen == HELD && !change(lock, &seen, CONTENDED))
			continue;
		error = seen == RESERVED ? lock_stand_back(lock, RESERVED, wait)
					 : lock_sleep(lock, CONTENDED, wait);
		mine = CONTENDED;
	}
}

static void release(struct lock *lock, bool shared)
{
	uint32_t seen = HELD, next;

	(void)shared;
	if (change(lock, &seen, FREE) || seen != CONTENDED)
		return;
	next = lock_reserves(lock) ? RESERVED : FREE;
	if (!change(lock, &seen, next) || lock_wake(lock) || next == FREE)
		return;
	/* Nobody slept, but a newcomer may stand back by now. */
	seen = RESERVED;
	if (change(lock, &seen, FREE))
		lock_wake(lock);
}

const struct lock_kind lock_mutex = {"mutex", take, acquire, release,
				     lock_abandon};
