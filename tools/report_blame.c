/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

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

/* "munmap from place"; to be freed. */
static char *name_of(const struct study *s, unsigned caller)
{
	const struct crowd_caller *c = &s->digest->crowd->caller[caller];

	return study_name(s->sites, c->op, c->address, c->first_ns);
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
		char *waiter = name_of(s, p->pair[i].waiter);
		char *holder = name_of(s, p->pair[i].holder);

		fprintf(out, "    %s  %s from %s\n", units_time(p->pair[i].ns),
			op_of(s, p->pair[i].waiter), waiter);
		fprintf(out, "      for %s from %s\n",
			op_of(s, p->pair[i].holder), holder);
		free(waiter);
		free(holder);
	}
}

static void print_kernel(const struct study *s, const struct pairs *p,
			 FILE *out)
{
	size_t i;

	fputs("  who was in the kernel when others came in and took longer "
	      "(estimate):\n",
	      out);
	for (i = 0; i < shown(p); i++) {
		char *name = name_of(s, p->pair[i].holder);

		fprintf(out, "    %s in %s calls: %s from %s\n",
			units_time(p->pair[i].ns),
			units_count(p->pair[i].calls),
			op_of(s, p->pair[i].holder), name);
		free(name);
	}
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
	char *name = name_of(s, caller);

	json_open(j, key, '{');
	json_string(j, "op", op_of(s, caller));
	json_string(j, "site", name);
	json_close(j);
	free(name);
}

void report_blame_json(const struct study *s, struct json *j)
{
	struct pairs gate = at_gate(s->digest->crowd);
	struct pairs kernel = in_kernel(s->digest);
	size_t i;

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

static void put_name(const struct study *s, unsigned caller, FILE *out)
{
	char *name = name_of(s, caller);

	fputs("<td class=name>", out);
	html_text(out, op_of(s, caller));
	fputs(" from ", out);
	html_text(out, name);
	fputs("</td>", out);
	free(name);
}

static void begin_table(FILE *out, const char *caption)
{
	fprintf(out,
		"<div class=scroll tabindex=0 role=region aria-label=\"%s\">"
		"<table class=\"sorts "
		"places\"><caption>%s</caption><thead><tr>",
		caption, caption);
}

static void put_gate_table(const struct study *s, const struct pairs *p,
			   FILE *out)
{
	size_t i;

	begin_table(out, "Who waited at the gate, and who held the lock "
			 "meanwhile");
	html_head(out, "waited", 1);
	html_head(out, "for", 1);
	html_head(out, "time", 0);
	fputs("</tr></thead><tbody>\n", out);
	for (i = 0; i < p->count; i++) {
		fputs("<tr>", out);
		put_name(s, p->pair[i].waiter, out);
		put_name(s, p->pair[i].holder, out);
		html_cell(out, units_time(p->pair[i].ns), p->pair[i].ns);
		fputs("</tr>\n", out);
	}
	fputs("</tbody></table></div>\n", out);
}

static void put_kernel_table(const struct study *s, const struct pairs *p,
			     FILE *out)
{
	size_t i;

	begin_table(out, "Who was in the kernel when other calls came in and "
			 "took longer (estimate)");
	html_head(out, "in the way", 1);
	html_head(out, "time", 0);
	html_head(out, "calls", 0);
	fputs("</tr></thead><tbody>\n", out);
	for (i = 0; i < p->count; i++) {
		fputs("<tr>", out);
		put_name(s, p->pair[i].holder, out);
		html_cell(out, units_time(p->pair[i].ns), p->pair[i].ns);
		html_cell(out, units_count(p->pair[i].calls),
			  (double)p->pair[i].calls);
		fputs("</tr>\n", out);
	}
	fputs("</tbody></table></div>\n", out);
}

void report_blame_html(const struct study *s, FILE *out)
{
	struct pairs gate = at_gate(s->digest->crowd);
	struct pairs kernel = in_kernel(s->digest);

	if (matters(s, &gate))
		put_gate_table(s, &gate, out);
	if (matters(s, &kernel))
		put_kernel_table(s, &kernel, out);
}
