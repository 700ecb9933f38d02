/* SPDX-License-Identifier: MIT */
/*
 * place: where anonymous mappings go.
 *
 * Mappings of different threads that lie side by side with equal flags become
 * one area of the kernel's, and then the page faults of one thread meet the
 * lock that another's call holds.  With MMGATE_PLACE=thread a mapping whose
 * address the program leaves open is asked for at an address in an arena of
 * the calling thread.  That is a hint: the kernel follows it where the range
 * is free and goes its own way where it is not, so nothing that is kept here
 * need be true.
 *
 * Left to the kernel: hints of the program's own, MAP_FIXED, MAP_32BIT,
 * MAP_GROWSDOWN, MAP_STACK, huge pages, files and shared memory, code (it wants
 * to stay in reach of the libraries), sizes above an eighth of an arena, large
 * reservations (PROT_NONE), and all while one thread only has mapped anything.
 *
 * So are those beyond half as many as the kernel allows the process areas.
 *
 * Own system calls, outside of the gate and not counted: one mapping of 128 KiB
 * at the start, for books; one reservation, with its release, in a process; one
 * page a new arena, released when it came to lie elsewhere.
 *
 * No function allocates, waits or touches errno; any thread may call any of
 * them at any time, in a handler too: there is no lock, each word is right by
 * itself.
 */
#ifndef MMGATE_PLACE_H
#define MMGATE_PLACE_H

#include "gate.h"

extern bool place_in_use;

/* Makes ready.  NULL, or why mappings stay where the kernel puts them here.
 * Once, at start. */
const char *place_init(uint64_t page_size);

/* Sets the hint of an mmap. */
void place_choose(struct span *span);

/* Learns from what became of an mmap, munmap or mremap. */
void place_learn(const struct span *span, long result);

/* gate_enter(), and sets the address to ask the kernel for. */
static inline void place_enter(struct span *span)
{
	span->hint = span->addr;
	if (__builtin_expect(place_in_use, 0) && span->op == OP_MMAP)
		place_choose(span);
	gate_enter(span);
}

/* gate_leave(), for a span that place_enter() was called with. */
static inline long place_leave(struct span *span, long result)
{
	gate_leave(span, result);
	if (__builtin_expect(place_in_use, 0) &&
	    (span->op == OP_MMAP || span->op == OP_MUNMAP ||
	     span->op == OP_MREMAP))
		place_learn(span, result);
	return result;
}

#endif
