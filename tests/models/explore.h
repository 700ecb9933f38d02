/* SPDX-License-Identifier: MIT */
/*
 * explore: runs real code under every schedule.
 *
 * Threads are fibres.  Each access to shared memory and each futex call of the
 * code under test (instrument.h redirects them) is a point at which any other
 * thread may run first.  The explorer takes every choice at every point, depth
 * first, and goes back by restoring memory and stacks; a state that was seen
 * before is not entered again.  So when it ends without a report, no schedule
 * of these threads and these faults breaks the properties.
 *
 * What it does not cover: orders of memory that only weak hardware shows (all
 * steps are sequentially consistent here).
 */
#ifndef MMGATE_EXPLORE_H
#define MMGATE_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock.h"
#include "sys.h"

enum { MODEL_THREADS = 5, MODEL_MEMORIES = 3, MODEL_LIMIT_NS = 1000 };

enum model_status {
	MODEL_READY,
	MODEL_ASLEEP,
	MODEL_DONE,
	MODEL_DEAD,
};

/* How a thread is torn away from what it does. */
enum model_fault {
	MODEL_KILLED,
	MODEL_JUMPED, /* back to the start of its body, by siglongjmp */
	MODEL_FORKED, /* this is its child: all other threads are gone */
};

struct model {
	const char *name;
	int threads;
	void (*reset)(void);
	void (*body)(int thread);
	/* Nobody runs unless time passes, and somebody sleeps. */
	void (*at_rest)(void);
	/* What else a fault does; `asleep`: since its last sleep began, the
	 * thread has not run. */
	void (*fault)(int thread, enum model_fault fault, bool asleep);
	/* All shared memory that the code under test and the checks use; an
	 * empty one ends the list. */
	struct model_memory {
		void *at;
		size_t size;
	} shared[MODEL_MEMORIES + 1];
	/* Thread-local memory of the code under test. */
	void *local;
	size_t local_size;
	struct lock *locks;
	int lock_count;
	/* Environment: may a sleep time out, or end by a signal, at any time?
	 * How often may the clock leap beyond all limits, threads die, ... */
	bool timeouts, signals;
	int leaps, kills, jumps, forks;
};

/* False when a property was broken: the schedule that did it goes to stdout
 * unless `expected`, and `*report` says which. */
bool explore(const struct model *model, bool expected, const char **report,
	     unsigned long *states);

/* For models. */
void model_fail(const char *why);
void model_step(const char *what, const volatile void *at);
int model_choose(int choices);
enum model_status model_status(int thread);
/* The word it sleeps on, or NULL. */
const volatile void *model_sleeps_on(int thread);
bool model_forked(void);

/* For instrument.h. */
uint32_t model_load32(const _Atomic uint32_t *p);
uint64_t model_load64(const _Atomic uint64_t *p);
void model_store32(_Atomic uint32_t *p, uint32_t value);
void model_store64(_Atomic uint64_t *p, uint64_t value);
uint32_t model_exchange32(_Atomic uint32_t *p, uint32_t value);
uint64_t model_exchange64(_Atomic uint64_t *p, uint64_t value);
bool model_swap32(_Atomic uint32_t *p, uint32_t *expected, uint32_t value);
bool model_swap64(_Atomic uint64_t *p, uint64_t *expected, uint64_t value);
uint32_t model_add32(_Atomic uint32_t *p, uint32_t value);
uint64_t model_add64(_Atomic uint64_t *p, uint64_t value);
long model_futex_wait(const volatile void *word, uint32_t seen,
		      const struct sys_timespec *timeout);
long model_futex_wake(const volatile void *word, int count);
uint64_t model_clock(void);

#endif
