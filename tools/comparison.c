/* SPDX-License-Identifier: MIT */
#include "comparison.h"

#include <math.h>
#include <stdlib.h>

#include "die.h"
#include "ops.h"

/* Of one configuration, a number each of n rounds; the caller's to free. */
static double *column(const struct rounds *rounds, size_t config, size_t n,
		      double (*figure)(const struct rounds_sample *sample))
{
	double *values = xcalloc(n, sizeof(*values));

	for (size_t i = 0; i < n; i++)
		values[i] = figure(rounds_sample(rounds, i, config));
	return values;
}

static double value_of(const struct rounds_sample *s)
{
	return s->value;
}

static double cpu_of(const struct rounds_sample *s)
{
	return s->run.cpu_s;
}

static double voluntary_of(const struct rounds_sample *s)
{
	return (double)s->run.voluntary;
}

static double involuntary_of(const struct rounds_sample *s)
{
	return (double)s->run.involuntary;
}

static double faults_of(const struct rounds_sample *s)
{
	return (double)s->run.faults;
}

static double peak_of(const struct rounds_sample *s)
{
	return (double)s->run.peak_rss_bytes;
}

static double median(const struct rounds *rounds, size_t config,
		     double (*figure)(const struct rounds_sample *sample))
{
	double *values = column(rounds, config, rounds->done, figure);
	double m = ratio_median(values, rounds->done);

	free(values);
	return m;
}

/* --- ratios --- */

struct ratio comparison_ratio(const struct rounds *rounds, size_t base,
			      size_t config, size_t n)
{
	double *x = column(rounds, base, n, value_of);
	double *y = column(rounds, config, n, value_of);
	struct ratio r = ratio_of(x, y, n, rounds->metric->lower);

	free(x);
	free(y);
	return r;
}

/* The finest that was printed: who prints 5.25 means 5.00 by 5. */
static double unit_of(const struct rounds *rounds, size_t config, size_t n)
{
	double unit = INFINITY;

	for (size_t i = 0; i < n; i++)
		unit = fmin(unit, rounds_sample(rounds, i, config)->unit);
	return unit;
}

/* Half of it, as a part of the values, unless they scatter over more: then it
 * is up as often as down. */
static double half_unit(const struct rounds *rounds, size_t config, size_t n,
			double unit)
{
	double *values = column(rounds, config, n, value_of);
	double middle = ratio_median(values, n);
	double scatter = ratio_scatter(values, n) * middle;

	free(values);
	return middle > 0 && scatter < unit / 2 ? unit / 2 / middle : 0;
}

double comparison_rounding(const struct rounds *rounds, size_t base,
			   size_t config, size_t n)
{
	double unit =
		fmin(unit_of(rounds, base, n), unit_of(rounds, config, n));

	return half_unit(rounds, base, n, unit) +
	       half_unit(rounds, config, n, unit);
}

static void judge_row(struct comparison *c, const struct rounds *rounds,
		      size_t i)
{
	struct comparison_row *row = &c->rows[i];
	size_t n = rounds->done;
	struct ratio plain = comparison_ratio(rounds, 0, i, n);

	row->ratio = plain;
	row->rounding = comparison_rounding(rounds, 0, i, n);
	ratio_widen(&row->ratio, row->rounding);
	row->verdict = ratio_judge(&row->ratio);
	row->more_rounds = ratio_more_rounds(&plain, n);
	row->coarse = row->more_rounds == 0 && !ratio_is_settled(&row->ratio);
}

static void fill_row(struct comparison *c, const struct rounds *rounds,
		     size_t i)
{
	struct comparison_row *row = &c->rows[i];
	size_t n = rounds->done;

	row->config = rounds->configs[i].text;
	row->values = column(rounds, i, n, value_of);
	row->median = ratio_median(row->values, n);
	row->cpu_s = median(rounds, i, cpu_of);
	row->voluntary = median(rounds, i, voluntary_of);
	row->involuntary = median(rounds, i, involuntary_of);
	row->faults = median(rounds, i, faults_of);
	row->peak_rss_bytes = median(rounds, i, peak_of);
	row->ratio = (struct ratio){1, 1, 1};
	if (i > 0)
		judge_row(c, rounds, i);
}

static double noise(const struct comparison *c)
{
	double *scatters = xcalloc(c->count, sizeof(*scatters)), all;

	for (size_t i = 0; i < c->count; i++)
		scatters[i] = ratio_scatter(c->rows[i].values, c->rounds);
	all = ratio_median(scatters, c->count);
	free(scatters);
	return all;
}

/* --- what if --- */

/* The delays in us, when they are all that differs and are of one op. */
static bool find_delays(const struct rounds *rounds, double *us, enum op *op)
{
	bool differ = false;

	*op = OP_COUNT;
	for (size_t i = 0; i < rounds->config_count; i++) {
		enum op other;
		uint64_t ns;

		if (!config_differ_by_delay(&rounds->configs[0],
					    &rounds->configs[i]) ||
		    !config_delay(&rounds->configs[i], &other, &ns))
			return false;
		if (*op != OP_COUNT && other != OP_COUNT && other != *op)
			return false;
		if (other != OP_COUNT)
			*op = other;
		us[i] = (double)ns / 1e3;
		differ |= us[i] != us[0];
	}
	return differ;
}

/* What takes longer when calls do: a rate is turned over. */
static double *times(const struct comparison *c, size_t row)
{
	double *values = xcalloc(c->rounds, sizeof(*values));

	for (size_t i = 0; i < c->rounds; i++)
		values[i] = c->metric->lower ? c->rows[row].values[i]
					     : 1 / c->rows[row].values[i];
	return values;
}

/* Does it rise and fall with the time that the whole program takes? */
static bool is_of_time(const struct metric *metric)
{
	return metric->kind == METRIC_WALL || !metric->lower;
}

/* Calls in a second of a measured run.  The run that counted them was the first
 * and had a log, so it took longer: by the work that was done. */
static double calls_per_s(const struct comparison *c, size_t row,
			  uint64_t calls, const struct profile *p)
{
	double median = c->rows[row].median;

	if (c->metric->kind == METRIC_WALL)
		return (double)calls / median;
	return p->value > 0 ? (double)calls / p->wall_s * median / p->value : 0;
}

static void find_per_second(struct comparison_slope *s, double calls)
{
	double scale = 1e6 / calls;

	s->has_per_second = calls > 0;
	if (s->has_per_second)
		s->per_second = (struct ratio){s->per_us.value * scale,
					       s->per_us.low * scale,
					       s->per_us.high * scale};
}

/* Threads that never wait take as much longer as is added to their calls, and
 * the program takes part in that. */
static bool is_queue(const struct comparison_slope *s,
		     const struct profile *profile, uint64_t calls)
{
	const double much = 0.25, hardly = 0.5;
	double added = (double)calls * 1e3 / profile->thread_ns;

	return s->thread_share >= much && s->per_us.value < hardly * added;
}

/* A run without delay says what calls there are. */
static void find_share(struct comparison *c, const struct rounds *rounds,
		       size_t base, enum op op)
{
	const struct profile *p = &rounds->profiles[base];
	struct comparison_slope *s = &c->slope;
	const struct profile_op *o = &p->op[op];

	if (p->thread_ns > 0)
		s->thread_share = (o->kernel_ns + o->wait_ns) / p->thread_ns;
	/* By CPU time a delay costs the same whoever waits. */
	s->queues = c->metric->kind != METRIC_CPU && is_queue(s, p, o->count);
	if (is_of_time(c->metric) &&
	    (rounds->measure == NULL || rounds->measure->server == NULL))
		find_per_second(s, calls_per_s(c, base, o->count, p));
}

/* What rounding can add to each end of the slope. */
static void widen_slope(struct comparison *c, const struct rounds *rounds,
			const double *us)
{
	double unit = INFINITY, widest = 0, from = us[0], to = us[0];

	for (size_t i = 0; i < c->count; i++)
		unit = fmin(unit, unit_of(rounds, i, c->rounds));
	for (size_t i = 0; i < c->count; i++) {
		widest = fmax(widest, half_unit(rounds, i, c->rounds, unit));
		from = fmin(from, us[i]);
		to = fmax(to, us[i]);
	}
	c->slope.per_us.low -= 2 * widest / (to - from);
	c->slope.per_us.high += 2 * widest / (to - from);
}

static void fit_slope(struct comparison *c, const struct rounds *rounds,
		      const double *us, enum op op)
{
	double **values = xcalloc(c->count, sizeof(*values));

	c->slope.op = op_name(op);
	for (size_t i = 0; i < c->count; i++)
		values[i] = times(c, i);
	c->slope.per_us = ratio_slope((const double *const *)values, us,
				      c->count, c->rounds);
	widen_slope(c, rounds, us);
	for (size_t i = 0; i < c->count; i++)
		free(values[i]);
	free(values);
}

/* Without delay; and one that was counted, if there is any. */
static size_t find_base(const struct comparison *c, const struct rounds *rounds,
			const double *us, enum op op, bool *counted)
{
	size_t base = c->count;

	*counted = false;
	for (size_t i = 0; i < c->count && !*counted; i++) {
		if (us[i] > 0)
			continue;
		base = i;
		*counted = rounds->profiles != NULL &&
			   rounds->profiles[i].known &&
			   rounds->profiles[i].op[op].count > 0;
	}
	return base;
}

static void find_slope(struct comparison *c, const struct rounds *rounds)
{
	double *us = xcalloc(c->count, sizeof(*us));
	bool counted;
	size_t base;
	enum op op;

	if (find_delays(rounds, us, &op)) {
		base = find_base(c, rounds, us, op, &counted);
		c->slope.unbased = base == c->count;
		if (!c->slope.unbased)
			fit_slope(c, rounds, us, op);
		if (counted)
			find_share(c, rounds, base, op);
	}
	free(us);
}

static char *tell_failure(const struct rounds *rounds)
{
	return rounds->failure == NULL
		       ? NULL
		       : xasprintf("%s: %s",
				   rounds->configs[rounds->failed].text,
				   rounds->failure);
}

struct comparison *comparison_new(const struct rounds *rounds, size_t wanted)
{
	struct comparison *c = xcalloc(1, sizeof(*c));

	c->metric = rounds->metric;
	c->rounds = rounds->done;
	c->wanted = wanted;
	c->failure = tell_failure(rounds);
	c->count = rounds->config_count;
	c->rows = xcalloc(c->count, sizeof(*c->rows));
	for (size_t i = 0; i < c->count; i++)
		fill_row(c, rounds, i);
	c->noise = noise(c);
	c->others = machine_others(&rounds->machine);
	c->stolen = machine_stolen(&rounds->machine);
	find_slope(c, rounds);
	return c;
}

void comparison_free(struct comparison *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->rows[i].values);
	free(c->rows);
	free(c->failure);
	free(c);
}

const char *comparison_verdict(const struct comparison *c, size_t row)
{
	static const char *const names[] = {
		[RATIO_SAME] = "no difference",
		[RATIO_FASTER] = "faster",
		[RATIO_SLOWER] = "slower",
	};

	return row == 0 ? "baseline" : names[c->rows[row].verdict];
}
