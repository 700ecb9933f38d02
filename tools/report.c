/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "die.h"
#include "report.h"

uint64_t report_calls(const struct log_process *p)
{
	uint64_t calls = 0;
	unsigned i;

	for (i = 0; i < OP_COUNT; i++)
		calls += p->op[i].count;
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

char *report_thread(const struct report *report, uint32_t pid, uint32_t tid)
{
	const char *name =
		report->rows ? rows_name(report->rows, pid, tid) : NULL;

	return name ? xasprintf("%u (%s)", tid, name) : xasprintf("%u", tid);
}
