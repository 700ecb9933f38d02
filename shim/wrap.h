/* SPDX-License-Identifier: MIT */
/*
 * wrap: the ways into the gate.
 *
 * wrap_glibc.c and wrap_musl.c have the exported functions, and what is
 * declared for their libc; wrap_number.c has the rest.
 */
#ifndef MMGATE_WRAP_H
#define MMGATE_WRAP_H

#include <stdint.h>

#include "elf.h"
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

/* What the library exports by their names: leads to the wrappers. */
extern const void *const wrap_exports[WRAP_ENTRIES];

/* glibc: from now on a call goes to libc's function, not to the wrapper, while
 * another library has patched that; `taken`: ops where one has already.  pre:
 * libc is patched as far as we do it. */
void wrap_watch(const struct elf_image *libc, uint8_t taken);

/* Ops whose calls go to another library's patch by now. */
uint8_t wrap_taken(void);

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
