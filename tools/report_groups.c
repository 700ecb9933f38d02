/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "die.h"
#include "report_groups.h"
#include "table.h"
#include "units.h"

enum { SHOWN = 40 };

/* The rows of a grouping, the dearest first. */
struct group {
	char *name;
	struct habits_group sum;
};

struct groups {
	struct group *group;
	size_t count;
	double all_ns;
};

static const struct study *study_of(const struct report *report,
				    const struct log_process *p)
{
	return report->studies ? studies_find(report->studies, p) : NULL;
}

bool report_groups_has(const struct report *report, const struct log_process *p)
{
	const struct study *s = study_of(report, p);

	return (report->by == BY_THREAD || report->by == BY_SIZE) && s &&
	       s->digest->part == DIGEST_ALL && s->digest->habits->calls > 0;
}

static double cost_of(const struct habits_group *sum)
{
	return sum->wait_ns + sum->kernel_ns;
}

static int by_cost(const void *a, const void *b)
{
	double x = cost_of(&((const struct group *)a)->sum);
	double y = cost_of(&((const struct group *)b)->sum);

	return (x < y) - (x > y);
}

static void add(struct groups *g, char *name, const struct habits_group *sum)
{
	g->group[g->count++] = (struct group){name, *sum};
	g->all_ns += cost_of(sum);
}

static char *size_name(unsigned class)
{
	double most = (double)size_class_bytes(class);

	if (class == 0)
		return xstrdup("no length");
	if (class == 1)
		return xasprintf("up to %s", units_bytes(most));
	if (class == SIZE_CLASSES - 1)
		return xasprintf("more than %s", units_bytes(most / 2));
	return xasprintf("%s to %s", units_bytes(most / 2), units_bytes(most));
}

static struct groups groups_of(const struct report *report,
			       const struct study *s)
{
	const struct habits *h = s->digest->habits;
	struct groups g = {.group = xcalloc(HABITS_THREADS + SIZE_CLASSES,
					    sizeof(struct group))};
	size_t i;

	for (i = 0; report->by == BY_THREAD && i < h->threads; i++)
		add(&g,
		    report_thread(report, s->process->pid, h->thread[i].tid),
		    &h->thread[i].sum);
	for (i = 0; report->by == BY_SIZE && i < SIZE_CLASSES; i++)
		if (h->of_size[i].count > 0)
			add(&g, size_name((unsigned)i), &h->of_size[i]);
	qsort(g.group, g.count, sizeof(*g.group), by_cost);
	return g;
}

static void drop(struct groups *g)
{
	size_t i;

	for (i = 0; i < g->count; i++)
		free(g->group[i].name);
	free(g->group);
}

/* --- text --- */

static struct table *begin(const char *what, bool waits, bool errors)
{
	struct table *t = table_new();

	table_column(t, NULL, "share", true);
	if (waits)
		table_column(t, NULL, "waited", true);
	table_column(t, NULL, "in the kernel", true);
	table_column(t, NULL, "max", true);
	table_column(t, NULL, "calls", true);
	if (errors)
		table_column(t, NULL, "errors", true);
	table_spare(t, 1);
	table_column(t, NULL, "bytes", true);
	table_spare(t, 0);
	table_column(t, NULL, what, false);
	return t;
}

static void put_row(struct table *t, const struct group *g, double all_ns,
		    bool waits, bool errors)
{
	const struct habits_group *sum = &g->sum;

	table_cell(t, all_ns > 0 ? units_percent(cost_of(sum) / all_ns) : "-");
	if (waits)
		table_cell(t, units_time(sum->wait_ns));
	table_cell(t, units_time(sum->kernel_ns));
	table_cell(t, units_time(sum->max_ns));
	table_cell(t, units_count(sum->count));
	if (errors)
		table_cell(t, units_count(sum->errors));
	table_cell(t, units_bytes(sum->bytes));
	table_cell(t, g->name);
}

void report_groups_text(const struct report *report,
			const struct log_process *p, FILE *out)
{
	struct groups g = groups_of(report, study_of(report, p));
	bool waits = false, errors = false;
	struct table *t;
	size_t i;

	for (i = 0; i < g.count; i++) {
		waits |= g.group[i].sum.wait_ns > 0;
		errors |= g.group[i].sum.errors > 0;
	}
	fputs("  of the calls that are in the log one by one:\n", out);
	t = begin(report_by_name(report->by), waits, errors);
	for (i = 0; i < g.count && i < SHOWN; i++)
		put_row(t, &g.group[i], g.all_ns, waits, errors);
	table_print(t, "  ", TABLE_WIDTH, out);
	if (g.count > SHOWN)
		fprintf(out, "  %zu more\n", g.count - SHOWN);
	drop(&g);
}

/* --- json --- */

void report_groups_json(const struct report *report,
			const struct log_process *p, struct json *j)
{
	struct groups g = groups_of(report, study_of(report, p));
	const struct habits_group *sum;
	size_t i;

	json_open(j, "groups", '[');
	for (i = 0; i < g.count; i++) {
		sum = &g.group[i].sum;
		json_open(j, NULL, '{');
		json_string(j, report_by_name(report->by), g.group[i].name);
		json_u64(j, "count", sum->count);
		json_u64(j, "errors", sum->errors);
		json_round(j, "bytes", sum->bytes);
		json_round(j, "wait_ns", sum->wait_ns);
		json_round(j, "kernel_ns", sum->kernel_ns);
		json_round(j, "max_ns", sum->max_ns);
		json_close(j);
	}
	json_close(j);
	drop(&g);
}
