/* SPDX-License-Identifier: MIT */
/*
 * rw: calls that the kernel runs beside each other share, others exclude.
 *
 * word: as in permits.c; a shared call takes one, any other takes all.
 *
 * Sleepers are woken when nobody is inside: while somebody shares, others that
 * may share go in without sleep, and those who exclude could not.
 */
#include "permits.h"

#include "poison.h"

static uint32_t wanted(bool shared)
{
	return shared ? 1 : PERMITS_MOST;
}

static uint32_t total(bool shared)
{
	return shared ? PERMITS_MOST - 1 : PERMITS_MOST;
}

static bool take(struct lock *lock, bool shared)
{
	return permits_take(lock, wanted(shared), total(shared));
}

static int acquire(struct lock *lock, struct lock_wait *wait)
{
	return permits_acquire(lock, wanted(wait->shared), total(wait->shared),
			       wait);
}

static void release(struct lock *lock, bool shared)
{
	permits_release(lock, wanted(shared), 0);
}

const struct lock_kind lock_rw = {"rw", take, acquire, release, lock_abandon};
