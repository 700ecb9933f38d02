/* SPDX-License-Identifier: MIT */
/*
 * Each kind of lock has a gate of its own, so that ops may take different ones
 * and a program may change over while calls are under way.  State of a gate,
 * one word in the pages that fork wipes:
 *
 *   bits 0-7   generation: says which of the locks is in use
 *   bits 8-63  0: closed, calls take the lock
 *              n: open until n microseconds of CLOCK_MONOTONIC, calls pass
 *              OPEN_RENEWING: open, one thread prepares the next lock
 *
 * closed, g  -> open until n, g   a thread whose wait timed out
 * open, g    -> renewing, g       the first thread after the time has come
 * renewing   -> closed, g + 1     the same thread
 *
 * A thread that dies while it renews leaves the gate open: harmless.
 */
#include "gate.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "clock.h"
#include "figures.h"
#include "hot.h"
#include "locks.h"
#include "log.h"
#include "record.h"
#include "request.h"
#include "rules.h"
#include "sys.h"
#include "thread.h"
#include "ways.h"
#include "world.h"

#include "poison.h"

/* Newer than some headers. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

#define OPEN_RENEWING (UINT64_MAX >> 8)

enum {
	OPEN_FACTOR = 100, /* a lock that hangs costs 1 % at most */
	LONG_BYTES = 1 << 30,
	MOST_NESTED = 1000, /* calls that a handler is believed to make */
};

bool (*gate_new_process)(void);

void gate_init(const struct knobs *knobs)
{
	rules_init(knobs);
	ways_init();
}

/* --- who is calling --- */

/* A forked child, with a log of its own or none: it goes on with what its
 * parent's settings were. */
static void begin_child(void)
{
	request_begin_child();
	if (log_is_open())
		log_settings(rules_settings());
	ways_begin_child();
}

static bool probing;
static uint32_t probed;

void gate_probe_begin(void)
{
	probed = 0;
	probing = true;
}

uint32_t gate_probe_end(void)
{
	probing = false;
	return probed;
}

/*
 * The calling thread is new, or its process is, or there is nothing to do here
 * (too early, or passive).  Returns the process's word, 0 for nothing to do.
 */
static COLD uint32_t arrive(struct thread *t, enum op op)
{
	uint32_t self = world_self();
	bool active;

	if (self == 0) {
		if (!world_arrive())
			return 0;
		active = gate_new_process();
		begin_child();
		world_arrived(active);
		self = world_self();
	}
	if (!world_active(self)) {
		if (UNLIKELY(probing))
			probed |= 1u << op;
		return 0;
	}
	thread_register(t, self);
	return self;
}

/* --- the lock, and the gate around it --- */

static uint64_t now_us(void)
{
	return clock_monotonic() / 1000;
}

static struct world_gate *gate_of(uint32_t inside)
{
	return &world_page.gate[inside >> 8];
}

static const struct lock_kind *kind_of(uint32_t inside)
{
	return locks_kind((enum lock_id)(inside >> 8));
}

static uint32_t generation_of(uint32_t inside)
{
	return inside & 0xff;
}

static struct lock *generation_lock(struct world_gate *gate,
				    uint64_t generation)
{
	return &gate->locks[generation % WORLD_LOCKS];
}

static struct lock *lock_of(uint32_t inside)
{
	return generation_lock(gate_of(inside), generation_of(inside));
}

/* The gate is open.  True: the time is over and it is closed again. */
static COLD bool close_again(struct world_gate *gate, uint64_t state)
{
	uint64_t generation = state & 0xff, next = (generation + 1) & 0xff;

	if (state >> 8 == OPEN_RENEWING || now_us() < state >> 8)
		return false;
	if (!atomic_compare_exchange_strong(&gate->state, &state,
					    OPEN_RENEWING << 8 | generation))
		return false;
	lock_renew(generation_lock(gate, next),
		   generation_lock(gate, generation));
	atomic_store(&gate->state, next);
	return true;
}

static COLD void note_opening(uint64_t wait)
{
	const struct span span = {.asked = clock_ticks() - wait};

	if (!log_is_open())
		return;
	log_opened();
	figures_note(&this_thread, &span,
		     (struct figures){.wait = wait, .kind = EVENT_OPENED});
}

/* This thread waited too long for the lock. */
static void open_gate(uint32_t inside, uint64_t wait)
{
	uint64_t until = now_us() + RULE(max_wait_ns) / 1000 * OPEN_FACTOR;
	uint64_t state = generation_of(inside);

	if (!atomic_compare_exchange_strong(&gate_of(inside)->state, &state,
					    until << 8 | generation_of(inside)))
		return; /* another was first */
	kind_of(inside)->abandon(lock_of(inside));
	note_opening(wait);
}

/* Advice whose cost grows with the pages that are there. */
static bool goes_through_pages(uint32_t advice)
{
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
	case MADV_FREE:
	case MADV_REMOVE:
	case MADV_COLD:
	case MADV_PAGEOUT:
	case MADV_COLLAPSE:
		return true;
	default:
		return false;
	}
}

static bool holds_long(const struct span *s)
{
	switch (s->op) {
	case OP_MMAP:
		return s->flags & (MAP_POPULATE | MAP_LOCKED) ||
		       (s->flags & MAP_FIXED && s->length >= LONG_BYTES);
	case OP_MUNMAP:
		return s->length >= LONG_BYTES;
	case OP_MADVISE:
		return s->arg == MADV_POPULATE_READ ||
		       s->arg == MADV_POPULATE_WRITE ||
		       (s->length >= LONG_BYTES && goes_through_pages(s->arg));
	case OP_MREMAP:
		return s->length >= LONG_BYTES &&
		       s->length - LONG_BYTES >= span_new_length(s);
	default:
		return false;
	}
}

/* Is the thread in a handler that interrupted a call of its own?  One that says
 * so for ever left the call by a jump: what it held is given back for it, and
 * it takes locks again.  If it waited only, or is in a very long handler, one
 * call more than the lock lets in passes. */
static bool is_nested(struct thread *t)
{
	uint32_t inside = t->inside;

	if (inside == 0)
		return false;
	if (++t->nested <= MOST_NESTED)
		return true;
	t->inside = 0;
	kind_of(inside)->release(lock_of(inside), t->shared);
	return false;
}

/* Times are for the log alone. */
static HOT uint64_t stamp(void)
{
	return log_is_open() ? clock_ticks() : 0;
}

static HOT uint64_t stamp_after(void)
{
	return log_is_open() ? clock_ticks_after() : 0;
}

/* The wait ended long after its time: the process was stopped, by a debugger
 * or a signal, and its holder with it. */
static bool was_stopped(const struct lock_wait *wait)
{
	enum { LATE_NS = 10000000 }; /* what timers and schedulers may add */

	return clock_monotonic() >
	       wait->deadline_ns + wait->limit_ns / 4 + LATE_NS;
}

/* Advice that the kernel follows under its shared lock, or one mapping's. */
static bool is_shared(const struct span *span)
{
	if (span->op != OP_MADVISE)
		return false;
	switch (span->arg) {
	case MADV_WILLNEED:
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
	case MADV_FREE:
	case MADV_REMOVE:
	case MADV_COLD:
	case MADV_PAGEOUT:
	case MADV_POPULATE_READ:
	case MADV_POPULATE_WRITE:
	case MADV_COLLAPSE:
	case MADV_GUARD_INSTALL:
	case MADV_GUARD_REMOVE:
		return true;
	default:
		return false;
	}
}

static uint64_t state_of(const struct world_gate *gate)
{
	return atomic_load_explicit(&gate->state, memory_order_acquire);
}

/* Inside a lock that was given up since: it never left, by a jump. */
static bool is_left_over(uint32_t inside)
{
	return inside != 0 &&
	       state_of(gate_of(inside)) != generation_of(inside);
}

/* Why a call goes without the lock at once, or -1.  *state is brought up to
 * date. */
static int reason_to_pass(struct thread *t, const struct span *span,
			  struct world_gate *gate, uint64_t *state)
{
	if (*state >> 8 != 0 && close_again(gate, *state))
		*state = state_of(gate);
	if (is_left_over(t->inside))
		t->inside = 0;
	if (is_nested(t))
		return BYPASS_REENTRY;
	if (*state >> 8 != 0)
		return BYPASS_TIMEOUT;
	return !RULE(long_gated) && holds_long(span) ? BYPASS_LONG : -1;
}

static void pass(struct span *span, int reason)
{
	span->outcome = (uint8_t)(OUTCOME_BYPASSED + reason);
	span->entered = stamp();
}

/* Waits for the lock that the thread is marked to be inside of already. */
static COLD void wait_for_lock(struct thread *t, struct span *span)
{
	const struct lock_kind *kind = kind_of(span->inside);
	struct lock *lock = lock_of(span->inside);
	struct lock_wait wait = {.shared = span->shared,
				 .limit_ns = RULE(max_wait_ns)};
	int error;

	span->asked = stamp();
	error = kind->acquire(lock, &wait);
	if (error == -ETIMEDOUT && was_stopped(&wait)) {
		wait.deadline_ns = 0;
		error = kind->acquire(lock, &wait);
	}
	span->wake = wait.wake;
	if (error == 0) {
		span->entered = stamp_after();
		return;
	}
	/* An abandoned lock under a closed gate would stop nobody, for ever. */
	open_gate(span->inside, stamp() - span->asked);
	t->inside = 0;
	pass(span, BYPASS_TIMEOUT);
}

/* Times: asked before a wait, entered after it; equal when there was none, as
 * one stamp after the lock is all that it takes. */
static HOT void lock(struct thread *t, struct span *span, enum lock_id id,
		     uint64_t generation)
{
	uint32_t inside = (uint32_t)id << 8 | (uint32_t)generation;

	/* Marked before the wait: a handler that interrupts it must not queue
	 * behind its own thread. */
	t->inside = inside;
	t->nested = 0;
	atomic_signal_fence(memory_order_seq_cst);
	span->inside = inside;
	span->shared = id == LOCK_rw && is_shared(span);
	t->shared = span->shared;
	span->outcome = OUTCOME_GATED;
	if (locks_kind(id)->take(lock_of(inside), span->shared))
		span->entered = span->asked = stamp_after();
	else
		wait_for_lock(t, span);
}

static COLD void lock_or_pass(struct thread *t, struct span *span,
			      enum lock_id id, uint64_t state)
{
	int reason = reason_to_pass(t, span, &world_page.gate[id], &state);

	if (reason < 0) {
		lock(t, span, id, state);
		return;
	}
	span->asked = stamp();
	pass(span, reason);
}

static HOT void take_lock(struct thread *t, struct span *span, enum lock_id id)
{
	uint64_t state = state_of(&world_page.gate[id]);

	/* What is common first: a closed gate, and no reason to ask. */
	if (state >> 8 == 0 && t->inside == 0 &&
	    (RULE(long_gated) || !holds_long(span)))
		lock(t, span, id, state);
	else
		lock_or_pass(t, span, id, state);
}

static void give_back(struct thread *t, const struct span *span)
{
	/* Given up meanwhile: its word is nobody's any more. */
	if (!is_left_over(span->inside))
		kind_of(span->inside)
			->release(lock_of(span->inside), span->shared);
	atomic_signal_fence(memory_order_seq_cst);
	t->inside = 0;
}

/* --- both ends --- */

void gate_enter(struct span *span)
{
	struct thread *t = &this_thread;
	uint32_t self = world_self();
	uint8_t way;

	if (UNLIKELY(self != t->self || self == 0))
		self = arrive(t, span->op);
	span->self = self;
	if (self == 0)
		return;
	span->wake = 0;
	way = ways_of(span->op);
	if (UNLIKELY(way & WAY_DELAYED))
		ways_delay(span->op);
	way &= WAY_LOCK;
	if (way != LOCK_none) {
		take_lock(t, span, (enum lock_id)way);
		return;
	}
	span->outcome = OUTCOME_UNGATED;
	span->entered = span->asked = stamp();
}

long gate_leave(struct span *span, long result)
{
	struct thread *t = &this_thread;
	uint64_t left;

	if (span->self == 0)
		return result;
	left = stamp();
	/* Forked in a handler in between: this is the child, and its parent
	 * records the call.  Its locks were wiped, but a fork before the lock
	 * was taken let it take one of its own. */
	if (UNLIKELY(world_self() != span->self)) {
		if (span->outcome == OUTCOME_GATED)
			kind_of(span->inside)
				->release(lock_of(span->inside), span->shared);
		if (t->inside == span->inside)
			t->inside = 0;
		return result;
	}
	if (span->outcome == OUTCOME_GATED) {
		give_back(t, span);
		/* Waking others is a system call: forked in a handler there. */
		if (UNLIKELY(world_self() != span->self))
			return result;
	}
	if (log_is_open()) {
		figures_add(t, span, result, left);
		if (UNLIKELY(request_waits()))
			request_follow(t);
	}
	if (UNLIKELY(ways_of(span->op) & WAY_AUTO))
		ways_count(t, span->op);
	return result;
}
