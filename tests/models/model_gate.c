/* SPDX-License-Identifier: MIT */
/*
 * The gate under every schedule, without a log, around every kind of lock.
 * Sleeps time out, the clock leaps, threads leave by a jump or die, and a
 * handler forks at any moment.
 */
#include <stdio.h>
#include <string.h>

#include "gate_model.h"
#include "locks.h"

static const struct {
	const char *name;
	int calls;
	struct model model;
	bool long_with_tickets; /* left out for fifo, but for `all` */
} scenarios[] = {
	{"3 threads, 2 calls", 2, {.threads = 3}, true},
	{"3 threads", 1, {.threads = 3}, false},
	{"time-outs", 1, {.threads = 3, .timeouts = true, .leaps = 1}, true},
	{"time-outs, 2 calls",
	 2,
	 {.threads = 2, .timeouts = true, .leaps = 1},
	 false},
	{"time-outs, 3 calls",
	 3,
	 {.threads = 2, .timeouts = true, .leaps = 2},
	 true},
	{"signals, 2 calls", 2, {.threads = 2, .signals = true}, false},
	{"a thread jumps away",
	 2,
	 {.threads = 2, .jumps = 1, .leaps = 2},
	 true},
	{"one of 2 jumps away", 1, {.threads = 2, .jumps = 1}, false},
	{"one of 3 jumps away", 1, {.threads = 3, .jumps = 1}, true},
	{"one of 2 is killed",
	 2,
	 {.threads = 2, .kills = 1, .leaps = 1},
	 false},
	{"two are killed", 1, {.threads = 3, .kills = 2, .leaps = 1}, true},
	{"a handler forks", 2, {.threads = 2, .forks = 1, .leaps = 1}, false},
	{"forks, 3 threads", 1, {.threads = 3, .forks = 1}, true},
};

enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

static bool run(enum lock_id id, int scenario, enum gate_flaw flaw,
		const char **report, unsigned long *states)
{
	struct model model = scenarios[scenario].model;

	gate_model_fill(&model, id, scenarios[scenario].calls, flaw);
	return explore(&model, flaw != GATE_SOUND, report, states);
}

static int check_gate(enum lock_id id, bool all)
{
	unsigned long states;
	const char *report;
	int failed = 0;

	for (int i = 0; i < SCENARIOS; i++) {
		bool ok;

		if (id == LOCK_fifo && scenarios[i].long_with_tickets && !all)
			continue;
		ok = run(id, i, GATE_SOUND, &report, &states);
		printf("%s - gate, %s: %s: %lu states%s%s\n",
		       ok ? "ok" : "not ok", locks_kind(id)->name,
		       scenarios[i].name, states, ok ? "" : ": ",
		       ok ? "" : report);
		fflush(stdout);
		failed += !ok;
	}
	return failed;
}

/* The explorer must find what is wrong with a gate that is. */
static int check_flaw(const char *name, enum gate_flaw which, enum lock_id id,
		      const char *expected)
{
	const char *report = NULL;
	unsigned long states;
	bool found = false;

	for (int i = 0; i < SCENARIOS && !found; i++)
		found = !run(id, i, which, &report, &states) &&
			strcmp(report, expected) == 0;
	printf("%s - flawed gate, %s: ", found ? "ok" : "not ok", name);
	if (found)
		printf("reported: %s\n", report);
	else
		printf("expected \"%s\", got \"%s\"\n", expected,
		       report != NULL ? report : "nothing");
	return !found;
}

/* model_gate [all [LOCK]]: the long scenarios too; of one lock. */
int main(int argc, char **argv)
{
	bool all = argc > 1 && strcmp(argv[1], "all") == 0;
	int failed = 0;

	for (int id = 0; id < LOCK_COUNT; id++)
		if (id != LOCK_none &&
		    (argc < 3 ||
		     strcmp(locks_kind((enum lock_id)id)->name, argv[2]) == 0))
			failed += check_gate((enum lock_id)id, all);
	failed += check_flaw("mute", GATE_MUTE, LOCK_mutex,
			     "asleep on a lock that was given up");
	failed += check_flaw("forgetful", GATE_FORGETFUL, LOCK_mutex,
			     "everybody sleeps and nobody will wake them");
	return failed != 0;
}
