/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "knobs.h"
#include "merge.h"

enum { BATCH = 1024, EVENT_BYTES = sizeof(struct record_event) };

struct key {
	uint64_t time;
	uint32_t slot; /* in window.events */
};

/* What is in memory of one ring.  keys[next..count) are in order. */
struct window {
	const struct merge_ring *ring;
	uint64_t n; /* next event number to read */
	uint32_t room;
	uint32_t next, count;
	uint32_t free_count;
	struct record_event *events;
	struct key *keys, *scratch;
	uint32_t *free_slots;
};

struct merge {
	struct source *source;
	struct merge_counts *counts;
	int error;
	unsigned open; /* windows that have an event to give */
	struct window *windows[RECORD_MAX_STRIPES];
	uint64_t times[RECORD_MAX_STRIPES]; /* of their oldest events */
	struct record_event batch[BATCH];
};

uint64_t merge_first(const struct merge_ring *ring)
{
	return ring->head > ring->capacity ? ring->head - ring->capacity : 0;
}

/*
 * A ring that ran out of room goes on in the largest power of two of the slots
 * it has.  What it had written beyond that stays where it was.
 */
uint64_t merge_slot(const struct merge_ring *ring, uint64_t n)
{
	return n < ring->populated ? n : n & (ring->capacity - 1);
}

static bool is_possible(const struct record_event *e)
{
	if (e->op >= OP_COUNT || e->kind >= EVENT_KINDS ||
	    e->outcome >= OUTCOME_BYPASSED + BYPASS_COUNT)
		return false;
	return e->kind != EVENT_LOCK ||
	       (e->arg < LOCK_COUNT && e->flags < LOCK_COUNT);
}

int merge_is_whole(const struct record_event *e, uint64_t n)
{
	/* A hole is a whole event number -1 but for the time. */
	return e->seq == (uint32_t)(n + 1) && e->time != 0 &&
	       e->check == record_event_check(e) && is_possible(e);
}

/* --- sorting: nearly in order already, so a merge sort that notices --- */

static void insertion_sort(struct key *keys, uint32_t count)
{
	uint32_t i, at;
	struct key key;

	for (i = 1; i < count; i++) {
		key = keys[i];
		for (at = i; at > 0 && keys[at - 1].time > key.time; at--)
			keys[at] = keys[at - 1];
		keys[at] = key;
	}
}

static void merge_halves(struct key *keys, uint32_t half, uint32_t count,
			 struct key *scratch)
{
	uint32_t left = 0, right = half, out = 0;

	memcpy(scratch, keys, half * sizeof(*keys));
	while (left < half)
		if (right < count && keys[right].time < scratch[left].time)
			keys[out++] = keys[right++];
		else
			keys[out++] = scratch[left++];
}

static void sort(struct key *keys, uint32_t count, struct key *scratch)
{
	uint32_t half = count / 2;

	if (count <= 16) {
		insertion_sort(keys, count);
		return;
	}
	sort(keys, half, scratch);
	sort(keys + half, count - half, scratch);
	if (keys[half - 1].time > keys[half].time)
		merge_halves(keys, half, count, scratch);
}

/* --- filling a window --- */

/* Events from the next one on that lie side by side in the file. */
static uint64_t run_length(const struct window *w)
{
	const struct merge_ring *ring = w->ring;
	uint64_t left = ring->head - w->n, side;

	if (w->n < ring->populated)
		side = ring->populated - w->n;
	else
		side = ring->capacity - (w->n & (ring->capacity - 1));
	return left < side ? left : side;
}

static void keep(struct window *w, const struct record_event *event)
{
	uint32_t slot = w->free_slots[--w->free_count];

	w->events[slot] = *event;
	w->keys[w->count++] = (struct key){event->time, slot};
}

static void take_batch(struct merge *m, struct window *w, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (merge_is_whole(&m->batch[i], w->n + i)) {
			keep(w, &m->batch[i]);
			m->counts->kept++;
		} else {
			m->counts->torn++;
		}
}

static void read_batch(struct merge *m, struct window *w, uint64_t at,
		       uint64_t count)
{
	if (count > BATCH)
		count = BATCH;
	if (count > w->free_count)
		count = w->free_count;
	m->error = source_read(m->source, m->batch, count * EVENT_BYTES, at);
	if (m->error)
		return;
	take_batch(m, w, (uint32_t)count);
	w->n += count;
}

/* Reads the next events of the ring that lie side by side.  What a hole has
 * in place of events goes in one step: a head that lies can claim billions. */
static void read_run(struct merge *m, struct window *w)
{
	uint64_t at = w->ring->at + merge_slot(w->ring, w->n) * EVENT_BYTES;
	uint64_t run = run_length(w);
	uint64_t empty = source_hole(m->source, at) / EVENT_BYTES;

	if (empty > run)
		empty = run;
	m->counts->torn += empty;
	w->n += empty;
	if (empty == 0)
		read_batch(m, w, at, run);
}

static void fill(struct merge *m, struct window *w)
{
	w->count -= w->next;
	memmove(w->keys, w->keys + w->next, w->count * sizeof(*w->keys));
	w->next = 0;
	while (w->free_count > 0 && w->n < w->ring->head && !m->error)
		read_run(m, w);
	sort(w->keys, w->count, w->scratch);
}

/* Half of the window must stay in hand, as long as there is more to read. */
static void refill(struct merge *m, struct window *w)
{
	if (w->n < w->ring->head && !m->error &&
	    w->free_count >= (w->room + 1) / 2)
		fill(m, w);
}

/* --- windows --- */

static struct window *window_new(const struct merge_ring *ring)
{
	struct window *w = xcalloc(1, sizeof(*w));
	uint64_t left;

	w->ring = ring;
	w->n = merge_first(ring);
	left = ring->head - w->n;
	w->room = left < MERGE_WINDOW ? (uint32_t)left : MERGE_WINDOW;
	w->events = xcalloc(w->room, sizeof(*w->events));
	w->keys = xcalloc(w->room, sizeof(*w->keys));
	w->scratch = xcalloc(w->room, sizeof(*w->scratch));
	w->free_slots = xcalloc(w->room, sizeof(*w->free_slots));
	while (w->free_count < w->room) {
		w->free_slots[w->free_count] = w->free_count;
		w->free_count++;
	}
	return w;
}

static void window_free(struct window *w)
{
	free(w->events);
	free(w->keys);
	free(w->scratch);
	free(w->free_slots);
	free(w);
}

static uint64_t window_time(const struct window *w)
{
	return w->keys[w->next].time;
}

static void window_begin(struct merge *m, const struct merge_ring *ring)
{
	struct window *w;

	if (ring->head == 0 || ring->capacity == 0)
		return;
	w = window_new(ring);
	fill(m, w);
	if (w->count == 0) {
		window_free(w);
		return;
	}
	m->times[m->open] = window_time(w);
	m->windows[m->open++] = w;
}

/* --- the merge --- */

/* Index of the window with the oldest event; *limit is the time of the oldest
 * event of the others. */
static unsigned oldest(const struct merge *m, uint64_t *limit)
{
	uint64_t least = m->times[0], time;
	unsigned i, at = 0;

	*limit = UINT64_MAX;
	for (i = 1; i < m->open; i++) {
		time = m->times[i];
		if (time < least) {
			*limit = least;
			least = time;
			at = i;
		} else if (time < *limit) {
			*limit = time;
		}
	}
	return at;
}

/* The first event of the window, which has one; its slot is free from then
 * on, and whole until the next refill. */
static const struct record_event *give(struct window *w)
{
	uint32_t slot = w->keys[w->next++].slot;

	w->free_slots[w->free_count++] = slot;
	return &w->events[slot];
}

/* Delivers events of window `at` as long as they are the oldest of all. */
static int drain(struct merge *m, unsigned at, uint64_t limit,
		 int (*each)(void *, const struct record_event *),
		 void *context)
{
	struct window *w = m->windows[at];
	int stop = 0;

	while (!stop && w->next < w->count && window_time(w) <= limit) {
		stop = each(context, give(w));
		refill(m, w);
	}
	if (w->next < w->count) {
		m->times[at] = window_time(w);
		return stop;
	}
	window_free(w);
	m->windows[at] = m->windows[--m->open];
	m->times[at] = m->times[m->open];
	return stop;
}

int merge_events(struct source *source, const struct merge_ring *rings,
		 unsigned count, struct merge_counts *counts, int *error,
		 int (*each)(void *context, const struct record_event *event),
		 void *context)
{
	struct merge *m = xcalloc(1, sizeof(*m));
	uint64_t limit;
	unsigned i, at;
	int stop = 0;

	m->source = source;
	m->counts = counts;
	for (i = 0; i < count; i++)
		window_begin(m, &rings[i]);
	while (m->open > 0 && !stop) {
		at = oldest(m, &limit);
		stop = drain(m, at, limit, each, context);
	}
	while (m->open > 0)
		window_free(m->windows[--m->open]);
	*error = m->error;
	free(m);
	return stop;
}
