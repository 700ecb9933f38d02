/* SPDX-License-Identifier: MIT */
/*
 * fifo: each release hands the lock to the longest waiter, asleep or not.
 *
 * queue  low half: the ticket that is served; high half: the next to be drawn.
 *        Equal: free.
 * slot   of ticket t, number t % LOCK_SLOTS: what happened to it last,
 *        waiting(t)  nothing yet
 *        granted(t)  t holds the lock
 *        gone(t)     t gave up, or the lock was abandoned under it
 *        other       it is an earlier ticket's, or was wiped
 * word   LOCK_ABANDONED, and then the queue is too full to be, or a count of
 * the times when a full one got room
 *
 * A thread draws a ticket by compare-and-swap of the queue.  With nobody
 * before it, it holds the lock; else it sleeps on its slot until that says
 * granted.  One that gives up says gone, and loses to a grant by the same
 * compare-and-swap; who finds gone when it grants serves the next ticket.
 *
 * Fork wipes queue and slots under a waiter that a handler interrupted: its
 * ticket is then outside of the queue, and it draws another one.  Slots are
 * never a ticket's for longer than it is in the queue, as nobody draws when
 * LOCK_SLOTS are out.
 */
#include "lock.h"

#include <errno.h>

#include "sys.h"

#include "poison.h"

static uint32_t served(uint64_t queue)
{
	return (uint32_t)queue;
}

static uint32_t drawn(uint64_t queue)
{
	return (uint32_t)(queue >> 32);
}

static bool change(struct lock *lock, uint64_t *seen, uint32_t next_drawn,
		   uint32_t next_served)
{
	return atomic_compare_exchange_strong(
		&lock->queue, seen, (uint64_t)next_drawn << 32 | next_served);
}

static _Atomic uint32_t *slot(uint32_t ticket)
{
	return &lock_slots[ticket % LOCK_SLOTS];
}

/* Never 0, which a fork leaves. */
static uint32_t waiting(uint32_t ticket)
{
	return ticket << 2 | 1;
}

static uint32_t granted(uint32_t ticket)
{
	return ticket << 2 | 2;
}

static uint32_t gone(uint32_t ticket)
{
	return ticket << 2 | 3;
}

static bool is_abandoned(const struct lock *lock)
{
	return atomic_load(&lock->word) == LOCK_ABANDONED;
}

static bool take(struct lock *lock, bool shared)
{
	uint64_t queue = atomic_load(&lock->queue);

	(void)shared;
	return served(queue) == drawn(queue) &&
	       change(lock, &queue, drawn(queue) + 1, served(queue));
}

/* Room again: tells one of those who wait for it. */
static void announce_room(struct lock *lock)
{
	uint32_t seen = atomic_load(&lock->word);

	while (seen != LOCK_ABANDONED &&
	       !atomic_compare_exchange_strong(&lock->word, &seen,
					       (seen + 1) % LOCK_ABANDONED))
		;
	sys_futex_wake(&lock->word, 1);
}

static bool is_full(uint64_t queue)
{
	return drawn(queue) - served(queue) >= LOCK_SLOTS;
}

/* Waits while the queue is full, as it is for ever once it was abandoned. */
static int wait_for_room(struct lock *lock, struct lock_wait *wait)
{
	int error = 0;

	for (;;) {
		uint32_t seen = atomic_load(&lock->word);

		if (seen == LOCK_ABANDONED)
			return -EOWNERDEAD;
		if (!is_full(atomic_load(&lock->queue)))
			return 0;
		if (error != 0)
			return error;
		error = lock_stand_back(lock, seen, wait);
	}
}

/* Draws a ticket.  0, -ETIMEDOUT, -EOWNERDEAD; *holds: it is served. */
static int draw(struct lock *lock, struct lock_wait *wait, uint32_t *ticket,
		bool *holds)
{
	uint64_t queue = atomic_load(&lock->queue);
	bool waited = false;
	int error;

	do {
		while (is_full(queue)) {
			error = wait_for_room(lock, wait);
			if (error != 0)
				return error;
			waited = true;
			queue = atomic_load(&lock->queue);
		}
		*ticket = drawn(queue);
		*holds = *ticket == served(queue);
	} while (!change(lock, &queue, *ticket + 1, served(queue)));
	if (waited) /* there may be more room */
		announce_room(lock);
	return 0;
}

static bool is_queued(struct lock *lock, uint32_t ticket)
{
	uint64_t queue = atomic_load(&lock->queue);

	return ticket - served(queue) < drawn(queue) - served(queue);
}

/* 0: it is the ticket's turn.  -EAGAIN: there is no such ticket any more. */
static int await(struct lock *lock, uint32_t ticket, struct lock_wait *wait)
{
	_Atomic uint32_t *mine = slot(ticket);
	int error = 0;

	for (;;) {
		uint32_t seen = atomic_load(mine);

		if (seen == granted(ticket))
			return 0;
		if (seen == gone(ticket))
			return -EOWNERDEAD;
		if (seen != waiting(ticket)) {
			/* A fresh lock uses the slots of one given up. */
			if (is_abandoned(lock))
				return -EOWNERDEAD;
			atomic_compare_exchange_strong(mine, &seen,
						       waiting(ticket));
			continue;
		}
		/* A fork from here on wipes the slot, too. */
		if (!is_queued(lock, ticket))
			return -EAGAIN;
		if (error == 0)
			error = lock_sleep_on(lock, mine, seen, wait);
		else if (atomic_compare_exchange_strong(mine, &seen,
							gone(ticket)))
			return error;
	}
}

static int acquire(struct lock *lock, struct lock_wait *wait)
{
	uint32_t ticket;
	bool holds;
	int error;

	do {
		error = draw(lock, wait, &ticket, &holds);
		if (error == 0 && !holds)
			error = await(lock, ticket, wait);
	} while (error == -EAGAIN);
	return error;
}

/* Serves the next ticket; false when that one is gone, and so is its turn. */
static bool serve_next(struct lock *lock)
{
	uint64_t queue = atomic_load(&lock->queue);
	uint32_t next;
	bool was_full;

	do {
		if (served(queue) == drawn(queue) || is_abandoned(lock))
			return true;
		next = served(queue) + 1;
		was_full = is_full(queue);
	} while (!change(lock, &queue, drawn(queue), next));
	if (was_full)
		announce_room(lock);
	if (next == drawn(queue))
		return true;
	if (atomic_exchange(slot(next), granted(next)) == gone(next))
		return false;
	lock_wake_on(lock, slot(next));
	return true;
}

static void release(struct lock *lock, bool shared)
{
	(void)shared;
	while (!serve_next(lock))
		;
}

/* From now on the queue is fuller than full, and those in it are gone: each
 * slot changes under its sleeper, and under one that is about to sleep. */
static void abandon(struct lock *lock)
{
	uint64_t queue = atomic_load(&lock->queue);

	lock_abandon(lock);
	while (!change(lock, &queue, drawn(queue),
		       drawn(queue) - LOCK_SLOTS - 1))
		;
	for (uint32_t t = served(queue); t != drawn(queue); t++) {
		atomic_store(slot(t), gone(t));
		sys_futex_wake(slot(t), INT32_MAX);
	}
}

const struct lock_kind lock_fifo = {"fifo", take, acquire, release, abandon};
