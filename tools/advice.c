/* SPDX-License-Identifier: MIT */
#include "advice.h"

#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "launch.h"
#include "opts.h"
#include "units.h"

/* --- lists of lines --- */

static void add(char ***lines, char *line)
{
	size_t n = 0;

	while (*lines != NULL && (*lines)[n] != NULL)
		n++;
	*lines = xrealloc(*lines, (n + 2) * sizeof(**lines));
	(*lines)[n] = line;
	(*lines)[n + 1] = NULL;
}

static void append(char **line, const char *separator, const char *word)
{
	char *longer = xasprintf("%s%s%s", *line, separator, word);

	free(*line);
	*line = longer;
}

static void append_quoted(char **line, const char *word)
{
	char *quoted = opts_quote(word);

	append(line, **line != '\0' ? " " : "", quoted);
	free(quoted);
}

/* --- what to do --- */

static bool is_cpus(const struct tune *t)
{
	return tune_candidate(t, t->chosen)->kind == SEARCH_CPUS;
}

char *advice_name(const struct tune *t)
{
	if (is_cpus(t))
		return xasprintf("fewer CPUs (%d)",
				 CPU_COUNT(&tune_config(t)->cpus));
	return xstrdup(tune_config(t)->text);
}

static void append_command(const struct tune *t, char **line)
{
	for (char **word = t->command; *word != NULL; word++)
		append_quoted(line, *word);
}

/* As taskset(1) takes it. */
static char *cpu_list(const cpu_set_t *set)
{
	char *list = xstrdup("");

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, set)) {
			char number[16];

			snprintf(number, sizeof(number), "%d", cpu);
			append(&list, *list != '\0' ? "," : "", number);
		}
	return list;
}

char **advice_environment(const struct tune *t)
{
	const struct config *config = tune_config(t);
	char **lines = xcalloc(1, sizeof(*lines)), *preload;

	if (is_cpus(t))
		return lines;
	preload = launch_preload(t->target->library,
				 t->target->preflight.runtimes,
				 getenv("LD_PRELOAD"));
	add(&lines, xasprintf("LD_PRELOAD=%s", preload));
	free(preload);
	for (size_t i = 0; i < knob_count(); i++)
		if (config_gives(config, i))
			add(&lines, xasprintf("%s=%s", knob_at(i)->variable,
					      config->settings.given[i].value));
	return lines;
}

char *advice_command(const struct tune *t)
{
	char *line, *list, **lines;

	if (is_cpus(t)) {
		list = cpu_list(&tune_config(t)->cpus);
		line = xasprintf("taskset -c %s", list);
		free(list);
	} else {
		line = xstrdup("env");
		lines = advice_environment(t);
		for (char **l = lines; *l != NULL; l++)
			append_quoted(&line, *l);
	}
	append_command(t, &line);
	return line;
}

char *advice_look(const struct tune *t)
{
	const struct config *config = tune_config(t);
	char *line = xstrdup("mmgate run");

	if (is_cpus(t)) {
		free(line);
		return NULL;
	}
	for (size_t i = 0; i < knob_count(); i++) {
		if (!config_gives(config, i))
			continue;
		append(&line, " --", knob_at(i)->option);
		append_quoted(&line, config->settings.given[i].value);
	}
	append(&line, " ", "--");
	append_command(t, &line);
	return line;
}

/* --- what else --- */

static void other_cpus(const struct tune *t, char ***lines)
{
	const double seen = 1.02;

	for (size_t i = 1; t->tries != NULL && i < t->list.count; i++)
		if (t->list.items[i].kind == SEARCH_CPUS &&
		    t->tries[i].failure == NULL &&
		    t->tries[i].ratio.value >= seen)
			add(lines,
			    xasprintf("fewer CPUs: %s looked %.3f times as "
				      "good in the search, which fresh rounds "
				      "would have to confirm (mmgate compare)",
				      t->list.items[i].text,
				      t->tries[i].ratio.value));
}

static void other_allocator(const struct profile *p, char ***lines)
{
	const double most = 0.5;

	if (p->libc_share > most)
		add(lines,
		    xasprintf("allocator settings: %s of the calls are libc's "
			      "own (malloc, thread stacks); a larger "
			      "M_MMAP_THRESHOLD and M_TRIM_THRESHOLD, fewer "
			      "arenas (MALLOC_ARENA_MAX) or another allocator "
			      "make fewer of them",
			      units_percent(p->libc_share)));
}

static void other_calls(const struct profile *p, char ***lines)
{
	const double much = 0.05;

	if (p->thread_ns > 0 && p->kernel_ns > much * p->thread_ns)
		add(lines,
		    xasprintf("fewer calls: they take %s of the threads' time; "
			      "mmgate run, then mmgate report --by site, says "
			      "which code makes them",
			      units_percent(p->kernel_ns / p->thread_ns)));
}

static char *tell_more(size_t done, size_t more)
{
	if (done < RATIO_FEW_ROUNDS)
		return xasprintf("%zu fresh round%s too few to say how many "
				 "would settle it",
				 done, done == 1 ? " is" : "s are");
	if (done + more > RATIO_MOST_ROUNDS)
		return xasprintf("more than %d rounds would be needed",
				 RATIO_MOST_ROUNDS);
	return xasprintf("about %zu more round%s would settle it in four of "
			 "five cases",
			 more, more == 1 ? "" : "s");
}

/* What the fresh rounds could not tell. */
static void other_rounds(const struct tune *t, char ***lines)
{
	const struct comparison *c = t->comparison;
	size_t more;
	char *rounds;

	if (t->chosen != 0 || c == NULL || c->count <= TUNE_WINNER ||
	    t->fresh.left_out[TUNE_WINNER])
		return;
	more = tune_more_rounds(t);
	if (more == 0)
		return;
	rounds = tell_more(c->rounds, more);
	add(lines, xasprintf("a larger --budget, longer runs or a quieter "
			     "machine: one run is %s from the next%s%s, and %s",
			     units_percent(c->noise),
			     c->others > 0.05 ? ", other programs used part of "
						"the CPUs: "
					      : "",
			     c->others > 0.05 ? units_percent(c->others) : "",
			     rounds));
	free(rounds);
}

static void other_metric(const struct tune *t, char ***lines)
{
	const struct comparison *c = t->comparison;

	if (t->chosen == 0 && c != NULL && c->count > TUNE_WINNER &&
	    c->rows[TUNE_WINNER].coarse)
		add(lines,
		    xasprintf("a metric with more digits: less than %s does "
			      "not show in those that it has",
			      units_percent(c->rows[TUNE_WINNER].rounding)));
}

static bool is_failing(const struct tune *t)
{
	for (size_t i = 1; t->tries != NULL && i < t->list.count; i++)
		if (t->tries[i].failure != NULL)
			return true;
	return false;
}

/* A setting that would have helped. */
static void other_failure(const struct tune *t, char ***lines)
{
	for (size_t row = TUNE_WINNER;
	     t->comparison != NULL && row < t->comparison->count; row++) {
		const struct search_candidate *c = tune_candidate(t, row);
		const char *failure = t->tries[c - t->list.items].failure;

		if (failure != NULL)
			add(lines, xasprintf("%s again, when it is clear why "
					     "the program fails under it: %s",
					     c->text, failure));
	}
}

char **advice_others(const struct tune *t)
{
	char **lines = xcalloc(1, sizeof(*lines));

	other_rounds(t, &lines);
	other_metric(t, &lines);
	if (t->chosen == 0) {
		other_failure(t, &lines);
		other_cpus(t, &lines);
	}
	if (t->tries != NULL || t->needed_s > 0) {
		other_allocator(&t->profile, &lines);
		other_calls(&t->profile, &lines);
	}
	if (lines[0] == NULL && t->chosen == 0 && t->profile.known &&
	    t->failed == NULL && !is_failing(t))
		add(&lines, xstrdup("nothing: this lock is not what holds it "
				    "up"));
	return lines;
}

const char *advice_verdict(const struct tune *t)
{
	if (t->chosen != 0)
		return "recommendation";
	if (t->needed_s > 0 || t->asked != 0 || t->failed != NULL)
		return "no verdict";
	return "leave it alone";
}

const char *advice_best_so_far(const struct tune *t)
{
	return t->chosen == 0 && t->winner != 0 &&
			       (t->asked != 0 || t->needed_s > 0 ||
				t->failed != NULL)
		       ? t->list.items[t->winner].text
		       : NULL;
}
