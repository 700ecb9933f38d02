/* SPDX-License-Identifier: MIT */
/*
 * span: one call on its way through the gate.
 */
#ifndef MMGATE_SPAN_H
#define MMGATE_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "ops.h"

struct span {
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

/* The length that an mremap asks for. */
static inline uint64_t span_new_length(const struct span *mremap)
{
	return (uint64_t)(uint32_t)mremap->fd << 32 | mremap->arg;
}

#endif
