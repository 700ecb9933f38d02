/* SPDX-License-Identifier: MIT */
/*
 * race LOCK: threads count up plain memory behind the lock.  For
 * ThreadSanitizer, which knows nothing of our futex calls and sees order in
 * the atomics alone: it must report a race under `none`, and under no other.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "lock.h"
#include "locks.h"

enum { THREADS = 4, ROUNDS = 5000 };

static struct lock lock;
static _Atomic uint32_t slots[LOCK_SLOTS];
static const struct lock_kind *kind;
static unsigned long counter, failures;

static void *count_up(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		struct lock_wait wait = {.limit_ns = UINT64_C(60000000000)};

		if (!kind->take(&lock, false) &&
		    kind->acquire(&lock, &wait) != 0)
			__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
		counter++;
		kind->release(&lock, false);
	}
	return NULL;
}

static const struct lock_kind *named(const char *name)
{
	for (int id = 0; id < LOCK_COUNT; id++)
		if (strcmp(locks_kind((enum lock_id)id)->name, name) == 0)
			return locks_kind((enum lock_id)id);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];

	kind = argc == 2 ? named(argv[1]) : NULL;
	if (kind == NULL) {
		fprintf(stderr, "usage: race LOCK\n");
		return 2;
	}
	lock_cpus = 2;
	lock_slots = slots;
	lock_permits = 1;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, count_up, NULL) != 0)
			return 2;
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return failures != 0 ? 3 : 0;
}
