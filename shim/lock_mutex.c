/* SPDX-License-Identifier: MIT */
/*
 * mutex: sleep on a futex; a running thread may take a free lock first.
 *
 * word  0  free
 *       1  held, nobody sleeps
 *       2  held, somebody may sleep
 *
 * 0 -> 1  whoever comes, before any thread that was woken for it (stealing:
 *         no idle time between a release and the sleeper's start)
 * * -> 2  a waiter, before each sleep; it holds the lock if that found 0.
 *         A waiter that was woken comes this way too, as others may sleep.
 * * -> 0  the holder; it wakes one sleeper if that found 2
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

static bool take(struct lock *lock)
{
	uint32_t seen = FREE;

	return atomic_compare_exchange_strong_explicit(&lock->word, &seen, HELD,
						       memory_order_acquire,
						       memory_order_relaxed);
}

static int acquire(struct lock *lock, struct lock_wait *wait)
{
	int error = 0;

	if (take(lock))
		return 0;
	while (atomic_exchange_explicit(&lock->word, CONTENDED,
					memory_order_acquire) != FREE) {
		if (error != 0)
			return error;
		error = lock_sleep(lock, CONTENDED, wait);
	}
	return 0;
}

static void release(struct lock *lock)
{
	if (atomic_exchange_explicit(&lock->word, FREE, memory_order_release) ==
	    CONTENDED)
		lock_wake(lock);
}

const struct lock_kind lock_mutex = {"mutex", take, acquire, release};
