/* SPDX-License-Identifier: MIT */
/*
 * unwind: call chains from copied stacks, by libunwind.
 *
 * The process is gone: registers and stack come from the copy, code and unwind
 * tables from the files that were mapped.  A build without libunwind has no
 * chains and says so.
 */
#ifndef MMGATE_UNWIND_H
#define MMGATE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images.h"
#include "samples.h"

/* NULL, or why this build cannot: for people. */
const char *unwind_missing(void);

struct unwind; /* for one process */

/* Both must outlive it. */
struct unwind *unwind_new(struct images *images,
			  const struct samples_modules *modules,
			  uint32_t machine);
void unwind_free(struct unwind *unwind);

enum { UNWIND_MOST = 512 };

struct unwind_chain {
	struct record_frame frames[UNWIND_MOST]; /* innermost first */
	uint32_t count;                          /* 0: nothing came out */
	bool cut; /* the copy ended before the chain did */
};

/* The chain of a call that has its copy, without the frames of the library
 * itself.  Cheapest for calls in the order of time. */
void unwind_call(struct unwind *unwind, const struct samples_call *call,
		 struct unwind_chain *chain);

#endif
