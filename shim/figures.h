/* SPDX-License-Identifier: MIT */
/*
 * figures: what the log keeps of a call: counts, histograms, its event.
 *
 * Functions for calls want an open log, and `t` to be the calling thread.
 */
#ifndef MMGATE_FIGURES_H
#define MMGATE_FIGURES_H

#include <sys/mman.h>

#include "hot.h"
#include "log.h"
#include "modules.h"
#include "record.h"
#include "rules.h"
#include "span.h"
#include "sys.h"
#include "thread.h"

/* Code; empty: not known. */
struct figures_range {
	uintptr_t from, to;
};

/* Whose code is where: events say who made the call. */
struct figures_callers {
	struct figures_range program, libc, loader;
};

/* Once, at start. */
void figures_init(const struct figures_callers *callers);

/* What else is to be done now and then, by a thread whose call just ended; may
 * be called by several at a time.  Set once, at start; NULL: nothing. */
extern HIDDEN void (*figures_now_and_then)(void);

/* What was measured of a call. */
struct figures {
	long result;
	uint64_t wait, kernel;
	uint32_t weight;
	enum record_kind kind;
};

/* Writes an event of the gate's own, where there are events.  The fields of
 * span and figures that the kind has are filled in; the weight is one. */
void figures_note(struct thread *t, const struct span *span, struct figures f);

/* --- the parts of figures_add(); what is rare is in figures.c --- */

/* Ticks: how finely the time between calls is counted. */
enum { FIGURES_STEP = 1 << 20 };

COLD void figures_write(struct thread *t, const struct span *span,
			const struct figures *f);
COLD void figures_write_with_stack(struct thread *t, const struct span *span,
				   struct figures *f);
uint32_t figures_weigh_every(struct thread *t);
COLD void figures_look_around(void);

static HOT void figures_count(uint64_t *p, uint64_t n)
{
	__atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}

static HOT void figures_value(struct record_hist *h, uint64_t value)
{
	uint64_t max = __atomic_load_n(&h->max, __ATOMIC_RELAXED);

	figures_count(&h->bucket[record_bucket(value)], 1);
	if (value == 0)
		return; /* what most waits are */
	figures_count(&h->sum, value);
	while (UNLIKELY(value > max) &&
	       !__atomic_compare_exchange_n(&h->max, &max, value, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Clocks of two CPUs may differ by a hair. */
static inline uint64_t figures_difference(struct record_stripe *stripe,
					  uint64_t from, uint64_t to)
{
	if (UNLIKELY(to < from)) {
		figures_count(&stripe->clamped, 1);
		return 0;
	}
	return to - from;
}

/* In steps, as each costs an atomic addition; what a thread has left over when
 * it ends is lost. */
static HOT void figures_between(struct thread *t, struct record_stripe *stripe,
				uint64_t asked)
{
	uint64_t between = t->between;

	/* A handler's call inside another one began after that. */
	if (asked > t->left)
		between += asked - t->left;
	if (UNLIKELY(between >= FIGURES_STEP)) {
		figures_count(&stripe->thread_ticks, between);
		between = 0;
	}
	t->between = (uint32_t)between;
}

/* Number of calls that this one stands for, 0: no event. */
static HOT uint32_t figures_weigh(struct thread *t, const struct figures *f,
				  unsigned events)
{
	switch (events) {
	case EVENTS_ALL:
		return 1;
	case EVENTS_SLOW:
		return f->wait + f->kernel >= RULE(slow_ticks);
	case EVENTS_EVERY:
		return figures_weigh_every(t);
	default:
		return 0;
	}
}

static HOT void figures_sum(struct record_stripe *stripe, uint32_t at,
			    const struct span *span, struct figures *f,
			    uint64_t left)
{
	struct record_op *op = &stripe->op[span->op];

	f->kernel = figures_difference(stripe, span->entered, left);
	if (span->outcome == OUTCOME_GATED) {
		f->wait =
			figures_difference(stripe, span->asked, span->entered);
		figures_value(&op->wait, f->wait);
	} else if (UNLIKELY(span->outcome >= OUTCOME_BYPASSED)) {
		figures_count(&op->bypassed[span->outcome - OUTCOME_BYPASSED],
			      1);
		/* For the event, and as a slow call; histograms are of those
		 * that got the lock. */
		if (span->outcome == OUTCOME_BYPASSED + BYPASS_TIMEOUT)
			f->wait = figures_difference(stripe, span->asked,
						     span->entered);
	}
	if (UNLIKELY(span->wake != 0) && log_need_wake(at))
		figures_value(&stripe->wake, span->wake);
	figures_value(&op->kernel, f->kernel);
	if (UNLIKELY(sys_failed(f->result)))
		figures_count(&op->errors, 1);
	else if (span->length != 0)
		figures_count(&op->bytes, span->length);
}

/* Adds a call that returned at `left` (ticks). */
static inline void figures_add(struct thread *t, const struct span *span,
			       long result, uint64_t left)
{
	struct figures f = {.result = result, .kind = EVENT_CALL};
	uint32_t at = t->stripe;
	struct record_stripe *stripe;
	unsigned events = RULE(events);

	if (UNLIKELY(!log_need_op(&at, span->op)))
		return;
	stripe = log_stripe(at);
	figures_sum(stripe, at, span, &f, left);
	figures_between(t, stripe, span->asked);
	t->left = left;
	if (UNLIKELY(log_alive(left)))
		figures_look_around();
	if (UNLIKELY(span->op == OP_MMAP && span->arg & PROT_EXEC &&
		     !(span->flags & MAP_ANONYMOUS) && !sys_failed(result)))
		modules_mapped(span->fd, (uint64_t)result, span->length,
			       span->offset, left);
	if (UNLIKELY(events & RULES_STACKS)) {
		figures_write_with_stack(t, span, &f);
		return;
	}
	f.weight = figures_weigh(t, &f, events);
	if (f.weight != 0)
		figures_write(t, span, &f);
}

#endif
