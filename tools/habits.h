/* SPDX-License-Identifier: MIT */
/*
 * habits: what a program does with its mappings, as far as it shows what would
 * make it cheaper: mappings that come and go, pages given back and taken again,
 * many small calls in a row, small files, work of an allocator.
 *
 * Calls must come by their time.  Memory grows with the threads alone, up to a
 * bound: what has no room in a table is forgotten, so counts are at least so
 * many.  But the sums by thread, with other_threads, and by size have all
 * calls.
 */
#ifndef MMGATE_HABITS_H
#define MMGATE_HABITS_H

#include "kinds.h"
#include "log.h"

enum { HABITS_SPIKES = 256 };

/* Calls, and the time that they took: waiting and in the kernel. */
struct habits_sum {
	uint64_t count;
	double ns;
	double bytes;
};

/* Calls of a thread, or of a size. */
struct habits_group {
	uint64_t count, errors;
	double bytes; /* of those that succeeded */
	double wait_ns, kernel_ns;
	double max_ns; /* the longest wait + kernel of one */
};

struct habits_thread {
	uint32_t tid;
	struct habits_group sum;
};

/* A call that came in alone and was slow all the same, far beyond others of its
 * kind and size. */
struct habits_spike {
	uint64_t time_ns, ns;
	uint32_t tid;
	uint8_t op, kind, size;
};

struct habits {
	uint64_t calls;   /* seen */
	uint64_t weights; /* calls that these stand for */
	uint64_t first_ns, last_ns;
	struct habits_sum of_kind[KIND_COUNT];
	struct habits_sum of_layer[CALLER_LOADER + 1];
	struct habits_group of_size[SIZE_CLASSES];
	/* Memory that its thread maps and unmaps; that it has had before, of
	 * the same size; that another thread unmaps.  Each sums both calls. */
	struct habits_sum pairs, repeated, crossed;
	/* The same of threads' stacks, and of files that a copy would have
	 * served as well. */
	struct habits_sum stacks, small_files;
	/* Memory that libc maps and unmaps for malloc. */
	struct habits_sum malloc_pairs;
	/* Pages given back, and those of them that had been taken again. */
	struct habits_sum zaps, zaps_again;
	/* Mappings that lie side by side with another thread's. */
	struct habits_sum neighbours;
	/* Calls that follow the same thread's like call at once. */
	struct habits_sum bursts;
	struct {
		uint64_t count, ns, begin_ns;
		double bytes;
		uint64_t caller;
		uint8_t op;
		uint32_t tid;
	} burst; /* the longest */
	/* Unmaps of HABITS_HUGE and more, and the long ones among them. */
	struct habits_sum large, huge;
	/* The slowest that have no reason in sight, by time, once ended. */
	struct habits_spike spike[HABITS_SPIKES];
	size_t spikes;
	struct habits_sum slow;       /* all of them */
	struct habits_thread *thread; /* as they come */
	size_t threads;
	struct habits_group other_threads; /* no room for them (tids.h) */
	struct habits_state *state;
};

#define HABITS_HUGE (UINT64_C(64) << 20)

struct habits *habits_new(void);
/* `others`: how many threads were inside when it came; -1: not known. */
void habits_add(struct habits *h, const struct log_event *e, int others);
void habits_end(struct habits *h);
void habits_free(struct habits *h);

/* The time between spikes, if they come at equal intervals; else 0. */
double habits_period_ns(const struct habits *h, size_t *count);

#endif
