/* SPDX-License-Identifier: MIT */
/*
 * none: everybody passes.
 *
 * word: unused.  The gate does not even ask it; it is a kind like the others
 * so that tables are whole and tests have a lock that does not lock.
 */
#include "lock.h"

#include "poison.h"

static bool take(struct lock *lock, bool shared)
{
	(void)lock;
	(void)shared;
	return true;
}

static int acquire(struct lock *lock, struct lock_wait *wait)
{
	(void)lock;
	(void)wait;
	return 0;
}

static void release(struct lock *lock, bool shared)
{
	(void)lock;
	(void)shared;
}

const struct lock_kind lock_none = {"none", take, acquire, release,
				    lock_abandon};
