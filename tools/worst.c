/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "worst.h"

static uint64_t begin_of(const struct log_event *e)
{
	return e->time_ns;
}

static uint64_t length_of(const struct log_event *e)
{
	return e->wait_ns + e->kernel_ns;
}

static uint64_t end_of(const struct log_event *e)
{
	return e->time_ns + length_of(e);
}

static bool is_in(const struct window *window, const struct log_event *e)
{
	return e->time_ns >= window->since_ns && e->time_ns < window->until_ns;
}

/* --- the calls: a heap, the shortest on top --- */

struct finding {
	struct worst *worst;
	const struct window *window;
	size_t most;
	struct log *log;
	const struct log_process *process;
};

static uint64_t length_at(const struct worst *w, size_t i)
{
	return length_of(&w->call[i].event);
}

static void sift_down(struct worst *w, struct worst_call call)
{
	uint64_t length = length_of(&call.event);
	size_t at = 0, down;

	while ((down = 2 * at + 1) < w->count) {
		if (down + 1 < w->count &&
		    length_at(w, down + 1) < length_at(w, down))
			down++;
		if (length_at(w, down) >= length)
			break;
		w->call[at] = w->call[down];
		at = down;
	}
	w->call[at] = call;
}

static void sift_up(struct worst *w, struct worst_call call)
{
	size_t at = w->count++, up;

	for (; at > 0; at = up) {
		up = (at - 1) / 2;
		if (length_at(w, up) <= length_of(&call.event))
			break;
		w->call[at] = w->call[up];
	}
	w->call[at] = call;
}

static int consider(void *context, const struct log_event *e)
{
	const struct finding *f = context;
	struct worst *w = f->worst;

	if (e->raw.kind != EVENT_CALL || !is_in(f->window, e))
		return 0;
	if (w->count == f->most && length_of(e) <= length_at(w, 0))
		return 0;
	if (w->count == f->most)
		sift_down(w, (struct worst_call){f->log,
						 f->process,
						 *e,
						 {.count = 0},
						 {.count = 0}});
	else
		sift_up(w, (struct worst_call){f->log,
					       f->process,
					       *e,
					       {.count = 0},
					       {.count = 0}});
	return 0;
}

/* --- what overlaps them --- */

/* The calls of one log by time, and up to where any of those before reaches. */
struct overlaps {
	struct worst_call **call;
	uint64_t *reach;
	size_t count;
};

static void keep_other(struct worst_others *o, const struct log_event *e,
		       uint64_t overlap_ns)
{
	size_t at = o->kept;

	o->count++;
	o->overlap_ns += (double)overlap_ns;
	while (at > 0 && o->list[at - 1].overlap_ns < overlap_ns)
		at--;
	if (at == WORST_OTHERS)
		return;
	if (o->kept < WORST_OTHERS)
		o->kept++;
	memmove(&o->list[at + 1], &o->list[at],
		(o->kept - 1 - at) * sizeof(*o->list));
	o->list[at] = (struct worst_other){*e, overlap_ns};
}

/* Into the kernel. */
static uint64_t entry_of(const struct log_event *e)
{
	return e->time_ns + e->wait_ns;
}

static void keep_overlap(struct worst_others *o, const struct log_event *e,
			 uint64_t from, uint64_t to, uint64_t from2,
			 uint64_t to2)
{
	from = from > from2 ? from : from2;
	to = to < to2 ? to : to2;
	if (to > from)
		keep_other(o, e, to - from);
}

static void compare(struct worst_call *call, const struct log_event *e)
{
	const struct log_event *c = &call->event;

	if (e->raw.tid == c->raw.tid)
		return;
	if (entry_of(e) <= entry_of(c))
		keep_overlap(&call->before, e, entry_of(e), end_of(e),
			     begin_of(c), end_of(c));
	else
		keep_overlap(&call->after, e, begin_of(e), end_of(e),
			     entry_of(c), end_of(c));
}

/* The first whose end, or that of one before it, is behind `time`. */
static size_t first_behind(const struct overlaps *o, uint64_t time)
{
	size_t low = 0, high = o->count, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (o->reach[middle] > time)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int overlap(void *context, const struct log_event *e)
{
	const struct overlaps *o = context;
	uint64_t end = end_of(e);
	size_t i;

	if (e->raw.kind != EVENT_CALL)
		return 0;
	for (i = first_behind(o, begin_of(e)); i < o->count; i++) {
		if (begin_of(&o->call[i]->event) >= end)
			break;
		compare(o->call[i], e);
	}
	return 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct worst_call *x = *(struct worst_call *const *)a;
	const struct worst_call *y = *(struct worst_call *const *)b;
	uint64_t s = begin_of(&x->event), t = begin_of(&y->event);

	return (s > t) - (s < t);
}

static void find_overlaps(struct worst *w, struct log *log)
{
	struct overlaps o = {
		.call = xcalloc(w->count, sizeof(struct worst_call *)),
		.reach = xcalloc(w->count, sizeof(uint64_t)),
	};
	uint64_t reach = 0;
	size_t i;

	for (i = 0; i < w->count; i++)
		if (w->call[i].log == log)
			o.call[o.count++] = &w->call[i];
	qsort(o.call, o.count, sizeof(struct worst_call *), by_begin);
	for (i = 0; i < o.count; i++) {
		if (end_of(&o.call[i]->event) > reach)
			reach = end_of(&o.call[i]->event);
		o.reach[i] = reach;
	}
	if (o.count > 0)
		log_each_event(log, overlap, &o);
	free(o.call);
	free(o.reach);
}

/* --- all --- */

static int by_length(const void *a, const void *b)
{
	const struct worst_call *x = a, *y = b;
	uint64_t s = length_of(&x->event), t = length_of(&y->event);

	if (s != t)
		return s < t ? 1 : -1;
	s = begin_of(&x->event);
	t = begin_of(&y->event);
	return (s > t) - (s < t);
}

struct worst worst_find(const struct log_process *const *processes,
			struct log *const *logs, size_t count,
			const struct window *window, size_t most)
{
	struct worst w = {.call = xcalloc(most, sizeof(*w.call))};
	struct finding f = {.worst = &w, .window = window, .most = most};
	size_t i;

	for (i = 0; i < count; i++) {
		f.log = logs[i];
		f.process = processes[i];
		log_each_event(logs[i], consider, &f);
	}
	qsort(w.call, w.count, sizeof(*w.call), by_length);
	for (i = 0; i < count; i++)
		find_overlaps(&w, logs[i]);
	return w;
}

void worst_drop(struct worst *worst)
{
	free(worst->call);
	worst->call = NULL;
	worst->count = 0;
}
