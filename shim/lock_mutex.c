/* SPDX-License-Identifier: MIT */
/*
 * mutex: sleep on a futex; a running thread may take a free lock first.
 *
 * word  0  free
 *       1  held, nobody sleeps
 *       2  held, somebody may sleep
 *       LOCK_ABANDONED  the gate's word: for good
 *
 * 0 -> 1  whoever comes, before any thread that was woken for it (stealing:
 *         no idle time between a release and the sleeper's start)
 * 0 -> 2  a waiter that slept: others may sleep still
 * 1 -> 2  a waiter, before it sleeps
 * 1 -> 0  the holder
 * 2 -> 0  the holder; it then wakes one sleeper
 *
 * So while somebody sleeps either the word is 2 and its holder will wake one,
 * or a woken thread is on its way to make it 2.  A waiter that times out takes
 * no wake-up with it (lock_sleep says so); one more look at the word then
 * covers a wake-up that was lost with a killed thread.
 */
#include "lock.h"

#include <errno.h>

#include "poison.h"

enum { FREE, HELD, CONTENDED };

static bool change(struct lock *lock, uint32_t *from, uint32_t to)
{
	return atomic_compare_exchange_strong_explicit(&lock->word, from, to,
						       memory_order_acq_rel,
						       memory_order_relaxed);
}

static bool take(struct lock *lock)
{
	uint32_t seen = FREE;

	return change(lock, &seen, HELD);
}

static int acquire(struct lock *lock, struct lock_wait *wait)
{
	uint32_t mine = HELD;
	int error = 0;

	for (;;) {
		uint32_t seen = FREE;

		if (change(lock, &seen, mine))
			return 0;
		if (seen == LOCK_ABANDONED)
			return -EOWNERDEAD;
		if (error != 0)
			return error;
		if (seen == HELD && !change(lock, &seen, CONTENDED))
			continue;
		error = lock_sleep(lock, CONTENDED, wait);
		mine = CONTENDED;
	}
}

static void release(struct lock *lock)
{
	uint32_t seen = HELD;

	if (change(lock, &seen, FREE))
		return;
	if (seen == CONTENDED && change(lock, &seen, FREE))
		lock_wake(lock);
}

const struct lock_kind lock_mutex = {"mutex", take, acquire, release};
