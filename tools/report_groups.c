/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>

#include "die.h"
#include "report_groups.h"
#include "table.h"
#include "units.h"

enum { SHOWN = 40 };

/* --- sums --- */

void report_groups_add(struct habits_group *sum, const struct habits_group *g)
{
	sum->count += g->count;
	sum->errors += g->errors;
	sum->bytes += g->bytes;
	sum->wait_ns += g->wait_ns;
	sum->kernel_ns += g->kernel_ns;
	sum->max_ns = fmax(sum->max_ns, g->max_ns);
}

/* Every event has a size. */
static struct habits_group all_seen(const struct habits *h)
{
	struct habits_group sum = {.count = 0};
	size_t i;

	for (i = 0; i < SIZE_CLASSES; i++)
		report_groups_add(&sum, &h->of_size[i]);
	return sum;
}

static uint64_t beyond(uint64_t all, uint64_t seen)
{
	return all > seen ? all - seen : 0;
}

/* A program that runs may have made some between two looks. */
struct habits_group report_groups_unseen(const struct log_process *p,
					 const struct habits *seen)
{
	struct habits_group sum = all_seen(seen), all = {.count = 0};
	unsigned i;

	for (i = 0; i < OP_COUNT; i++) {
		all.count += p->op[i].count;
		all.errors += p->op[i].errors;
		all.bytes += (double)p->op[i].bytes;
		all.wait_ns += p->op[i].wait.sum_ns;
		all.kernel_ns += p->op[i].kernel.sum_ns;
	}
	return (struct habits_group){
		.count = beyond(all.count, sum.count),
		.errors = beyond(all.errors, sum.errors),
		.bytes = fmax(all.bytes - sum.bytes, 0),
		.wait_ns = fmax(all.wait_ns - sum.wait_ns, 0),
		.kernel_ns = fmax(all.kernel_ns - sum.kernel_ns, 0),
		.max_ns = -1,
	};
}

static double cost_of(const struct habits_group *sum)
{
	return sum->wait_ns + sum->kernel_ns;
}

/* --- rows --- */

static int by_cost(const void *a, const void *b)
{
	const struct report_group *g = a, *h = b;
	double x = cost_of(&g->sum), y = cost_of(&h->sum);

	if (g->rest != h->rest)
		return g->rest ? 1 : -1;
	return (x < y) - (x > y);
}

static void add(struct report_groups *g, char *name, bool rest,
		const struct habits_group *sum)
{
	g->group[g->count++] = (struct report_group){name, rest, *sum};
	g->rests += rest;
	report_groups_add(&g->all, sum);
}

static void add_rest(struct report_groups *g, const char *name,
		     const struct habits_group *sum)
{
	if (sum->count > 0)
		add(g, xstrdup(name), true, sum);
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

static void add_threads(struct report_groups *g, const struct report *report,
			const struct log_process *p, const struct habits *h)
{
	size_t i;

	for (i = 0; i < h->threads; i++)
		add(g, report_thread(report, p->pid, h->thread[i].tid), false,
		    &h->thread[i].sum);
	add_rest(g, "other threads", &h->other_threads);
}

static void add_sizes(struct report_groups *g, const struct habits *h)
{
	size_t i;

	for (i = 0; i < SIZE_CLASSES; i++)
		if (h->of_size[i].count > 0)
			add(g, size_name((unsigned)i), false, &h->of_size[i]);
}

static struct report_groups *rows_of(const struct report *report,
				     const struct log_process *p,
				     const struct habits *h)
{
	enum { RESTS = 2 };
	struct report_groups *g = xcalloc(1, sizeof(*g));
	struct habits_group unseen = report_groups_unseen(p, h);

	g->by = report->by;
	g->group =
		xcalloc(h->threads + SIZE_CLASSES + RESTS, sizeof(*g->group));
	if (g->by == BY_THREAD)
		add_threads(g, report, p, h);
	else
		add_sizes(g, h);
	add_rest(g, "not in the log one by one", &unseen);
	qsort(g->group, g->count, sizeof(*g->group), by_cost);
	return g;
}

/* Only the worst processes have been read for a verdict. */
static struct digest *read_digest(const struct report *report,
				  const struct log_process *p)
{
	size_t i = 0;

	while (report->processes[i] != p)
		i++;
	return digest_read(report->logs[i], report->window.since_ns,
			   report->window.until_ns);
}

struct report_groups *report_groups_of(const struct report *report,
				       const struct log_process *p)
{
	const struct study *study =
		report->studies ? studies_find(report->studies, p) : NULL;
	struct report_groups *g = NULL;
	struct digest *own = NULL;
	const struct digest *d;

	if (report->by != BY_THREAD && report->by != BY_SIZE)
		return NULL;
	d = study ? study->digest : (own = read_digest(report, p));
	if (d->part == DIGEST_ALL && d->habits->calls > 0)
		g = rows_of(report, p, d->habits);
	if (own)
		digest_free(own);
	return g;
}

void report_groups_free(struct report_groups *g)
{
	size_t i;

	for (i = 0; i < g->count; i++)
		free(g->group[i].name);
	free(g->group);
	free(g);
}

/* --- text --- */

static struct table *begin(const struct report_groups *g)
{
	struct table *t = table_new();

	table_column(t, NULL, "share", true);
	if (g->all.wait_ns > 0)
		table_column(t, NULL, "waited", true);
	table_column(t, NULL, "in the kernel", true);
	table_column(t, NULL, "max", true);
	table_column(t, NULL, "calls", true);
	if (g->all.errors > 0)
		table_column(t, NULL, "errors", true);
	table_spare(t, 1);
	table_column(t, NULL, "bytes", true);
	table_spare(t, 0);
	table_column(t, NULL, report_by_name(g->by), false);
	return t;
}

static void put_row(struct table *t, const struct report_groups *g,
		    const char *name, const struct habits_group *sum)
{
	double all = cost_of(&g->all);

	table_cell(t, all > 0 ? units_percent(cost_of(sum) / all) : "-");
	if (g->all.wait_ns > 0)
		table_cell(t, units_time(sum->wait_ns));
	table_cell(t, units_time(sum->kernel_ns));
	table_cell(t, sum->max_ns < 0 ? "-" : units_time(sum->max_ns));
	table_cell(t, units_count(sum->count));
	if (g->all.errors > 0)
		table_cell(t, units_count(sum->errors));
	table_cell(t, units_bytes(sum->bytes));
	table_cell(t, name);
}

/* Those of [from, to) in one. */
static void put_more(struct table *t, const struct report_groups *g,
		     size_t from, size_t to)
{
	struct habits_group sum = {.count = 0};
	char *name = xasprintf("%zu more", to - from);
	size_t i;

	for (i = from; i < to; i++)
		report_groups_add(&sum, &g->group[i].sum);
	put_row(t, g, name, &sum);
	free(name);
}

void report_groups_text(const struct report_groups *g, FILE *out)
{
	size_t own = g->count - g->rests, shown = own < SHOWN ? own : SHOWN, i;
	struct table *t = begin(g);

	fprintf(out,
		"  by %s, as far as the calls are in the log one by one:\n",
		report_by_name(g->by));
	for (i = 0; i < shown; i++)
		put_row(t, g, g->group[i].name, &g->group[i].sum);
	if (shown < own)
		put_more(t, g, shown, own);
	for (i = own; i < g->count; i++)
		put_row(t, g, g->group[i].name, &g->group[i].sum);
	table_print(t, "  ", TABLE_WIDTH, out);
}

/* --- json --- */

void report_groups_json(const struct report_groups *g, struct json *j)
{
	const struct habits_group *sum;
	size_t i;

	json_open(j, "groups", '[');
	for (i = 0; i < g->count; i++) {
		sum = &g->group[i].sum;
		json_open(j, NULL, '{');
		json_string(j, report_by_name(g->by), g->group[i].name);
		json_bool(j, "rest", g->group[i].rest);
		json_u64(j, "count", sum->count);
		json_u64(j, "errors", sum->errors);
		json_round(j, "bytes", sum->bytes);
		json_round(j, "wait_ns", sum->wait_ns);
		json_round(j, "kernel_ns", sum->kernel_ns);
		if (sum->max_ns < 0)
			json_null(j, "max_ns");
		else
			json_round(j, "max_ns", sum->max_ns);
		json_close(j);
	}
	json_close(j);
}
