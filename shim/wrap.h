/* SPDX-License-Identifier: MIT */
/*
 * wrap: the ways into the gate besides the exported symbols.
 *
 * wrap_glibc.c and wrap_musl.c have the exported functions, and what is
 * declared for their libc; wrap_number.c has the rest.
 */
#ifndef MMGATE_WRAP_H
#define MMGATE_WRAP_H

#include <stdint.h>

#include "ops.h"

/* A function of libc that an exported wrapper stands for. */
struct wrap_entry {
	const char *symbol;
	enum op op;
	long number; /* of its system call */
};

enum {
#define OP_SYMBOL(symbol, NAME) WRAP_ENTRY_##symbol,
#include "ops.def"
	WRAP_ENTRIES
};

extern const struct wrap_entry wrap_entries[WRAP_ENTRIES];

/* The wrappers, whatever others export by their names.  On glibc each can take
 * the place of libc's function, whole. */
extern const void *const wrap_functions[WRAP_ENTRIES];

/* musl: makes a wrapper hand its calls on to libc's function, where they meet
 * the gate. */
void wrap_go_on(unsigned entry, void *function);

/* The op of a system call, OP_COUNT for a call that is not wrapped. */
enum op wrap_op(long number);

/* One wrapped system call by number: through the gate, the kernel's result.
 * pre: wrap_op(number) != OP_COUNT. */
long wrap_call(long number, const uint64_t arguments[6], const void *caller);

/* Who made the call that arrived at `site`: the caller of the wrapper that
 * handed it on, if one did. */
const void *wrap_caller(const void *site);

#endif
