/* SPDX-License-Identifier: MIT */
/*
 * locks: the list of lock kinds, and the sleep that they share.
 */
#ifndef MMGATE_LOCKS_H
#define MMGATE_LOCKS_H

#include "knobs.h"
#include "lock.h"

/* The kind of an id; never NULL. */
const struct lock_kind *locks_kind(enum lock_id id);

/* Counts the CPUs that this process may use. */
void locks_init(void);

#endif
