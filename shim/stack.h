/* SPDX-License-Identifier: MIT */
/*
 * stack: copies the stacks of a sample of calls into the log.
 *
 * A copy is the registers and the bytes from the stack pointer up to where the
 * stack is known to be the thread's own:
 *   - the main thread's: up to its first stack pointer;
 *   - of a thread that libc made: up to its thread control block, when that and
 *     the stack pointer lie in one mapping that the gate saw libc make for it;
 *   - any other (coroutines, alternate stacks, stacks that the program made):
 *     to the end of the page that the wrapper's caller is in.
 * Nothing is probed and no system call made: what is copied is there because
 * this thread runs on it.  The frames of the library itself come first; its
 * unwind information tells the tool how to leave them.
 *
 * Functions may run in any thread at any time; none allocates, waits, or
 * touches errno.
 */
#ifndef MMGATE_STACK_H
#define MMGATE_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "knobs.h"
#include "record.h"

/* Follows the settings.  main_top: the main thread's first stack pointer.
 * Once, at start. */
void stack_init(const struct knobs *knobs, uintptr_t main_top);

/* The settings have changed.  Other threads may be in here. */
void stack_follow(const struct knobs *knobs);

/* From now on copies go to the log that was just opened.  pre: the process has
 * one thread. */
void stack_begin(void);

/* The clocks were compared anew. */
void stack_derive(void);

/* Something was mapped, by a call that libc made for itself or not. */
void stack_mapped(uint64_t start, uint64_t length, uint32_t protection,
		  uint32_t flags, bool libc_did);
/* It was unmapped again, at `now` (ticks). */
void stack_unmapped(uint64_t start, uint64_t length, uint64_t now);

/* Is the call, which took `cost` and ended at `now` (ticks), one to sample?
 * NULL: no, or there is no room.  Otherwise its event is to be filled in, with
 * this weight, and stack_copy() finishes it.  random: the thread's state of
 * chance, not 0. */
struct record_sample *stack_pick(uint64_t cost, uint64_t now, uint64_t *random,
				 uint32_t *weight);

/* The same for those that took longest of all so far, whatever is picked
 * beside: the weight of its event is 1. */
struct record_sample *stack_pick_worst(uint64_t cost, uint64_t now);

/* Copies the calling thread's stack.  behind: the end of something in the
 * wrapper's frame; caller: where the wrapper returns to.  Returns the event's
 * `stack`. */
uint32_t stack_copy(struct record_sample *sample, const void *behind,
		    const void *caller);

#endif
