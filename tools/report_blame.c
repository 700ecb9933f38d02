/* SPDX-License-Identifier: MIT */
#include "html.h"
#include "report_blame.h"
#include "table.h"
#include "units.h"

enum { TEXT_MOST = 4, MOST = 20 };

/* Of all the waiting, below which a line is not worth it. */
static const double least = 0.02;

struct pair {
	unsigned waiter, holder; /* callers; of the kernel's the holder alone */
	double ns;
	uint64_t calls;
};

/* The largest first, *count of them. */
struct pairs {
	struct pair pair[MOST];
	size_t count;
	double all; /* of those that are not kept too */
};

static void keep(struct pairs *p, struct pair pair)
{
	size_t at = p->count;

	if (pair.ns <= 0)
		return;
	p->all += pair.ns;
	while (at > 0 && p->pair[at - 1].ns < pair.ns)
		at--;
	if (at == MOST)
		return;
	if (p->count < MOST)
		p->count++;
	for (size_t i = p->count - 1; i > at; i--)
		p->pair[i] = p->pair[i - 1];
	p->pair[at] = pair;
}

static struct pairs at_gate(const struct crowd *c)
{
	struct pairs p = {.count = 0};
	unsigned w, h;

	for (w = 0; w < CROWD_CALLERS; w++)
		for (h = 0; h < CROWD_CALLERS; h++)
			keep(&p, (struct pair){w, h, c->held[w][h], 0});
	return p;
}

/* When all calls have an event; else nobody knows who was inside. */
static struct pairs in_kernel(const struct digest *d)
{
	const struct crowd *c = d->crowd;
	struct pairs p = {.count = 0};
	unsigned i;

	for (i = 0; d->part == DIGEST_ALL && i < CROWD_CALLERS; i++)
		keep(&p, (struct pair){i, i, c->caller[i].blocked_ns,
				       c->caller[i].blocked_calls});
	return p;
}

static const char *name_of(const struct study *s, unsigned caller)
{
	return s->digest->crowd->caller[caller].name;
}

static const char *op_of(const struct study *s, unsigned caller)
{
	/* The last stands for all that had no place of their own. */
	return caller == CROWD_CALLERS - 1
		       ? "others"
		       : op_name(s->digest->crowd->caller[caller].op);
}

/* --- text --- */

static size_t shown(const struct pairs *p)
{
	size_t count = 0;

	while (count < p->count && count < TEXT_MOST &&
	       p->pair[count].ns >= least * p->all)
		count++;
	return count;
}

static void print_gate(const struct study *s, const struct pairs *p, FILE *out)
{
	size_t i;

	fputs("  who waited at the gate, and who held the lock meanwhile:\n",
	      out);
	for (i = 0; i < shown(p); i++) {
		fprintf(out, "    %s  %s from %s\n", units_time(p->pair[i].ns),
			op_of(s, p->pair[i].waiter),
			name_of(s, p->pair[i].waiter));
		fprintf(out, "      for %s from %s\n",
			op_of(s, p->pair[i].holder),
			name_of(s, p->pair[i].holder));
	}
}

static void print_kernel(const struct study *s, const struct pairs *p,
			 FILE *out)
{
	size_t i;

	fputs("  who was in the kernel when others came in and took longer "
	      "(estimate):\n",
	      out);
	for (i = 0; i < shown(p); i++)
		fprintf(out, "    %s in %s calls: %s from %s\n",
			units_time(p->pair[i].ns),
			units_count(p->pair[i].calls),
			op_of(s, p->pair[i].holder),
			name_of(s, p->pair[i].holder));
}

/* Of so little that nothing else is said of it, neither is this. */
static bool matters(const struct study *s, const struct pairs *p)
{
	return p->all > 0.01 * (double)s->process->thread_ns;
}

void report_blame_text(const struct study *s, FILE *out)
{
	struct pairs gate = at_gate(s->digest->crowd);
	struct pairs kernel = in_kernel(s->digest);

	if (matters(s, &gate))
		print_gate(s, &gate, out);
	if (matters(s, &kernel))
		print_kernel(s, &kernel, out);
}

/* --- json --- */

static void put_caller(struct json *j, const char *key, const struct study *s,
		       unsigned caller)
{
	json_open(j, key, '{');
	json_string(j, "op", op_of(s, caller));
	json_string(j, "site", name_of(s, caller));
	json_close(j);
}

void report_blame_json(const struct study *s, struct json *j)
{
	struct pairs gate, kernel;
	size_t i;

	if (!s) {
		json_null(j, "waits_for");
		json_null(j, "in_the_way");
		return;
	}
	gate = at_gate(s->digest->crowd);
	kernel = in_kernel(s->digest);
	json_open(j, "waits_for", '[');
	for (i = 0; i < gate.count; i++) {
		json_open(j, NULL, '{');
		put_caller(j, "waiter", s, gate.pair[i].waiter);
		put_caller(j, "holder", s, gate.pair[i].holder);
		json_round(j, "ns", gate.pair[i].ns);
		json_close(j);
	}
	json_close(j);
	json_open(j, "in_the_way", '[');
	for (i = 0; i < kernel.count; i++) {
		json_open(j, NULL, '{');
		put_caller(j, "caller", s, kernel.pair[i].holder);
		json_round(j, "ns", kernel.pair[i].ns);
		json_u64(j, "calls", kernel.pair[i].calls);
		json_close(j);
	}
	json_close(j);
}

/* --- html --- */

struct view {
	const char *caption;
	const char *waiter, *holder; /* headings; NULL: no such column */
	bool calls;
};

static const struct view gate_view = {
	.caption = "Who waited at the gate, and who held the lock meanwhile",
	.waiter = "waited",
	.holder = "for",
};

static const struct view kernel_view = {
	.caption = "Who was in the kernel when other calls came in and took "
		   "longer (estimate)",
	.holder = "in the way",
	.calls = true,
};

static void put_name(const struct study *s, unsigned caller, FILE *out)
{
	fputs("<td class=name>", out);
	html_text(out, op_of(s, caller));
	fputs(" from ", out);
	html_text(out, name_of(s, caller));
	fputs("</td>", out);
}

static void put_pair(const struct study *s, const struct view *view,
		     const struct pair *pair, FILE *out)
{
	fputs("<tr>", out);
	if (view->waiter)
		put_name(s, pair->waiter, out);
	put_name(s, pair->holder, out);
	html_cell(out, units_time(pair->ns), pair->ns);
	if (view->calls)
		html_cell(out, units_count(pair->calls), (double)pair->calls);
	fputs("</tr>\n", out);
}

static void put_table(const struct study *s, const struct view *view,
		      const struct pairs *p, FILE *out)
{
	size_t i;

	if (!matters(s, p))
		return;
	html_table(out, "sorts places", view->caption);
	if (view->waiter)
		html_head(out, view->waiter, 1);
	html_head(out, view->holder, 1);
	html_head(out, "time", 0);
	if (view->calls)
		html_head(out, "calls", 0);
	html_table_rows(out);
	for (i = 0; i < p->count; i++)
		put_pair(s, view, &p->pair[i], out);
	html_table_end(out);
}

void report_blame_html(const struct study *s, FILE *out)
{
	struct pairs gate = at_gate(s->digest->crowd);
	struct pairs kernel = in_kernel(s->digest);

	put_table(s, &gate_view, &gate, out);
	put_table(s, &kernel_view, &kernel, out);
}
