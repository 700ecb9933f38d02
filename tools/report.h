/* SPDX-License-Identifier: MIT */
/*
 * report: what one report is about, and its formats.
 *
 * A format is a function of (report, out); to add one, write it in a
 * report_*.c of its own and name it in the table of cmd_report.c.
 */
#ifndef MMGATE_REPORT_H
#define MMGATE_REPORT_H

#include <stdio.h>

#include "json.h"
#include "log.h"
#include "rows.h"
#include "sites.h"
#include "study.h"
#include "window.h"
#include "worst.h"

struct report {
	const struct log_dir *dir;
	/* The selected processes by start time, and their logs.  They belong to
	 * `dir`; in a window the processes are of their own. */
	const struct log_process **processes;
	size_t count;
	struct log **logs;
	struct images *images;
	enum sites_by by;           /* what the rows are */
	struct log_process **owned; /* those of a window */
	uint64_t origin_ns;         /* when the run began, CLOCK_MONOTONIC */
	struct window window;
	bool windowed;         /* the window is not all of the run */
	unsigned window_lacks; /* of any process, values of window_lack */
	/* NULL: not looked at. */
	const struct studies *studies;
	const struct rows *rows;
	const struct worst *worst;
};

uint64_t report_calls(const struct log_process *p);
/* Calls of the report's processes that found no room in their logs. */
uint64_t report_unrecorded(const struct report *report);
uint64_t report_bypassed(const struct log_op *op);
/* Time that the op's, the process's calls took: waiting and in the kernel. */
double report_op_cost(const struct log_op *op);
double report_cost(const struct log_process *p);

/* "call", "site", ... */
const char *report_by_name(enum sites_by by);
/* "1234 (worker)", or the number alone; to be freed. */
char *report_thread(const struct report *report, uint32_t pid, uint32_t tid);

/* Why not all calls are in the logs one by one, by the process that made most:
 * see gaps_why(); to be freed. */
char *report_gap(const struct report *report);
/* How a window is told by less than its calls, behind "by the events of that
 * time"; to be freed. */
char *report_window_gap(const struct report *report);

/* The run's verdict, or NULL. */
const struct study *report_verdict(const struct report *report);

/* Processes of the directory that got no log: without_log; null: it is not
 * known how many. */
void report_unlogged_json(const struct report *report, struct json *j);

void report_text(const struct report *report, FILE *out);
void report_json(const struct report *report, FILE *out);
/* pre: the report has studies. */
void report_html(const struct report *report, FILE *out);

#endif
