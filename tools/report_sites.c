/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "report_groups.h"
#include "report_sites.h"
#include "table.h"
#include "units.h"

/* Rows of a table: so many fit on a screen beside the rest; more are shown to
 * those who ask for them. */
enum { SHOWN = 8, SHOWN_ASKED = 40 };

struct sites *report_sites_get(const struct report *report,
			       const struct log_process *p)
{
	const struct study *study =
		report->studies ? studies_find(report->studies, p) : NULL;
	size_t i = 0;

	if (study)
		return study->sites;
	while (report->processes[i] != p)
		i++;
	return sites_open_part(report->logs[i], report->images,
			       report->window.since_ns,
			       report->window.until_ns);
}

void report_sites_put(const struct report *report, struct sites *sites)
{
	size_t i;

	for (i = 0; report->studies && i < report->studies->count; i++)
		if (report->studies->of[i].sites == sites)
			return;
	sites_close(sites);
}

static double cost_of(const struct sites_sum *sum)
{
	return sum->wait_ns + sum->kernel_ns;
}

struct sites_sum report_sites_sum(const struct sites_row *rows, size_t count)
{
	struct sites_sum all = {.samples = 0};
	size_t i;

	for (i = 0; i < count; i++) {
		all.samples += rows[i].sum.samples;
		all.count += rows[i].sum.count;
		all.errors += rows[i].sum.errors;
		all.bytes += rows[i].sum.bytes;
		all.wait_ns += rows[i].sum.wait_ns;
		all.kernel_ns += rows[i].sum.kernel_ns;
		all.max_ns = fmax(all.max_ns, rows[i].sum.max_ns);
	}
	return all;
}

/* --- json --- */

static void put_sum(struct json *j, const struct sites_sum *sum)
{
	json_u64(j, "samples", sum->samples);
	json_round(j, "count", sum->count);
	json_round(j, "errors", sum->errors);
	json_round(j, "bytes", sum->bytes);
	json_round(j, "wait_ns", sum->wait_ns);
	json_round(j, "kernel_ns", sum->kernel_ns);
	json_round(j, "max_ns", sum->max_ns);
	json_u64(j, "threads", sum->threads);
}

static void put_ops(struct json *j, const struct sites_sum *sum)
{
	json_open(j, "calls", '{');
	for (unsigned i = 0; i < OP_COUNT; i++)
		if (sum->of_op[i] > 0)
			json_round(j, op_name(i), sum->of_op[i]);
	json_close(j);
}

static void put_row(struct json *j, const char *key,
		    const struct sites_row *row)
{
	json_open(j, NULL, '{');
	json_string(j, key, row->name);
	if (row->via)
		json_string(j, "via", row->via);
	else if (!strcmp(key, "site"))
		json_null(j, "via");
	put_sum(j, &row->sum);
	put_ops(j, &row->sum);
	json_close(j);
}

static void put_rows(struct json *j, const char *key, const char *name,
		     const struct sites_row *rows, size_t count)
{
	json_open(j, key, '[');
	for (size_t i = 0; i < count; i++)
		put_row(j, name, &rows[i]);
	json_close(j);
}

static void put_quality(struct json *j, const struct sites *s)
{
	json_open(j, "stacks", '{');
	json_u64(j, "samples", s->sample_count);
	json_u64(j, "cut", s->cut);
	json_u64(j, "unresolved", s->unresolved);
	json_u64(j, "lost", s->lost);
	json_u64(j, "different", s->stack_count);
	if (s->missing)
		json_string(j, "missing", s->missing);
	else
		json_null(j, "missing");
	json_close(j);
}

static void put_groups(struct json *j, const struct report *report,
		       const struct log_process *p, struct sites *s)
{
	struct report_groups *groups = report_groups_of(report, p);
	struct sites_row *rows;
	size_t count;

	if (groups) {
		report_groups_json(groups, j);
		report_groups_free(groups);
		return;
	}
	rows = sites_group(s, report->by, &count);
	put_rows(j, "groups", report_by_name(report->by), rows, count);
	sites_rows_free(rows, count);
}

void report_sites_json(const struct report *report, const struct log_process *p,
		       struct json *j)
{
	struct sites *s = report_sites_get(report, p);

	put_rows(j, "sites", "site", s->list, s->count);
	put_quality(j, s);
	if (report->by != BY_CALL && report->by != BY_SITE)
		put_groups(j, report, p, s);
	report_sites_put(report, s);
}

/* --- text --- */

static struct table *begin_table(const struct sites *s, const char *what)
{
	struct table *t = table_new();

	table_column(t, NULL, "share", true);
	if (s->all.wait_ns > 0)
		table_column(t, NULL, "waited", true);
	table_column(t, NULL, "in the kernel", true);
	table_column(t, NULL, "calls", true);
	table_spare(t, 1);
	table_column(t, NULL, "bytes", true);
	table_spare(t, 0);
	table_column(t, NULL, what, false);
	return t;
}

static void add_row(struct table *t, const struct sites *s, char *name,
		    const struct sites_sum *sum)
{
	double all = cost_of(&s->all);

	table_cell(t, all > 0 ? units_percent(cost_of(sum) / all) : "-");
	if (s->all.wait_ns > 0)
		table_cell(t, units_time(sum->wait_ns));
	table_cell(t, units_time(sum->kernel_ns));
	table_cell(t, units_count((uint64_t)(sum->count + 0.5)));
	table_cell(t, units_bytes(sum->bytes));
	table_cell(t, name);
	free(name);
}

static void print_rows(const struct sites *s, const char *what,
		       const struct sites_row *rows, size_t count, size_t most,
		       FILE *out)
{
	struct table *t = begin_table(s, what);
	size_t shown = count < most ? count : most, i;
	struct sites_sum sum;

	for (i = 0; i < shown; i++)
		add_row(t, s, study_site(&rows[i]), &rows[i].sum);
	sum = report_sites_sum(rows + shown, count - shown);
	if (shown < count)
		add_row(t, s, xasprintf("%zu more", count - shown), &sum);
	table_print(t, "  ", TABLE_WIDTH, out);
}

/* "Estimated from 180 sampled calls; the stacks of 3.2 % were cut short" */
static void print_quality(const struct sites *s, FILE *out)
{
	double samples = (double)s->sample_count;

	fprintf(out, "  estimated from %s sampled call%s",
		units_count(s->sample_count), s->sample_count == 1 ? "" : "s");
	if (s->cut > s->unresolved)
		fprintf(out,
			"; %s of the stacks are cut short (--stack-size, or a "
			"stack that the program made)",
			units_percent((double)(s->cut - s->unresolved) /
				      samples));
	if (s->unresolved > 0)
		fprintf(out, "; of %s only the caller is known",
			units_percent((double)s->unresolved / samples));
	if (s->lost > 0)
		fprintf(out, "; %s more found no room", units_count(s->lost));
	if (s->stopped)
		fputs("; stacks were switched off while it ran (mmgate set), "
		      "and later calls are not in it",
		      out);
	fputs(":\n", out);
}

void report_sites_text(const struct report *report, const struct log_process *p,
		       FILE *out)
{
	bool asked = report->by != BY_CALL;
	enum sites_by by = asked ? report->by : BY_SITE;
	struct sites *s = report_sites_get(report, p);
	struct sites_row *rows;
	size_t count;

	if (s->missing) {
		/* Of events where there are any. */
		if (by == BY_THREAD || by == BY_SIZE)
			fprintf(out,
				"  by %s: no events were recorded (--events "
				"all)"
				", and %s\n",
				report_by_name(by), s->missing);
		else if (asked || strncmp(s->missing, "no ", 3) != 0)
			fprintf(out, "  by %s: %s\n", report_by_name(by),
				s->missing);
		report_sites_put(report, s);
		return;
	}
	rows = sites_group(s, by, &count);
	print_quality(s, out);
	print_rows(s, report_by_name(by), rows, count,
		   asked ? SHOWN_ASKED : SHOWN, out);
	sites_rows_free(rows, count);
	report_sites_put(report, s);
}
