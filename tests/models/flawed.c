/* SPDX-License-Identifier: MIT */
#include "flawed.h"

#include <errno.h>
#include <stdbool.h>

#include "permits.h"
#include "sys.h"

enum { FREE, HELD, CONTENDED };

static bool take_as(struct lock *lock, uint32_t as)
{
	uint32_t seen = FREE;

	return atomic_compare_exchange_strong(&lock->word, &seen, as);
}

static bool take(struct lock *lock, bool shared)
{
	(void)shared;
	return take_as(lock, HELD);
}

static bool mark(struct lock *lock)
{
	return atomic_exchange(&lock->word, CONTENDED) == FREE;
}

static int acquire(struct lock *lock, struct lock_wait *wait)
{
	int error = 0;

	if (take(lock, false))
		return 0;
	while (!mark(lock)) {
		if (error != 0)
			return error;
		error = lock_sleep(lock, CONTENDED, wait);
	}
	return 0;
}

static void release(struct lock *lock, bool shared)
{
	(void)shared;
	if (atomic_exchange(&lock->word, FREE) == CONTENDED)
		lock_wake(lock);
}

static bool look_take(struct lock *lock, bool shared)
{
	(void)shared;
	if (atomic_load(&lock->word) != FREE)
		return false;
	atomic_store(&lock->word, HELD);
	return true;
}

const struct lock_kind flawed_look = {"look", look_take, acquire, release,
				      lock_abandon};

static void wake_release(struct lock *lock, bool shared)
{
	(void)shared;
	if (atomic_exchange(&lock->word, FREE) == HELD)
		lock_wake(lock);
}

const struct lock_kind flawed_wake = {"wake", take, acquire, wake_release,
				      lock_abandon};

static int retake_acquire(struct lock *lock, struct lock_wait *wait)
{
	int error = 0;

	while (error == 0 && !take(lock, false)) {
		uint32_t seen = HELD;

		if (atomic_compare_exchange_strong(&lock->word, &seen,
						   CONTENDED) ||
		    seen == CONTENDED)
			error = lock_sleep(lock, CONTENDED, wait);
	}
	return error != 0 && take(lock, false) ? 0 : error;
}

const struct lock_kind flawed_retake = {"retake", take, retake_acquire, release,
					lock_abandon};

static int mark_acquire(struct lock *lock, struct lock_wait *wait)
{
	int error = 0;

	while (error == 0 && !take_as(lock, CONTENDED)) {
		uint32_t seen = atomic_load(&lock->word);

		if (seen == FREE)
			continue;
		/* The word may go from 1 to 0 and back to 1 in here. */
		error = lock_sleep(lock, seen, wait);
	}
	return error;
}

static void mark_release(struct lock *lock, bool shared)
{
	(void)shared;
	if (atomic_exchange(&lock->word, FREE) == CONTENDED)
		lock_wake(lock);
}

static int mark_whole(struct lock *lock, struct lock_wait *wait)
{
	return take(lock, false) ? 0 : mark_acquire(lock, wait);
}

const struct lock_kind flawed_mark = {"mark", take, mark_whole, mark_release,
				      lock_abandon};

static int hasty_acquire(struct lock *lock, struct lock_wait *wait)
{
	int error = 0;

	if (take(lock, false))
		return 0;
	while (error == 0 && !mark(lock))
		error = lock_sleep(lock, CONTENDED, wait);
	return error;
}

const struct lock_kind flawed_hasty = {"hasty", take, hasty_acquire, release,
				       lock_abandon};

/* Writes over LOCK_ABANDONED, and so puts others back to sleep. */
static int deaf_acquire(struct lock *lock, struct lock_wait *wait)
{
	uint32_t seen;
	int error = 0;

	if (take(lock, false))
		return 0;
	for (;;) {
		seen = atomic_exchange(&lock->word, CONTENDED);
		if (seen == FREE)
			return 0;
		if (seen == LOCK_ABANDONED)
			return -EOWNERDEAD;
		if (error != 0)
			return error;
		error = lock_sleep(lock, CONTENDED, wait);
	}
}

const struct lock_kind flawed_deaf = {"deaf", take, deaf_acquire, release,
				      lock_abandon};

enum { RESERVED = CONTENDED + 1 };

static int keep_acquire(struct lock *lock, struct lock_wait *wait)
{
	return lock_mutex.acquire(lock, wait);
}

static void keep_release(struct lock *lock, bool shared)
{
	uint32_t seen = HELD;

	(void)shared;
	if (atomic_compare_exchange_strong(&lock->word, &seen, FREE))
		return;
	if (atomic_compare_exchange_strong(
		    &lock->word, &seen, lock_reserves(lock) ? RESERVED : FREE))
		lock_wake(lock);
}

const struct lock_kind flawed_keep = {"keep", take, keep_acquire, keep_release,
				      lock_abandon};

static void serve_release(struct lock *lock, bool shared)
{
	uint64_t queue = atomic_load(&lock->queue), drawn;
	uint32_t next;

	(void)shared;
	do {
		drawn = queue >> 32;
		next = (uint32_t)queue + 1;
		if (next == (uint32_t)drawn + 1)
			return;
	} while (!atomic_compare_exchange_strong(&lock->queue, &queue,
						 drawn << 32 | next));
	if (next == (uint32_t)drawn)
		return;
	atomic_store(&lock_slots[next % LOCK_SLOTS], next << 2 | 2);
	lock_wake_on(lock, &lock_slots[next % LOCK_SLOTS]);
}

const struct lock_kind flawed_serve = {.name = "serve",
				       .release = serve_release};

enum { OUT = 0xffff, WAITERS = 0x10000 };

static void unmark_release(struct lock *lock, bool shared)
{
	uint32_t had = shared ? 1 : PERMITS_MOST;
	uint32_t seen = atomic_load(&lock->word), next;

	do
		next = (seen - had) & ~(uint32_t)WAITERS;
	while (!atomic_compare_exchange_strong(&lock->word, &seen, next));
	if (seen & WAITERS && (next & OUT) == 0)
		lock_wake(lock);
}

const struct lock_kind flawed_unmark = {.name = "unmark",
					.release = unmark_release};
