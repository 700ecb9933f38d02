/* SPDX-License-Identifier: MIT */
#include "comparison.h"

#include <stdlib.h>

#include "die.h"
#include "ops.h"

/* Of one configuration, a number a round; the caller's to free. */
static double *column(const struct rounds *rounds, size_t config,
		      double (*figure)(const struct rounds_sample *sample))
{
	double *values = xcalloc(rounds->done, sizeof(*values));

	for (size_t i = 0; i < rounds->done; i++)
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
	double *values = column(rounds, config, figure);
	double m = ratio_median(values, rounds->done);

	free(values);
	return m;
}

static void fill_row(struct comparison *c, const struct rounds *rounds,
		     size_t i)
{
	struct comparison_row *row = &c->rows[i];
	size_t n = rounds->done;

	row->config = rounds->configs[i].text;
	row->values = column(rounds, i, value_of);
	row->median = ratio_median(row->values, n);
	row->cpu_s = median(rounds, i, cpu_of);
	row->voluntary = median(rounds, i, voluntary_of);
	row->involuntary = median(rounds, i, involuntary_of);
	row->faults = median(rounds, i, faults_of);
	row->peak_rss_bytes = median(rounds, i, peak_of);
	row->ratio = (struct ratio){1, 1, 1};
	if (i == 0)
		return;
	row->ratio =
		ratio_of(c->rows[0].values, row->values, n, c->metric->lower);
	row->verdict = ratio_judge(&row->ratio);
	row->more_rounds = ratio_more_rounds(&row->ratio, n);
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

/* A run without delay says how many calls there are, and in what time. */
static void find_share(struct comparison *c, const struct rounds *rounds,
		       const double *us, enum op op)
{
	struct comparison_slope *s = &c->slope;

	for (size_t i = 0; rounds->profiles != NULL && i < c->count; i++) {
		const struct profile *p = &rounds->profiles[i];
		double scale;

		if (us[i] > 0 || !p->known || p->op[op].count == 0)
			continue;
		scale = p->wall_s * 1e6 / (double)p->op[op].count;
		s->per_second = (struct ratio){s->per_us.value * scale,
					       s->per_us.low * scale,
					       s->per_us.high * scale};
		return;
	}
}

static void find_slope(struct comparison *c, const struct rounds *rounds)
{
	double *us = xcalloc(c->count, sizeof(*us));
	double **values = xcalloc(c->count, sizeof(*values));
	enum op op;

	if (find_delays(rounds, us, &op)) {
		for (size_t i = 0; i < c->count; i++)
			values[i] = times(c, i);
		c->slope.op = op_name(op);
		c->slope.per_us = ratio_slope((const double *const *)values, us,
					      c->count, c->rounds);
		if (is_of_time(c->metric))
			find_share(c, rounds, us, op);
	}
	for (size_t i = 0; i < c->count; i++)
		free(values[i]);
	free(values);
	free(us);
}

struct comparison *comparison_new(const struct rounds *rounds, size_t wanted)
{
	struct comparison *c = xcalloc(1, sizeof(*c));

	c->metric = rounds->metric;
	c->rounds = rounds->done;
	c->wanted = wanted;
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
