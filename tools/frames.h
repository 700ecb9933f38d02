/* SPDX-License-Identifier: MIT */
/*
 * frames: what was at an address of a process, for people.
 */
#ifndef MMGATE_FRAMES_H
#define MMGATE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images.h"
#include "jit.h"
#include "samples.h"

/* Whose code a frame is. */
enum sites_owner {
	OWNER_PROGRAM, /* the executable and its libraries, JIT code too */
	OWNER_LIBC,
	OWNER_LOADER,
	OWNER_ALLOCATOR,
	OWNER_LANGUAGE, /* a language's library: std:: */
	OWNER_KERNEL,   /* the vDSO */
};

struct sites_frame {
	/* "module!function (file:line)", "module!function", "module+0x1234".
	 * In one process the same text is at the same address. */
	const char *name;
	const char *function; /* NULL: not known */
	const char *source;   /* "file.c"; NULL: not known */
	unsigned line;
	/* Base name of the file, or "[jit]", "[unknown]"; never NULL. */
	const char *module;
	uint64_t offset; /* in the file; of [jit] the address */
	uint64_t pc;
	enum sites_owner owner;
	bool inlined; /* into the next frame */
	bool guessed; /* found without unwind tables, as all behind it */
};

/* Frames at one address: functions inlined into one another. */
struct frames_place {
	size_t count;
	const struct sites_frame *frames; /* innermost first */
};

struct frames; /* of one process */

/* All must outlive it; `jit` may be NULL. */
struct frames *frames_new(struct images *images,
			  const struct samples_modules *modules,
			  const struct jit *jit);
void frames_free(struct frames *frames);

/* What was at record->pc; its module is the one that the chain says.  The same
 * place for the same record. */
const struct frames_place *frames_at(struct frames *frames,
				     const struct record_frame *record);

#endif
