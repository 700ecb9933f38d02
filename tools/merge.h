/* SPDX-License-Identifier: MIT */
/*
 * merge: the events of all rings of a log in the order of time.
 *
 * The events of one ring are only nearly in order: they are stamped when the
 * call begins and written when it has ended, by several threads.  Each ring is
 * looked at through a window of MERGE_WINDOW events, so memory does not grow
 * with their number.  An event comes out in its place unless MERGE_WINDOW / 2
 * events of its ring that began later were written before it.  A ring that
 * fits in the window is always in order.
 */
#ifndef MMGATE_MERGE_H
#define MMGATE_MERGE_H

#include <stdint.h>

#include "record.h"
#include "source.h"

enum { MERGE_WINDOW = 32768 };

/* A ring as its stripe describes it.
 * pre: capacity is a power of two or 0, and what it and `populated` span is
 * within the address range of a file. */
struct merge_ring {
	uint64_t at; /* of slot 0 in the file */
	uint64_t head, capacity, populated;
};

struct merge_counts {
	uint64_t kept; /* whole events */
	uint64_t torn; /* slots that had to hold one and did not */
};

/* First event number that the ring may still hold. */
uint64_t merge_first(const struct merge_ring *ring);
/* Slot of event `n`. */
uint64_t merge_slot(const struct merge_ring *ring, uint64_t n);
/* Is this event `n`, whole and with nothing impossible in it? */
int merge_is_whole(const struct record_event *event, uint64_t n);

/* Calls `each` for every whole event until it returns non-zero, and returns
 * that.  -errno in *error when the file could not be read; what was read
 * before was delivered. */
int merge_events(struct source *source, const struct merge_ring *rings,
		 unsigned count, struct merge_counts *counts, int *error,
		 int (*each)(void *context, const struct record_event *event),
		 void *context);

#endif
