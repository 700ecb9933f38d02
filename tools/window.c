/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "tids.h"
#include "window.h"

struct taking {
	struct log_process *p;
	const struct window *window;
	uint64_t oldest_ns;
	struct tids tids; /* of its calls */
};

static void add_result(struct log_op *op, const struct record_event *e)
{
	bool failed = e->result < 0 && e->result >= -4095;

	op->errors += failed ? e->weight : 0;
	op->bytes += failed ? 0 : e->length * e->weight;
}

static void add_call(struct log_op *op, const struct log_event *event)
{
	const struct record_event *e = &event->raw;

	op->count += e->weight;
	add_result(op, e);
	hist_add_ns(&op->kernel, event->kernel_ns, e->weight);
	if (e->outcome == OUTCOME_GATED) {
		op->gated += e->weight;
		hist_add_ns(&op->wait, event->wait_ns, e->weight);
	} else if (e->outcome >= OUTCOME_BYPASSED) {
		op->bypassed[e->outcome - OUTCOME_BYPASSED] += e->weight;
	}
}

static int take(void *context, const struct log_event *e)
{
	struct taking *t = context;

	if (t->oldest_ns == 0)
		t->oldest_ns = e->time_ns;
	if (e->time_ns < t->window->since_ns)
		return 0;
	if (e->time_ns >= t->window->until_ns)
		return 0;
	if (e->raw.kind == EVENT_OPENED)
		t->p->opened++;
	if (e->raw.kind != EVENT_CALL)
		return 0;
	tids_place(&t->tids, e->raw.tid);
	add_call(&t->p->op[e->raw.op], e);
	return 0;
}

/* The figures go, what describes the process stays. */
static struct log_process *described(const struct log_process *whole)
{
	struct log_process *p = xcalloc(1, sizeof(*p));

	*p = *whole;
	memset(p->op, 0, sizeof(p->op));
	memset(&p->wake, 0, sizeof(p->wake));
	p->threads = p->opened = p->clamped = 0;
	return p;
}

/* Its life, as far as it lies in the window. */
static void cut_life(struct log_process *p, const struct window *window)
{
	uint64_t from = p->started_ns, to = from + p->duration_ns;
	double part = 0;

	if (from < window->since_ns)
		from = window->since_ns;
	if (to > window->until_ns)
		to = window->until_ns;
	to = to > from ? to : from;
	if (p->duration_ns > 0)
		part = (double)(to - from) / (double)p->duration_ns;
	p->duration_ns = to - from;
	if (to == from)
		p->unrecorded = 0;
	p->thread_ns = (uint64_t)((double)p->thread_ns * part);
}

static bool has_calls(const struct log_process *p)
{
	unsigned i;

	for (i = 0; i < OP_COUNT; i++)
		if (p->op[i].count > 0)
			return true;
	return false;
}

static unsigned lacks_of(const struct log_process *whole,
			 const struct taking *t)
{
	unsigned lacks = 0;
	char events[64];

	log_setting(whole->settings, "events", events, sizeof(events));
	if (whole->events_overwritten > 0 && t->oldest_ns > t->window->since_ns)
		lacks |= WINDOW_OVERWRITTEN;
	if (!strncmp(events, "slow:", 5))
		lacks |= WINDOW_SLOW;
	else if (t->oldest_ns == 0 && has_calls(whole))
		lacks |= WINDOW_BLIND;
	return lacks;
}

struct log_process *window_process(struct log *log, const struct window *window,
				   unsigned *lacks)
{
	struct taking *t = xcalloc(1, sizeof(*t));
	struct log_process *p = described(log_process(log));

	t->p = p;
	t->window = window;
	log_each_event(log, take, t);
	p->threads = t->tids.count;
	tids_drop(&t->tids);
	*lacks = lacks_of(log_process(log), t);
	cut_life(p, window);
	free(t);
	return p;
}

void window_process_free(struct log_process *p)
{
	unsigned i;

	for (i = 0; i < OP_COUNT; i++)
		log_op_drop(&p->op[i]);
	free(p);
}
