/* SPDX-License-Identifier: MIT */
/*
 * world: what this process is, and whether it still is the same one.
 *
 * A page that the kernel wipes in a forked child (MADV_WIPEONFORK) holds a
 * copy of the epoch and all locks.  So a child finds every lock free and the
 * copy zero, however it was forked: fork, _Fork, raw clone, in a handler.
 * Children that share memory (vfork, posix_spawn) share the page, and are
 * this same process to us.
 */
#ifndef MMGATE_WORLD_H
#define MMGATE_WORLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "knobs.h"
#include "lock.h"
#include "sys.h"

enum { WORLD_LOCKS = 4 }; /* fresh ones, in turn */

/* The gate's state for one kind of lock, and its locks: see gate.c. */
struct world_gate {
	_Alignas(LOCK_LINE) _Atomic uint64_t state;
	struct lock locks[WORLD_LOCKS];
};

struct world_page {
	/* 0: a new process, or before world_init().  Else the epoch, with
	 * WORLD_PASSIVE when nothing is to be gated or recorded here. */
	_Alignas(SYS_PAGE_MAX) _Atomic uint32_t self;
	struct world_gate gate[LOCK_COUNT]; /* LOCK_none has no use of its own
					     */
	_Atomic uint32_t slots[LOCK_SLOTS]; /* see lock.h */
};

#define WORLD_PASSIVE UINT32_C(0x80000000)
/* A new process is being set up by one of its threads. */
#define WORLD_ARRIVING UINT32_C(0xffffffff)

extern struct world_page world_page;

static inline uint32_t world_self(void)
{
	return atomic_load_explicit(&world_page.self, memory_order_acquire);
}

static inline bool world_active(uint32_t self)
{
	return self != 0 && !(self & WORLD_PASSIVE);
}

/* Makes fork wipe the page; this process is the first of its line, and passive
 * until world_start().  Once.  -errno: this kernel cannot (before Linux 4.14);
 * the process must then stay passive, as a child could not tell that it is
 * one. */
int world_init(void);
void world_start(bool active);

/* For a thread that saw self == 0: true when it is the one that must set the
 * new process up and call world_arrived(). */
bool world_arrive(void);
void world_arrived(bool active);

/* The epoch, without the flag.  In a child that arrives: its own already. */
uint32_t world_epoch(void);

#endif
