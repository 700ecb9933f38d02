/* SPDX-License-Identifier: MIT */
/*
 * thread: what a thread carries from call to call.
 *
 * Initial-exec, below 64 bytes, and without a destructor: the thread is known
 * from its first call on, and nobody is told when it ends.
 */
#ifndef MMGATE_THREAD_H
#define MMGATE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "hot.h"

struct thread {
	uint32_t self; /* world_self() when it registered; 0: never */
	uint32_t tid;
	uint32_t inside;  /* lock that it holds or waits for: kind (never none)
			   * << 8 | generation; 0: none */
	uint16_t nested;  /* calls that it made inside */
	uint8_t line;     /* auto: where it counts; 0: not chosen yet */
	uint8_t patience; /* auto: calls to its next look */
	uint8_t stripe;
	bool shared;    /* how it took, or waits for, that lock */
	uint32_t every; /* events=every:N that `skip` was chosen by */
	uint64_t left;  /* ticks: end of its last call */
	uint64_t random;
	uint32_t between; /* ticks between calls, not yet counted */
	uint32_t skip;    /* events=every:N: calls to the next event */
};

extern HIDDEN __thread struct thread this_thread;

/* Registers the calling thread, which is new, or its process is: in the log
 * too, if there is one. */
void thread_register(struct thread *t, uint32_t self);

#endif
