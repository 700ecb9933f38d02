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

/* One call on its way through. */
struct gate_span {
	/* In, from the wrapper; as struct record_event has them. */
	uint64_t addr;
	uint64_t length;
	uint64_t offset;
	const void *caller;
	uint32_t arg;
	uint32_t flags;
	int32_t fd;
	enum op op;
	uint64_t hint; /* place's: the address to ask the kernel for */
	/* The gate's own. */
	uint32_t self;    /* the process that entered; 0: nothing to do */
	uint32_t inside;  /* the lock it holds: struct thread has the same */
	bool shared;      /* how it took it */
	uint64_t asked;   /* ticks: before the lock */
	uint64_t entered; /* ticks: at the system call */
	uint64_t wake;
	uint8_t outcome; /* enum record_outcome, + enum record_bypass */
};

/* Code of the program, of libc and of the loader; empty: not known. */
struct gate_range {
	uintptr_t from, to;
};

struct gate_callers {
	struct gate_range program, libc, loader;
};

/* Settings that the gate follows; strings are not kept.  Once, at start. */
void gate_init(const struct knobs *knobs, const struct gate_callers *callers);

/* Those in force: `mmgate set` changes some. */
const struct knobs *gate_settings(void);

/* What the gate does for a process that forked from one it follows: false
 * leaves it alone.  Set by init.c, which knows the settings. */
extern bool (*gate_new_process)(void);

/* The self-test of hooks: between the two, before the gate is in use, calls
 * only leave their op in the set that end returns, a bit each. */
void gate_probe_begin(void);
uint32_t gate_probe_end(void);

/* Takes the lock, as the settings say, and stamps the start.  pre: the first
 * fields of the span are set; the gate's own need not be. */
void gate_enter(struct gate_span *span);

/* Stamps the end, gives the lock back, then records.  Returns `result`. */
long gate_leave(struct gate_span *span, long result);

#endif
