/* SPDX-License-Identifier: MIT */
/*
 * tids: threads by their number, each with a place: 0, 1, ... as they come.
 *
 * It grows with them, some 12 bytes each, up to TIDS_MOST.
 */
#ifndef MMGATE_TIDS_H
#define MMGATE_TIDS_H

#include <stddef.h>
#include <stdint.h>

enum { TIDS_MOST = 1 << 17 };

/* All 0 at first. */
struct tids {
	uint32_t *tid;  /* by place */
	uint32_t *slot; /* a hash table of places, each + 1; 0: free */
	size_t count, slots;
};

/* Its place, which is new where `count` grows; TIDS_MOST: no room for it. */
size_t tids_place(struct tids *t, uint32_t tid);
void tids_drop(struct tids *t);

#endif
