/* SPDX-License-Identifier: MIT */
/*
 * patch: catches the calls that symbols do not: libc's own and the loader's.
 *
 * Two ways (FACTS measured both):
 *   entry  a function of libc that an exported wrapper can stand for begins
 *          with a jump to that wrapper; nothing of it is ever run again.
 *   site   one system call instruction, with the load of its number before it,
 *          becomes a jump to a stub, which calls the gate and jumps back; the
 *          function around it stays in force.  For the loader, which keeps an
 *          errno of its own, and for brk, which libc keeps account of.
 *
 * Code is changed only where every byte is what it should be, while the
 * process has one thread, and never changed back.  What cannot be changed is
 * left alone, and the reason is kept.
 */
#ifndef MMGATE_PATCH_H
#define MMGATE_PATCH_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#include "knobs.h"

/* Where calls are caught. */
enum patch_layer {
	LAYER_LIBC,
	LAYER_LOADER,
	LAYER_SYSCALL,
	LAYER_INLINE,
	LAYER_COUNT
};

struct patch_report {
	uint8_t ops[LAYER_COUNT]; /* ops that the layer catches, a bit each */
	uint8_t lost; /* ops whose exported function another library has
		       * patched */
	char reason[LAYER_COUNT][160]; /* why not, or not all; empty: all is
					* well */
};

/* What the process's start says about it. */
struct patch_process {
	const Elf64_Phdr *headers; /* AT_PHDR, AT_PHNUM */
	unsigned long header_count;
	const void *loader; /* AT_BASE */
	bool under_valgrind;
};

/* Patches as `hooks` asks for.  pre: first thing in the process, once. */
void patch_apply(enum knob_hooks hooks, const struct patch_process *process,
		 struct patch_report *report);

/* Takes out of the report what another library has overwritten since, and says
 * so.  False: nothing new. */
bool patch_recheck(struct patch_report *report);

/* --- what an architecture provides: patch_<architecture>.c --- */

enum { PATCH_BYTES = 16, PATCH_SITES = 16 };

/* New bytes for a place in code. */
struct patch_code {
	unsigned char *at; /* NULL: nothing to do */
	unsigned length;
	unsigned char bytes[PATCH_BYTES];
};

/* Code that makes `number` in the function [body, body + size) go to `to`.
 * NULL, or why it cannot be done. */
const char *patch_entry(unsigned char *body, size_t size, long number,
			const void *to, struct patch_code *code);

/* Code that leads the one site of `number` in [from, to) to the gate.  NULL,
 * or why it cannot be done. */
const char *patch_site(unsigned char *from, unsigned char *to, long number,
		       struct patch_code *code);

/* The same for libc's syscall(): its replacement gates the calls that are
 * wrapped and makes all others as it did. */
const char *patch_syscall_entry(unsigned char *body, size_t size,
				struct patch_code *code);

/* System calls of the wrapped kinds in [from, to) that have their number
 * loaded right before them. */
unsigned patch_inline_count(const unsigned char *from, const unsigned char *to);

/* Code for the first such call from `from` on, by way of a jump written to the
 * PATCH_BYTES at `hop`, which must be within reach of it.  Returns where to
 * look for the next one; NULL when there is none. */
unsigned char *patch_inline(unsigned char *from, unsigned char *to,
			    unsigned char *hop, struct patch_code *code,
			    enum op *op);

/* Makes new code visible to this CPU. */
void patch_flush(const struct patch_code *code);

#endif
