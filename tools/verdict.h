/* SPDX-License-Identifier: MIT */
/*
 * verdict: what is said about a process, and the facts that it is said by.
 *
 * Times are thread time: a second that two threads wait is two.
 */
#ifndef MMGATE_VERDICT_H
#define MMGATE_VERDICT_H

#include "digest.h"
#include "log.h"

enum verdict_answer {
	VERDICT_YES,
	VERDICT_INDIRECT, /* threads queue for it, but behind something rare */
	VERDICT_PARTLY,
	VERDICT_NO,
	VERDICT_UNKNOWN,
};

/* What takes the time, the lock among others. */
enum verdict_cause {
	CAUSE_LOCK,     /* waiting in the kernel for other threads' calls */
	CAUSE_GATE,     /* waiting at mmgate's own lock */
	CAUSE_ALONE,    /* one thread: nobody to wait for */
	CAUSE_ABOVE,    /* the calls take next to nothing */
	CAUSE_HUGE,     /* unmaps of very much memory */
	CAUSE_POPULATE, /* pages filled inside the call */
	CAUSE_THP,      /* advice about huge pages: compaction */
	CAUSE_SHOOTDOWN,
	CAUSE_READER, /* somebody outside reads /proc/PID/smaps */
	CAUSE_FAULTS, /* page faults, outside of all calls */
	CAUSE_CPUS,   /* more threads that could run than CPUs */
	CAUSE_STALLS, /* held up, with no call in sight */
	CAUSE_WORK,   /* what the calls do */
	CAUSE_COUNT
};

enum verdict_remedy {
	REMEDY_REUSE,  /* keep mappings */
	REMEDY_MALLOC, /* let malloc keep them */
	REMEDY_DECAY,  /* give back later */
	REMEDY_STACKS, /* keep threads */
	REMEDY_BATCH,  /* one call for many */
	REMEDY_READ,   /* read() small files */
	REMEDY_SPLIT,  /* large unmaps in parts, elsewhere */
	REMEDY_POPULATE,
	REMEDY_THP,
	REMEDY_READER,
	REMEDY_PREFAULT,
	REMEDY_KERNEL,  /* a newer one */
	REMEDY_CPUS,    /* fewer CPUs */
	REMEDY_LOCK,    /* a lock at the gate */
	REMEDY_NO_LOCK, /* none */
	REMEDY_PLACE,   /* place=thread */
	REMEDY_ABOVE,   /* look above the calls */
	REMEDY_NOTHING,
	REMEDY_COUNT
};

struct verdict_item {
	int id; /* a cause, or a remedy */
	/* Of the threads' time: what it takes; what the remedy saves, at most
	 * (0: no telling). */
	double ns;
	char *text; /* a sentence, with its evidence */
};

struct verdict {
	enum verdict_answer answer;
	struct crowd_range lost; /* thread time lost by the lock */
	double thread_ns;
	char *headline; /* the answer in a sentence */
	struct verdict_item cause[CAUSE_COUNT], remedy[REMEDY_COUNT];
	size_t causes, remedies; /* worst first, best first */
};

struct verdict_facts {
	const struct log_process *process;
	const struct digest *digest;   /* NULL: there are no events */
	const struct record_dir *info; /* NULL: not known, or of others too */
	unsigned cpus;                 /* that it might use; 0: not known */
	const char *kernel;            /* its release; NULL: not known */
	bool windowed; /* it is of a part of the run, as events tell it */
	/* Time that its threads could have run and had no CPU; 0: not known */
	double queue_ns;
	/* Names who made such calls, in memory of its own. */
	char *(*name)(void *context, const struct crowd_caller *caller);
	void *context;
};

/* For qsort(): the largest time first. */
int verdict_by_ns(const void *a, const void *b);
void verdict_drop(struct verdict *v);

/* "yes", "lock", "reuse": for programs. */
const char *verdict_answer_name(enum verdict_answer answer);
const char *verdict_cause_name(int cause);
const char *verdict_remedy_name(int remedy);

#endif
