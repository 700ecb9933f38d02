/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "tids.h"

enum { FIRST_SLOTS = 64 };

/* Where it is in the table, or is to go. */
static size_t slot_of(const struct tids *t, uint32_t tid)
{
	uint64_t hash = tid * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (hash >> 32) & (t->slots - 1);

	while (t->slot[at] != 0 && t->tid[t->slot[at] - 1] != tid)
		at = (at + 1) & (t->slots - 1);
	return at;
}

/* At most half of the slots are taken. */
static void grow(struct tids *t)
{
	size_t i;

	t->slots = t->slots == 0 ? FIRST_SLOTS : 2 * t->slots;
	free(t->slot);
	t->slot = xcalloc(t->slots, sizeof(*t->slot));
	t->tid = xrealloc(t->tid, t->slots / 2 * sizeof(*t->tid));
	for (i = 0; i < t->count; i++)
		t->slot[slot_of(t, t->tid[i])] = (uint32_t)i + 1;
}

size_t tids_place(struct tids *t, uint32_t tid)
{
	size_t at;

	if (2 * t->count == t->slots && t->count < TIDS_MOST)
		grow(t);
	at = slot_of(t, tid);
	if (t->slot[at] == 0) {
		if (t->count == TIDS_MOST)
			return TIDS_MOST;
		t->tid[t->count++] = tid;
		t->slot[at] = (uint32_t)t->count;
	}
	return t->slot[at] - 1;
}

void tids_drop(struct tids *t)
{
	free(t->tid);
	free(t->slot);
	memset(t, 0, sizeof(*t));
}
