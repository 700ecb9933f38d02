/* SPDX-License-Identifier: MIT */
#include "comparison.h"
#include "json.h"

enum { VERSION = 1 };

static void put_row(struct json *j, const struct comparison *c, size_t i)
{
	const struct comparison_row *row = &c->rows[i];

	json_open(j, NULL, '{');
	json_string(j, "config", row->config);
	json_double(j, "median", row->median);
	json_open(j, "values", '[');
	for (size_t k = 0; k < c->rounds; k++)
		json_double(j, NULL, row->values[k]);
	json_close(j);
	json_double(j, "ratio", row->ratio.value);
	json_range(j, "ratio_ci95", row->ratio.low, row->ratio.high);
	json_string(j, "verdict", comparison_verdict(c, i));
	json_u64(j, "more_rounds", row->more_rounds);
	json_bool(j, "too_few_digits", row->coarse);
	json_double(j, "cpu_s", row->cpu_s);
	json_round(j, "voluntary_switches", row->voluntary);
	json_round(j, "involuntary_switches", row->involuntary);
	json_round(j, "page_faults", row->faults);
	json_round(j, "peak_rss_bytes", row->peak_rss_bytes);
	json_close(j);
}

static void put_slope(struct json *j, const struct comparison_slope *slope)
{
	json_open(j, "slope", '{');
	json_string(j, "op", slope->op);
	json_double(j, "per_us", slope->per_us.value);
	json_range(j, "per_us_ci95", slope->per_us.low, slope->per_us.high);
	if (slope->has_per_second) {
		json_double(j, "per_second", slope->per_second.value);
		json_range(j, "per_second_ci95", slope->per_second.low,
			   slope->per_second.high);
	} else {
		json_null(j, "per_second");
		json_null(j, "per_second_ci95");
	}
	if (slope->thread_share > 0)
		json_double(j, "thread_share", slope->thread_share);
	else
		json_null(j, "thread_share");
	json_bool(j, "queues", slope->queues);
	json_close(j);
}

void comparison_print_json(const struct comparison *c, FILE *out)
{
	struct json j = json_document(out, VERSION);

	json_string(&j, "metric", c->metric->text);
	json_bool(&j, "lower_is_better", c->metric->lower);
	json_u64(&j, "rounds", c->rounds);
	json_u64(&j, "rounds_wanted", c->wanted);
	json_bool(&j, "interrupted",
		  c->failure == NULL && c->rounds < c->wanted);
	if (c->failure != NULL)
		json_string(&j, "failure", c->failure);
	else
		json_null(&j, "failure");
	json_open(&j, "configs", '[');
	for (size_t i = 0; i < c->count; i++)
		put_row(&j, c, i);
	json_close(&j);
	json_double(&j, "noise", c->noise);
	json_double(&j, "others_cpu", c->others);
	json_double(&j, "stolen_cpu", c->stolen);
	if (c->slope.op != NULL)
		put_slope(&j, &c->slope);
	json_close(&j);
}
