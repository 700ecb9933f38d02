/* SPDX-License-Identifier: MIT */
/*
 * worst: the calls that took longest, and what the other threads were doing in
 * the gate meanwhile.
 *
 * Two readings of the events: one finds the calls, one what overlaps them.
 * Memory is that of what is kept.
 */
#ifndef MMGATE_WORST_H
#define MMGATE_WORST_H

#include "log.h"
#include "window.h"

enum { WORST_MOST = 1000, WORST_OTHERS = 16 };

/* Another thread's call at the same time. */
struct worst_other {
	struct log_event event;
	uint64_t overlap_ns;
};

/* Those with the largest overlap are kept, and in order. */
struct worst_others {
	struct worst_other list[WORST_OTHERS];
	size_t kept;
	uint64_t count;    /* all of them */
	double overlap_ns; /* of all of them */
};

struct worst_call {
	struct log *log;
	const struct log_process *process;
	struct log_event event;
	/* Were in the kernel before it, while it waited or came in: they may
	 * have been in its way. */
	struct worst_others before;
	/* Waited, or came in, while it was in the kernel: it may have held them
	 * up. */
	struct worst_others after;
};

struct worst {
	struct worst_call *call; /* worst first */
	size_t count;
};

/* The `most` calls with the longest wait + kernel time.
 * pre: 1 <= most <= WORST_MOST */
struct worst worst_find(const struct log_process *const *processes,
			struct log *const *logs, size_t count,
			const struct window *window, size_t most);
void worst_drop(struct worst *worst);

#endif
