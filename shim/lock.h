/* SPDX-License-Identifier: MIT */
/*
 * lock: what a lock at the gate is.
 *
 * The lock serves throughput and guards no data of ours: a caller that goes
 * without it does no harm.  So every lock may be given up at any moment, by
 * time-out, by fork (its memory is then zero) or because its holder is gone:
 *   - all bytes zero is a free lock, and release() of one that is free, or
 *     that somebody else took since, does nothing worse than let one more
 *     thread pass;
 *   - acquire() never waits past the limit, and gives up as soon as the word is
 *     LOCK_ABANDONED, which only abandon() writes, and nobody else changes.
 * What holds for all locks (re-entry, fork, opening) lives in gate.c.
 *
 * Functions run in the program's threads, allocate nothing, leave errno alone.
 */
#ifndef MMGATE_LOCK_H
#define MMGATE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { LOCK_LINE = 64 };

#ifndef LOCK_STAMPS
#define LOCK_STAMPS 7
#endif

/* Threads that can queue for fifo at a time; a power of two. */
#ifndef LOCK_SLOTS
#define LOCK_SLOTS 4096
#endif

/* One lock, in the page that fork wipes. */
struct lock {
	_Alignas(LOCK_LINE) _Atomic uint32_t word; /* its kind says */
	_Atomic uint64_t queue;                    /* fifo alone: tickets */
	/* A waiter starves: of so many releases each, or every other, keeps
	 * the lock for sleepers (locks.c). */
	_Alignas(LOCK_LINE) _Atomic uint32_t reserved;
	/* When sleepers were woken, in ticks, 0 when claimed: wake_ns. */
	_Atomic uint64_t woken[LOCK_STAMPS];
};

/* One thread's try to get it. */
struct lock_wait {
	bool shared;          /* in: as take() has it */
	uint64_t limit_ns;    /* in: longest wait */
	uint64_t deadline_ns; /* set by the first lock_sleep(); start with 0 */
	uint64_t wake;        /* out: ticks from the release that ended the
			       * last sleep until this thread ran; 0: it did
			       * not sleep */
};

struct lock_kind {
	const char *name;
	/* Takes the lock if it is free.  Never waits.  `shared`: the kernel
	 * runs this call beside others of its sort; most locks do not care. */
	bool (*take)(struct lock *lock, bool shared);
	/* Takes the lock and waits for it if need be.  0: the caller holds it.
	 * -ETIMEDOUT: it does not, the limit has passed.  -EOWNERDEAD: it does
	 * not, the lock was abandoned. */
	int (*acquire)(struct lock *lock, struct lock_wait *wait);
	/* pre: `shared` as it was taken. */
	void (*release)(struct lock *lock, bool shared);
	/* Gives the lock up: whoever waits for it stops waiting.  Its holder,
	 * if it lives, need not release it. */
	void (*abandon)(struct lock *lock);
};

#define LOCK(name, help) extern const struct lock_kind lock_##name;
#include "locks.def"

/* CPUs that the process may use; spinning on one is a waste. */
extern unsigned lock_cpus;

/* limit: threads inside at a time, at least 1.  May change at any time. */
extern _Atomic uint32_t lock_permits;

/* fifo: LOCK_SLOTS words that fork wipes, shared by all its locks. */
extern _Atomic uint32_t *lock_slots;

/* The word of a lock that was given up for a fresh one. */
#define LOCK_ABANDONED UINT32_MAX

/* Sleeps while the word is `seen`, until woken or the limit has passed.  0:
 * look again, the wake-up may have been meant for the lock; -ETIMEDOUT: no
 * wake-up was taken.  A thread that sleeps when a good part of its limit is
 * gone asks for reservations: for a number of releases, served or not; for
 * more of them the more is gone. */
int lock_sleep(struct lock *lock, uint32_t seen, struct lock_wait *wait);

/* The same on another word, in the order that its owner keeps. */
int lock_sleep_on(struct lock *lock, _Atomic uint32_t *word, uint32_t seen,
		  struct lock_wait *wait);

/* The same for a newcomer that stands back while others are served: 0 after a
 * while too, as the one that is served may be gone. */
int lock_stand_back(struct lock *lock, uint32_t seen, struct lock_wait *wait);

/* For a holder: is the lock to be kept for those who sleep?  Counts. */
bool lock_reserves(struct lock *lock);

/* Stamps the time and wakes one sleeper; false: there was none. */
bool lock_wake(struct lock *lock);
bool lock_wake_on(struct lock *lock, _Atomic uint32_t *word);

/* abandon() of locks whose waiters all sleep on the word. */
void lock_abandon(struct lock *lock);

/* Makes `fresh` a free lock to go on with after `old` was abandoned, whose
 * waiters may still be on their way out. */
void lock_renew(struct lock *fresh, const struct lock *old);

#endif
