/* SPDX-License-Identifier: MIT */
/*
 * word  bits 0-15  permits that are out
 *       WAITERS    somebody may sleep
 *       RESERVED   free ones are kept for those who sleep
 *       LOCK_ABANDONED  for good
 *
 * The rules are lock_mutex.c's, counted: a release that finds WAITERS takes
 * the mark away and wakes one; whoever slept sets it again when it takes, or
 * before it sleeps again, as others may sleep still.  One that took and left
 * something over wakes the next: so free permits and sleepers who could have
 * them do not stay side by side.
 */
#include "permits.h"

#include <errno.h>

#include "poison.h"

#define OUT UINT32_C(0xffff)
#define WAITERS UINT32_C(0x10000)
#define RESERVED UINT32_C(0x20000)

static bool change(struct lock *lock, uint32_t *seen, uint32_t to)
{
	return atomic_compare_exchange_strong_explicit(&lock->word, seen, to,
						       memory_order_acq_rel,
						       memory_order_relaxed);
}

static bool has_room(uint32_t word, uint32_t wanted, uint32_t total)
{
	return word != LOCK_ABANDONED && (word & OUT) + wanted <= total;
}

bool permits_take(struct lock *lock, uint32_t wanted, uint32_t total)
{
	uint32_t seen = 0;

	do {
		if (!has_room(seen, wanted, total) || seen & RESERVED)
			return false;
	} while (!change(lock, &seen, seen + wanted));
	return true;
}

/* For one that slept: the reserved ones too. */
static bool take_back(struct lock *lock, uint32_t wanted, uint32_t total,
		      uint32_t *seen)
{
	uint32_t next;

	*seen = atomic_load(&lock->word);
	do {
		if (!has_room(*seen, wanted, total))
			return false;
		next = ((*seen + wanted) | WAITERS) & ~RESERVED;
	} while (!change(lock, seen, next));
	if ((next & OUT) < total)
		lock_wake(lock);
	return true;
}

static bool get(struct lock *lock, uint32_t wanted, uint32_t total, bool slept,
		uint32_t *seen)
{
	if (slept)
		return take_back(lock, wanted, total, seen);
	*seen = atomic_load(&lock->word);
	do {
		if (!has_room(*seen, wanted, total) || *seen & RESERVED)
			return false;
	} while (!change(lock, seen, *seen + wanted));
	return true;
}

int permits_acquire(struct lock *lock, uint32_t wanted, uint32_t total,
		    struct lock_wait *wait)
{
	bool slept = false;
	uint32_t seen;
	int error = 0;

	for (;;) {
		if (get(lock, wanted, total, slept, &seen))
			return 0;
		if (seen == LOCK_ABANDONED)
			return -EOWNERDEAD;
		if (error != 0)
			return error;
		if (has_room(seen, wanted, total)) {
			error = lock_stand_back(lock, seen, wait);
		} else {
			if (!(seen & WAITERS) &&
			    !change(lock, &seen, seen | WAITERS))
				continue;
			error = lock_sleep(lock, seen | WAITERS, wait);
		}
		slept = true;
	}
}

/* Nobody slept after all, but a newcomer may stand back by now. */
static void open_up(struct lock *lock)
{
	uint32_t seen = atomic_load(&lock->word);

	do {
		if (seen == LOCK_ABANDONED || !(seen & RESERVED))
			return;
	} while (!change(lock, &seen, seen & ~RESERVED));
	lock_wake(lock);
}

void permits_release(struct lock *lock, uint32_t had, uint32_t few)
{
	uint32_t seen = atomic_load(&lock->word), next;
	bool wake, asked = false, reserve = false;

	do {
		/* Fewer than it had: somebody wiped the word.  All of them,
		 * and not its own: one has the lock for itself. */
		if (seen == LOCK_ABANDONED || (seen & OUT) < had ||
		    ((seen & OUT) == PERMITS_MOST && had != PERMITS_MOST))
			return;
		next = seen - had;
		wake = seen & WAITERS && (next & OUT) <= few;
		if (seen & WAITERS && !(seen & RESERVED) && !asked) {
			asked = true; /* it counts */
			reserve = lock_reserves(lock);
		}
		if (seen & WAITERS && reserve)
			next |= RESERVED;
		if (wake)
			next &= ~WAITERS;
	} while (!change(lock, &seen, next));
	if (wake && !lock_wake(lock) && next & RESERVED)
		open_up(lock);
}
