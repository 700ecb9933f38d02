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

/* The process as it would be if only the calls that began in the window had
 * been made; `missing` is set when events of that time are overwritten. */
struct log_process *window_process(struct log *log, const struct window *window,
				   bool *missing);
void window_process_free(struct log_process *p);

#endif
