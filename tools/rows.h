/* SPDX-License-Identifier: MIT */
/*
 * rows: what happened when, for the whole of a run.
 *
 * Histograms forget when, rings forget what is old.  So `run` looks at the
 * logs about once a second and keeps the difference as a row in ROWS_NAME, in
 * the directory of the logs.  When ROWS_MAX rows are full, each two become one:
 * the file stays below 1.5 MiB however long the run.
 *
 * A row is of all processes together.  A process that could not be looked at
 * in time counts in a later row, none counts twice.  Buckets are coarse: a
 * percentile is within 25 % of the true one.
 */
#ifndef MMGATE_ROWS_H
#define MMGATE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hist.h"
#include "record.h"

#define ROWS_NAME "run.rows"
#define ROWS_MAGIC UINT64_C(0x31776f7261676d6d) /* "mmgarow1" */

enum {
	ROWS_VERSION = 1,
	ROWS_MAX = 384,      /* even */
	ROWS_THREADS = 4096, /* whose names are kept */
	/* Below 128 ns is one bucket; above, each power of two is cut in two;
	 * the last one has no upper end. */
	ROWS_FLOOR_BITS = 7,
	ROWS_BUCKETS = 52,
	ROWS_HEADER_BYTES = 4096,
};

struct rows_op {
	uint64_t count;
	uint64_t errors;
	uint64_t wait_ns, kernel_ns;
	uint32_t wait[ROWS_BUCKETS], kernel[ROWS_BUCKETS];
};

struct rows_row {
	uint64_t from_ns; /* CLOCK_MONOTONIC */
	uint64_t span_ns;
	/* Of the threads that lived when they were looked at. */
	uint64_t voluntary_switches, involuntary_switches;
	uint64_t minor_faults, major_faults;
	uint64_t user_ns, system_ns;
	uint64_t queue_ns;       /* that threads which could run had no CPU */
	uint64_t tlb_shootdowns; /* of the machine */
	uint32_t processes, threads;
	struct rows_op op[OP_COUNT];
	uint64_t check; /* rows_check() of the rest */
};

struct rows_thread {
	uint32_t pid, tid;
	uint64_t voluntary_switches, involuntary_switches; /* in all */
	uint64_t queue_ns;
	char name[16]; /* may lack its end */
};

struct rows_header {
	uint64_t magic;
	uint32_t version;
	uint32_t row_bytes;
	uint32_t thread_bytes;
	uint32_t op_count;
	uint32_t bucket_count;
	uint32_t threads; /* at ROWS_HEADER_BYTES */
	uint32_t rows;    /* at ROWS_AT */
	uint32_t spare;
	uint64_t missed; /* logs that no row counts wholly */
	uint32_t cpus;   /* that the command might use */
	uint32_t spare1;
	char kernel[64]; /* its release, may lack its end */
};

#define ROWS_AT (ROWS_HEADER_BYTES + ROWS_THREADS * sizeof(struct rows_thread))

/* --- both sides --- */

unsigned rows_bucket(double ns);
/* The least value of a bucket; that of ROWS_BUCKETS is where the last one is
 * taken to end. */
double rows_bucket_floor(unsigned bucket);
uint64_t rows_check(const struct rows_row *row);
/* Makes one row of two that follow each other. */
void rows_join(struct rows_row *into, const struct rows_row *from);
/* Adds the whole of a histogram to the buckets. */
void rows_add_hist(uint32_t *buckets, const struct hist *h);

/* --- the reader --- */

struct rows {
	struct rows_row *row; /* by time, without overlap */
	size_t count;
	struct rows_thread *thread; /* names are clean, and have an end */
	size_t thread_count;
	uint64_t missed;
	uint32_t cpus;
	char kernel[65];
};

/* Reads those of a directory.  True when there are any; otherwise `why` says
 * in one line what is wrong with them, or "" when `run` has left none. */
bool rows_read(struct rows *rows, const char *directory, char why[256]);
/* Drops the rows that lie wholly outside [since, until) of CLOCK_MONOTONIC. */
void rows_cut(struct rows *rows, uint64_t since_ns, uint64_t until_ns);
void rows_drop(struct rows *rows);

/* Of all ops together. */
struct rows_op rows_sum(const struct rows_row *row);
/* As hist_percentile(), of the buckets. */
double rows_percentile(const uint32_t *buckets, double p);
/* The name of a thread, or NULL. */
const char *rows_name(const struct rows *rows, uint32_t pid, uint32_t tid);

#endif
