/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "die.h"
#include "html.h"
#include "units.h"

enum {
	WIDTH = 1000,
	LEFT = 110, /* room for names */
	RIGHT = 10,
	TOP = 20, /* room for the worst calls' marks */
	GAP = 14,
	FOOT = 24, /* room for the axis */
	PLOT = WIDTH - LEFT - RIGHT,
};

static void begin(FILE *out, const char *id, int height, const char *title)
{
	fprintf(out,
		"<div class=scroll tabindex=0 role=region aria-labelledby=%s-t>"
		"<svg viewBox=\"0 0 %d %d\" role=img aria-labelledby=\"%s-t "
		"%s-d\"><title id=%s-t>",
		id, WIDTH, height, id, id, id);
	html_text(out, title);
	fprintf(out, "</title><desc id=%s-d>", id);
}

static void end(FILE *out)
{
	fputs("</svg></div>\n", out);
}

static void put_text(FILE *out, double x, double y, const char *anchor,
		     const char *text)
{
	fprintf(out, "<text x=%.1f y=%.1f text-anchor=%s>", x, y, anchor);
	html_text(out, text);
	fputs("</text>", out);
}

static void put_line(FILE *out, double x1, double y1, double x2, double y2)
{
	fprintf(out, "<path class=axis d=\"M%.1f %.1fL%.1f %.1f\"/>", x1, y1,
		x2, y2);
}

/* --- latencies --- */

enum { STRIP = 64, BINS_EACH = 10, LOW = 2, MOST_BINS = 16 * BINS_EACH };

/* Times on a logarithmic axis from 10^LOW ns. */
struct log_axis {
	int high; /* power of ten at its end */
};

static double log_x(const struct log_axis *axis, double ns)
{
	double at = log10(fmax(ns, 1)) - LOW;

	at = fmin(fmax(at, 0), axis->high - LOW);
	return LEFT + PLOT * at / (axis->high - LOW);
}

static struct log_axis axis_of(const struct log_op *ops)
{
	double max = 1e4;
	unsigned i;

	for (i = 0; i < OP_COUNT; i++)
		max = fmax(max, fmax(ops[i].kernel.max_ns, ops[i].wait.max_ns));
	return (struct log_axis){.high = (int)fmin(ceil(log10(max)), 15)};
}

static void bin(const struct hist *h, double *bins)
{
	unsigned i;
	int at;

	for (i = 0; i < h->width; i++) {
		if (h->bucket[i] == 0)
			continue;
		at = (int)((log10(fmax(hist_middle(h, h->first + i), 1)) -
			    LOW) *
			   BINS_EACH);
		at = at < 0 ? 0 : at;
		bins[at < MOST_BINS ? at : MOST_BINS - 1] +=
			(double)h->bucket[i];
	}
}

static double most(const double *bins)
{
	double most = 1;
	int i;

	for (i = 0; i < MOST_BINS; i++)
		most = fmax(most, bins[i]);
	return most;
}

/* The heights are logarithms too: one call in a million shows. */
static void put_shape(FILE *out, const char *class, const double *bins,
		      double all, const struct log_axis *axis, double base)
{
	int count = (axis->high - LOW) * BINS_EACH, i;
	double step = (double)PLOT / count, x = LEFT, y;

	fprintf(out, "<path class=%s d=\"M%d %.1f", class, LEFT, base);
	for (i = 0; i < count; i++, x += step) {
		y = base - (STRIP - 4) * log10(1 + bins[i]) / log10(1 + all);
		fprintf(out, "L%.1f %.1fL%.1f %.1f", x, y, x + step, y);
	}
	fprintf(out, "L%.1f %.1fz\"/>", x, base);
}

/* A tick, and its name if the one before left room: the table has the values
 * of all. */
static void put_mark(FILE *out, const struct log_axis *axis, double base,
		     double ns, const char *name, double *last)
{
	double x = log_x(axis, ns);

	fprintf(out,
		"<g><title>%s %s</title><path class=mark d=\"M%.1f %.1fv-8\"/>",
		name, units_time(ns), x, base + 4);
	if (x > *last + 24) {
		put_text(out, x, base + 14, "middle", name);
		*last = x;
	}
	fputs("</g>", out);
}

static void put_strip(FILE *out, const char *name, const struct log_op *op,
		      const struct log_axis *axis, double base)
{
	double kernel[MOST_BINS] = {0}, wait[MOST_BINS] = {0}, all, last = 0;

	bin(&op->kernel, kernel);
	bin(&op->wait, wait);
	all = fmax(most(kernel), most(wait));
	put_text(out, LEFT - 8, base - STRIP / 2.0, "end", name);
	put_text(out, LEFT - 8, base - STRIP / 2.0 + 15, "end",
		 units_count(op->count));
	if (op->gated > 0)
		put_shape(out, "wait", wait, all, axis, base);
	put_shape(out, "kernel", kernel, all, axis, base);
	put_line(out, LEFT, base, WIDTH - RIGHT, base);
	put_mark(out, axis, base, hist_percentile(&op->kernel, 0.5), "50",
		 &last);
	put_mark(out, axis, base, hist_percentile(&op->kernel, 0.99), "99",
		 &last);
	put_mark(out, axis, base, op->kernel.max_ns, "max", &last);
}

static void put_decades(FILE *out, const struct log_axis *axis, double bottom)
{
	double x;
	int i;

	for (i = LOW; i <= axis->high; i++) {
		x = LEFT + (double)PLOT * (i - LOW) / (axis->high - LOW);
		put_line(out, x, TOP, x, bottom);
		put_text(out, x, bottom + 16,
			 i == LOW          ? "start"
			 : i == axis->high ? "end"
					   : "middle",
			 units_time(pow(10, i)));
	}
}

static void describe_latencies(const struct log_op *ops, FILE *out)
{
	unsigned i;

	for (i = 0; i < OP_COUNT; i++)
		if (ops[i].count > 0)
			fprintf(out,
				"%s: half within %s, 99 %% within %s, at "
				"most %s. ",
				op_name(i),
				units_time(
					hist_percentile(&ops[i].kernel, 0.5)),
				units_time(
					hist_percentile(&ops[i].kernel, 0.99)),
				units_time(ops[i].kernel.max_ns));
}

void chart_latencies(const struct log_op *ops, FILE *out)
{
	struct log_axis axis = axis_of(ops);
	int strips = 0, height;
	double base = TOP;
	unsigned i;

	for (i = 0; i < OP_COUNT; i++)
		strips += ops[i].count > 0;
	height = TOP + strips * (STRIP + GAP) + FOOT;
	begin(out, "latencies", height, "How long calls took in the kernel");
	describe_latencies(ops, out);
	fputs("</desc>", out);
	put_decades(out, &axis, height - FOOT);
	for (i = 0; i < OP_COUNT; i++)
		if (ops[i].count > 0) {
			base += STRIP;
			put_strip(out, op_name(i), &ops[i], &axis, base);
			base += GAP;
		}
	end(out);
}

/* --- over time --- */

enum { BAND = 60 };

/* One figure over time. */
struct band {
	const char *name, *class;
	/* A rate; -1: nobody could look, as the threads had ended. */
	double (*of)(const struct rows_row *row);
	const char *(*show)(double value);
	bool of_threads; /* time of threads a second: they are so many */
};

static double per_second(const struct rows_row *row, double value)
{
	return row->span_ns > 0 ? value * 1e9 / (double)row->span_ns : 0;
}

static double calls_of(const struct rows_row *row)
{
	return per_second(row, (double)rows_sum(row).count);
}

static double waiting_of(const struct rows_row *row)
{
	return per_second(row, (double)rows_sum(row).wait_ns / 1e9);
}

static double inside_of(const struct rows_row *row)
{
	return per_second(row, (double)rows_sum(row).kernel_ns / 1e9);
}

static double p99_of(const struct rows_row *row)
{
	struct rows_op all = rows_sum(row);

	return rows_percentile(all.kernel, 0.99);
}

static double switches_of(const struct rows_row *row)
{
	if (row->threads == 0)
		return -1;
	return per_second(row, (double)row->voluntary_switches +
				       (double)row->involuntary_switches);
}

static double faults_of(const struct rows_row *row)
{
	if (row->threads == 0)
		return -1;
	return per_second(row, (double)row->minor_faults +
				       (double)row->major_faults);
}

static const char *show_count(double value)
{
	return units_count((uint64_t)fmin(value, 1e18));
}

static const char *show_threads(double value)
{
	static char text[32];

	if (value > 0 && value < 0.01)
		return "<0.01";
	snprintf(text, sizeof(text), "%.3g", value);
	return text;
}

static const struct band bands[] = {
	{"calls/s", "other", calls_of, show_count, false},
	{"threads waiting", "wait", waiting_of, show_threads, true},
	{"threads inside", "kernel", inside_of, show_threads, true},
	{"kernel p99", "kernel", p99_of, units_time, false},
	{"switches/s", "other", switches_of, show_count, false},
	{"page faults/s", "other", faults_of, show_count, false},
};

enum { BANDS = sizeof(bands) / sizeof(*bands) };

/* All of the rows, and where a time is on the axis. */
struct time_axis {
	const struct report *report;
	double from, span; /* ns */
};

static double time_x(const struct time_axis *axis, double ns)
{
	double at = axis->span > 0 ? (ns - axis->from) / axis->span : 0;

	return LEFT + PLOT * fmin(fmax(at, 0), 1);
}

/* A call counts in the row that it ended in, so one row can have more time
 * than its threads had: the rest was spent before. */
static void move_back(const struct rows *rows, double *values)
{
	double most = 0, span, before;
	size_t i;

	for (i = 0; i < rows->count; i++)
		most = fmax(most, rows->row[i].threads);
	for (i = rows->count - 1; i > 0 && most > 0; i--) {
		span = (double)rows->row[i].span_ns;
		before = (double)rows->row[i - 1].span_ns;
		if (values[i] <= most || before <= 0)
			continue;
		values[i - 1] += (values[i] - most) * span / before;
		values[i] = most;
	}
}

static double *values_of(const struct rows *rows, const struct band *band)
{
	double *values = xcalloc(rows->count, sizeof(*values));
	size_t i;

	for (i = 0; i < rows->count; i++)
		values[i] = band->of(&rows->row[i]);
	if (band->of_threads)
		move_back(rows, values);
	return values;
}

static double peak_of(const struct rows *rows, const struct band *band)
{
	double *values = values_of(rows, band), peak = 0;
	size_t i;

	for (i = 0; i < rows->count; i++)
		peak = fmax(peak, values[i]);
	free(values);
	return peak;
}

static void put_values(FILE *out, const struct time_axis *axis,
		       const struct band *band, double peak, double base)
{
	const struct rows *rows = axis->report->rows;
	double *values = values_of(rows, band), to = LEFT, y;
	const struct rows_row *row;
	size_t i;

	fprintf(out, "<path class=%s d=\"M%d %.1f", band->class, LEFT, base);
	for (i = 0; i < rows->count; i++) {
		row = &rows->row[i];
		if (values[i] < 0)
			continue;
		y = base - (BAND - 4) * fmin(values[i] / peak, 1);
		fprintf(out, "L%.1f %.1f", time_x(axis, (double)row->from_ns),
			y);
		to = time_x(axis, (double)row->from_ns + (double)row->span_ns);
		fprintf(out, "L%.1f %.1f", to, y);
	}
	fprintf(out, "L%.1f %.1fz\"/>", to, base);
	free(values);
}

static void put_band(FILE *out, const struct time_axis *axis,
		     const struct band *band, double peak, double base)
{
	put_text(out, LEFT - 8, base - BAND / 2.0, "end", band->name);
	put_text(out, LEFT - 8, base - BAND / 2.0 + 15, "end",
		 band->show(peak));
	put_values(out, axis, band, peak, base);
	put_line(out, LEFT, base, WIDTH - RIGHT, base);
}

/* A distance of marks that people count in, of which about `count` fit. */
static double step_of(double span, int count)
{
	double step = pow(10, floor(log10(fmax(span / count, 1e-9))));
	double times = span / count / step;

	return step * (times < 1.5   ? 1
		       : times < 3.5 ? 2
		       : times < 7.5 ? 5
				     : 10);
}

static void put_seconds(FILE *out, const struct time_axis *axis, double bottom)
{
	double from = (axis->from - (double)axis->report->origin_ns) / 1e9;
	double span = axis->span / 1e9, step = step_of(span, 8);
	double first = ceil(from / step), at, x;
	int digits = step < 1 ? (int)ceil(-log10(step)) : 0, i;
	char text[64];

	/* Counted: far from the origin a step may be too small to add. */
	for (i = 0; i < 16; i++) {
		at = (first + i) * step;
		if (at > from + span)
			break;
		x = time_x(axis, axis->from + (at - from) * 1e9);
		put_line(out, x, bottom, x, bottom + 4);
		snprintf(text, sizeof(text), "%.*f s", digits, at);
		put_text(out, x, bottom + 18, "middle", text);
	}
}

/* Each leads to where it is told in words. */
static void put_worst(FILE *out, const struct time_axis *axis, double bottom)
{
	const struct worst *worst = axis->report->worst;
	const struct log_event *e;
	double x;
	size_t i;

	for (i = 0; worst && i < worst->count; i++) {
		e = &worst->call[i].event;
		x = time_x(axis, (double)e->time_ns);
		fprintf(out,
			"<a href=\"#worst-%zu\"><title>%zu: %s, %s</title>"
			"<path class=rule d=\"M%.1f %dV%.1f\"/><path "
			"class=mark d=\"M%.1f %dl5 -10h-10z\"/></a>",
			i + 1, i + 1, op_name(e->raw.op),
			units_time((double)e->wait_ns + (double)e->kernel_ns),
			x, TOP, bottom, x, TOP);
	}
}

static void describe_times(const struct rows *rows, FILE *out)
{
	double peak;
	int i;

	for (i = 0; i < BANDS; i++) {
		peak = peak_of(rows, &bands[i]);
		if (peak <= 0)
			continue;
		fprintf(out, "%s: at most ", bands[i].name);
		html_text(out, bands[i].show(peak));
		fputs(". ", out);
	}
}

static struct time_axis time_axis_of(const struct report *report)
{
	const struct rows *rows = report->rows;
	const struct rows_row *last = &rows->row[rows->count - 1];
	struct time_axis axis = {.report = report};

	axis.from = (double)rows->row[0].from_ns;
	axis.span = (double)last->from_ns + (double)last->span_ns - axis.from;
	return axis;
}

void chart_times(const struct report *report, FILE *out)
{
	struct time_axis axis = time_axis_of(report);
	double peaks[BANDS], base = TOP, bottom;
	int shown = 0, i;

	for (i = 0; i < BANDS; i++) {
		peaks[i] = peak_of(report->rows, &bands[i]);
		shown += peaks[i] > 0;
	}
	bottom = TOP + shown * (BAND + GAP) - GAP;
	begin(out, "times", (int)bottom + FOOT, "The run over time");
	describe_times(report->rows, out);
	fputs("</desc>", out);
	for (i = 0; i < BANDS; i++)
		if (peaks[i] > 0) {
			base += BAND;
			put_band(out, &axis, &bands[i], peaks[i], base);
			base += GAP;
		}
	put_seconds(out, &axis, bottom);
	put_worst(out, &axis, bottom);
	end(out);
}
