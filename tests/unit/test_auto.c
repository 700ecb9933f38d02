/* SPDX-License-Identifier: MIT */
/*
 * auto against simulated programs: a millisecond a step, calls at a rate that
 * follows from the lock in force, with noise.
 */
#include <math.h>
#include <stdlib.h>

#include "auto.h"
#include "check.h"

#define MS UINT64_C(1000000)

/* Calls a millisecond of each group under each lock that auto may choose. */
struct load {
	double calls[AUTO_GROUPS];
	/* All calls by this factor when the group has the lock; 0: as 1. */
	double mutex[AUTO_GROUPS], spin[AUTO_GROUPS];
	double noise; /* of a step, standard deviation of the logarithm */
	/* By chance, for EPOCH_MS, a mutex makes it so much better than it
	 * says, or worse; 0: as 1. */
	double swing;
};

enum { EPOCH_MS = 40 };

static uint64_t now;
static unsigned changes;
static uint64_t locked_ms[AUTO_GROUPS], steps;
static double owed[AUTO_GROUPS];

static double uniform(void)
{
	return (rand() + 1.0) / (RAND_MAX + 2.0);
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * acos(-1) * uniform());
}

static double swing_now(const struct load *l)
{
	static uint64_t epoch;
	static bool up;

	if (l->swing == 0)
		return 1;
	if (now / (EPOCH_MS * MS) != epoch) {
		epoch = now / (EPOCH_MS * MS);
		up = rand() % 2;
	}
	return up ? l->swing : 1 / l->swing;
}

static double factor(const struct load *l)
{
	double f = exp(l->noise * normal());

	for (int g = 0; g < AUTO_GROUPS; g++) {
		enum lock_id id = auto_kind((enum auto_group)g);

		if (id == LOCK_mutex && l->mutex[g] != 0)
			f *= l->mutex[g] * swing_now(l);
		if (id == LOCK_spin && l->spin[g] != 0)
			f *= l->spin[g];
	}
	return f;
}

static void step(const struct load *l)
{
	double f = factor(l);

	for (int g = 0; g < AUTO_GROUPS; g++) {
		owed[g] += l->calls[g] * f;
		auto_counts[0].calls[g] += (uint64_t)owed[g];
		owed[g] -= floor(owed[g]);
		locked_ms[g] += auto_kind((enum auto_group)g) != LOCK_none;
	}
	steps++;
	now += MS;
	if (auto_look(now)) {
		changes++;
		auto_done();
	}
}

static void begin(void)
{
	now = 1000 * MS;
	auto_begin((1u << AUTO_GROUPS) - 1, now, true);
}

static void run(const struct load *l, unsigned ms)
{
	changes = 0;
	steps = 0;
	for (int g = 0; g < AUTO_GROUPS; g++)
		locked_ms[g] = 0;
	for (unsigned i = 0; i < ms; i++)
		step(l);
}

/* Until a search is over. */
static void settle(const struct load *l)
{
	while (!auto_decided())
		step(l);
}

static double locked(enum auto_group g)
{
	return (double)locked_ms[g] / (double)steps;
}

static void check_no_gain(void)
{
	const struct load worse = {.calls = {50, 0, 0},
				   .mutex = {0.5},
				   .spin = {0.5},
				   .noise = 0.2};

	begin();
	run(&worse, 2000);
	settle(&worse);
	check_int(LOCK_none, auto_kind(AUTO_SPACE), "a lock that hurts");
	run(&worse, 30000);
	check_between(0, 0.02, locked(AUTO_SPACE),
		      "and is tried later for less than 2 %% of the time");
}

static void check_gain(void)
{
	const struct load better = {.calls = {100, 0, 0},
				    .mutex = {1.3},
				    .spin = {1.1},
				    .noise = 0.3};

	begin();
	run(&better, 2000);
	settle(&better);
	check_int(LOCK_mutex, auto_kind(AUTO_SPACE), "a lock that helps");
	run(&better, 30000);
	check_between(0.98, 1, locked(AUTO_SPACE), "and is kept");
}

static void check_groups(void)
{
	const struct load mixed = {.calls = {100, 0, 50},
				   .mutex = {0.6, 0, 2},
				   .spin = {0.6, 0, 1.2},
				   .noise = 0.1};

	begin();
	run(&mixed, 2500);
	settle(&mixed);
	check_int(LOCK_none, auto_kind(AUTO_SPACE), "mixed: hurts mmap");
	check_int(LOCK_mutex, auto_kind(AUTO_ADVICE), "mixed: helps madvise");
	check_int(LOCK_none, auto_kind(AUTO_PROTECT), "mixed: no mprotect");
}

static void check_spin(void)
{
	const struct load spin = {.calls = {0, 100, 0},
				  .mutex = {0, 1.2},
				  .spin = {0, 1.5},
				  .noise = 0.1};

	begin();
	run(&spin, 2500);
	settle(&spin);
	check_int(LOCK_spin, auto_kind(AUTO_PROTECT), "spin is better still");
}

static void check_load_changes(void)
{
	const struct load first = {.calls = {100, 0, 0},
				   .mutex = {0.6},
				   .spin = {0.6},
				   .noise = 0.1};
	const struct load then = {.calls = {30, 0, 30},
				  .mutex = {1, 0, 2},
				  .spin = {1, 0, 2},
				  .noise = 0.1};

	begin();
	run(&first, 5000);
	settle(&first);
	check_int(LOCK_none, auto_kind(AUTO_ADVICE), "before the change");
	run(&then, 10000);
	settle(&then);
	check_true(auto_kind(AUTO_ADVICE) != LOCK_none, "a lock after it");
	run(&first, 10000);
	settle(&first);
	check_int(LOCK_none, auto_kind(AUTO_SPACE), "and back");
}

/* The same rate, and another lock is right: only glances can tell. */
static void check_silent_change(void)
{
	struct load load = {.calls = {100, 0, 0},
			    .mutex = {1.5},
			    .spin = {1.5},
			    .noise = 0.1};

	begin();
	run(&load, 2500);
	settle(&load);
	check_true(auto_kind(AUTO_SPACE) != LOCK_none, "helps at first");
	load.calls[0] = 150;
	load.mutex[0] = load.spin[0] = 0.9;
	run(&load, 40000);
	settle(&load);
	check_int(LOCK_none, auto_kind(AUTO_SPACE), "no longer");
}

static void check_few_calls(void)
{
	const struct load few = {
		.calls = {1, 1, 1}, .mutex = {3, 3, 3}, .noise = 0.1};

	begin();
	run(&few, 20000);
	check_u64(0, changes, "few calls: nothing is even tried");
}

/* No difference: how often is a lock chosen, in so many programs? */
static void check_false_alarms(void)
{
	const struct load same = {.calls = {60, 0, 0}, .noise = 1.0};
	int chosen = 0;

	for (int i = 0; i < 200; i++) {
		begin();
		run(&same, 2000);
		settle(&same);
		chosen += auto_kind(AUTO_SPACE) != LOCK_none;
	}
	check_between(0, 10, chosen, "of 200 noisy loads that got a lock");
}

/* A lock that helps by a quarter in all, and hurts in two windows of five. */
static void check_uneven(void)
{
	const struct load uneven = {.calls = {0, 0, 60},
				    .mutex = {0, 0, 1.2},
				    .spin = {0, 0, 1},
				    .noise = 0.2,
				    .swing = 1.35};
	int chosen = 0;

	for (int i = 0; i < 100; i++) {
		begin();
		run(&uneven, 11000);
		chosen += locked(AUTO_ADVICE) > 0.5;
	}
	check_between(60, 100, chosen, "of 100 that got a lock that swings");
}

/* A program that stands still in the middle of a search. */
static void check_pause(void)
{
	const struct load worse = {.calls = {50, 0, 0},
				   .mutex = {0.5},
				   .spin = {0.5},
				   .noise = 0.1};

	begin();
	for (int i = 0; i < 40; i++) {
		run(&worse, 100);
		now += 3000 * MS;
	}
	run(&worse, 3000);
	settle(&worse);
	check_int(LOCK_none, auto_kind(AUTO_SPACE), "pauses are not slowness");
}

/* Bursts that are shorter than a window, from the first search on. */
static void check_bursts(void)
{
	const struct load worse = {.calls = {50, 0, 0},
				   .mutex = {0.5},
				   .spin = {0.5},
				   .noise = 0.1};
	uint64_t locked_in_all = 0, all = 0;

	begin();
	run(&worse, 150);
	for (int i = 0; i < 100; i++) {
		run(&worse, 20);
		now += 980 * MS;
		locked_in_all += locked_ms[AUTO_SPACE];
		all += steps;
	}
	check_between(0, 0.05, (double)locked_in_all / (double)all,
		      "of short bursts that ran under a trial's lock");
	check_true(auto_decided(), "which is over");
}

/* Loads that change every second and want no lock: how often is one tried? */
static void check_restless(const struct load *a, const struct load *b,
			   const char *what)
{
	uint64_t locked_in_all = 0, all = 0;

	begin();
	run(a, 3000);
	for (int i = 0; i < 60; i++) {
		run(i % 2 ? a : b, 1000);
		if (i < 20)
			continue;
		locked_in_all += locked_ms[AUTO_SPACE];
		all += steps;
	}
	check_between(0, 0.02, (double)locked_in_all / (double)all, "%s", what);
}

static void check_all_restless(void)
{
	const struct load little = {.calls = {94.7, 5.3, 0},
				    .mutex = {0.5, 0.5},
				    .spin = {0.5, 0.5},
				    .noise = 0.1};
	const struct load less = {.calls = {95.3, 4.7, 0},
				  .mutex = {0.5, 0.5},
				  .spin = {0.5, 0.5},
				  .noise = 0.1};
	const struct load much = {.calls = {100, 0, 0},
				  .mutex = {0.5},
				  .spin = {0.5},
				  .noise = 0.1};
	const struct load half = {.calls = {40, 0, 0},
				  .mutex = {0.5},
				  .spin = {0.5},
				  .noise = 0.1};

	check_restless(&little, &less, "a group that hardly matters");
	check_restless(&much, &half, "a rate that goes up and down");
}

/* Its caller was torn away before auto_done(). */
static void check_torn_away(void)
{
	const struct load better = {.calls = {100, 0, 0},
				    .mutex = {1.5},
				    .spin = {1.5},
				    .noise = 0.1};

	begin();
	run(&better, 150);
	do {
		now += MS;
		auto_counts[0].calls[AUTO_SPACE] += 100;
	} while (!auto_look(now));
	run(&better, 1000);
	check_u64(0, changes, "nobody goes on at once");
	run(&better, 15000);
	settle(&better);
	check_true(auto_kind(AUTO_SPACE) != LOCK_none, "then another does");
}

int main(void)
{
	srand(1);
	check_no_gain();
	check_gain();
	check_groups();
	check_spin();
	check_load_changes();
	check_silent_change();
	check_few_calls();
	check_false_alarms();
	check_uneven();
	check_pause();
	check_bursts();
	check_all_restless();
	check_torn_away();
	return check_done();
}
