/* SPDX-License-Identifier: MIT */
/*
 * spin: spin a little with growing pauses, then sleep as mutex does.
 *
 * word  0 to 3: as in lock_mutex.c, and changed by the same rules
 *
 * The difference is before a waiter's first sleep: it looks at the word some
 * times, and takes the lock by 0 -> 1 when it finds it free.  The pauses
 * between looks double, so that many spinners do not fight for the line, and
 * their sum stays below what a sleep and a wake-up cost; so with more threads
 * than CPUs a spinner whose holder was scheduled away gives the CPU back soon.
 */
#include "lock.h"

#include <stdbool.h>

#include "sys.h"

#include "poison.h"

enum { FREE };

enum { FIRST_PAUSES = 4, LONGEST_PAUSES = 64, MOST_PAUSES = 256 };

static bool take(struct lock *lock, bool shared)
{
	return lock_mutex.take(lock, shared);
}

/* Looks before it tries, so that waiting spinners only read the line. */
static bool look_and_take(struct lock *lock)
{
	return atomic_load_explicit(&lock->word, memory_order_relaxed) ==
		       FREE &&
	       take(lock, false);
}

static bool spin(struct lock *lock)
{
	int pauses = FIRST_PAUSES;

	for (int spent = 0; spent < MOST_PAUSES; spent += pauses) {
		for (int i = 0; i < pauses; i++)
			sys_pause();
		if (look_and_take(lock))
			return true;
		if (pauses < LONGEST_PAUSES)
			pauses *= 2;
	}
	return false;
}

static int acquire(struct lock *lock, struct lock_wait *wait)
{
	if (look_and_take(lock) || (lock_cpus > 1 && spin(lock)))
		return 0;
	return lock_mutex.acquire(lock, wait);
}

static void release(struct lock *lock, bool shared)
{
	lock_mutex.release(lock, shared);
}

const struct lock_kind lock_spin = {"spin", take, acquire, release,
				    lock_abandon};
