/* SPDX-License-Identifier: MIT */
/*
 * measure: one run of a program, what it took and what it said.
 *
 * Its standard input is empty; what it writes is kept in memory, out of the
 * way of any disk or terminal.  Signals that ask us to end end the run.
 */
#ifndef MMGATE_MEASURE_H
#define MMGATE_MEASURE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "launch.h"

/* What is the same for all runs of a command. */
struct measure {
	const char *path;
	char **argv;
	struct launch_signals held;
	int empty; /* /dev/null */
};

enum { MEASURE_LINE = 512 };

struct measure_run {
	double wall_s, cpu_s;
	uint64_t voluntary, involuntary; /* context switches */
	uint64_t faults;
	uint64_t peak_rss_bytes;
	int asked;    /* the signal that asked us to end, and ended it, or 0 */
	bool paused;  /* we were stopped meanwhile: its times are none */
	int files[2]; /* its stdout, stderr */
	char failure[MEASURE_LINE]; /* "exit status 3", ...; "": none */
};

/* Holds signals back from here to measure_end(). */
void measure_begin(struct measure *measure, const char *path, char **argv);
void measure_end(struct measure *measure);

/* Runs it.  `cpus` may be NULL: all that we may use. */
void measure_run(const struct measure *measure, char **variables,
		 const cpu_set_t *cpus, struct measure_run *run);

/* What it wrote to stdout (0) or stderr (1), in memory of its own: a zero byte
 * in it becomes a line's end. */
char *measure_output(const struct measure_run *run, int which);

/* Shows the last lines of both, on stderr. */
void measure_show(const struct measure_run *run);

void measure_free(struct measure_run *run);

#endif
