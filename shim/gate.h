/* SPDX-License-Identifier: MIT */
/*
 * gate: the one place that every wrapped call passes: lock, stamps, record.
 *
 * Runs in the program's threads: possibly before its constructors, inside its
 * malloc, in a signal handler, in a fork's child.  So every function here
 *   - allocates nothing and calls nothing that locks or maps,
 *   - leaves errno as it found it,
 *   - may be called by any thread at any time.
 * Between enter and leave there is the system call and nothing else; leaving
 * may be skipped (siglongjmp, cancellation, a killed vfork child): the gate
 * then opens for a while and goes on with a fresh lock.
 */
#ifndef MMGATE_GATE_H
#define MMGATE_GATE_H

#include "knobs.h"
#include "span.h"

/* Takes the settings; strings are not copied.  Once, at start, with the log
 * open, if there is to be one. */
void gate_init(const struct knobs *knobs);

/* What the gate does for a process that forked from one it follows: false
 * leaves it alone.  Set by init.c, which knows the settings. */
extern bool (*gate_new_process)(void);

/* The self-test of hooks: between the two, before the gate is in use, calls
 * only leave their op in the set that end returns, a bit each. */
void gate_probe_begin(void);
uint32_t gate_probe_end(void);

/* Takes the lock, as the settings say, and stamps the start.  pre: the first
 * fields of the span are set; the gate's own need not be. */
void gate_enter(struct span *span);

/* Stamps the end, gives the lock back, then records.  Returns `result`. */
long gate_leave(struct span *span, long result);

#endif
