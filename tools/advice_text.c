/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "advice.h"
#include "die.h"
#include "opts.h"
#include "output.h"
#include "table.h"
#include "units.h"
#include "utf8.h"

enum { CELL = 200 };

/* How a format says a heading, a line, a command. */
struct style {
	const char *heading, *line, *command;
	bool markdown;
};

static const struct style plain = {"%s\n", "%s\n", "  %s\n", false};
static const struct style markdown = {"## %s\n\n", "- %s\n", "    %s\n", true};

/* Takes the text over. */
static void put(const char *format, char *text, FILE *out)
{
	char *clean = output_clean(text);

	for (const char *f = format; *f != '\0'; f++)
		if (f[0] == '%' && f[1] == 's') {
			fputs(clean, out);
			f++;
		} else {
			fputc(*f, out);
		}
	free(clean);
	free(text);
}

static void put_ratio(char *cell, const struct ratio *r)
{
	if (isfinite(r->high))
		snprintf(cell, CELL, "%.3f [%.3f, %.3f]", r->value, r->low,
			 r->high);
	else
		snprintf(cell, CELL, "%.3f", r->value);
}

/* --- the recommendation --- */

static char *tell_gain(const struct tune *t)
{
	const struct ratio *r = &t->comparison->rows[t->chosen].ratio;
	const struct ratio *n = &t->to_none[t->chosen];

	return xasprintf("%.3f times as good as without mmgate [%.3f, %.3f], "
			 "and %.3f [%.3f, %.3f] times as lock=none: 95 %% "
			 "intervals of %zu %s rounds",
			 r->value, r->low, r->high, n->value, n->low, n->high,
			 t->comparison->rounds,
			 t->confirmed ? "fresh" : "fresh, interrupted");
}

static char *tell_wait(const struct profile *p)
{
	return xasprintf("it costs waits at the gate: p99 %s, the longest %s, "
			 "of %s calls in one run with a log%s",
			 units_time(p->wait_p99_ns), units_time(p->wait_max_ns),
			 units_count(p->gated),
			 p->opened > 0 ? "; the gate had to open" : "");
}

static double shootdowns(const struct tune *t, size_t row)
{
	size_t n = t->fresh.done;
	double *values = xcalloc(n, sizeof(*values)), median;

	for (size_t i = 0; i < n; i++)
		values[i] = (double)rounds_sample(&t->fresh, i, row)
				    ->run.tlb_shootdowns;
	median = ratio_median(values, n);
	free(values);
	return median;
}

static void put_evidence(const struct tune *t, const struct style *s, FILE *out)
{
	double before = shootdowns(t, TUNE_BARE);
	double after = shootdowns(t, t->chosen);

	if (t->waits.gated > 0)
		put(s->line, tell_wait(&t->waits), out);
	if (before > 0)
		put(s->line,
		    xasprintf("TLB shoot-downs a run: %s, before %s",
			      units_count((uint64_t)after),
			      units_count((uint64_t)before)),
		    out);
}

static void put_export(const struct style *s, const char *line, FILE *out)
{
	char *quoted = opts_quote(line);

	put(s->command, xasprintf("export %s", quoted), out);
	free(quoted);
}

static void put_how(const struct tune *t, const struct style *s, FILE *out)
{
	char **lines = advice_environment(t), *look = advice_look(t);

	fputc('\n', out);
	put(s->line, xstrdup("The command:"), out);
	fputs(s->markdown ? "\n" : "", out);
	put(s->command, advice_command(t), out);
	if (lines[0] != NULL) {
		fputc('\n', out);
		put(s->line, xstrdup("Or in its environment:"), out);
		fputs(s->markdown ? "\n" : "", out);
	}
	for (char **line = lines; *line != NULL; line++)
		put_export(s, *line, out);
	if (look != NULL) {
		fputc('\n', out);
		put(s->line, xstrdup("To see it at work:"), out);
		fputs(s->markdown ? "\n" : "", out);
		put(s->command, look, out);
	}
	free(lines);
}

static char *tell_verdict(const struct tune *t)
{
	const char *verdict = advice_verdict(t);

	if (t->chosen != 0) {
		char *name = advice_name(t);
		char *line = xasprintf("%s: %s%s", verdict, name,
				       t->confirmed ? "" : " (not confirmed)");

		free(name);
		return line;
	}
	if (advice_best_so_far(t) != NULL)
		return xasprintf("%s; the best so far, not confirmed: %s",
				 verdict, advice_best_so_far(t));
	return xstrdup(verdict);
}

static void put_head(const struct tune *t, const struct style *s, FILE *out)
{
	put(s->heading, tell_verdict(t), out);
	if (t->reason != NULL)
		put(s->line, xstrdup(t->reason), out);
	if (t->failed != NULL)
		put(s->line, tune_failure(t), out);
	if (t->chosen == 0)
		return;
	put(s->line, tell_gain(t), out);
	put_evidence(t, s, out);
	put_how(t, s, out);
}

/* --- what it comes from --- */

static const char *const titles[] = {"config", "search", "rounds", "confirmed"};

enum { COLUMNS = sizeof(titles) / sizeof(titles[0]) };

/* The row of the fresh rounds that a candidate has; 0: none. */
static size_t fresh_row(const struct tune *t, size_t candidate)
{
	for (size_t row = TUNE_WINNER;
	     t->comparison != NULL && row < t->comparison->count; row++)
		if (tune_candidate(t, row) == &t->list.items[candidate] &&
		    !t->fresh.left_out[row])
			return row;
	return 0;
}

static void fill_cells(const struct tune *t, size_t i,
		       char cells[COLUMNS][CELL])
{
	const struct tune_try *try = &t->tries[i];
	size_t row = fresh_row(t, i);

	utf8_clean(cells[0], t->list.items[i].text, CELL - 1, 0);
	*cells[1] = *cells[3] = '\0';
	snprintf(cells[2], CELL, "%zu", try->rounds);
	if (try->rounds > 0)
		put_ratio(cells[1], &try->ratio);
	if (try->failure != NULL)
		utf8_clean(cells[3], try->failure, 60, 0);
	if (row != 0)
		put_ratio(cells[3], &t->comparison->rows[row].ratio);
}

static void put_row(char cells[COLUMNS][CELL], FILE *out)
{
	for (size_t k = 0; k < COLUMNS; k++)
		table_put_cell(cells[k], out);
	fputs("|\n", out);
}

static void tries_as_markdown(const struct tune *t, FILE *out)
{
	char cells[COLUMNS][CELL];

	for (size_t k = 0; k < COLUMNS; k++)
		snprintf(cells[k], CELL, "%s", titles[k]);
	put_row(cells, out);
	fputs("|---|---|---:|---|\n", out);
	for (size_t i = 1; i < t->list.count; i++) {
		fill_cells(t, i, cells);
		put_row(cells, out);
	}
}

static void tries_as_table(const struct tune *t, FILE *out)
{
	struct table *table = table_new();
	char cells[COLUMNS][CELL];

	for (size_t k = 0; k < COLUMNS; k++)
		table_column(table, NULL, titles[k], k == 2);
	for (size_t i = 1; i < t->list.count; i++) {
		fill_cells(t, i, cells);
		for (size_t k = 0; k < COLUMNS; k++)
			table_cell(table, cells[k]);
	}
	table_print(table, "  ", TABLE_WIDTH, out);
}

static char *tell_effort(const struct tune *t)
{
	return xasprintf("%zu runs in %s of %s; metric: %s, %s is better",
			 t->runs, units_time(t->spent_s * 1e9),
			 units_time(t->budget_s * 1e9), t->target->metric.text,
			 t->target->metric.lower ? "less" : "more");
}

static char *tell_noise(const struct tune *t)
{
	const struct comparison_row *none = &t->comparison->rows[TUNE_NONE];

	return xasprintf("the library alone (lock=none): %.3f [%.3f, %.3f] of "
			 "the program without; noise: one run is %s from the "
			 "next",
			 none->ratio.value, none->ratio.low, none->ratio.high,
			 units_percent(t->comparison->noise));
}

static void put_basis(const struct tune *t, const struct style *s, FILE *out)
{
	fputc('\n', out);
	put(s->line, tell_effort(t), out);
	if (t->comparison != NULL && isfinite(t->comparison->noise))
		put(s->line, tell_noise(t), out);
	if (t->untried > 0)
		put(s->line,
		    xasprintf("there was no time for %zu more settings "
			      "(--budget)",
			      t->untried),
		    out);
	if (t->tries == NULL)
		return;
	put(s->line,
	    xstrdup("ratios to the program without mmgate; only what is "
		    "confirmed in fresh rounds is to be believed:"),
	    out);
	fputc('\n', out);
	if (s->markdown)
		tries_as_markdown(t, out);
	else
		tries_as_table(t, out);
}

static void put_others(const struct tune *t, const struct style *s, FILE *out)
{
	char **lines = advice_others(t);

	if (lines[0] != NULL)
		fputc('\n', out);
	for (char **line = lines; *line != NULL; line++)
		put(s->line,
		    xasprintf("%s%s", line == lines ? "what else to try: " : "",
			      *line),
		    out);
	free(lines);
}

static void print(const struct tune *t, const struct style *s, FILE *out)
{
	put_head(t, s, out);
	put_others(t, s, out);
	put_basis(t, s, out);
}

void advice_print_text(const struct tune *t, FILE *out)
{
	print(t, &plain, out);
}

void advice_print_markdown(const struct tune *t, FILE *out)
{
	print(t, &markdown, out);
}
