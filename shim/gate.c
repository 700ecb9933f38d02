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

#include "auto.h"
#include "clock.h"
#include "locks.h"
#include "log.h"
#include "modules.h"
#include "record.h"
#include "stack.h"
#include "sys.h"
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

#define unlikely(x) __builtin_expect(!!(x), 0)
#define always_inline inline __attribute__((always_inline))
/* Keeps what is rare out of the registers of what is not. */
#define never_inline __attribute__((noinline))

#define OPEN_RENEWING (UINT64_MAX >> 8)

enum {
	OPEN_FACTOR = 100, /* a lock that hangs costs 1 % at most */
	LONG_BYTES = 1 << 30,
	BETWEEN_STEP = 1 << 20, /* ticks: how finely that time is counted */
	WITH_STACKS = 1 << 7,   /* beside enum knob_events: the log has room
				 * for some */
	MOST_NESTED = 1000,     /* calls that a handler is believed to make */

	WAY_LOCK = 0x3f, /* enum lock_id */
	WAY_AUTO = 0x40, /* auto chooses it */
	WAY_DELAYED = 0x80,
};

/* What a thread carries; below 64 bytes, initial-exec, no destructor. */
struct thread {
	uint32_t self; /* world_self() when it registered; 0: never */
	uint32_t tid;
	uint32_t inside;  /* lock that it holds or waits for: kind (never none)
			   * << 8 | generation; 0: none */
	uint16_t nested;  /* calls that it made inside */
	uint8_t line;     /* auto: where it counts; 0: not chosen yet */
	uint8_t patience; /* auto: calls to its next look */
	uint8_t stripe;
	uint32_t every; /* events=every:N that `skip` was chosen by */
	uint64_t left;  /* ticks: end of its last call */
	uint64_t random;
	uint32_t between; /* ticks between calls, not yet counted */
	uint32_t skip;    /* events=every:N: calls to the next event */
};

static __thread struct thread this_thread;

_Static_assert(sizeof(struct thread) <= 64, "static TLS is scarce");

bool (*gate_new_process)(void);

/* The settings in force, and what follows from them. */
static struct {
	uint8_t way[OP_COUNT]; /* enum lock_id, + WAY_AUTO, + WAY_DELAYED */
	uint8_t long_gated;
	uint8_t events;   /* enum knob_events, and WITH_STACKS */
	uint32_t every;   /* N of events=every:N */
	uint64_t slow_ns; /* of events=slow:DURATION */
	uint64_t slow_ticks;
	uint64_t max_wait_ns;
	uint32_t delay_ns[OP_COUNT];
	uint32_t request; /* the last of `mmgate set` that was seen */
	struct gate_callers callers;
} config;

/* The same as settings, for those who change some of them. */
static struct knobs settings;

/* Other threads may be under way: a word at a time, each right by itself. */
#define GET(field) __atomic_load_n(&config.field, __ATOMIC_RELAXED)
#define SET(field, value)                                                      \
	__atomic_store_n(&config.field, (value), __ATOMIC_RELAXED)

static void derive(void)
{
	stack_derive();
	SET(slow_ticks, clock_from_ns(GET(slow_ns)));
}

static uint8_t way(enum op op)
{
	return GET(way[op]);
}

/* The settings and auto change it, at the same time if need be: what one does
 * is done for good. */
static bool change_way(enum op op, uint8_t *seen, unsigned to)
{
	return __atomic_compare_exchange_n(&config.way[op], seen, (uint8_t)to,
					   false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

/* What auto has chosen by now. */
static void follow_auto(void)
{
	for (unsigned op = 0; op < OP_COUNT; op++) {
		uint8_t seen = way(op);

		while (seen & WAY_AUTO &&
		       !change_way(op, &seen,
				   (seen & ~WAY_LOCK) |
					   auto_kind(auto_group(op))))
			;
	}
}

/* Begins to choose where the settings say so; `alone`: no other thread runs. */
static void begin_auto(bool alone)
{
	uint32_t groups = 0;

	for (unsigned op = 0; op < OP_COUNT; op++)
		if (way(op) & WAY_AUTO)
			groups |= 1u << auto_group(op);
	if (groups != 0)
		auto_begin(groups, clock_monotonic(), alone);
	follow_auto();
}

/* What the log was told of each op's lock last. */
static uint8_t noted[OP_COUNT];

/* A new log: which locks it begins with. */
static void begin_noting(void)
{
	for (unsigned op = 0; op < OP_COUNT; op++) {
		noted[op] = way(op) & WAY_LOCK;
		if (log_is_open())
			log_lock(op, noted[op]);
	}
}

static void follow_way(enum op op)
{
	enum lock_id id = knobs_lock_of(&settings, op);
	uint8_t seen = way(op), to;

	SET(delay_ns[op], settings.delay_ns[op]);
	do {
		to = (uint8_t)id;
		if (id == LOCK_auto) /* what it has chosen stays for now */
			to = seen & WAY_AUTO ? seen & (WAY_AUTO | WAY_LOCK)
					     : WAY_AUTO | LOCK_none;
		if (settings.delay_ns[op] != 0)
			to |= WAY_DELAYED;
	} while (!change_way(op, &seen, to));
}

/* Whose stack is where is followed from the start to the end, or not at all: a
 * gap would leave stacks that are gone. */
static void follow_events(void)
{
	unsigned stacks = knobs_has_stacks(&settings)
				  ? WITH_STACKS
				  : GET(events) & WITH_STACKS;

	if (settings.events == EVENTS_SLOW)
		SET(slow_ns, settings.events_arg);
	if (settings.events == EVENTS_EVERY)
		SET(every, (uint32_t)settings.events_arg);
	derive();
	SET(events, (uint8_t)(settings.events | stacks));
}

static void follow_settings(void)
{
	if (settings.limit != 0)
		lock_permits = settings.limit;
	SET(long_gated, settings.long_gated);
	SET(max_wait_ns, settings.max_wait_ns);
	for (unsigned op = 0; op < OP_COUNT; op++)
		follow_way(op);
	follow_events();
}

void gate_init(const struct knobs *knobs, const struct gate_callers *callers)
{
	config.callers = *callers;
	settings = *knobs;
	follow_settings();
	begin_auto(true);
	begin_noting();
}

const struct knobs *gate_settings(void)
{
	return &settings;
}

/* Who follows a request of `mmgate set`: since when, ns; 0: nobody.  One that
 * never ends was torn away, and another takes over. */
static uint64_t following;

static void end_following(void)
{
	__atomic_store_n(&following, 0, __ATOMIC_RELEASE);
}

/* A forked child, with a log of its own or none: it goes on with what its
 * parent's settings were. */
static void begin_child(void)
{
	SET(request, 0);
	end_following();
	begin_auto(true);
	if (log_is_open())
		log_settings(&settings);
	begin_noting();
}

/* --- who is calling --- */

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
static never_inline uint32_t arrive(struct thread *t, enum op op)
{
	struct thread fresh = {.self = 0};
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
		if (unlikely(probing))
			probed |= 1u << op;
		return 0;
	}
	if (log_is_open()) {
		fresh.tid = sys_gettid();
		fresh.stripe = (uint8_t)log_thread();
		fresh.left = clock_ticks();
		fresh.random = (fresh.left ^ (uint64_t)fresh.tid << 32) | 1;
	}
	fresh.patience = 1;
	/* Whole before it counts: a handler's call may come in between. */
	*t = fresh;
	atomic_signal_fence(memory_order_seq_cst);
	t->self = self;
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
static never_inline bool close_again(struct world_gate *gate, uint64_t state)
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

static void note_opening(uint64_t wait);

/* This thread waited too long for the lock. */
static void open_gate(uint32_t inside, uint64_t wait)
{
	uint64_t until = now_us() + GET(max_wait_ns) / 1000 * OPEN_FACTOR;
	uint64_t state = generation_of(inside);

	if (!atomic_compare_exchange_strong(&gate_of(inside)->state, &state,
					    until << 8 | generation_of(inside)))
		return; /* another was first */
	kind_of(inside)->abandon(lock_of(inside));
	note_opening(wait);
}

static bool holds_long(const struct gate_span *s)
{
	switch (s->op) {
	case OP_MMAP:
		return s->flags & (MAP_POPULATE | MAP_LOCKED) ||
		       (s->flags & MAP_FIXED && s->length >= LONG_BYTES);
	case OP_MUNMAP:
		return s->length >= LONG_BYTES;
	case OP_MADVISE:
		return s->arg == MADV_POPULATE_READ ||
		       s->arg == MADV_POPULATE_WRITE;
	default:
		return false;
	}
}

/* Is the thread in a handler that interrupted a call of its own?  One that says
 * so for ever left the call by a jump: it takes locks again, and at worst it
 * waits for itself, once. */
static bool is_nested(struct thread *t)
{
	if (t->inside != 0 && ++t->nested > MOST_NESTED)
		t->inside = 0;
	return t->inside != 0;
}

/* Times are for the log alone. */
static always_inline uint64_t stamp(void)
{
	return log_is_open() ? clock_ticks() : 0;
}

static always_inline uint64_t stamp_after(void)
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
static bool is_shared(const struct gate_span *span)
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
static int reason_to_pass(struct thread *t, const struct gate_span *span,
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
	return !GET(long_gated) && holds_long(span) ? BYPASS_LONG : -1;
}

static void pass(struct gate_span *span, int reason)
{
	span->outcome = (uint8_t)(OUTCOME_BYPASSED + reason);
	span->entered = stamp();
}

/* Waits for the lock that the thread is marked to be inside of already. */
static never_inline void wait_for_lock(struct thread *t, struct gate_span *span)
{
	const struct lock_kind *kind = kind_of(span->inside);
	struct lock *lock = lock_of(span->inside);
	struct lock_wait wait = {.shared = span->shared,
				 .limit_ns = GET(max_wait_ns)};
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
static always_inline void lock(struct thread *t, struct gate_span *span,
			       enum lock_id id, uint64_t generation)
{
	uint32_t inside = (uint32_t)id << 8 | (uint32_t)generation;

	/* Marked before the wait: a handler that interrupts it must not queue
	 * behind its own thread. */
	t->inside = inside;
	t->nested = 0;
	atomic_signal_fence(memory_order_seq_cst);
	span->inside = inside;
	span->shared = id == LOCK_rw && is_shared(span);
	span->outcome = OUTCOME_GATED;
	if (locks_kind(id)->take(lock_of(inside), span->shared))
		span->entered = span->asked = stamp_after();
	else
		wait_for_lock(t, span);
}

static never_inline void lock_or_pass(struct thread *t, struct gate_span *span,
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

static always_inline void take_lock(struct thread *t, struct gate_span *span,
				    enum lock_id id)
{
	uint64_t state = state_of(&world_page.gate[id]);

	/* What is common first: a closed gate, and no reason to ask. */
	if (state >> 8 == 0 && t->inside == 0 &&
	    (GET(long_gated) || !holds_long(span)))
		lock(t, span, id, state);
	else
		lock_or_pass(t, span, id, state);
}

static void give_back(struct thread *t, const struct gate_span *span)
{
	/* Given up meanwhile: its word is nobody's any more. */
	if (!is_left_over(span->inside))
		kind_of(span->inside)
			->release(lock_of(span->inside), span->shared);
	atomic_signal_fence(memory_order_seq_cst);
	t->inside = 0;
}

/* --- the record --- */

static always_inline void add(uint64_t *p, uint64_t n)
{
	__atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}

static always_inline void add_value(struct record_hist *h, uint64_t value)
{
	uint64_t max = __atomic_load_n(&h->max, __ATOMIC_RELAXED);

	add(&h->bucket[record_bucket(value)], 1);
	if (value == 0)
		return; /* what most waits are */
	add(&h->sum, value);
	while (unlikely(value > max) &&
	       !__atomic_compare_exchange_n(&h->max, &max, value, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Clocks of two CPUs may differ by a hair. */
static uint64_t difference(struct record_stripe *stripe, uint64_t from,
			   uint64_t to)
{
	if (unlikely(to < from)) {
		add(&stripe->clamped, 1);
		return 0;
	}
	return to - from;
}

static uint64_t next_random(struct thread *t)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return t->random;
}

/* What was measured of a call. */
struct measured {
	long result;
	uint64_t wait, kernel;
	uint32_t weight;
	enum record_kind kind;
};

static bool is_in(const struct gate_range *range, uintptr_t address)
{
	return address >= range->from && address < range->to;
}

static enum record_layer class_of(uintptr_t caller)
{
	if (is_in(&config.callers.libc, caller))
		return CALLER_LIBC;
	if (is_in(&config.callers.program, caller))
		return CALLER_PROGRAM;
	if (is_in(&config.callers.loader, caller))
		return CALLER_LOADER;
	return CALLER_LIBRARY;
}

/* In steps, as each costs an atomic addition; what a thread has left over when
 * it ends is lost. */
static always_inline void
count_between(struct thread *t, struct record_stripe *stripe, uint64_t asked)
{
	uint64_t between = t->between;

	/* A handler's call inside another one began after that. */
	if (asked > t->left)
		between += asked - t->left;
	if (unlikely(between >= BETWEEN_STEP)) {
		add(&stripe->thread_ticks, between);
		between = 0;
	}
	t->between = (uint32_t)between;
}

static always_inline void describe(struct record_event *e,
				   const struct thread *t,
				   const struct gate_span *span,
				   const struct measured *m, uint32_t stack)
{
	e->time = span->asked;
	e->addr = span->addr;
	e->length = span->length;
	e->offset = span->offset;
	e->result = m->result;
	e->caller = (uintptr_t)span->caller;
	e->wait_low = (uint32_t)m->wait;
	e->kernel_low = (uint32_t)m->kernel;
	e->wait_high = (uint16_t)(m->wait >> 32);
	e->kernel_high = (uint16_t)(m->kernel >> 32);
	e->arg = span->arg;
	e->flags = span->flags;
	e->fd = span->fd;
	e->tid = t->tid;
	e->weight = m->weight;
	e->stack = stack;
	e->kind = (uint8_t)m->kind;
	e->op = (uint8_t)span->op;
	e->outcome = span->outcome;
	e->layer = (uint8_t)class_of(e->caller);
}

static always_inline void write_to_ring(struct thread *t,
					const struct gate_span *span,
					const struct measured *m,
					uint32_t stack)
{
	uint64_t number;
	struct record_event *e = log_claim(t->stripe, &number);

	if (e == NULL)
		return;
	describe(e, t, span, m, stack);
	log_seal(e, number);
}

static never_inline void write_event(struct thread *t,
				     const struct gate_span *span,
				     const struct measured *m)
{
	write_to_ring(t, span, m, 0);
}

/* Intervals are random with mean N, so that a regular pattern of calls is not
 * met in step. */
static always_inline uint32_t weigh_every(struct thread *t)
{
	uint32_t n = GET(every);

	if (t->skip == 0 || t->every != n) {
		t->every = n;
		if (n > INT32_MAX) /* what `skip` holds */
			n = INT32_MAX;
		t->skip = 1 + (uint32_t)(next_random(t) % (2 * n - 1));
	}
	return --t->skip == 0 ? n : 0;
}

/* Number of calls that this one stands for, 0: no event. */
static always_inline uint32_t weigh(struct thread *t, const struct measured *m,
				    unsigned events)
{
	switch (events) {
	case EVENTS_ALL:
		return 1;
	case EVENTS_SLOW:
		return m->wait + m->kernel >= GET(slow_ticks);
	case EVENTS_EVERY:
		return weigh_every(t);
	default:
		return 0;
	}
}

/* What the call means for whose stack is where, and for code that goes. */
static void follow_mappings(const struct gate_span *span, long result,
			    uint64_t now)
{
	if (span->op == OP_MMAP && !sys_failed(result))
		stack_mapped((uint64_t)result, span->length, span->arg,
			     span->flags,
			     class_of((uintptr_t)span->caller) == CALLER_LIBC);
	else if (span->op == OP_MUNMAP && result == 0)
		stack_unmapped(span->addr, span->length, now);
}

/* With stacks: one may be copied, and the event has its number. */
static never_inline void write_with_stack(struct thread *t,
					  const struct gate_span *span,
					  struct measured *m)
{
	struct record_sample *s;
	uint32_t stack = 0;

	follow_mappings(span, m->result, t->left);
	s = stack_pick(m->wait + m->kernel, t->left, &t->random, &m->weight);
	if (s != NULL) {
		describe(&s->event, t, span, m, 0);
		stack = stack_copy(s, span + 1, span->caller);
	}
	m->weight = weigh(t, m, GET(events) & ~WITH_STACKS);
	if (m->weight != 0)
		write_to_ring(t, span, m, stack);
}

static never_inline void note_opening(uint64_t wait)
{
	const struct gate_span none = {.asked = clock_ticks() - wait};
	const struct measured m = {
		.wait = wait, .weight = 1, .kind = EVENT_OPENED};

	if (!log_is_open())
		return;
	log_opened();
	if ((GET(events) & ~WITH_STACKS) != EVENTS_OFF)
		write_event(&this_thread, &none, &m);
}

static void record(struct thread *t, const struct gate_span *span, long result,
		   uint64_t left)
{
	struct measured m = {.result = result, .kind = EVENT_CALL};
	uint32_t at = t->stripe;
	struct record_stripe *stripe;
	struct record_op *op;
	unsigned events = GET(events);

	if (unlikely(!log_need_op(&at, span->op)))
		return;
	stripe = log_stripe(at);
	op = &stripe->op[span->op];
	m.kernel = difference(stripe, span->entered, left);
	if (span->outcome == OUTCOME_GATED) {
		m.wait = difference(stripe, span->asked, span->entered);
		add_value(&op->wait, m.wait);
	} else if (unlikely(span->outcome >= OUTCOME_BYPASSED)) {
		add(&op->bypassed[span->outcome - OUTCOME_BYPASSED], 1);
	}
	if (unlikely(span->wake != 0) && log_need_wake(at))
		add_value(&stripe->wake, span->wake);
	add_value(&op->kernel, m.kernel);
	if (unlikely(sys_failed(result)))
		add(&op->errors, 1);
	else if (span->length != 0)
		add(&op->bytes, span->length);
	count_between(t, stripe, span->asked);
	t->left = left;
	if (unlikely(log_alive(left)))
		derive();
	if (unlikely(span->op == OP_MMAP && span->arg & PROT_EXEC &&
		     span->fd >= 0 && !sys_failed(result)))
		modules_mapped(span->fd, (uint64_t)result, span->length,
			       span->offset, left);
	if (unlikely(events & WITH_STACKS)) {
		write_with_stack(t, span, &m);
		return;
	}
	m.weight = weigh(t, &m, events);
	if (m.weight != 0)
		write_event(t, span, &m);
}

/* --- settings that change while the program runs --- */

static never_inline void write_lock_event(struct thread *t, enum op op,
					  uint8_t before, uint8_t now)
{
	const struct gate_span span = {
		.asked = clock_ticks(), .op = op, .arg = now, .flags = before};
	const struct measured m = {.weight = 1, .kind = EVENT_LOCK};

	if ((GET(events) & ~WITH_STACKS) != EVENTS_OFF)
		write_event(t, &span, &m);
}

/* Says it in the log if the op's lock is another than the last time.  `set` and
 * auto may be in here at the same time: whoever is last looks again. */
static bool note_lock(struct thread *t, enum op op)
{
	uint8_t before, now;
	bool changed = false;

	do {
		now = way(op) & WAY_LOCK;
		before = __atomic_exchange_n(&noted[op], now, __ATOMIC_SEQ_CST);
		log_lock(op, now);
		if (now == before)
			continue;
		changed = true;
		write_lock_event(t, op, before, now);
	} while (now != (way(op) & WAY_LOCK));
	return changed;
}

static never_inline void note_locks(struct thread *t)
{
	bool changed = false;

	for (unsigned op = 0; op < OP_COUNT; op++)
		changed |= note_lock(t, op);
	if (changed)
		log_locks_changed();
}

static bool same_locks(const struct knobs *a, const struct knobs *b)
{
	for (unsigned op = 0; op < OP_COUNT; op++)
		if (knobs_lock_of(a, op) != knobs_lock_of(b, op))
			return false;
	return true;
}

/* Does what a request says; false: it is not understood. */
static bool change_settings(struct thread *t, char *text)
{
	struct knobs before = settings;

	if (knobs_change(&settings, text) != 0)
		return false;
	follow_settings();
	stack_follow(&settings);
	/* What auto has learnt stays, if it can. */
	if (!same_locks(&before, &settings)) {
		begin_auto(false);
		note_locks(t);
	}
	log_settings(&settings);
	return true;
}

static bool begin_following(void)
{
	const uint64_t torn_away_ns = 5000000000;
	uint64_t now = clock_monotonic();
	uint64_t since = __atomic_load_n(&following, __ATOMIC_RELAXED);

	if (since != 0 && now < since + torn_away_ns)
		return false;
	return __atomic_compare_exchange_n(&following, &since, now, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* `mmgate set` asks for something. */
static never_inline void follow_request(struct thread *t)
{
	/* Not on a signal handler's small stack. */
	static char text[sizeof(((struct record_control *)NULL)->text)];
	uint32_t serial;

	if (!begin_following())
		return; /* another thread does */
	serial = log_request();
	if (serial != GET(request)) {
		log_answer(serial,
			   !log_read_request(serial, text, sizeof(text)) ||
				   !change_settings(t, text));
		SET(request, serial);
	}
	end_following();
}

static never_inline void look_for_auto(struct thread *t)
{
	t->patience = (uint8_t)auto_patience();
	if (!auto_look(clock_monotonic()))
		return;
	follow_auto();
	if (log_is_open() && auto_decided())
		note_locks(t);
	auto_done();
}

static always_inline void count_for_auto(struct thread *t, enum op op)
{
	static uint8_t lines;

	if (unlikely(t->line == 0))
		t->line =
			__atomic_fetch_add(&lines, 1, __ATOMIC_RELAXED) | 0x80;
	auto_count(t->line, op);
	if (--t->patience == 0)
		look_for_auto(t);
}

static never_inline void delay(enum op op)
{
	uint64_t until = clock_monotonic() + GET(delay_ns[op]);

	while (clock_monotonic() < until)
		sys_pause();
}

/* --- both ends --- */

void gate_enter(struct gate_span *span)
{
	struct thread *t = &this_thread;
	uint32_t self = world_self();
	uint8_t to;

	if (unlikely(self != t->self || self == 0))
		self = arrive(t, span->op);
	span->self = self;
	if (self == 0)
		return;
	span->wake = 0;
	to = way(span->op);
	if (unlikely(to & WAY_DELAYED))
		delay(span->op);
	to &= WAY_LOCK;
	if (to != LOCK_none) {
		take_lock(t, span, (enum lock_id)to);
		return;
	}
	span->outcome = OUTCOME_UNGATED;
	span->entered = span->asked = stamp();
}

long gate_leave(struct gate_span *span, long result)
{
	struct thread *t = &this_thread;
	uint64_t left;

	if (span->self == 0)
		return result;
	left = stamp();
	/* Forked in a handler in between: this is the child, and its parent
	 * records the call.  Its locks were wiped, but a fork before the lock
	 * was taken let it take one of its own. */
	if (unlikely(world_self() != span->self)) {
		if (span->outcome == OUTCOME_GATED)
			kind_of(span->inside)
				->release(lock_of(span->inside), span->shared);
		return result;
	}
	if (span->outcome == OUTCOME_GATED)
		give_back(t, span);
	if (log_is_open()) {
		record(t, span, result, left);
		if (unlikely(log_request() != GET(request)))
			follow_request(t);
	}
	if (unlikely(way(span->op) & WAY_AUTO))
		count_for_auto(t, span->op);
	return result;
}
