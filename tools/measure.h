/* SPDX-License-Identifier: MIT */
/*
 * measure: one run of a program, what it took and what it said.
 *
 * Its standard input is empty; what it writes is kept in memory, out of the
 * way of any disk or terminal.  Signals that ask us to end end the run.
 *
 * A server is started, and when it is ready a load runs beside it: the time
 * that passed and the output are the load's, all else is the server's.
 */
#ifndef MMGATE_MEASURE_H
#define MMGATE_MEASURE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "group.h"
#include "launch.h"
#include "server.h"

/* What is the same for all runs of a command. */
struct measure {
	const char *path;
	char **argv;
	struct launch_signals held;
	int empty;        /* /dev/null */
	double longest_s; /* a run that takes longer fails; 0: none does */
	const struct server *server; /* NULL: the program ends by itself */

	/* So far. */
	double paused_s;    /* when we were stopped: nobody's time */
	size_t runs;        /* those that were stopped with us, too */
	size_t left_behind; /* of them, those that left processes behind, */
	char left_name[GROUP_NAME]; /* such as this one, which were killed */
	size_t killed;              /* those whose server did not end in time */
};

enum { MEASURE_LINE = 512 };

struct measure_run {
	double wall_s, cpu_s;
	uint64_t voluntary, involuntary; /* context switches */
	uint64_t faults;
	uint64_t peak_rss_bytes;
	uint64_t tlb_shootdowns; /* of the whole machine meanwhile */
	int asked;   /* the signal that asked us to end, and ended it, or 0 */
	bool paused; /* we were stopped meanwhile: its times are none */
	bool too_long;
	int files[2];        /* stdout, stderr, the load's where there is one */
	int server_files[2]; /* the server's; -1: there is none */
	char failure[MEASURE_LINE]; /* "exit status 3", ...; "": none */
};

/* Holds signals back from here to measure_end().  What may be set is none. */
void measure_begin(struct measure *measure, const char *path, char **argv);
void measure_end(struct measure *measure);

/* Runs it.  `cpus` may be NULL: all that we may use. */
void measure_run(struct measure *measure, char **variables,
		 const cpu_set_t *cpus, struct measure_run *run);

/* What it wrote to stdout (0) or stderr (1), in memory of its own: a zero byte
 * in it becomes a line's end. */
char *measure_output(const struct measure_run *run, int which);

/* Shows the last lines of both, on stderr. */
void measure_show(const struct measure_run *run);

void measure_free(struct measure_run *run);

#endif
