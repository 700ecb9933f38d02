/* SPDX-License-Identifier: MIT */
#include "figures.h"

#include <stddef.h>

#include "interval.h"
#include "stack.h"
#include "sys.h"

#include "poison.h"

void (*figures_now_and_then)(void);

static struct figures_callers callers;

void figures_init(const struct figures_callers *known)
{
	callers = *known;
}

static bool is_in(const struct figures_range *range, uintptr_t address)
{
	return address >= range->from && address < range->to;
}

static enum record_layer layer_of(uintptr_t caller)
{
	if (is_in(&callers.libc, caller))
		return CALLER_LIBC;
	if (is_in(&callers.program, caller))
		return CALLER_PROGRAM;
	if (is_in(&callers.loader, caller))
		return CALLER_LOADER;
	return CALLER_LIBRARY;
}

static HOT void describe(struct record_event *e, const struct thread *t,
			 const struct span *span, const struct figures *f,
			 uint32_t stack)
{
	e->time = span->asked;
	e->addr = span->addr;
	e->length = span->length;
	e->offset = span->offset;
	e->result = f->result;
	e->caller = (uintptr_t)span->caller;
	e->wait_low = (uint32_t)f->wait;
	e->kernel_low = (uint32_t)f->kernel;
	e->wait_high = (uint16_t)(f->wait >> 32);
	e->kernel_high = (uint16_t)(f->kernel >> 32);
	e->arg = span->arg;
	e->flags = span->flags;
	e->fd = span->fd;
	e->tid = t->tid;
	e->weight = f->weight;
	e->stack = stack;
	e->kind = (uint8_t)f->kind;
	e->op = (uint8_t)span->op;
	e->outcome = span->outcome;
	e->layer = (uint8_t)layer_of(e->caller);
}

static HOT void write_to_ring(struct thread *t, const struct span *span,
			      const struct figures *f, uint32_t stack)
{
	uint64_t number;
	struct record_event *e = log_claim(t->stripe, &number);

	if (e == NULL)
		return;
	describe(e, t, span, f, stack);
	log_seal(e, number);
}

void figures_write(struct thread *t, const struct span *span,
		   const struct figures *f)
{
	write_to_ring(t, span, f, 0);
}

void figures_note(struct thread *t, const struct span *span, struct figures f)
{
	f.weight = 1;
	if (rules_events() != EVENTS_OFF)
		figures_write(t, span, &f);
}

uint32_t figures_weigh_every(struct thread *t)
{
	uint32_t every = RULE(every);
	/* What `skip` holds. */
	uint32_t n = every < INT32_MAX ? every : INT32_MAX;

	if (t->skip == 0 || t->every != every) {
		t->every = every;
		t->skip = (uint32_t)interval_first(n, &t->random);
	}
	if (--t->skip > 0)
		return 0;
	t->skip = (uint32_t)interval_next(n, &t->random);
	return n;
}

/* The clocks were compared anew. */
void figures_look_around(void)
{
	rules_derive();
	if (figures_now_and_then != NULL)
		figures_now_and_then();
}

/* What the call means for whose stack is where, and for code that goes. */
static void follow_mappings(const struct span *span, long result, uint64_t now)
{
	if (span->op == OP_MMAP && !sys_failed(result))
		stack_mapped((uint64_t)result, span->length, span->arg,
			     span->flags,
			     layer_of((uintptr_t)span->caller) == CALLER_LIBC);
	else if (span->op == OP_MUNMAP && result == 0)
		stack_unmapped(span->addr, span->length, now);
}

/* Returns what the event has as `stack`. */
static uint32_t copy_stack(struct record_sample *s, const struct thread *t,
			   const struct span *span, const struct figures *f)
{
	if (s == NULL)
		return 0;
	describe(&s->event, t, span, f, 0);
	return stack_copy(s, span + 1, span->caller);
}

/* With stacks: one may be copied, and the event has its number. */
void figures_write_with_stack(struct thread *t, const struct span *span,
			      struct figures *f)
{
	const uint64_t cost = f->wait + f->kernel;
	uint32_t stack, worst;

	follow_mappings(span, f->result, t->left);
	stack = copy_stack(stack_pick(cost, t->left, &t->random, &f->weight), t,
			   span, f);
	f->weight = 1;
	worst = copy_stack(stack_pick_worst(cost, t->left), t, span, f);
	if (stack == 0)
		stack = worst;
	f->weight = figures_weigh(t, f, rules_events());
	if (f->weight != 0)
		write_to_ring(t, span, f, stack);
}
