/* SPDX-License-Identifier: MIT */
/*
 * wrap: the ways into the gate besides the exported symbols.
 */
#ifndef MMGATE_WRAP_H
#define MMGATE_WRAP_H

#include <stdint.h>

#include "ops.h"

/* A function of libc that an exported wrapper can stand for, whole. */
struct wrap_entry {
	const char *symbol;
	enum op op;
	long number;          /* of its system call */
	const void *function; /* ours, whatever others export by that name */
};

enum {
#define OP_SYMBOL(symbol, NAME) WRAP_ENTRY_##symbol,
#include "ops.def"
	WRAP_ENTRIES
};

extern const struct wrap_entry wrap_entries[WRAP_ENTRIES];

/* The op of a system call, OP_COUNT for a call that is not wrapped. */
enum op wrap_op(long number);

/* One wrapped system call by number: through the gate, the kernel's result.
 * pre: wrap_op(number) != OP_COUNT. */
long wrap_call(long number, const uint64_t arguments[6], const void *caller);

#endif
