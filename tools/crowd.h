/* SPDX-License-Identifier: MIT */
/*
 * crowd: what calls cost that found other threads' calls in the kernel, and
 * what those cost that found none; and who was in the way.
 *
 * A call's own length says nothing here: only who was inside when it came in.
 * So a call that was slow for a reason of its own makes later ones crowded, but
 * not itself, and the difference of the two means is what the others cost.
 * Calls that the kernel runs side by side are not in each other's way.
 *
 * All calls of the process must be given, by their time; sampled ones
 * (events=every:N) show no overlap.  Memory grows with the calls that go on at
 * the same time, up to a limit.
 */
#ifndef MMGATE_CROWD_H
#define MMGATE_CROWD_H

#include "kinds.h"
#include "log.h"
#include "rows.h"

#define CROWD_HUGE (UINT64_C(64) << 20)

enum { CROWD_CALLERS = 64 }; /* the last one stands for all others */

struct crowd_sum {
	uint64_t count;
	double sum_ns, squares;
	uint32_t bucket[ROWS_BUCKETS];
};

struct crowd_class {
	struct crowd_sum alone, crowded;
	double least_ns; /* the cheapest call */
	/* Of all calls: others inside, their squares, and times ns. */
	double others, others_squares, others_ns;
};

/* A place in the program that makes one kind of call. */
struct crowd_caller {
	char *name; /* by crowd_join(), or NULL */
	uint8_t op, layer;
	uint64_t address;
	uint64_t first_ns; /* when it was seen first */
	double inside_ns;  /* time in the kernel */
	/* Time that other threads' calls took longer while this was the first
	 * of those inside, by what such calls cost alone so far. */
	double blocked_ns;
	uint64_t blocked_calls;
};

struct crowd {
	struct crowd_class of[KIND_COUNT][SIZE_CLASSES];
	struct crowd_sum maps; /* of memory, at an address of the kernel's */
	struct crowd_caller caller[CROWD_CALLERS];
	unsigned callers;
	/* held[w][h]: time that calls of caller w waited at the gate while h
	 * held its lock. */
	double (*held)[CROWD_CALLERS];
	/* blocked_ns by kind; the last are unmaps of CROWD_HUGE and more */
	double blocked_by[KIND_COUNT + 1];
	uint64_t calls;
	uint64_t most_inside;
	uint64_t from_ns, to_ns; /* first entry, last end */
	struct crowd_state *state;
};

/* `domain`: for each op the number of the lock that it takes at the gate, below
 * OP_COUNT. */
struct crowd *crowd_new(const unsigned char domain[OP_COUNT]);
/* The number of others inside is in *others when the call entered the kernel at
 * once; of one that waited at the gate it is known later, then -1. */
void crowd_add(struct crowd *c, const struct log_event *e, int *others);
/* Behind the last event. */
void crowd_end(struct crowd *c);
/* Gives all callers their names, in memory of their own, and makes one of those
 * that nobody can tell apart: a function may have many calls of one kind.
 * pre: crowd_end() */
void crowd_join(struct crowd *c,
		char *(*name)(void *context, const struct crowd_caller *caller),
		void *context);
void crowd_free(struct crowd *c);

/* An estimate and where the truth lies with some certainty. */
struct crowd_range {
	double low, likely, high;
};

/* Time that calls of `kind` (KIND_COUNT: all) spent waiting in the kernel for
 * other calls.  `high` also counts what made calls slow for other reasons. */
struct crowd_range crowd_waits(const struct crowd *c, enum kind kind);
/* Did crowded calls take longer than the others by more than one standard
 * deviation?  True too where hardly any others are there to compare. */
bool crowd_waits_show(const struct crowd *c);
/* How much longer they took without the longest twentieth of both: one call
 * that was held up tips a mean. */
double crowd_usual_waits_ns(const struct crowd *c);
/*
 * Time that maps of memory slept, and how many did: they are the same little
 * work each time, so what takes much longer than the cheapest has waited for
 * the lock, whoever held it (a page fault, fork()), or for a CPU.
 */
double crowd_sleeps_ns(const struct crowd *c, double *count);
/* Time that calls took beyond the median of those that came in alone, and that
 * no other call explains: they were held up by something that is no call. */
double crowd_stalls_ns(const struct crowd *c);
/* What calls of one kind would have cost at the price of those that came in
 * alone. */
double crowd_work_ns(const struct crowd *c, enum kind kind);

#endif
