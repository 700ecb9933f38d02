/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comparison.h"
#include "die.h"
#include "output.h"
#include "table.h"
#include "units.h"
#include "utf8.h"

enum { CELL = 160, LINE = 512 };

static const char *const titles[] = {
	"config", "median",   "ratio",  "95 % interval", "verdict",
	"cpu",    "switches", "forced", "faults",        "memory",
};

enum { COLUMNS = sizeof(titles) / sizeof(titles[0]), VERDICT = 4 };

static bool is_number(size_t column)
{
	return column != 0 && column != VERDICT;
}

static void put_value(const struct comparison *c, double value, char *out)
{
	if (c->metric->kind == METRIC_REGEX)
		snprintf(out, CELL, "%.6g", value);
	else
		snprintf(out, CELL, "%s", units_time(value * 1e9));
}

static void put_ratio(const struct comparison *c, size_t row, char *ratio,
		      char *interval)
{
	const struct ratio *r = &c->rows[row].ratio;

	snprintf(ratio, CELL, "%.3f", r->value);
	*interval = '\0';
	if (row == 0)
		return;
	if (isfinite(r->high))
		snprintf(interval, CELL, "%.3f to %.3f", r->low, r->high);
	else
		snprintf(interval, CELL, "anything");
}

static const char *count(double value)
{
	return units_count((uint64_t)llround(value));
}

static void fill_cells(const struct comparison *c, size_t i,
		       char cells[COLUMNS][CELL])
{
	const struct comparison_row *row = &c->rows[i];

	utf8_clean(cells[0], row->config, CELL - 1, 0);
	put_value(c, row->median, cells[1]);
	put_ratio(c, i, cells[2], cells[3]);
	snprintf(cells[4], CELL, "%s", comparison_verdict(c, i));
	snprintf(cells[5], CELL, "%s", units_time(row->cpu_s * 1e9));
	snprintf(cells[6], CELL, "%s",
		 count(row->voluntary + row->involuntary));
	snprintf(cells[7], CELL, "%s", count(row->involuntary));
	snprintf(cells[8], CELL, "%s", count(row->faults));
	snprintf(cells[9], CELL, "%s", units_bytes(row->peak_rss_bytes));
}

static void put_head(const struct comparison *c, char *out)
{
	char metric[LINE / 2];
	const char *what = c->metric->kind == METRIC_WALL  ? "time that passed"
			   : c->metric->kind == METRIC_CPU ? "CPU time"
							   : metric;

	utf8_clean(metric, c->metric->text, sizeof(metric) - 1, 0);
	snprintf(out, LINE,
		 "%zu round%s of %zu configurations; metric: %s, %s is better",
		 c->rounds, c->rounds == 1 ? "" : "s", c->count, what,
		 c->metric->lower ? "less" : "more");
}

/* --- what is said below the table, a line each --- */

struct notes {
	char **lines;
	size_t count;
};

static void add_note(struct notes *notes, char *line)
{
	notes->lines = xrealloc(notes->lines,
				(notes->count + 1) * sizeof(*notes->lines));
	notes->lines[notes->count++] = line;
}

static void free_notes(struct notes *notes)
{
	for (size_t i = 0; i < notes->count; i++)
		free(notes->lines[i]);
	free(notes->lines);
}

static void tell_range(const struct ratio *r, char *out, size_t size)
{
	const double wide = 0.05;

	if (!isfinite(r->high))
		snprintf(out, size, "one round tells nothing");
	else
		snprintf(out, size, "%s, from %.1f %% worse to %.1f %% better",
			 r->high - r->low > 2 * wide ? "too noisy to tell"
						     : "not settled",
			 100 * fmax(0, 1 - r->low), 100 * fmax(0, r->high - 1));
}

static void tell_more(size_t more, size_t done, char *out, size_t size)
{
	size_t rounds = done + more;

	if (done < RATIO_FEW_ROUNDS)
		snprintf(out, size,
			 "too few to say how many would settle it, %zu are the "
			 "default (-n %zu)",
			 rounds, rounds);
	else if (rounds > RATIO_MOST_ROUNDS)
		snprintf(out, size,
			 "more than %d rounds would be needed: quieten the "
			 "machine, or let each run do more work",
			 RATIO_MOST_ROUNDS);
	else
		snprintf(out, size,
			 "about %zu more round%s would settle it in four of "
			 "five cases (-n %zu)",
			 more, more == 1 ? "" : "s", rounds);
}

static void note_unsettled(const struct comparison *c, size_t i,
			   struct notes *notes)
{
	const struct comparison_row *row = &c->rows[i];
	char range[LINE / 2], more[LINE / 2];

	tell_range(&row->ratio, range, sizeof(range));
	tell_more(row->more_rounds, c->rounds, more, sizeof(more));
	add_note(notes, xasprintf("%s: %s: %s", row->config, range, more));
}

static void note_coarse(const struct comparison_row *row, struct notes *notes)
{
	add_note(notes, xasprintf("%s: the metric has too few digits to tell: "
				  "less than %s does not show in them; let the "
				  "program print more",
				  row->config, units_percent(row->rounding)));
}

/* Who was in the way, if anybody was. */
static void note_machine(const struct comparison *c, struct notes *notes)
{
	const double much_others = 0.05, much_stolen = 0.02;

	if (c->others >= much_others)
		add_note(notes, xasprintf("the machine was not idle: other "
					  "programs used %s of the CPUs' time",
					  units_percent(c->others)));
	if (c->stolen >= much_stolen)
		add_note(notes, xasprintf("the machine is shared: the "
					  "hypervisor took %s of the CPUs' "
					  "time",
					  units_percent(c->stolen)));
}

/* What the slope is a part of. */
static const char *whole(const struct metric *metric)
{
	if (metric->kind == METRIC_CPU)
		return "the program's CPU time";
	if (metric->kind == METRIC_REGEX && metric->lower)
		return "what is measured";
	return "the program's time";
}

static void note_queue(const struct comparison_slope *s, struct notes *notes)
{
	add_note(notes,
		 xasprintf("but %s calls take %s of the threads' time: threads "
			   "probably queue there, and who waits spends the "
			   "delay instead of the wait, so that the slope tells "
			   "nothing of what these calls cost (mmgate report "
			   "does)",
			   s->op, units_percent(s->thread_share)));
}

static const char *meaning(const struct ratio *per_second)
{
	if (per_second->low <= 0 && per_second->high >= 1)
		return ": anything between nothing and all of it, so that more "
		       "rounds are needed (-n)";
	if (per_second->value < 1)
		return ": little where threads overlap, or queue";
	return "";
}

static void note_slope(const struct comparison *c, struct notes *notes)
{
	const struct comparison_slope *s = &c->slope;

	if (s->unbased)
		add_note(notes, xstrdup("what if: a configuration without the "
					"delay is missing (delay=none), of "
					"which a slope would be a part"));
	if (s->op == NULL)
		return;
	add_note(notes,
		 xasprintf("what if: each us added to every %s call costs "
			   "%.3g %% [%.3g, %.3g] of %s",
			   s->op, 100 * s->per_us.value, 100 * s->per_us.low,
			   100 * s->per_us.high, whole(c->metric)));
	if (s->has_per_second)
		add_note(notes,
			 xasprintf("of each second so added to %s calls the "
				   "program takes %.3g s longer [%.3g, %.3g]%s",
				   s->op, s->per_second.value,
				   s->per_second.low, s->per_second.high,
				   meaning(&s->per_second)));
	if (s->queues)
		note_queue(s, notes);
}

static void note_end(const struct comparison *c, struct notes *notes)
{
	if (c->failure != NULL)
		add_note(notes, xasprintf("failed after %zu of %zu rounds: %s",
					  c->rounds, c->wanted, c->failure));
	else if (c->rounds < c->wanted)
		add_note(notes, xasprintf("interrupted after %zu of %zu rounds",
					  c->rounds, c->wanted));
}

static struct notes notes_of(const struct comparison *c)
{
	struct notes notes = {0};
	bool unsettled = false;

	note_end(c, &notes);
	if (c->rounds > 1)
		add_note(&notes, xasprintf("noise: one run is %s from the "
					   "next of its configuration",
					   units_percent(c->noise)));
	for (size_t i = 1; i < c->count; i++)
		if (c->rows[i].more_rounds != 0) {
			note_unsettled(c, i, &notes);
			unsettled = true;
		} else if (c->rows[i].coarse) {
			note_coarse(&c->rows[i], &notes);
		}
	if (unsettled)
		note_machine(c, &notes);
	note_slope(c, &notes);
	return notes;
}

/* --- formats --- */

static void put_notes(const struct comparison *c, const char *before, FILE *out)
{
	struct notes notes = notes_of(c);

	for (size_t i = 0; i < notes.count; i++) {
		char *clean = output_clean(notes.lines[i]);

		fprintf(out, "%s%s\n", before, clean);
		free(clean);
	}
	free_notes(&notes);
}

void comparison_print_text(const struct comparison *c, FILE *out)
{
	struct table *table = table_new();
	char head[LINE];

	put_head(c, head);
	fprintf(out, "%s\n\n", head);
	for (unsigned k = 0; k < COLUMNS; k++) {
		table_spare(table, k > VERDICT ? k : 0);
		table_column(table, NULL, titles[k], is_number(k));
	}
	for (size_t i = 0; i < c->count; i++) {
		char cells[COLUMNS][CELL];

		fill_cells(c, i, cells);
		for (size_t k = 0; k < COLUMNS; k++)
			table_cell(table, cells[k]);
	}
	table_print(table, "  ", TABLE_WIDTH, out);
	fputc('\n', out);
	put_notes(c, "", out);
}

void comparison_print_markdown(const struct comparison *c, FILE *out)
{
	char head[LINE];

	put_head(c, head);
	fprintf(out, "%s\n\n", head);
	for (size_t k = 0; k < COLUMNS; k++)
		table_put_cell(titles[k], out);
	fputs("|\n", out);
	for (size_t k = 0; k < COLUMNS; k++)
		fputs(is_number(k) ? "|---:" : "|---", out);
	fputs("|\n", out);
	for (size_t i = 0; i < c->count; i++) {
		char cells[COLUMNS][CELL];

		fill_cells(c, i, cells);
		for (size_t k = 0; k < COLUMNS; k++)
			table_put_cell(cells[k], out);
		fputs("|\n", out);
	}
	fputc('\n', out);
	put_notes(c, "- ", out);
}
