/* SPDX-License-Identifier: MIT */
/*
 * Every kind of lock under every schedule: the real lock_*.c and locks.c.
 *
 * A new kind is checked as soon as it stands in locks.def.
 */
#include "explore.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "flawed.h"
#include "lock.h"
#include "locks.h"

static struct {
	struct lock lock;
	_Atomic uint32_t slots[LOCK_SLOTS];
	int inside;    /* what those who hold it weigh */
	bool given_up; /* as the gate's state says it */
	bool free_at_rest;
	bool struck; /* somebody who may have held it, or been on its way to */
} shared;

/* The lock under test, and the one that it is, or is a flawed one of. */
static const struct lock_kind *kind, *sound;
static int rounds;
static uint32_t reserved; /* at the start, as the lock has it */
static int abandoner;     /* the thread that gives the lock up, or -1 */

static void reset(void)
{
	memset(&shared, 0, sizeof(shared));
	shared.lock.reserved = reserved;
}

/* Does nobody but this thread do anything? */
static bool alone(int thread)
{
	for (int i = 0; i < MODEL_THREADS; i++)
		if (i != thread && model_status(i) == MODEL_READY)
			return false;
	return true;
}

enum { ALL = 6, PERMITS = 2 };

/* All that may be inside together weigh ALL. */
static int weight(bool shares)
{
	if (sound == &lock_limit)
		return ALL / PERMITS;
	return sound == &lock_rw && shares ? 1 : ALL;
}

static void hold(bool shares)
{
	shared.free_at_rest = false;
	shared.inside += weight(shares);
	if (shared.inside > ALL && !shared.given_up)
		model_fail("two threads hold the lock");
	model_step("is inside", NULL);
	shared.inside -= weight(shares);
	model_step("leaves", NULL);
	/* Seen here means nothing a moment later: a late release. */
	if (!shared.given_up)
		kind->release(&shared.lock, shares);
}

static void give_up(int thread, int error)
{
	if (error == -ETIMEDOUT && shared.free_at_rest && alone(thread))
		model_fail("gave up on a free lock");
	if (error == -EOWNERDEAD && !shared.given_up)
		model_fail("abandoned, but by whom?");
	if (error != -ETIMEDOUT && error != -EOWNERDEAD)
		model_fail("an error that the gate does not know");
}

static void body(int thread)
{
	if (thread == abandoner) {
		shared.given_up = true;
		kind->abandon(&shared.lock);
		return;
	}
	for (int i = 0; i < rounds; i++) {
		/* One in three excludes, and then shares. */
		bool shares = (thread + i) % 3 != 0;
		struct lock_wait wait = {.shared = shares,
					 .limit_ns = MODEL_LIMIT_NS};
		int error = 0;

		if (!kind->take(&shared.lock, shares))
			error = kind->acquire(&shared.lock, &wait);
		if (error == 0)
			hold(shares);
		else
			give_up(thread, error);
	}
}

/* A thread that is torn away in the middle may have held the lock, or been on
 * its way to tell others; they then need their time-out. */
static void at_rest(void)
{
	if (shared.struck)
		return;
	if (shared.given_up)
		model_fail("asleep on an abandoned lock");
	else if (shared.inside == 0)
		shared.free_at_rest = true;
}

/* Without faults nobody may need a time-out. */
static void at_rest_without_faults(void)
{
	at_rest();
	model_fail("everybody sleeps and nobody will wake them");
}

/* One torn away in its sleep held nothing; its wake-up may be lost. */
static void fault(int thread, enum model_fault what, bool asleep)
{
	(void)thread;
	(void)what;
	/* A ticket is the lock, sooner or later. */
	if (!asleep || sound == &lock_fifo) {
		shared.struck = true;
		shared.free_at_rest = false;
	}
}

enum { TICKETS = 1, COUNTS = 2 };

/* Releases that keep the lock for sleepers: two of two, all but the second of
 * three. */
enum { TWO = 2 << 1 | 1, BUT_THE_SECOND = 3 << 1 };

static const struct {
	const char *name;
	int rounds;
	bool abandon;
	unsigned cpus; /* 1: spin does not spin, which saves states */
	uint32_t reserved;
	/* Tickets (fifo) and counts (limit, rw) give the lock many values, and
	 * so a scenario millions of states: `model_lock all` runs it. */
	unsigned long_with;
	struct model model;
} scenarios[] = {
	{"2 threads, 3 rounds", 3, false, 2, 0, 0, {.threads = 2}},
	{"3 threads", 1, false, 2, 0, 0, {.threads = 3}},
	{"3 threads, 2 rounds", 2, false, 1, 0, TICKETS, {.threads = 3}},
	{"4 threads", 1, false, 1, 0, TICKETS, {.threads = 4}},
	{"time-outs",
	 1,
	 false,
	 2,
	 0,
	 0,
	 {.threads = 3, .timeouts = true, .leaps = 1}},
	{"time-outs and signals",
	 1,
	 false,
	 2,
	 0,
	 TICKETS,
	 {.threads = 3, .timeouts = true, .signals = true, .leaps = 1}},
	{"time-outs, 2 rounds",
	 2,
	 false,
	 1,
	 0,
	 TICKETS,
	 {.threads = 3, .timeouts = true}},
	{"a thread is killed", 1, false, 2, 0, 0, {.threads = 3, .kills = 1}},
	{"two of four are killed",
	 1,
	 false,
	 1,
	 0,
	 TICKETS,
	 {.threads = 4, .kills = 2}},
	{"one is killed, 2 rounds",
	 2,
	 false,
	 1,
	 0,
	 TICKETS,
	 {.threads = 3, .kills = 1}},
	{"abandoned", 1, true, 2, 0, 0, {.threads = 3, .timeouts = true}},
	{"abandoned, 3 others",
	 1,
	 true,
	 1,
	 0,
	 TICKETS,
	 {.threads = 4, .timeouts = true}},
	{"abandoned, a thread is killed",
	 2,
	 true,
	 1,
	 0,
	 TICKETS,
	 {.threads = 3, .timeouts = true, .kills = 1}},
	{"in order", 1, false, 1, TWO, TICKETS, {.threads = 3}},
	{"in order, 2 rounds",
	 2,
	 false,
	 1,
	 TWO,
	 TICKETS | COUNTS,
	 {.threads = 3}},
	{"in order every other time, 2 rounds",
	 2,
	 false,
	 1,
	 BUT_THE_SECOND,
	 TICKETS | COUNTS,
	 {.threads = 3}},
	{"in order, 4 threads",
	 1,
	 false,
	 1,
	 TWO,
	 TICKETS | COUNTS,
	 {.threads = 4}},
	{"in order, time-outs",
	 1,
	 false,
	 1,
	 TWO,
	 TICKETS,
	 {.threads = 3, .timeouts = true, .leaps = 1}},
	{"in order, time-outs and signals",
	 1,
	 false,
	 2,
	 TWO,
	 TICKETS | COUNTS,
	 {.threads = 3, .timeouts = true, .signals = true, .leaps = 1}},
	{"in order, one of three is killed",
	 1,
	 false,
	 1,
	 TWO,
	 TICKETS,
	 {.threads = 3, .kills = 1}},
	{"in order, one is killed",
	 1,
	 false,
	 1,
	 TWO,
	 TICKETS | COUNTS,
	 {.threads = 4, .kills = 1}},
	{"in order, abandoned",
	 1,
	 true,
	 1,
	 TWO,
	 TICKETS | COUNTS,
	 {.threads = 4, .timeouts = true}},
};

enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

static bool run(const struct lock_kind *which, const struct lock_kind *base,
		int scenario, const char **report, unsigned long *states)
{
	struct model model = scenarios[scenario].model;

	kind = which;
	sound = base;
	lock_permits = PERMITS;
	lock_slots = shared.slots;
	lock_cpus = scenarios[scenario].cpus;
	rounds = scenarios[scenario].rounds;
	reserved = scenarios[scenario].reserved;
	abandoner = scenarios[scenario].abandon ? model.threads - 1 : -1;
	model.name = which->name;
	model.reset = reset;
	model.body = body;
	/* Who was given up or torn away makes others need their time-out. */
	model.at_rest = model.kills != 0 || abandoner >= 0
				? at_rest
				: at_rest_without_faults;
	model.fault = fault;
	model.shared[0] = (struct model_memory){&shared, sizeof(shared)};
	model.locks = &shared.lock;
	model.lock_count = 1;
	return explore(&model, which != base, report, states);
}

static bool is_long(int scenario, const struct lock_kind *which)
{
	unsigned with = scenarios[scenario].long_with;

	if (which == &lock_fifo)
		return with & TICKETS;
	return with & COUNTS && (which == &lock_limit || which == &lock_rw);
}

static int check_kind(const struct lock_kind *which, bool all)
{
	unsigned long states;
	const char *report;
	int failed = 0;

	for (int i = 0; i < SCENARIOS; i++) {
		bool ok;

		if (!all && is_long(i, which))
			continue;
		ok = run(which, which, i, &report, &states);
		printf("%s - %s: %s: %lu states%s%s\n", ok ? "ok" : "not ok",
		       which->name, scenarios[i].name, states, ok ? "" : ": ",
		       ok ? "" : report);
		fflush(stdout);
		failed += !ok;
	}
	return failed;
}

/* The explorer must find what is wrong with a lock that is. */
static int check_flaw(const struct lock_kind *which,
		      const struct lock_kind *base, const char *expected)
{
	struct lock_kind whole = {
		which->name,
		which->take != NULL ? which->take : base->take,
		which->acquire != NULL ? which->acquire : base->acquire,
		which->release != NULL ? which->release : base->release,
		which->abandon != NULL ? which->abandon : base->abandon,
	};
	const char *report = "nothing";
	unsigned long states;
	bool found = false;

	for (int i = 0; i < SCENARIOS && !found; i++)
		found = !is_long(i, base) &&
			!run(&whole, base, i, &report, &states) &&
			strcmp(report, expected) == 0;
	printf("%s - flawed lock %s: ", found ? "ok" : "not ok", which->name);
	if (found)
		printf("reported: %s\n", report);
	else
		printf("expected \"%s\", got \"%s\"\n", expected,
		       report != NULL ? report : "nothing");
	return !found;
}

/* model_lock [all [LOCK]]: the long scenarios too; of one lock. */
int main(int argc, char **argv)
{
	bool all = argc > 1 && strcmp(argv[1], "all") == 0;
	int failed = 0;

	for (int id = 0; id < LOCK_COUNT; id++) {
		const struct lock_kind *which = locks_kind((enum lock_id)id);

		if (which != &lock_none &&
		    (argc < 3 || strcmp(which->name, argv[2]) == 0))
			failed += check_kind(which, all);
	}
	failed += check_flaw(&lock_none, &lock_mutex,
			     "two threads hold the lock");
#undef FLAW
#define FLAW(name, base, report)                                               \
	failed += check_flaw(&flawed_##name, &lock_##base, report);
#include "flawed.h"
	return failed != 0;
}
