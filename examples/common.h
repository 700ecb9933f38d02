/* SPDX-License-Identifier: MIT */
/*
 * common: what every example needs: its options, threads that start
 * together, the time really elapsed, and what the run cost the process.
 *
 * With many threads hammering the kernel the main thread may not run for
 * seconds, so it measures nothing: the first worker past the start barrier
 * stamps the start, each worker stamps its own end.
 *
 * Nothing here calls mmap, munmap, mprotect or madvise; what libc maps by
 * itself (thread stacks) is not a call of the program.
 * An error is one line on stderr: exit 2 for a bad option, 1 for the rest.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMMON_LINE_BYTES 64

/* What a program says about itself; -t, -n, -d and -h are added to it. */
struct common_spec {
	const char *name;
	const char *about;   /* lines of the help text */
	const char *letters; /* its own options, as getopt(3) takes them */
	const char *usage;   /* the same for the usage line */
	const char *options; /* the same for the help text, whole lines */
	const char *example; /* arguments of one sensible call */
	void (*option)(int letter, const char *value); /* if it has any */
	unsigned int threads; /* defaults of -t and -n */
	uint64_t iterations;
	/* Takes -m, too: each call of the program's own stands between
	 * common_enter_call() and common_leave_call(). */
	bool mutex;
};

struct common_options {
	unsigned int threads;
	uint64_t iterations;  /* of each thread; 0: until the time is up */
	uint64_t duration_ns; /* 0: until the iterations are done */
};

struct common_worker {
	alignas(COMMON_LINE_BYTES) unsigned int index;
	bool started;
	uint64_t done; /* finished iterations */
	uint64_t end_ns;
};

/* From the first worker's start to the last one's end, all threads. */
struct common_usage {
	uint64_t ops;
	double elapsed_s;
	double user_s;
	double system_s;
	uint64_t faults;
	uint64_t voluntary; /* context switches */
	uint64_t involuntary;
	uint64_t beside; /* loops of the threads, where the ops are main's */
};

/* Parse the command line; -h and bad options end the program here. */
const struct common_options *common_start(const struct common_spec *spec,
					  int argc, char **argv);

/* The index of value in names, which NULL ends; anything else: exit 2. */
unsigned int common_choice(int letter, const char *value,
			   const char *const *names);

/* The value in decimal; what is none, or not within least and most: exit 2. */
uint64_t common_number(int letter, const char *value, uint64_t least,
		       uint64_t most);

/* Run work in every thread and wait for all.
 * pre: work sets up, loops while common_more() is true, and tidies up. */
void common_run(void (*work)(struct common_worker *worker),
		struct common_usage *usage);

/* The same with main_work in the main thread beside them.  -n and -d are those
 * of main_work, and so are the ops; work loops until main_work returns. */
void common_run_beside(void (*work)(struct common_worker *worker),
		       void (*main_work)(struct common_worker *worker),
		       struct common_usage *usage);

/* Count the iteration before this call and say whether another one is due.
 * The first call waits until all threads are ready and is always true, so
 * that a thread which gets no CPU before the time is up still does one. */
bool common_more(struct common_worker *worker);

/* The mutex in the source: with -m each, or after common_use_mutex(), one
 * futex mutex is held in between.  Otherwise nothing.  Both keep errno. */
void common_enter_call(void);
void common_leave_call(void);
void common_use_mutex(void);

/* "16 threads, 100 iterations each" or "16 threads, 2.5 seconds". */
const char *common_size(void);

void common_print_usage(const struct common_usage *usage);

/* Print the last line and flush; returns the status to exit with. */
int common_finish(uint64_t ops, double elapsed_s);

uint64_t common_now_ns(void);
size_t common_page_size(void);

/* Print one line and exit 1; of several failing threads the first speaks. */
_Noreturn void common_fail(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* Print one line and exit 2. */
_Noreturn void common_refuse(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

#endif
