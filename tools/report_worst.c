/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "die.h"
#include "report_sites.h"
#include "report_worst.h"
#include "study.h"
#include "units.h"

/* Of a stack, and of the others at the same time. */
enum { FRAMES = 16, OTHERS = 4 };

/* --- text --- */

static double since(const struct report *report, uint64_t time_ns)
{
	return (double)time_ns - (double)report->origin_ns;
}

/* "munmap of 4.00 MiB" */
static void put_call(const struct log_event *e, FILE *out)
{
	fputs(op_name(e->raw.op), out);
	if (e->raw.length > 0)
		fprintf(out, " of %s", units_bytes((double)e->raw.length));
	if (e->raw.result < 0 && e->raw.result >= -4095)
		fprintf(out, " (failed, error %d)", (int)-e->raw.result);
}

static void put_times(const struct log_event *e, FILE *out)
{
	if (e->wait_ns > 0)
		fprintf(out, "waited %s, ", units_time((double)e->wait_ns));
	fprintf(out, "%s in the kernel", units_time((double)e->kernel_ns));
}

static void put_stack(const struct worst_call *call, struct sites *sites,
		      FILE *out)
{
	const struct log_event *e = &call->event;
	const struct sites_stack *stack =
		e->raw.stack ? sites_stack_of(sites, e) : NULL;
	size_t i;
	char *name;

	if (!stack) {
		name = study_name(sites, e->raw.op, e->raw.caller, e->time_ns);
		fprintf(out, "       from %s\n", name);
		free(name);
		return;
	}
	for (i = 0; i < stack->count && i < FRAMES; i++)
		fprintf(out, "       %s %s\n", i ? "called by" : "from",
			stack->frames[i]->name);
	if (stack->count > FRAMES || stack->cut)
		fputs("       ...\n", out);
}

/* When it came, seen from the call that it is listed with. */
static void put_moment(const struct worst_call *call, const struct log_event *e,
		       FILE *out)
{
	double by = (double)e->time_ns - (double)call->event.time_ns;

	fprintf(out, "%s %s", units_time(by < 0 ? -by : by),
		by < 0 ? "before" : "after");
}

static void put_others(const struct report *report,
		       const struct worst_call *call, const char *what,
		       const struct worst_others *others, FILE *out)
{
	const struct worst_other *other;
	char *thread;
	size_t i;

	if (others->count == 0)
		return;
	fprintf(out, "     %s: %s call%s, %s at the same time\n", what,
		units_count(others->count), others->count == 1 ? "" : "s",
		units_time(others->overlap_ns));
	for (i = 0; i < others->kept && i < OTHERS; i++) {
		other = &others->list[i];
		thread = report_thread(report, call->process->pid,
				       other->event.raw.tid);
		fprintf(out, "       thread %s: ", thread);
		put_call(&other->event, out);
		fputs(", came ", out);
		put_moment(call, &other->event, out);
		fputs(", ", out);
		put_times(&other->event, out);
		fputc('\n', out);
		free(thread);
	}
}

static void put_none(const struct report *report, FILE *out)
{
	char *why = report_gap(report);

	fprintf(out,
		"No single calls are in the logs, so none is the "
		"worst%s%s.\n\n",
		why ? ": " : "", why ? why : "");
	free(why);
}

static void put_worst(const struct report *report, size_t number,
		      const struct worst_call *call, struct sites *sites,
		      FILE *out)
{
	const struct log_event *e = &call->event;
	char *thread = report_thread(report, call->process->pid, e->raw.tid);

	fprintf(out, "  %zu. %s after the start: ", number,
		units_time(since(report, e->time_ns)));
	put_call(e, out);
	fputs(": ", out);
	put_times(e, out);
	fprintf(out, "; thread %s of %s\n", thread, call->process->image);
	put_stack(call, sites, out);
	put_others(report, call, "in the kernel before it", &call->before, out);
	put_others(report, call, "behind it meanwhile", &call->after, out);
	if (call->before.count + call->after.count == 0)
		fputs("     no other thread's call was there meanwhile\n", out);
	free(thread);
}

/* The sites of the process at hand: it is mostly that of the call before. */
struct at_hand {
	const struct report *report;
	const struct log_process *process;
	struct sites *sites;
};

static struct sites *take_sites(struct at_hand *h,
				const struct log_process *process)
{
	if (h->process == process)
		return h->sites;
	if (h->sites)
		report_sites_put(h->report, h->sites);
	h->sites = process ? report_sites_get(h->report, process) : NULL;
	h->process = process;
	return h->sites;
}

void report_worst_text(const struct report *report, FILE *out)
{
	struct at_hand hand = {.report = report};
	const struct worst_call *call;
	size_t i;

	if (!report->worst)
		return;
	if (report->worst->count == 0) {
		put_none(report, out);
		return;
	}
	fputs("The calls that took longest, of those that are in the logs one "
	      "by one:\n",
	      out);
	for (i = 0; i < report->worst->count; i++) {
		call = &report->worst->call[i];
		put_worst(report, i + 1, call, take_sites(&hand, call->process),
			  out);
	}
	take_sites(&hand, NULL);
	fputc('\n', out);
}

/* --- json --- */

static void put_event(struct json *j, const struct report *report, uint32_t pid,
		      const struct log_event *e)
{
	const char *name =
		report->rows ? rows_name(report->rows, pid, e->raw.tid) : NULL;

	json_u64(j, "tid", e->raw.tid);
	if (name)
		json_string(j, "thread", name);
	else
		json_null(j, "thread");
	json_string(j, "op", op_name(e->raw.op));
	json_u64(j, "time_ns", e->time_ns);
	json_hex(j, "addr", e->raw.addr);
	json_u64(j, "length", e->raw.length);
	json_i64(j, "error",
		 e->raw.result < 0 && e->raw.result >= -4095 ? -e->raw.result
							     : 0);
	json_u64(j, "wait_ns", e->wait_ns);
	json_u64(j, "kernel_ns", e->kernel_ns);
}

static void put_json_stack(struct json *j, const struct worst_call *call,
			   struct sites *sites)
{
	const struct log_event *e = &call->event;
	const struct sites_stack *stack =
		e->raw.stack ? sites_stack_of(sites, e) : NULL;
	char *name =
		stack ? study_site(&sites->list[stack->site])
		      : study_name(sites, e->raw.op, e->raw.caller, e->time_ns);
	size_t i;

	json_string(j, "site", name);
	free(name);
	json_open(j, "stack", '[');
	for (i = 0; stack && i < stack->count; i++)
		json_string(j, NULL, stack->frames[i]->name);
	json_close(j);
}

static void put_json_others(struct json *j, const struct report *report,
			    const char *key, const struct worst_call *call,
			    const struct worst_others *others)
{
	size_t i;

	json_open(j, key, '{');
	json_u64(j, "count", others->count);
	json_round(j, "overlap_ns", others->overlap_ns);
	json_open(j, "calls", '[');
	for (i = 0; i < others->kept; i++) {
		json_open(j, NULL, '{');
		put_event(j, report, call->process->pid,
			  &others->list[i].event);
		json_u64(j, "overlap_ns", others->list[i].overlap_ns);
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

void report_worst_json(const struct report *report, struct json *j)
{
	struct at_hand hand = {.report = report};
	const struct worst_call *call;
	size_t i;

	if (!report->worst)
		return;
	json_open(j, "worst", '[');
	for (i = 0; i < report->worst->count; i++) {
		call = &report->worst->call[i];
		json_open(j, NULL, '{');
		json_u64(j, "pid", call->process->pid);
		put_event(j, report, call->process->pid, &call->event);
		put_json_stack(j, call, take_sites(&hand, call->process));
		put_json_others(j, report, "before", call, &call->before);
		put_json_others(j, report, "after", call, &call->after);
		json_close(j);
	}
	take_sites(&hand, NULL);
	json_close(j);
}
