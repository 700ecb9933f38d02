/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "json.h"
#include "output.h"
#include "report_diff.h"
#include "report_sites.h"
#include "table.h"
#include "units.h"

enum { VERSION = 1, SITES_SHOWN = 12 };

/* One run: its processes added up. */
struct side {
	const struct report *report;
	double seconds;
	uint64_t processes, threads;
	double thread_ns;
	struct log_op op[OP_COUNT];
};

/* A site of either run. */
struct place {
	char *name; /* with its via */
	double ns[2], calls[2];
	double change; /* of its time a second */
};

struct places {
	struct place *place;
	size_t count, room;
};

/* --- sums --- */

/* Of the run, or from the first process's start to the last one's end. */
static double seconds_of(const struct report *report)
{
	const struct record_dir *info = &report->dir->info;
	uint64_t from = UINT64_MAX, to = 0;
	const struct log_process *p;
	size_t i;

	if (report->dir->has_info && info->finished == 1 && !report->windowed)
		return (double)info->wall_ns / 1e9;
	for (i = 0; i < report->count; i++) {
		p = report->processes[i];
		from = p->started_ns < from ? p->started_ns : from;
		to = p->started_ns + p->duration_ns > to
			     ? p->started_ns + p->duration_ns
			     : to;
	}
	return to > from ? (double)(to - from) / 1e9 : 0;
}

static struct side side_of(const struct report *report)
{
	struct side s = {.report = report, .seconds = seconds_of(report)};
	size_t i, k;

	for (i = 0; i < report->count; i++) {
		s.processes++;
		s.threads += report->processes[i]->threads;
		s.thread_ns += (double)report->processes[i]->thread_ns;
		for (k = 0; k < OP_COUNT; k++)
			log_op_add(&s.op[k], &report->processes[i]->op[k]);
	}
	return s;
}

static void side_drop(struct side *s)
{
	size_t k;

	for (k = 0; k < OP_COUNT; k++)
		log_op_drop(&s->op[k]);
}

static double per_second(const struct side *s, double value)
{
	return s->seconds > 0 ? value / s->seconds : 0;
}

/* --- sites --- */

static struct place *place_of(struct places *places,
			      const struct sites_row *site)
{
	char *name = study_site(site);
	size_t i;

	for (i = 0; i < places->count; i++)
		if (!strcmp(places->place[i].name, name)) {
			free(name);
			return &places->place[i];
		}
	if (places->count == places->room) {
		places->room = 2 * places->room + 64;
		places->place = xrealloc(places->place,
					 places->room * sizeof(struct place));
	}
	places->place[places->count] = (struct place){.name = name};
	return &places->place[places->count++];
}

static void add_sites(struct places *places, unsigned side,
		      const struct sites *sites)
{
	struct place *place;
	size_t i;

	for (i = 0; i < sites->count; i++) {
		place = place_of(places, &sites->list[i]);
		place->ns[side] += sites->list[i].sum.wait_ns +
				   sites->list[i].sum.kernel_ns;
		place->calls[side] += sites->list[i].sum.count;
	}
}

/* Of the processes that cost most: names are dear. */
static void add_side(struct places *places, unsigned side,
		     const struct report *report)
{
	size_t i;

	for (i = 0; report->studies && i < report->studies->count; i++)
		add_sites(places, side, report->studies->of[i].sites);
}

static int by_change(const void *a, const void *b)
{
	double x = fabs(((const struct place *)a)->change);
	double y = fabs(((const struct place *)b)->change);

	return (x < y) - (x > y);
}

/* Those whose time has changed most come first. */
static struct places places_of(const struct side *a, const struct side *b)
{
	struct places places = {NULL, 0, 0};
	struct place *p;
	size_t i;

	add_side(&places, 0, a->report);
	add_side(&places, 1, b->report);
	for (i = 0; i < places.count; i++) {
		p = &places.place[i];
		p->change = per_second(b, p->ns[1]) - per_second(a, p->ns[0]);
	}
	if (places.count > 0)
		qsort(places.place, places.count, sizeof(*places.place),
		      by_change);
	return places;
}

static void places_drop(struct places *places)
{
	size_t i;

	for (i = 0; i < places->count; i++)
		free(places->place[i].name);
	free(places->place);
}

/* --- text --- */

/* "x1.25", "new", "gone" */
static const char *ratio(double a, double b)
{
	static char texts[8][16];
	static unsigned turn;
	char *out = texts[turn++ % 8];

	if (a <= 0 && b <= 0)
		return "";
	if (a <= 0)
		return "new";
	if (b <= 0)
		return "gone";
	if (b / a >= 1000)
		return "x1000+";
	snprintf(out, sizeof(texts[0]), "x%.2f", b / a);
	return out;
}

static void put_pair(struct table *t, const char *a, const char *b)
{
	table_cell(t, a);
	table_cell(t, b);
}

static void pair_columns(struct table *t, const char *group, unsigned spare)
{
	table_spare(t, spare);
	table_column(t, group, "first", true);
	table_column(t, group, "second", true);
}

static struct table *begin_ops(bool waits)
{
	struct table *t = table_new();

	table_column(t, NULL, "op", false);
	pair_columns(t, "calls/s", 2);
	if (waits)
		pair_columns(t, "waited/s", 0);
	pair_columns(t, "kernel/s", 0);
	table_column(t, NULL, "", true);
	pair_columns(t, "kernel p50", 3);
	pair_columns(t, "kernel p99", 1);
	return t;
}

static const char *rate(const struct side *s, double count)
{
	return units_count((uint64_t)fmin(per_second(s, count), 1e18));
}

static void put_op(struct table *t, const char *name, const struct side *a,
		   const struct side *b, const struct log_op *x,
		   const struct log_op *y, bool waits)
{
	table_cell(t, name);
	put_pair(t, rate(a, (double)x->count), rate(b, (double)y->count));
	if (waits)
		put_pair(t, units_time(per_second(a, x->wait.sum_ns)),
			 units_time(per_second(b, y->wait.sum_ns)));
	put_pair(t, units_time(per_second(a, x->kernel.sum_ns)),
		 units_time(per_second(b, y->kernel.sum_ns)));
	table_cell(t, ratio(per_second(a, report_op_cost(x)),
			    per_second(b, report_op_cost(y))));
	put_pair(t, units_time(hist_percentile(&x->kernel, 0.5)),
		 units_time(hist_percentile(&y->kernel, 0.5)));
	put_pair(t, units_time(hist_percentile(&x->kernel, 0.99)),
		 units_time(hist_percentile(&y->kernel, 0.99)));
}

static bool has_waits(const struct side *s)
{
	unsigned i;

	for (i = 0; i < OP_COUNT; i++)
		if (s->op[i].gated > 0)
			return true;
	return false;
}

/* By how much the time changed, either way. */
static double op_change(const struct side *a, const struct side *b, unsigned op)
{
	const struct log_op *x = &a->op[op], *y = &b->op[op];

	return fabs(per_second(b, y->wait.sum_ns + y->kernel.sum_ns) -
		    per_second(a, x->wait.sum_ns + x->kernel.sum_ns));
}

/* Those with calls, the largest change first; how many there are. */
static unsigned order_ops(const struct side *a, const struct side *b,
			  unsigned order[OP_COUNT])
{
	unsigned count = 0, i, at;

	for (i = 0; i < OP_COUNT; i++) {
		if (a->op[i].count + b->op[i].count == 0)
			continue;
		for (at = count++; at > 0 && op_change(a, b, order[at - 1]) <
						     op_change(a, b, i);
		     at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	return count;
}

static void print_ops(const struct side *a, const struct side *b, FILE *out)
{
	bool waits = has_waits(a) || has_waits(b);
	struct table *t = begin_ops(waits);
	unsigned order[OP_COUNT], count = order_ops(a, b, order), i, op;

	for (i = 0; i < count; i++) {
		op = order[i];
		put_op(t, op_name(op), a, b, &a->op[op], &b->op[op], waits);
	}
	fputs("\nBy call (the factor is of waiting and kernel time "
	      "together):\n",
	      out);
	table_print(t, "  ", TABLE_WIDTH, out);
}

static void put_place(struct table *t, const struct side *a,
		      const struct side *b, const struct place *p)
{
	double x = per_second(a, p->ns[0]), y = per_second(b, p->ns[1]);

	put_pair(t, units_time(x), units_time(y));
	table_cell(t, ratio(x, y));
	table_cell(t, p->name);
}

/* Those from `from` on in one. */
static void put_more(struct table *t, const struct side *a,
		     const struct side *b, const struct places *places,
		     size_t from)
{
	struct place more = {.name = NULL};
	size_t i;

	for (i = from; i < places->count; i++) {
		more.ns[0] += places->place[i].ns[0];
		more.ns[1] += places->place[i].ns[1];
	}
	more.name = xasprintf("%zu more", places->count - from);
	put_place(t, a, b, &more);
	free(more.name);
}

static void print_places(const struct side *a, const struct side *b, FILE *out)
{
	struct places places = places_of(a, b);
	struct table *t;
	size_t i;

	if (places.count == 0)
		return;
	fputs("\nBy site, the largest change first, estimated from samples:\n",
	      out);
	t = table_new();
	table_column(t, "time/s", "first", true);
	table_column(t, "time/s", "second", true);
	table_column(t, "time/s", "", true);
	table_column(t, NULL, "site", false);
	for (i = 0; i < places.count && i < SITES_SHOWN; i++)
		put_place(t, a, b, &places.place[i]);
	if (i < places.count)
		put_more(t, a, b, &places, i);
	table_print(t, "  ", TABLE_WIDTH, out);
	places_drop(&places);
}

/* What the figures of one are not of. */
static void print_gap(const struct report *report, FILE *out)
{
	uint64_t unrecorded = report_unrecorded(report);
	char *gap = log_dir_gap(report->dir);

	if (gap)
		fprintf(out, "  incomplete: %s\n", gap);
	if (unrecorded > 0)
		fprintf(out, "  incomplete: %s calls found no room in a log\n",
			units_count(unrecorded));
	free(gap);
}

static void print_side(const char *which, const struct side *s, FILE *out)
{
	const struct record_dir *info = &s->report->dir->info;
	const struct study *v = report_verdict(s->report);

	fprintf(out, "%s: %s", which, s->report->dir->path);
	if (s->report->dir->has_info && *info->command)
		fprintf(out, ": %s", info->command);
	fprintf(out, "\n  %s, %s process%s, %s threads made calls",
		units_time(s->seconds * 1e9), units_count(s->processes),
		s->processes == 1 ? "" : "es", units_count(s->threads));
	if (s->report->dir->has_info && info->finished == 1)
		fprintf(out,
			"; %s user + %s system, %s context switches, %s page "
			"faults",
			units_time((double)info->user_ns),
			units_time((double)info->system_ns),
			units_count(info->voluntary_switches +
				    info->involuntary_switches),
			units_count(info->minor_faults + info->major_faults));
	fputc('\n', out);
	print_gap(s->report, out);
	if (v)
		fprintf(out, "  verdict: %s\n", v->verdict.headline);
}

/* What the two were set to, where it is not the same; by their first. */
static void print_settings(const struct report *a, const struct report *b,
			   FILE *out)
{
	static const char *const names[] = {
		"lock",  "calls",    "hooks",  "place",  "long",
		"delay", "max_wait", "events", "stacks", "follow"};
	char x[256], y[256];
	size_t i;

	if (a->count == 0 || b->count == 0)
		return;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		log_setting(a->processes[0]->settings, names[i], x, sizeof(x));
		log_setting(b->processes[0]->settings, names[i], y, sizeof(y));
		if (strcmp(x, y) != 0)
			fprintf(out,
				"  %s: %s in the first, %s in the second\n",
				names[i], x, y);
	}
}

static void print_all(const struct report *first, const struct report *second,
		      FILE *out)
{
	struct side a = side_of(first), b = side_of(second);

	print_side("First", &a, out);
	print_side("Second", &b, out);
	print_settings(first, second, out);
	print_ops(&a, &b, out);
	print_places(&a, &b, out);
	fputs("\nRuns differ by chance too: `mmgate compare` says what is more "
	      "than that.\n",
	      out);
	side_drop(&a);
	side_drop(&b);
}

void report_diff_text(const struct report *a, const struct report *b, FILE *out)
{
	char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);

	if (!memory)
		die_errno(EXIT_FAILED, "report");
	print_all(a, b, memory);
	if (fclose(memory))
		die_errno(EXIT_FAILED, "report");
	output_folded(text, TABLE_WIDTH, out);
	free(text);
}

/* --- json --- */

static void put_side(struct json *j, const char *key, const struct side *s)
{
	const struct study *study = report_verdict(s->report);

	json_open(j, key, '{');
	json_string(j, "path", s->report->dir->path);
	json_string(j, "command",
		    s->report->dir->has_info ? s->report->dir->info.command
					     : "");
	json_round(j, "duration_ns", s->seconds * 1e9);
	json_u64(j, "processes", s->processes);
	json_u64(j, "threads", s->threads);
	json_round(j, "thread_ns", s->thread_ns);
	json_u64(j, "unrecorded", report_unrecorded(s->report));
	report_unlogged_json(s->report, j);
	if (study)
		json_string(j, "verdict",
			    verdict_answer_name(study->verdict.answer));
	else
		json_null(j, "verdict");
	json_close(j);
}

static void put_json_op(struct json *j, const char *key, const struct side *s,
			const struct log_op *op)
{
	json_open(j, key, '{');
	json_u64(j, "count", op->count);
	json_u64(j, "errors", op->errors);
	json_u64(j, "bytes", op->bytes);
	json_round(j, "wait_ns", op->wait.sum_ns);
	json_round(j, "kernel_ns", op->kernel.sum_ns);
	json_round(j, "wait_p99_ns", hist_percentile(&op->wait, 0.99));
	json_round(j, "kernel_p50_ns", hist_percentile(&op->kernel, 0.5));
	json_round(j, "kernel_p99_ns", hist_percentile(&op->kernel, 0.99));
	json_round(j, "kernel_max_ns", op->kernel.max_ns);
	json_double(j, "calls_per_second", per_second(s, (double)op->count));
	json_double(j, "ns_per_second", per_second(s, report_op_cost(op)));
	json_close(j);
}

static void put_json_places(struct json *j, const struct side *a,
			    const struct side *b)
{
	struct places places = places_of(a, b);
	const struct place *p;
	size_t i;

	json_open(j, "sites", '[');
	for (i = 0; i < places.count; i++) {
		p = &places.place[i];
		json_open(j, NULL, '{');
		json_string(j, "site", p->name);
		json_double(j, "a_ns_per_second", per_second(a, p->ns[0]));
		json_double(j, "b_ns_per_second", per_second(b, p->ns[1]));
		json_round(j, "a_count", p->calls[0]);
		json_round(j, "b_count", p->calls[1]);
		json_close(j);
	}
	json_close(j);
	places_drop(&places);
}

void report_diff_json(const struct report *first, const struct report *second,
		      FILE *out)
{
	struct side a = side_of(first), b = side_of(second);
	struct json j = json_document(out, VERSION);
	unsigned i;

	put_side(&j, "a", &a);
	put_side(&j, "b", &b);
	json_open(&j, "calls", '{');
	for (i = 0; i < OP_COUNT; i++) {
		if (a.op[i].count + b.op[i].count == 0)
			continue;
		json_open(&j, op_name(i), '{');
		put_json_op(&j, "a", &a, &a.op[i]);
		put_json_op(&j, "b", &b, &b.op[i]);
		json_close(&j);
	}
	json_close(&j);
	put_json_places(&j, &a, &b);
	json_close(&j);
	side_drop(&a);
	side_drop(&b);
}
