/* SPDX-License-Identifier: MIT */
/*
 * measure: one run of a program, what it took and what it said.
 *
 * Its standard input is empty; what it writes goes through a pipe into memory,
 * out of the way of any disk or terminal.  Signals that ask us to end end the
 * run.
 *
 * A server is started, and when it is ready a load runs beside it: the time
 * that passed and the output are the load's, all else is the server's.  It must
 * not end before it is asked to, and then as in the first run of all, unless
 * that is of SIGTERM or with status 0.
 */
#ifndef MMGATE_MEASURE_H
#define MMGATE_MEASURE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture.h"
#include "group.h"
#include "launch.h"
#include "server.h"
#include "spenders.h"

/* What is the same for all runs of a command. */
struct measure {
	const char *path;
	char **argv;
	struct launch_signals held;
	int empty;        /* /dev/null */
	bool adopts;      /* what its runs start is found wherever it goes */
	double longest_s; /* a run that takes longer fails; 0: see below */
	const char *longest_hint; /* what sets that */
	double timeout_s; /* the same, by who uses us; 0: nothing was said */
	const struct server *server; /* NULL: the program ends by itself */
	struct spenders *spenders;   /* filled by a run; NULL: nobody looks */

	/* So far. */
	double slowest_s; /* of the runs that were good */
	bool server_ended;
	int server_status;  /* then, for the first time */
	double paused_s;    /* when we were stopped: nobody's time */
	size_t runs;        /* those that were stopped with us, too */
	size_t left_behind; /* of them, those that left processes behind, */
	char left_name[GROUP_NAME]; /* such as this one, which were killed */
	double unlogged_s; /* of a run with a log: see profile.h; 0: little */
	double unlogged_of_s;
	char unlogged_name[GROUP_NAME];
	size_t killed; /* those whose server did not end in time */
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
	/* stdout and stderr; of the load, where there is one */
	struct capture output[2];
	bool has_server;
	struct capture server_output[2];
	char failure[MEASURE_LINE]; /* "exit status 3", ...; "": none */
};

/* Holds signals back from here to measure_end().  What may be set is none. */
void measure_begin(struct measure *measure, const char *path, char **argv);
void measure_end(struct measure *measure);

/* What a run may take at most; 0: any time.  Where nothing was said it is
 * twenty times what the slowest has taken so far, and a minute at least. */
double measure_limit_s(const struct measure *measure);

/* Runs it.  `cpus` may be NULL: all that we may use. */
void measure_run(struct measure *measure, char **variables,
		 const cpu_set_t *cpus, struct measure_run *run);

/* What it wrote to stdout (0) or stderr (1), in memory of its own. */
char *measure_output(const struct measure_run *run, int which);

/* Shows the last lines of both, on stderr. */
void measure_show(const struct measure_run *run);

void measure_free(struct measure_run *run);

#endif
