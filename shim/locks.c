/* SPDX-License-Identifier: MIT */
#include "locks.h"

#include <errno.h>
#include <stddef.h>

#include "clock.h"
#include "sys.h"

#include "poison.h"

enum {
	/* Starved is who lost the lock again after this part of its limit;
	 * every other release is kept then, and each after twice that. */
	PATIENCE = 32,
	URGENCY = 16,
	/* A newcomer's patience with those who are served before it. */
	STAND_BACK = 8,
	/* Nobody takes them back: where one starves others do, and who sleeps
	 * behind it cannot ask.  Enough for all of those, or they ask again;
	 * few beside what is released in that time. */
	RESERVATIONS = 256,
};

static const struct lock_kind *const kinds[] = {
#define LOCK(name, help) &lock_##name,
#include "locks.def"
};

unsigned lock_cpus = 1;
_Atomic uint32_t lock_permits = 1;
_Atomic uint32_t *lock_slots;

const struct lock_kind *locks_kind(enum lock_id id)
{
	return kinds[id];
}

void locks_init(void)
{
	uint64_t mask[128];
	long bytes = sys_sched_getaffinity(mask, sizeof(mask));
	unsigned cpus = 0;

	for (long i = 0; i < bytes / (long)sizeof(mask[0]); i++)
		cpus += (unsigned)__builtin_popcountll(mask[i]);
	if (cpus > 0)
		lock_cpus = cpus;
}

/*
 * Wake-ups and the sleeps they end are paired through a few stamps: a release
 * leaves its time, a woken thread claims the oldest stamp that is younger than
 * its sleep.  With several woken at once the pairs may be crossed; the set of
 * delays is right all the same.  A thread that was killed or jumped away in
 * its sleep leaves a stamp that nobody claims, hence the last resort.
 */
static void leave_stamp(struct lock *lock, uint64_t now)
{
	uint64_t oldest = UINT64_MAX;
	int victim = 0;

	for (int i = 0; i < LOCK_STAMPS; i++) {
		uint64_t stamp = atomic_load_explicit(&lock->woken[i],
						      memory_order_relaxed);

		if (stamp < oldest) { /* 0: free */
			oldest = stamp;
			victim = i;
		}
	}
	atomic_store_explicit(&lock->woken[victim], now, memory_order_relaxed);
}

static void retract_stamp(struct lock *lock, uint64_t now)
{
	for (int i = 0; i < LOCK_STAMPS; i++) {
		uint64_t stamp = now;

		if (atomic_compare_exchange_strong_explicit(
			    &lock->woken[i], &stamp, 0, memory_order_relaxed,
			    memory_order_relaxed))
			return;
	}
}

/* The oldest stamp since `asleep`, or 0. */
static uint64_t claim_stamp(struct lock *lock, uint64_t asleep)
{
	uint64_t oldest = UINT64_MAX;

	for (int i = 0; i < LOCK_STAMPS; i++) {
		uint64_t stamp = atomic_load_explicit(&lock->woken[i],
						      memory_order_relaxed);

		if (stamp >= asleep && stamp < oldest)
			oldest = stamp;
	}
	if (oldest == UINT64_MAX)
		return 0;
	retract_stamp(lock, oldest);
	return oldest;
}

bool lock_wake_on(struct lock *lock, _Atomic uint32_t *word)
{
	uint64_t now = clock_ticks();

	leave_stamp(lock, now);
	if (sys_futex_wake(word, 1) == 1)
		return true;
	retract_stamp(lock, now);
	return false;
}

bool lock_wake(struct lock *lock)
{
	return lock_wake_on(lock, &lock->word);
}

void lock_abandon(struct lock *lock)
{
	atomic_store(&lock->word, LOCK_ABANDONED);
	sys_futex_wake(&lock->word, INT32_MAX);
}

void lock_renew(struct lock *fresh, const struct lock *old)
{
	/* fifo: no ticket that a waiter of the old one may still have. */
	uint32_t ticket =
		(uint32_t)(atomic_load(&old->queue) >> 32) + LOCK_SLOTS;

	for (int i = 0; i < LOCK_STAMPS; i++)
		atomic_store(&fresh->woken[i], 0);
	atomic_store(&fresh->reserved, 0);
	atomic_store(&fresh->queue, (uint64_t)ticket << 32 | ticket);
	atomic_store(&fresh->word, 0);
}

/* Clocks of two CPUs may differ by a hair; 0 would mean no sleep. */
static uint64_t ticks_since(uint64_t stamp)
{
	uint64_t now = clock_ticks();

	return now > stamp ? now - stamp : 1;
}

/* Nanoseconds left, 0 when the limit has passed. */
static uint64_t time_left(struct lock_wait *wait)
{
	uint64_t now = clock_monotonic();

	if (wait->deadline_ns == 0)
		wait->deadline_ns = now + wait->limit_ns;
	return now < wait->deadline_ns ? wait->deadline_ns - now : 0;
}

static int sleep_for(struct lock *lock, _Atomic uint32_t *word, uint32_t seen,
		     struct lock_wait *wait, uint64_t ns)
{
	struct sys_timespec timeout = {(int64_t)(ns / 1000000000),
				       (int64_t)(ns % 1000000000)};
	uint64_t asleep, stamp;
	long result;

	if (ns == 0)
		return -ETIMEDOUT;
	asleep = clock_ticks();
	result = sys_futex_wait(word, seen, &timeout);
	if (result == 0) {
		stamp = claim_stamp(lock, asleep);
		if (stamp != 0)
			wait->wake = ticks_since(stamp);
	}
	return result == -ETIMEDOUT ? -ETIMEDOUT : 0;
}

/*
 * reserved: releases to come << 1 | is each of them kept, or about every other.
 * From a release that keeps the lock until a sleeper runs nobody holds it; with
 * many threads and short calls that is most of the time, if each release does
 * so.
 */
static void ask(struct lock *lock, bool urgent)
{
	uint32_t seen = atomic_load(&lock->reserved);
	uint32_t left = seen >> 1, each = seen & 1;

	if (left < RESERVATIONS / 2 || (urgent && !each))
		atomic_store(&lock->reserved, RESERVATIONS << 1 | urgent);
}

/* As if by chance, so in no step with the futex's queue: who comes to a place
 * in it where the lock is not kept loses, and goes to its end.  The factors are
 * such that half of the numbers down to RESERVATIONS / 2 say yes, and of the
 * rest, and no five in a row say the same. */
static bool is_every_other(uint32_t left)
{
	uint32_t mixed = left * UINT32_C(0xa2b91cbf);

	mixed = (mixed ^ mixed >> 15) * UINT32_C(0xf1c768e1);
	return mixed >> 31;
}

int lock_sleep(struct lock *lock, uint32_t seen, struct lock_wait *wait)
{
	uint64_t left = time_left(wait), gone = wait->limit_ns - left;

	if (gone > wait->limit_ns / PATIENCE)
		ask(lock, gone > wait->limit_ns / URGENCY);
	return sleep_for(lock, &lock->word, seen, wait, left);
}

int lock_sleep_on(struct lock *lock, _Atomic uint32_t *word, uint32_t seen,
		  struct lock_wait *wait)
{
	return sleep_for(lock, word, seen, wait, time_left(wait));
}

int lock_stand_back(struct lock *lock, uint32_t seen, struct lock_wait *wait)
{
	uint64_t left = time_left(wait), brief = wait->limit_ns / STAND_BACK;
	int error = sleep_for(lock, &lock->word, seen, wait,
			      left < brief ? left : brief);

	return error == -ETIMEDOUT && brief < left ? 0 : error;
}

bool lock_reserves(struct lock *lock)
{
	uint32_t seen = atomic_load(&lock->reserved);
	uint32_t left = seen >> 1, each = seen & 1;

	if (left == 0)
		return false;
	/* A waiter that asks meanwhile may be forgotten: it asks again. */
	atomic_store(&lock->reserved, (left - 1) << 1 | each);
	return each || is_every_other(left);
}
