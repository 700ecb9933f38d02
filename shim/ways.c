/* SPDX-License-Identifier: MIT */
#include "ways.h"

#include "clock.h"
#include "figures.h"
#include "log.h"
#include "rules.h"
#include "span.h"
#include "sys.h"

#include "poison.h"

uint8_t ways[OP_COUNT];

static uint32_t delay_ns[OP_COUNT];

/* What the log was told of each op's lock last. */
static uint8_t noted[OP_COUNT];

/* The settings and auto change it, at the same time if need be: what one does
 * is done for good. */
static bool change(enum op op, uint8_t *seen, unsigned to)
{
	return __atomic_compare_exchange_n(&ways[op], seen, (uint8_t)to, false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static uint8_t lock_now(enum op op)
{
	return ways_of(op) & WAY_LOCK;
}

/* --- what auto chooses --- */

/* Takes what it has chosen by now. */
static void follow_auto(void)
{
	for (unsigned op = 0; op < OP_COUNT; op++) {
		uint8_t seen = ways_of(op);

		while (seen & WAY_AUTO &&
		       !change(op, &seen,
			       (seen & ~WAY_LOCK) | auto_kind(auto_group(op))))
			;
	}
}

/* Begins to choose where the settings say so; `alone`: no other thread runs. */
static void begin_auto(bool alone)
{
	uint32_t groups = 0;

	for (unsigned op = 0; op < OP_COUNT; op++)
		if (ways_of(op) & WAY_AUTO)
			groups |= 1u << auto_group(op);
	if (groups != 0)
		auto_begin(groups, clock_monotonic(), alone);
	follow_auto();
}

/* --- what the log is told --- */

/* A new log: which locks it begins with. */
static void begin_noting(void)
{
	for (unsigned op = 0; op < OP_COUNT; op++) {
		noted[op] = lock_now(op);
		if (log_is_open())
			log_lock(op, noted[op]);
	}
}

static COLD void write_event(struct thread *t, enum op op, uint8_t before,
			     uint8_t now)
{
	const struct span span = {
		.asked = clock_ticks(), .op = op, .arg = now, .flags = before};

	figures_note(t, &span, (struct figures){.kind = EVENT_LOCK});
}

/* Says it in the log if the op's lock is another than the last time.  `set` and
 * auto may be in here at the same time: whoever is last looks again. */
static bool note(struct thread *t, enum op op)
{
	uint8_t before, now;
	bool changed = false;

	do {
		now = lock_now(op);
		before = __atomic_exchange_n(&noted[op], now, __ATOMIC_SEQ_CST);
		log_lock(op, now);
		if (now == before)
			continue;
		changed = true;
		write_event(t, op, before, now);
	} while (now != lock_now(op));
	return changed;
}

static COLD void note_all(struct thread *t)
{
	bool changed = false;

	for (unsigned op = 0; op < OP_COUNT; op++)
		changed |= note(t, op);
	if (changed)
		log_locks_changed();
}

/* --- what the settings say --- */

static void follow_settings(const struct knobs *settings, enum op op)
{
	enum lock_id id = knobs_lock_of(settings, op);
	uint8_t seen = ways_of(op), to;

	__atomic_store_n(&delay_ns[op], settings->delay_ns[op],
			 __ATOMIC_RELAXED);
	do {
		to = (uint8_t)id;
		if (id == LOCK_auto) /* what it has chosen stays for now */
			to = seen & WAY_AUTO ? seen & (WAY_AUTO | WAY_LOCK)
					     : WAY_AUTO | LOCK_none;
		if (settings->delay_ns[op] != 0)
			to |= WAY_DELAYED;
	} while (!change(op, &seen, to));
}

static void follow_all(void)
{
	for (unsigned op = 0; op < OP_COUNT; op++)
		follow_settings(rules_settings(), op);
}

static bool same_locks(const struct knobs *a, const struct knobs *b)
{
	for (unsigned op = 0; op < OP_COUNT; op++)
		if (knobs_lock_of(a, op) != knobs_lock_of(b, op))
			return false;
	return true;
}

void ways_init(void)
{
	follow_all();
	begin_auto(true);
	begin_noting();
}

void ways_begin_child(void)
{
	begin_auto(true);
	begin_noting();
}

void ways_follow(struct thread *t, const struct knobs *before)
{
	follow_all();
	/* What auto has learnt stays, if it can. */
	if (same_locks(before, rules_settings()))
		return;
	begin_auto(false);
	note_all(t);
}

/* --- calls --- */

void ways_delay(enum op op)
{
	uint64_t until = clock_monotonic() +
			 __atomic_load_n(&delay_ns[op], __ATOMIC_RELAXED);

	while (clock_monotonic() < until)
		sys_pause();
}

void ways_choose_line(struct thread *t)
{
	static uint8_t lines;

	t->line = __atomic_fetch_add(&lines, 1, __ATOMIC_RELAXED) | 0x80;
}

void ways_look(struct thread *t)
{
	t->patience = (uint8_t)auto_patience();
	if (!auto_look(clock_monotonic()))
		return;
	follow_auto();
	if (log_is_open() && auto_decided())
		note_all(t);
	auto_done();
}
