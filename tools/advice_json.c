/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "advice.h"
#include "json.h"
#include "ops.h"

enum { VERSION = 1 };

static void put_lines(struct json *j, const char *key, char **lines)
{
	json_open(j, key, '[');
	for (char **line = lines; *line != NULL; line++) {
		json_string(j, NULL, *line);
		free(*line);
	}
	json_close(j);
	free(lines);
}

static void put_profile(struct json *j, const struct profile *p)
{
	json_open(j, "profile", '{');
	json_double(j, "wall_s", p->wall_s);
	json_u64(j, "threads", p->threads);
	json_double(j, "kernel_share",
		    p->thread_ns > 0 ? p->kernel_ns / p->thread_ns : 0);
	json_double(j, "libc_share", p->libc_share);
	json_open(j, "calls", '{');
	for (unsigned op = 0; op < OP_COUNT; op++) {
		if (p->op[op].count == 0)
			continue;
		json_open(j, op_name(op), '{');
		json_u64(j, "count", p->op[op].count);
		json_round(j, "kernel_ns", p->op[op].kernel_ns);
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

static void put_tries(struct json *j, const struct tune *t)
{
	json_open(j, "tried", '[');
	for (size_t i = 1; t->tries != NULL && i < t->list.count; i++) {
		const struct tune_try *try = &t->tries[i];

		json_open(j, NULL, '{');
		json_string(j, "config", t->list.items[i].text);
		json_u64(j, "rounds", try->rounds);
		if (try->rounds > 0) {
			json_double(j, "ratio", try->ratio.value);
			json_range(j, "ratio_ci95", try->ratio.low,
				   try->ratio.high);
		}
		if (try->failure != NULL)
			json_string(j, "failure", try->failure);
		json_close(j);
	}
	json_close(j);
}

static void put_fresh(struct json *j, const struct tune *t)
{
	const struct comparison *c = t->comparison;

	json_open(j, "fresh", '[');
	for (size_t i = 0; c != NULL && i < c->count; i++) {
		if (t->fresh.left_out[i])
			continue;
		json_open(j, NULL, '{');
		json_string(j, "config", c->rows[i].config);
		json_u64(j, "rounds", c->rounds);
		json_double(j, "median", c->rows[i].median);
		json_double(j, "ratio", c->rows[i].ratio.value);
		json_range(j, "ratio_ci95", c->rows[i].ratio.low,
			   c->rows[i].ratio.high);
		json_string(j, "verdict", comparison_verdict(c, i));
		json_double(j, "ratio_to_none", t->to_none[i].value);
		json_range(j, "ratio_to_none_ci95", t->to_none[i].low,
			   t->to_none[i].high);
		json_close(j);
	}
	json_close(j);
}

static void put_waits(struct json *j, const struct profile *p)
{
	json_open(j, "wait_ns", '{');
	json_u64(j, "gated", p->gated);
	json_round(j, "p99", p->wait_p99_ns);
	json_round(j, "max", p->wait_max_ns);
	json_u64(j, "opened", p->opened);
	json_close(j);
}

static void put_chosen(struct json *j, const struct tune *t)
{
	char *command = advice_command(t), *name = advice_name(t);

	json_open(j, "recommendation", '{');
	json_string(j, "config", tune_config(t)->text);
	json_string(j, "name", name);
	json_bool(j, "confirmed", t->confirmed);
	json_double(j, "ratio", t->comparison->rows[t->chosen].ratio.value);
	json_range(j, "ratio_ci95", t->comparison->rows[t->chosen].ratio.low,
		   t->comparison->rows[t->chosen].ratio.high);
	json_string(j, "command", command);
	put_lines(j, "environment", advice_environment(t));
	if (t->waits.gated > 0)
		put_waits(j, &t->waits);
	json_close(j);
	free(command);
	free(name);
}

static void put_failure(struct json *j, const struct tune *t)
{
	char *line = t->failed != NULL ? tune_failure(t) : NULL;

	if (line != NULL)
		json_string(j, "failure", line);
	else
		json_null(j, "failure");
	free(line);
}

void advice_print_json(const struct tune *t, FILE *out)
{
	struct json j = json_document(out, VERSION);

	json_string(&j, "verdict", advice_verdict(t));
	json_string(&j, "reason", t->reason != NULL ? t->reason : "");
	json_bool(&j, "interrupted", t->asked != 0);
	put_failure(&j, t);
	if (t->chosen != 0)
		put_chosen(&j, t);
	else
		json_null(&j, "recommendation");
	if (advice_best_so_far(t) != NULL)
		json_string(&j, "best_so_far", advice_best_so_far(t));
	put_lines(&j, "others", advice_others(t));
	json_string(&j, "metric", t->target->metric.text);
	json_bool(&j, "lower_is_better", t->target->metric.lower);
	json_double(&j, "budget_s", t->budget_s);
	json_double(&j, "spent_s", t->spent_s);
	if (t->needed_s > 0)
		json_double(&j, "needed_s", t->needed_s);
	json_u64(&j, "runs", t->runs);
	json_u64(&j, "untried", t->untried);
	put_profile(&j, &t->profile);
	if (t->comparison != NULL)
		json_double(&j, "noise", t->comparison->noise);
	put_tries(&j, t);
	put_fresh(&j, t);
	json_close(&j);
}
