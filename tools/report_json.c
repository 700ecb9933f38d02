/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "gaps.h"
#include "json.h"
#include "knobs.h"
#include "report_blame.h"
#include "report_sites.h"
#include "report_worst.h"

enum { VERSION = 1 };

static const struct {
	const char *name;
	double share;
} percentiles[] = {
	{"p50", 0.5},
	{"p90", 0.9},
	{"p99", 0.99},
	{"p999", 0.999},
};

/* Keys are always there. */
static void put_text(struct json *j, const char *key, const char *text)
{
	if (text)
		json_string(j, key, text);
	else
		json_null(j, key);
}

static void put_hist(struct json *j, const char *key, const struct hist *h)
{
	size_t i;

	json_open(j, key, '{');
	json_u64(j, "count", h->count);
	json_round(j, "sum", h->sum_ns);
	for (i = 0; i < sizeof(percentiles) / sizeof(*percentiles); i++)
		json_round(j, percentiles[i].name,
			   hist_percentile(h, percentiles[i].share));
	json_round(j, "max", h->max_ns);
	json_close(j);
}

static void put_bypassed(struct json *j, const struct log_op *op)
{
	unsigned i;

	json_u64(j, "bypassed", report_bypassed(op));
	json_open(j, "bypassed_by", '{');
	for (i = 0; i < BYPASS_COUNT; i++)
		json_u64(j, log_bypass_name(i), op->bypassed[i]);
	json_close(j);
}

static void put_op(struct json *j, const char *name, const struct log_op *op)
{
	json_open(j, name, '{');
	json_u64(j, "count", op->count);
	json_u64(j, "errors", op->errors);
	json_u64(j, "bytes", op->bytes);
	json_u64(j, "gated", op->gated);
	put_bypassed(j, op);
	put_hist(j, "wait_ns", &op->wait);
	put_hist(j, "kernel_ns", &op->kernel);
	json_close(j);
}

static void put_calls(struct json *j, const struct log_process *p)
{
	unsigned i;

	json_open(j, "calls", '{');
	for (i = 0; i < OP_COUNT; i++)
		if (p->op[i].count > 0)
			put_op(j, op_name(i), &p->op[i]);
	json_close(j);
}

static void put_settings(struct json *j, const struct log_process *p)
{
	static const char *const names[] = {
		"lock",   "calls",    "hooks",     "place",
		"long",   "delay",    "max_wait",  "events",
		"stacks", "log_size", "log_total",
	};
	char value[2049];
	size_t i;

	json_open(j, "settings", '{');
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		log_setting(p->settings, names[i], value, sizeof(value));
		json_string(j, names[i], value);
	}
	json_close(j);
}

static void put_symbols(struct json *j, const char *outcome)
{
	bool on = !strcmp(outcome, "on");

	json_bool(j, "symbols", on);
	if (!on)
		json_string(j, "symbols_reason", outcome);
}

/* `line` is "layer=outcome": symbols are there or not, the others say how. */
static void put_hook(struct json *j, char *line)
{
	char *outcome = strchr(line, '=');

	if (!outcome)
		return;
	*outcome++ = '\0';
	if (!strcmp(line, "symbols"))
		put_symbols(j, outcome);
	else
		json_string(j, line, outcome);
}

static void put_hooks(struct json *j, const struct log_process *p)
{
	char hooks[sizeof(p->hooks)], *line, *rest = hooks;

	memcpy(hooks, p->hooks, sizeof(hooks));
	json_open(j, "hooks", '{');
	while ((line = strsep(&rest, "\n")))
		put_hook(j, line);
	json_close(j);
}

/* For each op the layers that it is caught in. */
static void put_coverage(struct json *j, const struct log_process *p)
{
	char layers[128];

	json_open(j, "coverage", '{');
	for (unsigned op = 0; op < OP_COUNT; op++) {
		log_setting(p->coverage, op_name(op), layers, sizeof(layers));
		json_string(j, op_name(op), layers);
	}
	json_close(j);
}

static void put_events(struct json *j, const struct log_process *p)
{
	char *why = gaps_why(p);

	json_open(j, "events", '{');
	json_u64(j, "kept", p->events_kept);
	json_u64(j, "overwritten", p->events_overwritten);
	json_u64(j, "lost", p->events_lost);
	json_u64(j, "without", p->events_without);
	put_text(j, "why", why);
	json_close(j);
	free(why);
}

static void put_items(struct json *j, const char *key, const char *name,
		      const char *(*name_of)(int),
		      const struct verdict_item *items, size_t count)
{
	size_t i;

	json_open(j, key, '[');
	for (i = 0; i < count; i++) {
		json_open(j, NULL, '{');
		json_string(j, name, name_of(items[i].id));
		json_round(j, "ns", items[i].ns);
		json_string(j, "text", items[i].text);
		json_close(j);
	}
	json_close(j);
}

/* NULL: there is none. */
static void put_verdict(struct json *j, const struct study *s)
{
	const struct verdict *v;

	if (!s) {
		json_null(j, "verdict");
		return;
	}
	v = &s->verdict;
	json_open(j, "verdict", '{');
	json_u64(j, "pid", s->process->pid);
	json_string(j, "answer", verdict_answer_name(v->answer));
	json_string(j, "headline", v->headline);
	json_open(j, "lost_ns", '{');
	json_round(j, "low", v->lost.low);
	json_round(j, "likely", v->lost.likely);
	json_round(j, "high", v->lost.high);
	json_close(j);
	put_items(j, "causes", "cause", verdict_cause_name, v->cause,
		  v->causes);
	put_items(j, "remedies", "remedy", verdict_remedy_name, v->remedy,
		  v->remedies);
	json_close(j);
}

static void put_locks(struct json *j, const struct log_process *p)
{
	json_open(j, "lock_now", '{');
	for (unsigned op = 0; op < OP_COUNT; op++) {
		const char *name = knobs_lock_name(p->lock_now[op]);

		json_string(j, op_name(op), name ? name : "unknown");
	}
	json_close(j);
	json_u64(j, "lock_changes", p->lock_changes);
}

static void put_process(struct json *j, const struct report *report,
			const struct log_process *p)
{
	const struct study *study =
		report->studies ? studies_find(report->studies, p) : NULL;

	json_open(j, NULL, '{');
	json_u64(j, "pid", p->pid);
	json_u64(j, "ppid", p->ppid);
	json_u64(j, "epoch", p->epoch);
	json_string(j, "image", p->image);
	json_string(j, "comm", p->comm);
	json_string(j, "exe", p->exe);
	json_u64(j, "started", p->started_unix_ns);
	json_u64(j, "duration_ns", p->duration_ns);
	json_bool(j, "exited", p->exited);
	json_u64(j, "threads", p->threads);
	json_u64(j, "thread_ns", p->thread_ns);
	json_u64(j, "gate_opened", p->opened);
	json_string(j, "limits", p->limits);
	json_u64(j, "unrecorded", p->unrecorded);
	json_u64(j, "second_libc", p->second_libc);
	put_verdict(j, study);
	report_blame_json(study, j);
	put_settings(j, p);
	put_locks(j, p);
	put_hooks(j, p);
	put_coverage(j, p);
	put_calls(j, p);
	put_hist(j, "wake_ns", &p->wake);
	put_events(j, p);
	report_sites_json(report, p, j);
	json_close(j);
}

/* --- the run --- */

/* NULL: it is not known, or not over. */
static void put_run(struct json *j, const struct record_dir *info)
{
	if (!info) {
		json_null(j, "run");
		return;
	}
	json_open(j, "run", '{');
	json_string(j, "command", info->command);
	json_i64(j, "status", info->status);
	json_u64(j, "started", info->started);
	json_u64(j, "wall_ns", info->wall_ns);
	json_u64(j, "user_ns", info->user_ns);
	json_u64(j, "system_ns", info->system_ns);
	json_u64(j, "voluntary_switches", info->voluntary_switches);
	json_u64(j, "involuntary_switches", info->involuntary_switches);
	json_u64(j, "minor_faults", info->minor_faults);
	json_u64(j, "major_faults", info->major_faults);
	json_u64(j, "peak_rss_bytes", info->peak_rss_bytes);
	json_u64(j, "tlb_shootdowns", info->tlb_shootdowns);
	json_close(j);
}

static void put_buckets(struct json *j, const char *key,
			const uint32_t *buckets)
{
	size_t i;

	json_open(j, key, '{');
	for (i = 0; i < sizeof(percentiles) / sizeof(*percentiles); i++)
		json_round(j, percentiles[i].name,
			   rows_percentile(buckets, percentiles[i].share));
	json_close(j);
}

static void put_row_op(struct json *j, const char *name,
		       const struct rows_op *op)
{
	json_open(j, name, '{');
	json_u64(j, "count", op->count);
	json_u64(j, "errors", op->errors);
	json_u64(j, "wait_ns", op->wait_ns);
	json_u64(j, "kernel_ns", op->kernel_ns);
	put_buckets(j, "wait_about", op->wait);
	put_buckets(j, "kernel_about", op->kernel);
	json_close(j);
}

static void put_row(struct json *j, const struct rows_row *row)
{
	unsigned i;

	json_open(j, NULL, '{');
	json_u64(j, "time_ns", row->from_ns);
	json_u64(j, "span_ns", row->span_ns);
	json_u64(j, "processes", row->processes);
	json_u64(j, "threads", row->threads);
	json_u64(j, "voluntary_switches", row->voluntary_switches);
	json_u64(j, "involuntary_switches", row->involuntary_switches);
	json_u64(j, "minor_faults", row->minor_faults);
	json_u64(j, "major_faults", row->major_faults);
	json_u64(j, "user_ns", row->user_ns);
	json_u64(j, "system_ns", row->system_ns);
	json_u64(j, "queue_ns", row->queue_ns);
	json_u64(j, "tlb_shootdowns", row->tlb_shootdowns);
	json_open(j, "calls", '{');
	for (i = 0; i < OP_COUNT; i++)
		if (row->op[i].count > 0)
			put_row_op(j, op_name(i), &row->op[i]);
	json_close(j);
	json_close(j);
}

static void put_rows(struct json *j, const struct rows *rows)
{
	size_t i;

	if (!rows) {
		json_null(j, "rows");
		return;
	}
	json_open(j, "rows", '[');
	for (i = 0; i < rows->count; i++)
		put_row(j, &rows->row[i]);
	json_close(j);
}

static void put_total(struct json *j, const struct report *report)
{
	uint64_t calls = 0;
	size_t i;

	for (i = 0; i < report->count; i++)
		calls += report_calls(report->processes[i]);
	json_open(j, "total", '{');
	json_u64(j, "calls", calls);
	json_u64(j, "unrecorded", report_unrecorded(report));
	report_unlogged_json(report, j);
	json_close(j);
}

/* The part of the run that the rest is about, but for `run` and `rows`. */
static void put_window(struct json *j, const struct report *report)
{
	const struct window *w = &report->window;
	char *gap, *told_by;

	if (!report->windowed) {
		json_null(j, "window");
		return;
	}
	gap = report_window_gap(report);
	told_by = xasprintf("the events of that time%s", gap);
	json_open(j, "window", '{');
	json_u64(j, "since_ns", w->since_ns);
	if (w->until_ns != UINT64_MAX)
		json_u64(j, "until_ns", w->until_ns);
	else
		json_null(j, "until_ns");
	json_string(j, "told_by", told_by);
	json_close(j);
	free(told_by);
	free(gap);
}

void report_json(const struct report *report, FILE *out)
{
	const bool finished =
		report->dir->has_info && report->dir->info.finished == 1;
	struct json j = json_document(out, VERSION);
	size_t i;

	json_u64(&j, "origin_ns", report->origin_ns);
	put_total(&j, report);
	put_verdict(&j, report_verdict(report));
	put_run(&j, finished ? &report->dir->info : NULL);
	put_window(&j, report);
	report_worst_json(report, &j);
	json_open(&j, "processes", '[');
	for (i = 0; i < report->count; i++)
		put_process(&j, report, report->processes[i]);
	json_close(&j);
	put_rows(&j, report->rows);
	json_close(&j);
}
