/* SPDX-License-Identifier: MIT */
/*
 * probe_calls: the calls of the self-test.
 *
 * A process with the library in it makes every wrapped call in every way that
 * a call can be made; whoever reads its log can tell from an event alone which
 * of them it is.  All but libc's and the loader's own fail at once and change
 * nothing.
 */
#ifndef MMGATE_PROBE_CALLS_H
#define MMGATE_PROBE_CALLS_H

#include <stdint.h>

#include "record.h"

/* The ways. */
enum probe_layer {
	PROBE_SYMBOL,  /* the program calls the function by its name */
	PROBE_LIBC,    /* libc calls it */
	PROBE_LOADER,  /* the loader makes it */
	PROBE_SYSCALL, /* the program calls syscall() */
	PROBE_INLINE,  /* the program has the instruction in its own text */
	PROBE_LAYERS
};

/* The ops that there is such a call of, a bit each. */
uint32_t probe_ops(enum probe_layer layer);

/* Makes them all. */
void probe_calls(void);

/* The way that the call of this event was made; PROBE_LAYERS: it is none of
 * the self-test's. */
enum probe_layer probe_layer_of(const struct record_event *event);

#endif
