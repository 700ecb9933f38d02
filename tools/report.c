/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include "die.h"
#include "gaps.h"
#include "report.h"

uint64_t report_calls(const struct log_process *p)
{
	uint64_t calls = 0;
	unsigned i;

	for (i = 0; i < OP_COUNT; i++)
		calls += p->op[i].count;
	return calls;
}

uint64_t report_unrecorded(const struct report *report)
{
	uint64_t calls = 0;
	size_t i;

	for (i = 0; i < report->count; i++)
		calls += report->processes[i]->unrecorded;
	return calls;
}

uint64_t report_bypassed(const struct log_op *op)
{
	uint64_t bypassed = 0;
	unsigned i;

	for (i = 0; i < BYPASS_COUNT; i++)
		bypassed += op->bypassed[i];
	return bypassed;
}

double report_op_cost(const struct log_op *op)
{
	return op->wait.sum_ns + op->kernel.sum_ns;
}

double report_cost(const struct log_process *p)
{
	double cost = 0;
	unsigned i;

	for (i = 0; i < OP_COUNT; i++)
		cost += report_op_cost(&p->op[i]);
	return cost;
}

const char *report_by_name(enum sites_by by)
{
	static const char *const names[BY_COUNT] = {
		[BY_CALL] = "call",       [BY_SITE] = "site",
		[BY_THREAD] = "thread",   [BY_SIZE] = "size",
		[BY_LIBRARY] = "library",
	};

	return names[by];
}

const struct study *report_verdict(const struct report *report)
{
	return report->studies ? studies_worst(report->studies) : NULL;
}

/* The one that made most calls. */
static const struct log_process *busiest(const struct report *report)
{
	const struct log_process *p, *most = NULL;
	uint64_t calls = 0, written;
	size_t i;

	for (i = 0; i < report->count; i++) {
		p = report->processes[i];
		written = p->events_kept + p->events_overwritten +
			  p->events_lost + p->events_without;
		if (written > calls) {
			most = p;
			calls = written;
		}
	}
	return most;
}

char *report_gap(const struct report *report)
{
	const struct log_process *p = busiest(report);
	char *why = p ? gaps_why(p) : NULL, *gap;

	if (!why)
		return NULL;
	gap = report->count == 1
		      ? xstrdup(why)
		      : xasprintf("of %s (%u): %s", p->image, p->pid, why);
	free(why);
	return gap;
}

static const char *more_room(const struct report *report)
{
	size_t i = 0;

	while (i + 1 < report->count &&
	       report->processes[i]->events_overwritten == 0)
		i++;
	return gaps_more_room(report->processes[i]);
}

char *report_window_gap(const struct report *report)
{
	const struct log_process *p = busiest(report);
	unsigned lacks = report->window_lacks;
	char *never = p ? gaps_never(p) : NULL, *overwritten, *gap;

	overwritten = lacks & WINDOW_OVERWRITTEN
			      ? xasprintf(", some of which were overwritten "
					  "(%s keeps more)",
					  more_room(report))
			      : xstrdup("");
	if (lacks & WINDOW_SLOW)
		gap = xasprintf("%s, which are of the slow calls alone",
				overwritten);
	else
		gap = xasprintf("%s%s%s", overwritten,
				never ? "; not all calls have one: " : "",
				never ? never : "");
	free(overwritten);
	free(never);
	return gap;
}

void report_unlogged_json(const struct report *report, struct json *j)
{
	const struct log_dir *dir = report->dir;

	if (!dir->has_info) {
		json_null(j, "without_log");
		json_null(j, "without_log_why");
		return;
	}
	json_u64(j, "without_log", dir->info.unlogged);
	if (dir->info.unlogged > 0)
		json_string(j, "without_log_why", dir->info.unlogged_why);
	else
		json_null(j, "without_log_why");
}

char *report_thread(const struct report *report, uint32_t pid, uint32_t tid)
{
	const char *name =
		report->rows ? rows_name(report->rows, pid, tid) : NULL;

	return name ? xasprintf("%u (%s)", tid, name) : xasprintf("%u", tid);
}
