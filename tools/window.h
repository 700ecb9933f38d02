/* SPDX-License-Identifier: MIT */
/*
 * window: a stretch of a run.
 *
 * What a process did in it is told by its events, so by those that its rings
 * still hold.
 */
#ifndef MMGATE_WINDOW_H
#define MMGATE_WINDOW_H

#include "log.h"

/* Of CLOCK_MONOTONIC; the end is not in it. */
struct window {
	uint64_t since_ns, until_ns;
};

/* What the events do not tell of it. */
enum window_lack {
	WINDOW_OVERWRITTEN = 1, /* some of that time are gone */
	WINDOW_SLOW = 2,        /* only slow calls were recorded */
	WINDOW_BLIND = 4,       /* it made calls, and has no event of any */
};

/* The process as it would be if only the calls that began in the window had
 * been made; *lacks: values of enum window_lack.  wake_ns is empty, and what
 * was lost stays that of the whole run. */
struct log_process *window_process(struct log *log, const struct window *window,
				   unsigned *lacks);
void window_process_free(struct log_process *p);

#endif
