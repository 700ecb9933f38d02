/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "die.h"
#include "output.h"
#include "report_blame.h"
#include "report_groups.h"
#include "report_notes.h"
#include "report_sites.h"
#include "report_worst.h"
#include "table.h"
#include "units.h"

/* So many processes fit on a screen. */
enum { SHOWN = 3 };

/* --- the verdict --- */

static void print_causes(const struct verdict *v, FILE *out)
{
	size_t i;

	for (i = 0; i < v->causes; i++)
		fprintf(out, "  - %s\n", v->cause[i].text);
}

static void print_remedies(const struct verdict *v, FILE *out)
{
	size_t i;

	fputs("What to try, the most promising first:\n", out);
	for (i = 0; i < v->remedies; i++) {
		fprintf(out, "  %zu. %s", i + 1, v->remedy[i].text);
		if (v->remedy[i].ns > 0)
			fprintf(out, " (may save up to %s)",
				units_time(v->remedy[i].ns));
		fputc('\n', out);
	}
	fputc('\n', out);
}

static void print_verdict(const struct report *report, FILE *out)
{
	const struct study *s = report_verdict(report);

	if (!s)
		return;
	fputs("Verdict", out);
	if (report->count > 1)
		fprintf(out, " on %s (pid %u)", s->process->image,
			s->process->pid);
	fprintf(out, ": %s.\n", s->verdict.headline);
	print_causes(&s->verdict, out);
	print_remedies(&s->verdict, out);
}

/* Of a process whose verdict is not the run's. */
static void note_verdict(const struct report *report,
			 const struct log_process *p, FILE *out)
{
	const struct study *s =
		report->studies ? studies_find(report->studies, p) : NULL;

	if (s && s != report_verdict(report))
		fprintf(out, "  verdict: %s\n", s->verdict.headline);
}

static void note_blame(const struct report *report, const struct log_process *p,
		       FILE *out)
{
	const struct study *s =
		report->studies ? studies_find(report->studies, p) : NULL;

	if (s)
		report_blame_text(s, out);
}

/* --- over time --- */

enum { TIMES = 10 };

static uint64_t end_of(const struct rows_row *row)
{
	return row->from_ns + row->span_ns;
}

/* Makes at most TIMES rows of all, of about the same length. */
static size_t fold_rows(const struct rows *rows, struct rows_row *folded)
{
	const struct rows_row *row = rows->row;
	uint64_t begin = row->from_ns, end = end_of(&row[rows->count - 1]);
	uint64_t each = (end - begin) / TIMES + 1;
	size_t count = 0, i;

	for (i = 0; i < rows->count; i++)
		if (count > 0 && (row[i].from_ns - begin) / each < count)
			rows_join(&folded[count - 1], &row[i]);
		else
			folded[count++] = row[i];
	return count;
}

static double per_second(const struct rows_row *row, double of)
{
	return row->span_ns > 0 ? of * 1e9 / (double)row->span_ns : 0;
}

static const char *rate(const struct rows_row *row, uint64_t count)
{
	return units_count(
		(uint64_t)fmin(per_second(row, (double)count), 1e18));
}

static void add_time_row(struct table *t, const struct report *report,
			 const struct rows_row *row, bool waits)
{
	struct rows_op all = rows_sum(row);
	/* Nobody could look at threads that had ended. */
	bool threads = row->threads > 0;

	table_cell(t, units_time((double)row->from_ns -
				 (double)report->origin_ns));
	table_cell(t, rate(row, all.count));
	if (waits) {
		table_cell(t, units_time(per_second(row, (double)all.wait_ns)));
		table_cell(t, units_time(rows_percentile(all.wait, 0.99)));
	}
	table_cell(t, units_time(per_second(row, (double)all.kernel_ns)));
	table_cell(t, units_time(rows_percentile(all.kernel, 0.5)));
	table_cell(t, units_time(rows_percentile(all.kernel, 0.99)));
	table_cell(t, threads ? rate(row, row->voluntary_switches +
						  row->involuntary_switches)
			      : "-");
	table_cell(t, threads ? rate(row, row->minor_faults + row->major_faults)
			      : "-");
}

static struct table *begin_times(bool waits)
{
	struct table *t = table_new();

	table_column(t, NULL, "from", true);
	table_column(t, NULL, "calls/s", true);
	if (waits) {
		table_column(t, "waited at the gate", "a second", true);
		table_spare(t, 1);
		table_column(t, "waited at the gate", "p99", true);
		table_spare(t, 0);
	}
	table_column(t, "in the kernel", "a second", true);
	table_spare(t, 2);
	table_column(t, "in the kernel", "p50", true);
	table_spare(t, 1);
	table_column(t, "in the kernel", "p99", true);
	table_spare(t, 3);
	table_column(t, NULL, "switches/s", true);
	table_column(t, NULL, "faults/s", true);
	return t;
}

static bool has_waits(const struct rows_row *rows, size_t count)
{
	size_t i, k;

	for (i = 0; i < count; i++)
		for (k = 0; k < OP_COUNT; k++)
			if (rows[i].op[k].wait_ns > 0)
				return true;
	return false;
}

/* Worth a table only when there is some time to look at. */
static void print_times(const struct report *report, FILE *out)
{
	const struct rows *rows = report->rows;
	struct rows_row *folded;
	struct table *t;
	size_t count, i;
	bool waits;

	if (!rows || rows->count < TIMES)
		return;
	folded = xcalloc(TIMES, sizeof(*folded));
	count = fold_rows(rows, folded);
	waits = has_waits(folded, count);
	t = begin_times(waits);
	for (i = 0; i < count; i++)
		add_time_row(t, report, &folded[i], waits);
	fputs("\nOver time, all processes together:\n", out);
	table_print(t, "  ", TABLE_WIDTH, out);
	free(folded);
}

/* --- the run --- */

static void print_status(int status, FILE *out)
{
	if (WIFSIGNALED(status))
		fprintf(out, "ended by signal %d", WTERMSIG(status));
	else
		fprintf(out, "exit status %d", WEXITSTATUS(status));
}

static void print_run(const struct record_dir *info, FILE *out)
{
	fprintf(out, "%s\n  ", info->command);
	print_status(info->status, out);
	fprintf(out, ", %s wall, %s user + %s system, peak memory %s\n",
		units_time((double)info->wall_ns),
		units_time((double)info->user_ns),
		units_time((double)info->system_ns),
		units_bytes((double)info->peak_rss_bytes));
	fprintf(out,
		"  context switches: %s voluntary + %s involuntary; page "
		"faults: %s minor + %s major\n\n",
		units_count(info->voluntary_switches),
		units_count(info->involuntary_switches),
		units_count(info->minor_faults),
		units_count(info->major_faults));
}

/* What the figures below are not of. */
static void print_gap(const struct report *report, FILE *out)
{
	char *gap = log_dir_gap(report->dir);

	if (gap)
		fprintf(out, "Incomplete: %s.\n\n", gap);
	free(gap);
}

/* --- one process: its table --- */

/* Which columns have anything to say. */
struct shape {
	bool errors, gated, bypassed, bytes;
};

static struct shape shape_of(const struct log_process *p)
{
	struct shape shape = {false};
	unsigned i;

	for (i = 0; i < OP_COUNT; i++) {
		shape.errors |= p->op[i].errors > 0;
		shape.gated |= p->op[i].gated > 0;
		shape.bypassed |= report_bypassed(&p->op[i]) > 0;
		shape.bytes |= p->op[i].bytes > 0;
	}
	return shape;
}

/* Which columns go first where the table is too wide: those that other columns
 * or a note say something of. */
enum {
	STAYS,
	SPARE_MAX,
	SPARE_P99,
	SPARE_ERRORS,
	SPARE_GATED,
	SPARE_BYTES,
	SPARE_BYPASSED,
	SPARE_P50,
};

static void add_column(struct table *t, const char *title, unsigned spare)
{
	table_spare(t, spare);
	table_column(t, NULL, title, true);
}

static void add_time_columns(struct table *t, const char *group)
{
	static const struct {
		const char *title;
		unsigned spare;
	} columns[] = {
		{"total", STAYS},
		{"p50", SPARE_P50},
		{"p99", SPARE_P99},
		{"max", SPARE_MAX},
	};

	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
		table_spare(t, columns[i].spare);
		table_column(t, group, columns[i].title, true);
	}
}

static struct table *begin_table(struct shape shape)
{
	struct table *t = table_new();

	table_column(t, NULL, "op", false);
	add_column(t, "calls", STAYS);
	if (shape.errors)
		add_column(t, "errors", SPARE_ERRORS);
	if (shape.gated || shape.bypassed)
		add_column(t, "gated", SPARE_GATED);
	if (shape.bypassed)
		add_column(t, "bypassed", SPARE_BYPASSED);
	if (shape.bytes)
		add_column(t, "bytes", SPARE_BYTES);
	if (shape.gated)
		add_time_columns(t, "waited at the gate");
	add_time_columns(t, "in the kernel");
	add_column(t, "share", STAYS);
	return t;
}

static void add_times(struct table *t, const struct hist *h)
{
	table_cell(t, units_time(h->sum_ns));
	table_cell(t, units_time(hist_percentile(h, 0.5)));
	table_cell(t, units_time(hist_percentile(h, 0.99)));
	table_cell(t, units_time(h->max_ns));
}

/* For an op that did not take the lock. */
static void add_no_times(struct table *t)
{
	for (int i = 0; i < 4; i++)
		table_cell(t, "-");
}

static void add_row(struct table *t, struct shape shape, const char *name,
		    const struct log_op *op, const struct log_process *p)
{
	double lived = (double)p->thread_ns;

	table_cell(t, name);
	table_cell(t, units_count(op->count));
	if (shape.errors)
		table_cell(t, units_count(op->errors));
	if (shape.gated || shape.bypassed)
		table_cell(t, units_count(op->gated));
	if (shape.bypassed)
		table_cell(t, units_count(report_bypassed(op)));
	if (shape.bytes)
		table_cell(t, units_bytes((double)op->bytes));
	if (shape.gated && op->gated > 0)
		add_times(t, &op->wait);
	else if (shape.gated)
		add_no_times(t);
	add_times(t, &op->kernel);
	table_cell(t,
		   lived > 0 ? units_percent(report_op_cost(op) / lived) : "-");
}

static void add_sum_row(struct table *t, struct shape shape,
			const struct log_process *p)
{
	struct log_op all = {0};
	unsigned i;

	for (i = 0; i < OP_COUNT; i++)
		log_op_add(&all, &p->op[i]);
	add_row(t, shape, "all", &all, p);
	log_op_drop(&all);
}

static int by_op_cost(const void *a, const void *b)
{
	double x = report_op_cost(*(const struct log_op *const *)a);
	double y = report_op_cost(*(const struct log_op *const *)b);

	return (x < y) - (x > y);
}

static void print_table(const struct log_process *p, FILE *out)
{
	struct shape shape = shape_of(p);
	struct table *t = begin_table(shape);
	const struct log_op *ops[OP_COUNT];
	unsigned count = 0, i;

	for (i = 0; i < OP_COUNT; i++)
		if (p->op[i].count > 0)
			ops[count++] = &p->op[i];
	qsort(ops, count, sizeof(*ops), by_op_cost);
	for (i = 0; i < count; i++)
		add_row(t, shape, op_name((unsigned)(ops[i] - p->op)), ops[i],
			p);
	if (count > 1)
		add_sum_row(t, shape, p);
	if (table_print(t, "  ", TABLE_WIDTH, out) > 0)
		fputs("  columns were left out for their width; --format json "
		      "has all\n",
		      out);
}

/* --- one process --- */

static void print_settings(const struct log_process *p, FILE *out)
{
	static const char *const names[] = {"lock", "calls", "hooks", "place"};
	char value[256];
	size_t i;

	fputc(' ', out);
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		log_setting(p->settings, names[i], value, sizeof(value));
		if (*value)
			fprintf(out, " %s=%s", names[i], value);
	}
	fputc('\n', out);
}

/* Which lock the calls take, where the settings do not tell, and whether it was
 * another before: the figures are of all of them. */
static void print_lock_now(const struct log_process *p, FILE *out)
{
	char lock[256], *now, *changes;

	log_setting(p->settings, "lock", lock, sizeof(lock));
	if (!strstr(lock, "auto") && p->lock_changes == 0 && log_lock_as_set(p))
		return;
	now = log_lock_now(p);
	changes =
		p->lock_changes == 1
			? xstrdup("1 change")
			: xasprintf("%s changes", units_count(p->lock_changes));
	fprintf(out, "  lock now: %s (%s%s)\n", now,
		strstr(lock, "auto") ? "auto, " : "", changes);
	free(now);
	free(changes);
}

static const char *ending(const struct log_process *p)
{
	if (p->exited)
		return "";
	return log_process_runs(p) ? " so far, still running"
				   : " to its last sign of life";
}

static void print_rows(const struct report *report, const struct log_process *p,
		       FILE *out)
{
	struct report_groups *groups = report_groups_of(report, p);

	if (groups) {
		report_groups_text(groups, out);
		report_groups_free(groups);
	} else if (report_calls(p) > 0) {
		report_sites_text(report, p, out);
	}
}

static void print_process(const struct report *report,
			  const struct log_process *p, FILE *out)
{
	fprintf(out, "%s (pid %u)  %s%s, %s thread%s made calls\n", p->image,
		p->pid, units_time((double)p->duration_ns), ending(p),
		units_count(p->threads), p->threads == 1 ? "" : "s");
	print_settings(p, out);
	print_lock_now(p, out);
	note_verdict(report, p, out);
	if (report_calls(p) == 0)
		fputs(p->unrecorded == 0 ? "  no calls\n"
					 : "  no figures: its calls found no "
					   "room in the log\n",
		      out);
	else if (report->by == BY_CALL)
		print_table(p, out);
	print_rows(report, p, out);
	note_blame(report, p, out);
	report_notes(p, out);
}

/* --- all --- */

static int by_cost(const void *a, const void *b)
{
	double x = report_cost(*(const struct log_process *const *)a);
	double y = report_cost(*(const struct log_process *const *)b);

	if (x == y) {
		x = (double)(*(const struct log_process *const *)a)->unrecorded;
		y = (double)(*(const struct log_process *const *)b)->unrecorded;
	}
	return (x < y) - (x > y);
}

static void print_sum(const struct log_process **processes, size_t count,
		      const char *what, FILE *out)
{
	uint64_t calls = 0, unrecorded = 0;
	double waited = 0, kernel = 0;
	size_t i, k;

	for (i = 0; i < count; i++) {
		calls += report_calls(processes[i]);
		unrecorded += processes[i]->unrecorded;
		for (k = 0; k < OP_COUNT; k++) {
			waited += processes[i]->op[k].wait.sum_ns;
			kernel += processes[i]->op[k].kernel.sum_ns;
		}
	}
	fprintf(out, "%zu %s: %s calls, waited %s, in the kernel %s", count,
		what, units_count(calls), units_time(waited),
		units_time(kernel));
	if (unrecorded > 0)
		fprintf(out, "; %s more calls are in no figure",
			units_count(unrecorded));
	fputc('\n', out);
}

static void print_legend(const struct log_process **shown, size_t count,
			 FILE *out)
{
	size_t i;

	fputs("\nshare: of the time that the process's threads lived\n", out);
	for (i = 0; i < count; i++)
		if (!shown[i]->exited && !log_process_runs(shown[i]))
			break;
	if (i < count)
		fputs("last sign of life: its log has no exit(); it was "
		      "killed, called _exit or executed another program\n",
		      out);
}

static bool is_busy(const struct log_process *p)
{
	return report_calls(p) > 0 || p->unrecorded > 0;
}

/* The worst processes first; how many of them made a call. */
static size_t rank(const struct log_process **processes, size_t count)
{
	size_t busy = 0;

	qsort(processes, count, sizeof(*processes), by_cost);
	while (busy < count && is_busy(processes[busy]))
		busy++;
	return busy;
}

static void print_worst(const struct report *report,
			const struct log_process **worst, size_t count,
			FILE *out)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (i > 0)
			fputc('\n', out);
		print_process(report, worst[i], out);
		/* Mostly the same for all, so it is said once. */
		if (i + 1 == count ||
		    strcmp(worst[i]->hooks, worst[i + 1]->hooks) != 0)
			report_gaps(worst[i], out);
	}
	if (count > 0)
		print_legend(worst, count, out);
}

static void print_window(const struct report *report, FILE *out)
{
	const struct window *w = &report->window;
	double origin = (double)report->origin_ns;
	char *gap;

	if (!report->windowed)
		return;
	gap = report_window_gap(report);
	fprintf(out, "From %s", units_time((double)w->since_ns - origin));
	if (w->until_ns != UINT64_MAX)
		fprintf(out, " to %s",
			units_time((double)w->until_ns - origin));
	fprintf(out, " after the start, by the events of that time%s:\n\n",
		gap);
	free(gap);
}

static void print_all(const struct report *report, FILE *out)
{
	const struct log_process **worst =
		xcalloc(report->count, sizeof(*worst));
	size_t shown, rest;

	memcpy(worst, report->processes, report->count * sizeof(*worst));
	shown = rank(worst, report->count);
	if (shown == 0)
		shown = report->count;
	if (shown > SHOWN)
		shown = SHOWN;
	rest = report->count - shown;
	print_gap(report, out);
	print_verdict(report, out);
	if (report->dir->has_info && report->dir->info.finished == 1)
		print_run(&report->dir->info, out);
	print_window(report, out);
	report_worst_text(report, out);
	print_worst(report, worst, shown, out);
	if (rest > 0)
		print_sum(worst + shown, rest,
			  "more (see one with --process NAME or PID)", out);
	if (report->count > 1)
		print_sum(worst, report->count, "processes in all", out);
	print_times(report, out);
	free(worst);
}

/* Tables fit; a reason or a command may be of any length. */
void report_text(const struct report *report, FILE *out)
{
	char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);

	if (!memory)
		die_errno(EXIT_FAILED, "report");
	print_all(report, memory);
	if (fclose(memory))
		die_errno(EXIT_FAILED, "report");
	output_folded(text, TABLE_WIDTH, out);
	free(text);
}
