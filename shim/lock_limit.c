/* SPDX-License-Identifier: MIT */
/*
 * limit: at most lock_permits threads inside; the rest sleep.
 *
 * word: as in permits.c; each thread takes one.
 *
 * Those who run take free permits before those who sleep, so a few threads
 * whose caches are warm go round while the rest stay parked; one that is
 * parked for a good part of its limit gets in by reservation (locks.c), so in
 * the long run all are served.
 */
#include "permits.h"

#include "poison.h"

static uint32_t total(void)
{
	return atomic_load_explicit(&lock_permits, memory_order_relaxed);
}

static bool take(struct lock *lock, bool shared)
{
	(void)shared;
	return permits_take(lock, 1, total());
}

static int acquire(struct lock *lock, struct lock_wait *wait)
{
	return permits_acquire(lock, 1, total(), wait);
}

static void release(struct lock *lock, bool shared)
{
	(void)shared;
	permits_release(lock, 1, PERMITS_MOST);
}

const struct lock_kind lock_limit = {"limit", take, acquire, release,
				     lock_abandon};
