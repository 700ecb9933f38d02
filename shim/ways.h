/* SPDX-License-Identifier: MIT */
/*
 * ways: what the calls of each op meet at the gate: a lock, or none, and a
 * delay.
 *
 * The settings say it; where they say auto, auto.h chooses, and what it has
 * chosen stands here.  The log is told of each change.
 */
#ifndef MMGATE_WAYS_H
#define MMGATE_WAYS_H

#include <stdint.h>

#include "auto.h"
#include "hot.h"
#include "knobs.h"
#include "thread.h"

/* A way: the lock, and what else. */
enum {
	WAY_LOCK = 0x3f, /* enum lock_id */
	WAY_AUTO = 0x40, /* auto chooses it */
	WAY_DELAYED = 0x80,
};

extern HIDDEN uint8_t ways[OP_COUNT];

static inline uint8_t ways_of(enum op op)
{
	return __atomic_load_n(&ways[op], __ATOMIC_RELAXED);
}

/* Takes the ways that the settings say.  Once, at start, after rules_init() and
 * with the log open, if there is to be one. */
void ways_init(void);

/* In a forked child: its log begins with the ways of its parent, and auto
 * begins anew. */
void ways_begin_child(void);

/* The settings have changed; `before`: what they were.  One thread at a
 * time. */
void ways_follow(struct thread *t, const struct knobs *before);

/* Waits as long as a call of that op is to be delayed. */
COLD void ways_delay(enum op op);

/* Lets auto look at what was counted, and does what it says. */
COLD void ways_look(struct thread *t);
COLD void ways_choose_line(struct thread *t);

/* Counts a call for auto.  pre: the op's way has WAY_AUTO. */
static HOT void ways_count(struct thread *t, enum op op)
{
	if (UNLIKELY(t->line == 0))
		ways_choose_line(t);
	auto_count(t->line, op);
	if (--t->patience == 0)
		ways_look(t);
}

#endif
