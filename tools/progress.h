/* SPDX-License-Identifier: MIT */
/*
 * progress: a bar on stderr while something takes long, if that is a terminal.
 */
#ifndef MMGATE_PROGRESS_H
#define MMGATE_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
	bool on;
	size_t done, total; /* steps */
	uint64_t started_ns;
};

void progress_begin(struct progress *progress, size_t total);
/* Shows that the next step begins, and what it is. */
void progress_step(struct progress *progress, const char *what);
/* Takes the bar away. */
void progress_end(struct progress *progress);

#endif
