/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "chart.h"
#include "die.h"
#include "embed.h"
#include "flame.h"
#include "html.h"
#include "report_blame.h"
#include "report_groups.h"
#include "report_notes.h"
#include "report_sites.h"
#include "units.h"

enum {
	SITES = 200,       /* of a process */
	STACKS = 3,        /* of a site */
	FRAMES = 32,       /* of a stack */
	THREADS = 50,      /* of a name */
	OTHERS = 4,        /* of a worst call */
	PROCESSES = 200,   /* whose figures are shown */
	SETTINGS_SHOWN = 8 /* processes whose settings are shown */
};

/* --- pieces --- */

static void begin_section(FILE *out, const char *id, const char *title)
{
	fprintf(out, "<section aria-labelledby=%s><h2 id=%s>", id, id);
	html_text(out, title);
	fputs("</h2>\n", out);
}

static void end_section(FILE *out)
{
	fputs("</section>\n", out);
}

/* Of numbers. */
static void put_heads(FILE *out, const char *const *titles)
{
	size_t i;

	for (i = 0; titles[i]; i++)
		html_head(out, titles[i], 0);
}

static void put_time(FILE *out, double ns)
{
	html_cell(out, units_time(ns), ns);
}

static void put_count(FILE *out, double count)
{
	html_cell(out, units_count((uint64_t)fmin(count + 0.5, 1e18)), count);
}

static void put_bytes(FILE *out, double bytes)
{
	html_cell(out, units_bytes(bytes), bytes);
}

static void put_share(FILE *out, double part, double whole)
{
	html_cell(out, whole > 0 ? units_percent(part / whole) : "-",
		  whole > 0 ? part / whole : 0);
}

/* Many may run one program. */
static void put_process(const struct log_process *p, FILE *out)
{
	char *name = xasprintf("%s (%u)", p->image, p->pid);

	html_name_cell(out, name);
	free(name);
}

/* --- top --- */

static const char *title_of(const struct report *report)
{
	if (report->dir->has_info && *report->dir->info.command)
		return report->dir->info.command;
	return report->count > 0 ? report->processes[0]->image
				 : report->dir->path;
}

static void put_top(const struct report *report, FILE *out)
{
	fputs("<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>"
	      "<meta name=viewport content=\"width=device-width\">"
	      "<title>mmgate: ",
	      out);
	html_text(out, title_of(report));
	fprintf(out,
		"</title><style>\n%s</style></head>\n<body>"
		"<a class=skip href=\"#verdict\">To the verdict</a>"
		"<header><h1>",
		embed_style);
	html_text(out, title_of(report));
	fputs("</h1>\n", out);
}

static void put_run(const struct report *report, FILE *out)
{
	const struct record_dir *info = &report->dir->info;

	if (!report->dir->has_info || info->finished != 1)
		return;
	fputs("<p class=soft>", out);
	if (WIFSIGNALED(info->status))
		fprintf(out, "Ended by signal %d", WTERMSIG(info->status));
	else
		fprintf(out, "Exit status %d", WEXITSTATUS(info->status));
	fprintf(out,
		"; %s wall, %s user and %s system time; %s voluntary and %s "
		"involuntary context switches; %s minor and %s major page "
		"faults; peak memory %s</p>\n",
		units_time((double)info->wall_ns),
		units_time((double)info->user_ns),
		units_time((double)info->system_ns),
		units_count(info->voluntary_switches),
		units_count(info->involuntary_switches),
		units_count(info->minor_faults),
		units_count(info->major_faults),
		units_bytes((double)info->peak_rss_bytes));
}

/* What the figures are not of. */
static void put_gap(const struct report *report, FILE *out)
{
	char *gap = log_dir_gap(report->dir);

	if (gap) {
		fputs("<p><strong>Incomplete:</strong> ", out);
		html_text(out, gap);
		fputs(".</p>\n", out);
	}
	free(gap);
}

static void put_window(const struct report *report, FILE *out)
{
	const struct window *w = &report->window;
	double origin = (double)report->origin_ns;
	char *gap;

	if (!report->windowed)
		return;
	fprintf(out, "<p>Only calls that began from %s",
		units_time((double)w->since_ns - origin));
	if (w->until_ns != UINT64_MAX)
		fprintf(out, " to %s",
			units_time((double)w->until_ns - origin));
	gap = report_window_gap(report);
	fputs(" after the start, by the events of that time", out);
	html_text(out, gap);
	fputs(".</p>\n", out);
	free(gap);
}

static void put_nav(const struct report *report, FILE *out)
{
	const struct {
		const char *id, *title;
		bool there;
	} parts[] = {
		{"distribution", "How long calls took", true},
		{"timeline", "Over time", true},
		{"worst", "Worst calls", report->worst != NULL},
		{"sites", "Sites", true},
		{"graph", "Flame graph", true},
		{"threads", "Threads", true},
		{"processes", "Processes", report->count > 1},
		{"settings", "Settings and coverage", true},
	};
	size_t i;

	fputs("<nav aria-label=\"Parts of the report\"><ul>", out);
	for (i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (parts[i].there)
			fprintf(out, "<li><a href=\"#%s\">%s</a></li>",
				parts[i].id, parts[i].title);
	fputs("</ul></nav></header>\n<main>\n", out);
}

/* --- verdict --- */

static void put_items(FILE *out, const char *list,
		      const struct verdict_item *items, size_t count,
		      bool saves)
{
	size_t i;

	fprintf(out, "<%s>", list);
	for (i = 0; i < count; i++) {
		fputs("<li>", out);
		html_text(out, items[i].text);
		if (saves && items[i].ns > 0)
			fprintf(out, " (may save up to %s)",
				units_time(items[i].ns));
		fputs("</li>\n", out);
	}
	fprintf(out, "</%s>\n", list);
}

static void put_verdict(const struct report *report, FILE *out)
{
	const struct study *s = report_verdict(report);

	fprintf(out,
		"<section class=\"verdict %s\" aria-labelledby=verdict>"
		"<h2 id=verdict>Verdict",
		s ? verdict_answer_name(s->verdict.answer) : "");
	if (!s) {
		fputs(": no process made a call</h2></section>\n", out);
		return;
	}
	if (report->count > 1) {
		fputs(" on ", out);
		html_text(out, s->process->image);
		fprintf(out, " (pid %u)", s->process->pid);
	}
	fputs(": ", out);
	html_text(out, s->verdict.headline);
	fputs("</h2>\n", out);
	if (s->verdict.causes > 0)
		put_items(out, "ul", s->verdict.cause, s->verdict.causes,
			  false);
	fputs("<h3>What to try, the most promising first</h3>\n", out);
	put_items(out, "ol", s->verdict.remedy, s->verdict.remedies, true);
	report_blame_html(s, out);
	fputs("</section>\n", out);
}

/* --- distribution --- */

/* Which columns have anything to say. */
struct shape {
	bool errors, gated;
};

static void put_op_row(FILE *out, const char *name, const struct log_op *op,
		       struct shape shape, double thread_ns)
{
	static const double shares[] = {0.5, 0.9, 0.99, 0.999};
	size_t i;

	fputs("<tr>", out);
	html_name_cell(out, name);
	put_count(out, (double)op->count);
	if (shape.errors)
		put_count(out, (double)op->errors);
	put_bytes(out, (double)op->bytes);
	if (shape.gated) {
		put_count(out, (double)op->gated);
		put_time(out, op->wait.sum_ns);
		put_time(out, hist_percentile(&op->wait, 0.99));
		put_time(out, op->wait.max_ns);
	}
	put_time(out, op->kernel.sum_ns);
	for (i = 0; i < sizeof(shares) / sizeof(*shares); i++)
		put_time(out, hist_percentile(&op->kernel, shares[i]));
	put_time(out, op->kernel.max_ns);
	put_share(out, report_op_cost(op), thread_ns);
	fputs("</tr>\n", out);
}

static void put_op_heads(FILE *out, struct shape shape)
{
	static const char *const waits[] = {"gated", "waited", "wait p99",
					    "wait max", NULL};
	static const char *const times[] = {"in the kernel", "p50",   "p90",
					    "p99",           "p99.9", "max",
					    "share",         NULL};

	html_head(out, "op", 1);
	html_head(out, "calls", 0);
	if (shape.errors)
		html_head(out, "errors", 0);
	html_head(out, "bytes", 0);
	if (shape.gated)
		put_heads(out, waits);
	put_heads(out, times);
}

static void put_op_table(FILE *out, const struct log_op *ops, double thread_ns)
{
	struct shape shape = {false, false};
	unsigned i;

	for (i = 0; i < OP_COUNT; i++) {
		shape.errors |= ops[i].errors > 0;
		shape.gated |= ops[i].gated > 0;
	}
	html_table(out, "sorts",
		   "Calls by kind; the share is of the time that threads "
		   "lived");
	put_op_heads(out, shape);
	html_table_rows(out);
	for (i = 0; i < OP_COUNT; i++)
		if (ops[i].count > 0)
			put_op_row(out, op_name(i), &ops[i], shape, thread_ns);
	html_table_end(out);
}

static void put_distribution(const struct report *report, FILE *out)
{
	struct log_op ops[OP_COUNT] = {{0}};
	double thread_ns = 0;
	uint64_t calls = 0;
	size_t i, k;

	for (i = 0; i < report->count; i++) {
		thread_ns += (double)report->processes[i]->thread_ns;
		for (k = 0; k < OP_COUNT; k++)
			log_op_add(&ops[k], &report->processes[i]->op[k]);
	}
	begin_section(out, "distribution", "How long calls took");
	for (k = 0; k < OP_COUNT; k++)
		calls += ops[k].count;
	if (calls > 0) {
		fputs("<p class=soft><span class=\"key kernel\"></span>in the "
		      "kernel <span class=\"key wait\"></span>waiting at the "
		      "gate. Both axes are logarithmic: a single call "
		      "shows.</p>\n",
		      out);
		chart_latencies(ops, out);
		put_op_table(out, ops, thread_ns);
	} else {
		fputs("<p>No calls.</p>\n", out);
	}
	end_section(out);
	for (k = 0; k < OP_COUNT; k++)
		log_op_drop(&ops[k]);
}

/* --- over time, the worst --- */

static void put_timeline(const struct report *report, FILE *out)
{
	begin_section(out, "timeline", "Over time");
	if (report->rows && report->rows->count > 0) {
		fputs("<p class=soft>All processes together; at the left the "
		      "highest value of each band. Triangles mark the worst "
		      "calls.</p>\n",
		      out);
		chart_times(report, out);
	} else {
		fputs("<p>There are no figures over time: <code>mmgate "
		      "run</code> writes them, the library alone does "
		      "not.</p>\n",
		      out);
	}
	end_section(out);
}

static void put_call(const struct log_event *e, FILE *out)
{
	fputs(op_name(e->raw.op), out);
	if (e->raw.length > 0)
		fprintf(out, " of %s", units_bytes((double)e->raw.length));
	if (e->wait_ns > 0)
		fprintf(out, ", waited %s", units_time((double)e->wait_ns));
	fprintf(out, ", %s in the kernel", units_time((double)e->kernel_ns));
}

static void put_others(const struct report *report,
		       const struct worst_call *call, const char *what,
		       const struct worst_others *others, FILE *out)
{
	const struct log_event *e;
	char *thread;
	size_t i;

	if (others->count == 0)
		return;
	fprintf(out, "<p>%s: %s call%s, %s at the same time</p><ul>", what,
		units_count(others->count), others->count == 1 ? "" : "s",
		units_time(others->overlap_ns));
	for (i = 0; i < others->kept && i < OTHERS; i++) {
		e = &others->list[i].event;
		thread = report_thread(report, call->process->pid, e->raw.tid);
		fputs("<li>thread ", out);
		html_text(out, thread);
		fputs(": ", out);
		put_call(e, out);
		fputs("</li>", out);
		free(thread);
	}
	fputs("</ul>\n", out);
}

static void put_stack(const struct sites_stack *stack, FILE *out)
{
	size_t i;

	fputs("<ol class=stack>", out);
	for (i = 0; i < stack->count && i < FRAMES; i++) {
		fputs("<li>", out);
		html_text(out, stack->frames[i]->name);
		fputs("</li>", out);
	}
	if (stack->count > FRAMES || stack->cut)
		fputs("<li>&hellip;</li>", out);
	fputs("</ol>\n", out);
}

static void put_worst_place(const struct worst_call *call, struct sites *sites,
			    FILE *out)
{
	const struct log_event *e = &call->event;
	const struct sites_stack *stack =
		e->raw.stack ? sites_stack_of(sites, e) : NULL;
	char *name;

	if (stack) {
		put_stack(stack, out);
		return;
	}
	name = study_name(sites, e->raw.op, e->raw.caller, e->time_ns);
	fputs("<p>from ", out);
	html_text(out, name);
	fputs("</p>\n", out);
	free(name);
}

static void put_worst_call(const struct report *report, size_t number,
			   const struct worst_call *call, FILE *out)
{
	const struct log_event *e = &call->event;
	struct sites *sites = report_sites_get(report, call->process);
	char *thread = report_thread(report, call->process->pid, e->raw.tid);

	fprintf(out, "<li id=worst-%zu><details><summary>%s after the start: ",
		number,
		units_time((double)e->time_ns - (double)report->origin_ns));
	put_call(e, out);
	fputs("; thread ", out);
	html_text(out, thread);
	fputs(" of ", out);
	html_text(out, call->process->image);
	fputs("</summary>\n", out);
	put_worst_place(call, sites, out);
	put_others(report, call, "In the kernel before it", &call->before, out);
	put_others(report, call, "Behind it meanwhile", &call->after, out);
	if (call->before.count + call->after.count == 0)
		fputs("<p>No other thread's call was there meanwhile.</p>\n",
		      out);
	fputs("</details></li>\n", out);
	free(thread);
	report_sites_put(report, sites);
}

static void put_no_events(const struct report *report, FILE *out)
{
	char *why = report_gap(report);

	fputs("<p>No single calls are in the logs", out);
	html_text(out, why ? ": " : "");
	html_text(out, why ? why : "");
	fputs(".</p>\n", out);
	free(why);
}

static void put_worst(const struct report *report, FILE *out)
{
	size_t i;

	if (!report->worst)
		return;
	begin_section(out, "worst", "Worst calls");
	if (report->worst->count == 0)
		put_no_events(report, out);
	fputs("<ol>", out);
	for (i = 0; i < report->worst->count; i++)
		put_worst_call(report, i + 1, &report->worst->call[i], out);
	fputs("</ol>\n", out);
	end_section(out);
}

/* --- sites --- */

static void put_samples(const struct sites_stack *stack, FILE *out)
{
	fprintf(out, "<p>%s sample%s, %s", units_count(stack->samples),
		stack->samples == 1 ? "" : "s",
		units_time(stack->wait_ns + stack->kernel_ns));
}

static void put_site_stacks(const struct sites *s, size_t site, FILE *out)
{
	struct sites_stack more = {.samples = 0};
	size_t count, i;
	struct sites_stack *stacks = sites_stacks_of(s, site, FRAMES, &count);

	for (i = 0; i < count && i < STACKS; i++) {
		put_samples(&stacks[i], out);
		fputs(":</p>", out);
		put_stack(&stacks[i], out);
	}
	for (; i < count; i++) {
		more.samples += stacks[i].samples;
		more.wait_ns += stacks[i].wait_ns;
		more.kernel_ns += stacks[i].kernel_ns;
	}
	if (count > STACKS) {
		put_samples(&more, out);
		fprintf(out, " in %zu more</p>", count - STACKS);
	}
	free(stacks);
}

static void put_site_name(const struct sites *s, size_t site, FILE *out)
{
	char *name = study_site(&s->list[site]);

	fputs("<td class=name><details><summary>", out);
	html_text(out, name);
	fputs("</summary>", out);
	put_site_stacks(s, site, out);
	fputs("</details></td>", out);
	free(name);
}

/* Which columns have anything to say. */
struct columns {
	bool several, waits, errors;
};

static struct columns columns_of(const struct studies *studies)
{
	struct columns c = {.several = studies->count > 1};
	size_t i;

	for (i = 0; i < studies->count; i++) {
		c.waits |= studies->of[i].sites->all.wait_ns > 0;
		c.errors |= studies->of[i].sites->all.errors > 0;
	}
	return c;
}

static void put_site_sums(const struct study *study,
			  const struct sites_sum *sum, struct columns c,
			  FILE *out)
{
	const struct sites_sum *all = &study->sites->all;

	if (c.several)
		put_process(study->process, out);
	put_share(out, sum->wait_ns + sum->kernel_ns,
		  all->wait_ns + all->kernel_ns);
	if (c.waits)
		put_time(out, sum->wait_ns);
	put_time(out, sum->kernel_ns);
	put_time(out, sum->max_ns);
	put_count(out, sum->count);
	if (c.errors)
		put_count(out, sum->errors);
	put_bytes(out, sum->bytes);
	/* Those of several sites may be the same. */
	if (sum->threads > 0)
		put_count(out, (double)sum->threads);
	else
		html_cell(out, "-", 0);
	put_count(out, (double)sum->samples);
	fputs("</tr>\n", out);
}

/* The dearest, and the rest in one row. */
static void put_sites_of(const struct study *study, struct columns c, FILE *out)
{
	const struct sites *s = study->sites;
	struct sites_sum more;
	char *name;
	size_t i;

	for (i = 0; i < s->count && i < SITES; i++) {
		fputs("<tr>", out);
		put_site_name(s, i, out);
		put_site_sums(study, &s->list[i].sum, c, out);
	}
	if (i == s->count)
		return;
	more = report_sites_sum(s->list + i, s->count - i);
	name = xasprintf("%zu more", s->count - i);
	fputs("<tr>", out);
	html_name_cell(out, name);
	put_site_sums(study, &more, c, out);
	free(name);
}

static void put_site_heads(struct columns c, FILE *out)
{
	static const char *const sizes[] = {"bytes", "threads", "samples",
					    NULL};

	html_head(out, "site", 1);
	if (c.several)
		html_head(out, "process", 1);
	html_head(out, "share", 0);
	if (c.waits)
		html_head(out, "waited", 0);
	html_head(out, "in the kernel", 0);
	html_head(out, "max", 0);
	html_head(out, "calls", 0);
	if (c.errors)
		html_head(out, "errors", 0);
	put_heads(out, sizes);
}

static void put_site_table(const struct studies *studies, FILE *out)
{
	struct columns c = columns_of(studies);
	size_t i;

	html_table(out, "sorts places",
		   "Places in the program that caused the calls, estimated "
		   "from samples; open one for its stacks");
	put_site_heads(c, out);
	html_table_rows(out);
	for (i = 0; i < studies->count; i++)
		put_sites_of(&studies->of[i], c, out);
	html_table_end(out);
}

static void put_quality(const struct study *study, FILE *out)
{
	const struct sites *s = study->sites;

	fputs("<p class=soft>", out);
	html_text(out, study->process->image);
	fprintf(out, " (%u): %s sample%s", study->process->pid,
		units_count(s->sample_count), s->sample_count == 1 ? "" : "s");
	if (s->cut > s->unresolved)
		fprintf(out, ", the stacks of %s are cut short",
			units_count(s->cut - s->unresolved));
	if (s->unresolved > 0)
		fprintf(out, ", of %s only the caller is known",
			units_count(s->unresolved));
	if (s->lost > 0)
		fprintf(out, ", %s more found no room", units_count(s->lost));
	if (s->stopped)
		fputs("; stacks were switched off while it ran, and later "
		      "calls are not in it",
		      out);
	fputs("</p>\n", out);
}

/* Why there are no sites of a process; once for those of the same reason. */
static void put_missing(const struct studies *studies, size_t study, FILE *out)
{
	const char *why = studies->of[study].sites->missing;
	const char *between = "<p class=soft>";
	size_t i;

	for (i = 0; i < studies->count; i++) {
		if (!studies->of[i].sites->missing ||
		    strcmp(studies->of[i].sites->missing, why) != 0)
			continue;
		if (i < study)
			return;
		fputs(between, out);
		html_text(out, studies->of[i].process->image);
		fprintf(out, " (%u)", studies->of[i].process->pid);
		between = ", ";
	}
	fputs(": ", out);
	html_text(out, why);
	fputs("</p>\n", out);
}

static void put_sites(const struct report *report, FILE *out)
{
	bool any = false;
	size_t i;

	begin_section(out, "sites", "Sites");
	for (i = 0; i < report->studies->count; i++)
		any |= report->studies->of[i].sites->count > 0;
	if (any)
		put_site_table(report->studies, out);
	for (i = 0; i < report->studies->count; i++)
		if (report->studies->of[i].sites->missing)
			put_missing(report->studies, i, out);
		else
			put_quality(&report->studies->of[i], out);
	end_section(out);
}

/* --- flame graph --- */

static char *flame_data(const struct studies *studies)
{
	char *text = NULL;
	size_t size;
	FILE *memory = open_memstream(&text, &size);
	bool any;

	if (!memory)
		die_errno(EXIT_FAILED, "report");
	any = flame_write(studies, memory);
	fclose(memory);
	if (any)
		return text;
	free(text);
	return NULL;
}

static void put_flame(const struct report *report, FILE *out)
{
	char *data = flame_data(report->studies);

	begin_section(out, "graph", "Flame graph");
	if (!data) {
		fputs("<p>No stacks were recorded.</p>\n", out);
		end_section(out);
		return;
	}
	fprintf(out,
		"<p class=soft>Width is time; callers above what they "
		"call. A box that is chosen fills the width. The table of "
		"sites says the same in words.</p>"
		"<fieldset class=controls><legend>Width</legend>"
		"<label><input type=radio name=weight value=both checked> "
		"waiting and in the kernel</label>"
		"<label><input type=radio name=weight value=wait> "
		"waiting</label>"
		"<label><input type=radio name=weight value=kernel> in the "
		"kernel</label>"
		"<button type=button id=flame-whole disabled>Show all</button>"
		"</fieldset><p id=flame-says role=status aria-live=polite></p>"
		"<noscript><p>The graph needs a script, which is off; the "
		"stacks are in the table of sites.</p></noscript>"
		"<div class=scroll tabindex=0 role=region "
		"aria-label=\"Flame graph\"><svg id=flame role=group "
		"aria-label=\"Flame graph\"></svg></div>"
		"<script type=\"application/json\" id=flame-data>%s</script>\n",
		data);
	end_section(out);
	free(data);
}

/* --- threads --- */

/* A thread, or a rest: calls that are of no thread's row. */
struct member {
	const char *name; /* NULL: not known */
	bool rest;
	uint32_t tid;
	struct habits_group sum;
	const struct study *study;
};

/* Members of one name, which lie side by side, the dearest first. */
struct group {
	const struct member *member;
	size_t count;
	struct habits_group sum;
};

struct members {
	struct member *of;
	size_t count;
};

static double cost_of(const struct habits_group *sum)
{
	return sum->wait_ns + sum->kernel_ns;
}

static void add_rest(struct members *m, const struct study *study,
		     const char *name, const struct habits_group *sum)
{
	if (sum->count > 0)
		m->of[m->count++] = (struct member){.name = name,
						    .rest = true,
						    .sum = *sum,
						    .study = study};
}

static void add_threads(struct members *m, const struct report *report,
			const struct study *study)
{
	enum { RESTS = 2 };
	const struct habits *h = study->digest->habits;
	struct habits_group unseen = report_groups_unseen(study->process, h);
	size_t i;

	if (h->threads == 0)
		return;
	m->of = xrealloc(m->of,
			 (m->count + h->threads + RESTS) * sizeof(*m->of));
	for (i = 0; i < h->threads; i++)
		m->of[m->count++] = (struct member){
			.name = report->rows ? rows_name(report->rows,
							 study->process->pid,
							 h->thread[i].tid)
					     : NULL,
			.tid = h->thread[i].tid,
			.sum = h->thread[i].sum,
			.study = study,
		};
	add_rest(m, study, "other threads", &h->other_threads);
	/* Where each stands for several, what they stand for is all. */
	if (study->digest->part != DIGEST_SAMPLE)
		add_rest(m, study, "calls that are not in the log one by one",
			 &unseen);
}

static int by_text(const char *a, const char *b)
{
	if (!a || !b)
		return !b - !a;
	return strcmp(a, b);
}

static int by_group(const struct member *m, const struct member *n)
{
	if (m->study != n->study)
		return m->study < n->study ? -1 : 1;
	if (m->rest != n->rest)
		return m->rest ? 1 : -1;
	return by_text(m->name, n->name);
}

static int by_group_and_cost(const void *a, const void *b)
{
	const struct member *m = a, *n = b;
	double s = cost_of(&m->sum), t = cost_of(&n->sum);
	int order = by_group(m, n);

	return order ? order : (s < t) - (s > t);
}

static int by_group_cost(const void *a, const void *b)
{
	double s = cost_of(&((const struct group *)a)->sum);
	double t = cost_of(&((const struct group *)b)->sum);

	return (s < t) - (s > t);
}

/* The dearest first, *count of them; to be freed. */
static struct group *find_groups(struct members *m, size_t *count)
{
	struct group *groups = xcalloc(m->count, sizeof(*groups)), *g = NULL;
	size_t i;

	*count = 0;
	qsort(m->of, m->count, sizeof(*m->of), by_group_and_cost);
	for (i = 0; i < m->count; i++) {
		if (i == 0 || by_group(&m->of[i - 1], &m->of[i]) != 0) {
			g = &groups[(*count)++];
			*g = (struct group){.member = &m->of[i]};
		}
		g->count++;
		report_groups_add(&g->sum, &m->of[i].sum);
	}
	qsort(groups, *count, sizeof(*groups), by_group_cost);
	return groups;
}

static void put_member(const char *name, const struct habits_group *sum,
		       FILE *out)
{
	fprintf(out,
		"<li>%s: %s calls, waited %s, %s in the kernel, at most "
		"%s</li>",
		name, units_count(sum->count), units_time(sum->wait_ns),
		units_time(sum->kernel_ns), units_time(sum->max_ns));
}

/* The single ones of a name. */
static void put_members(const struct group *g, FILE *out)
{
	struct habits_group more = {.count = 0};
	char name[32];
	size_t i;

	fputs("<ul>", out);
	for (i = 0; i < g->count && i < THREADS; i++) {
		snprintf(name, sizeof(name), "%u", g->member[i].tid);
		put_member(name, &g->member[i].sum, out);
	}
	for (; i < g->count; i++)
		report_groups_add(&more, &g->member[i].sum);
	if (g->count > THREADS) {
		snprintf(name, sizeof(name), "%s more",
			 units_count(g->count - THREADS));
		put_member(name, &more, out);
	}
	fputs("</ul>\n", out);
}

static void put_group(const struct group *g, bool several, FILE *out)
{
	const char *name = g->member->name;
	bool rest = g->member->rest;

	fputs("<tr><td class=name>", out);
	fputs(rest ? "" : "<details><summary>", out);
	html_text(out, name ? name : "(name not known)");
	if (!rest) {
		fputs("</summary>", out);
		put_members(g, out);
		fputs("</details>", out);
	}
	fputs("</td>", out);
	if (several)
		put_process(g->member->study->process, out);
	html_cell(out, rest ? "-" : units_count(g->count),
		  rest ? 0 : (double)g->count);
	put_count(out, (double)g->sum.count);
	put_time(out, g->sum.wait_ns);
	put_time(out, g->sum.kernel_ns);
	if (g->sum.max_ns > 0 || !rest)
		put_time(out, g->sum.max_ns);
	else
		html_cell(out, "-", 0);
	fputs("</tr>\n", out);
}

static void put_group_table(const struct report *report, struct members *m,
			    FILE *out)
{
	static const char *const titles[] = {"threads",       "calls", "waited",
					     "in the kernel", "max",   NULL};
	bool several = report->studies->count > 1;
	size_t count, i;
	struct group *groups = find_groups(m, &count);

	html_table(out, "sorts places",
		   "Threads by name, of the calls that are in the logs one "
		   "by one");
	html_head(out, "name", 1);
	if (several)
		html_head(out, "process", 1);
	put_heads(out, titles);
	html_table_rows(out);
	for (i = 0; i < count; i++)
		put_group(&groups[i], several, out);
	html_table_end(out);
	free(groups);
}

static void put_threads(const struct report *report, FILE *out)
{
	struct members members = {NULL, 0};
	size_t i;

	begin_section(out, "threads", "Threads");
	for (i = 0; i < report->studies->count; i++)
		add_threads(&members, report, &report->studies->of[i]);
	if (members.count > 0)
		put_group_table(report, &members, out);
	else
		put_no_events(report, out);
	free(members.of);
	end_section(out);
}

/* --- processes, settings --- */

static void put_process_row(const struct log_process *p, FILE *out)
{
	double waited = 0, kernel = 0;
	unsigned i;

	for (i = 0; i < OP_COUNT; i++) {
		waited += p->op[i].wait.sum_ns;
		kernel += p->op[i].kernel.sum_ns;
	}
	fputs("<tr>", out);
	html_name_cell(out, p->image);
	fprintf(out, "<td data-value=%u>%u</td>", p->pid, p->pid);
	put_time(out, (double)p->duration_ns);
	put_count(out, (double)p->threads);
	put_count(out, (double)report_calls(p));
	put_time(out, waited);
	put_time(out, kernel);
	put_share(out, waited + kernel, (double)p->thread_ns);
	fputs("</tr>\n", out);
}

static int by_cost(const void *a, const void *b)
{
	double x = report_cost(*(const struct log_process *const *)a);
	double y = report_cost(*(const struct log_process *const *)b);

	return (x < y) - (x > y);
}

/* Those that cost most first; to be freed. */
static const struct log_process **ranked(const struct report *report)
{
	const struct log_process **order =
		xcalloc(report->count, sizeof(*order));

	memcpy(order, report->processes, report->count * sizeof(*order));
	if (report->count > 0)
		qsort(order, report->count, sizeof(*order), by_cost);
	return order;
}

static void put_processes(const struct report *report,
			  const struct log_process **order, FILE *out)
{
	static const char *const titles[] = {"pid",   "lived",  "threads",
					     "calls", "waited", "in the kernel",
					     "share", NULL};
	size_t i;

	if (report->count < 2)
		return;
	begin_section(out, "processes", "Processes");
	html_table(out, "sorts", "The dearest first");
	html_head(out, "process", 1);
	put_heads(out, titles);
	html_table_rows(out);
	for (i = 0; i < report->count && i < PROCESSES; i++)
		put_process_row(order[i], out);
	html_table_end(out);
	if (report->count > PROCESSES)
		fprintf(out, "<p>%zu more; see one with --process.</p>\n",
			report->count - PROCESSES);
	end_section(out);
}

/* "name=value" lines as a list of words. */
static void put_pairs(FILE *out, const char *title, const char *lines)
{
	const char *end;
	char line[2049];

	fprintf(out, "<h4>%s</h4><ul class=pairs>", title);
	for (; *lines; lines = *end ? end + 1 : end) {
		end = lines + strcspn(lines, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)(end - lines), lines);
		fputs("<li><code>", out);
		html_text(out, line);
		fputs("</code></li>", out);
	}
	fputs("</ul>\n", out);
}

/* What limits the figures, line by line. */
static void put_notes(FILE *out, const struct log_process *p)
{
	char *text = NULL, *line, *rest;
	size_t size;
	FILE *memory = open_memstream(&text, &size);

	if (!memory)
		die_errno(EXIT_FAILED, "report");
	report_notes(p, memory);
	report_gaps(p, memory);
	fclose(memory);
	if (size > 0)
		fputs("<ul>", out);
	for (rest = text; (line = strsep(&rest, "\n"));) {
		if (!*line)
			continue;
		fputs("<li>", out);
		html_text(out, line + strspn(line, " "));
		fputs("</li>", out);
	}
	if (size > 0)
		fputs("</ul>\n", out);
	free(text);
}

static void put_settings(const struct report *report,
			 const struct log_process **order, FILE *out)
{
	size_t i;

	begin_section(out, "settings", "Settings and coverage");
	for (i = 0; i < report->count && i < SETTINGS_SHOWN; i++) {
		fputs("<h3>", out);
		html_text(out, order[i]->image);
		fprintf(out, " (pid %u)</h3>", order[i]->pid);
		put_notes(out, order[i]);
		put_pairs(out, "Settings", order[i]->settings);
		put_pairs(out, "How calls are caught", order[i]->hooks);
		put_pairs(out, "Where each kind is caught", order[i]->coverage);
	}
	end_section(out);
}

/* --- all --- */

void report_html(const struct report *report, FILE *out)
{
	const struct log_process **order = ranked(report);

	put_top(report, out);
	put_run(report, out);
	put_gap(report, out);
	put_window(report, out);
	put_nav(report, out);
	put_verdict(report, out);
	put_distribution(report, out);
	put_timeline(report, out);
	put_worst(report, out);
	put_sites(report, out);
	put_flame(report, out);
	put_threads(report, out);
	put_processes(report, order, out);
	put_settings(report, order, out);
	fprintf(out,
		"</main><footer class=soft><p>mmgate " MMGATE_VERSION
		"</p></footer><script>\n%s</script></body></html>\n",
		embed_script);
	free(order);
}
