/* SPDX-License-Identifier: MIT */
#include "rounds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "die.h"
#include "ratio.h"

void rounds_begin(struct rounds *rounds)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	rounds->random =
		(uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void fail(struct rounds *rounds, size_t config,
		 const struct measure_run *run, char *line)
{
	rounds->failed = config;
	rounds->failure = line;
	rounds->last = *run;
}

/* Lines that are equal, and then the first that is not, in either. */
static char *tell_difference(const char *expected, const char *got)
{
	size_t line = 1, from = 0, at = 0;

	for (; expected[at] == got[at]; at++)
		if (got[at] == '\n') {
			line++;
			from = at + 1;
		}
	return xasprintf("its output differs in line %zu from that of the "
			 "first run of the first configuration: '%.*s', not "
			 "'%.*s'",
			 line, (int)strcspn(got + from, "\n"), got + from,
			 (int)strcspn(expected + from, "\n"), expected + from);
}

/* NULL, or what is wrong with it. */
static char *check_output(struct rounds *rounds, const struct measure_run *run)
{
	char *output = measure_output(run, 0), *line = NULL;

	if (rounds->metric->kind == METRIC_REGEX)
		metric_mask(rounds->metric, output);
	if (rounds->reference == NULL) {
		rounds->reference = output;
		return NULL;
	}
	if (strcmp(rounds->reference, output) != 0)
		line = tell_difference(rounds->reference, output);
	free(output);
	return line;
}

/* In stdout or, if there is nothing, in stderr.  NULL, or what is wrong. */
static char *find_value(const struct metric *metric,
			struct rounds_sample *sample)
{
	char why[METRIC_LINE], other[METRIC_LINE];
	char *out = measure_output(&sample->run, 0);
	char *err = measure_output(&sample->run, 1);
	struct metric_number number;
	bool found = metric_find(metric, out, &number, why) ||
		     metric_find(metric, err, &number, other);

	free(out);
	free(err);
	if (found) {
		sample->value = number.value;
		sample->unit = number.unit;
	}
	return found ? NULL : xasprintf("no metric in its output: %s", why);
}

static char *take_value(const struct metric *metric,
			struct rounds_sample *sample)
{
	switch (metric->kind) {
	case METRIC_WALL:
		sample->value = sample->run.wall_s;
		break;
	case METRIC_CPU:
		sample->value = sample->run.cpu_s;
		break;
	case METRIC_REGEX:
		return find_value(metric, sample);
	}
	return sample->value > 0 ? NULL : xstrdup("it took no time at all");
}

static enum rounds_end judge(struct rounds *rounds, size_t config,
			     struct rounds_sample *sample)
{
	const struct measure_run *run = &sample->run;
	char *line = NULL;

	rounds->asked = run->asked;
	if (run->asked != 0)
		return ROUNDS_ASKED;
	if (run->failure[0] != '\0')
		line = xstrdup(run->failure);
	if (line == NULL && rounds->check_output)
		line = check_output(rounds, run);
	if (line == NULL)
		line = take_value(rounds->metric, sample);
	if (line == NULL)
		return ROUNDS_DONE;
	fail(rounds, config, run, line);
	return ROUNDS_FAILED;
}

/* False: it was stopped with us, so that its times are none: again. */
static bool run_config(struct rounds *rounds, size_t config, char **variables,
		       struct measure_run *run)
{
	const struct config *c = &rounds->configs[config];

	measure_run(rounds->measure, variables, c->has_cpus ? &c->cpus : NULL,
		    run);
	if (!run->paused || run->asked != 0)
		return true;
	measure_free(run);
	return false;
}

/* As above; what it logged is in the directory. */
static bool run_into(struct rounds *rounds, size_t config,
		     const char *directory, struct measure_run *run)
{
	char *log = xasprintf("MMGATE_LOG=%s", directory);
	char **variables = profile_variables(rounds->variables[config], log);
	bool counts = run_config(rounds, config, variables, run);

	free(variables);
	free(log);
	return counts;
}

/* As above; whether a process left one is in `seen`. */
static bool run_profiled(struct rounds *rounds, size_t config,
			 struct measure_run *run, bool *seen)
{
	struct profile *profile = &rounds->profiles[config];
	struct spenders spenders = {0};
	char why[256], *directory = profile_directory(why);
	bool counts;

	if (directory == NULL)
		die(EXIT_USAGE, "%s", why);
	rounds->measure->spenders = &spenders;
	counts = run_into(rounds, config, directory, run);
	rounds->measure->spenders = NULL;
	*seen = profile_read(profile, directory, &spenders);
	profile->wall_s = run->wall_s;
	profile_drop(directory);
	spenders_free(&spenders);
	return counts;
}

/* Most of the time in processes that the library is not in: then what is
 * compared is next to nothing. */
static void note_unlogged(struct measure *measure,
			  const struct profile *profile,
			  const struct measure_run *run)
{
	const double part = 0.5, least_s = 0.1;

	if (run->asked != 0 || profile->unlogged_s < least_s ||
	    profile->unlogged_s < part * run->cpu_s)
		return;
	measure->unlogged_s = profile->unlogged_s;
	measure->unlogged_of_s = fmax(run->cpu_s, profile->unlogged_s);
	memcpy(measure->unlogged_name, profile->unlogged_name, GROUP_NAME);
}

/* With a log.  NULL, or what is wrong. */
static char *run_logged(struct rounds *rounds, size_t config,
			struct measure_run *run)
{
	bool seen;

	while (!run_profiled(rounds, config, run, &seen))
		;
	note_unlogged(rounds->measure, &rounds->profiles[config], run);
	return seen ? NULL
		    : xstrdup("the library never got into the program: a run "
			      "left no log (see mmgate doctor -- CMD)");
}

static enum rounds_end run_one(struct rounds *rounds, size_t config,
			       struct rounds_sample *sample, bool logged)
{
	enum rounds_end end;
	char *unseen = NULL;

	progress_step(rounds->progress, rounds->configs[config].text);
	rounds->asked = launch_asked();
	if (rounds->asked != 0)
		return ROUNDS_ASKED;
	if (logged && !rounds->configs[config].bare)
		unseen = run_logged(rounds, config, &sample->run);
	else
		while (!run_config(rounds, config, rounds->variables[config],
				   &sample->run))
			;
	end = judge(rounds, config, sample);
	if (logged)
		rounds->profiles[config].value = sample->value;
	if (end == ROUNDS_DONE && unseen != NULL) {
		fail(rounds, config, &sample->run, unseen);
		return ROUNDS_FAILED;
	}
	free(unseen);
	if (end != ROUNDS_FAILED)
		measure_free(&sample->run);
	return end;
}

/* Is it that of which the output, or a server's end, is what those of all
 * others are compared with? */
static bool is_first_run(const struct rounds *rounds)
{
	return (rounds->check_output && rounds->reference == NULL) ||
	       (rounds->measure->server != NULL && rounds->measure->runs == 0);
}

/* Who is to run yet, in a random order; returns how many.  The first run of all
 * is the first configuration's, where that matters. */
static size_t draw(struct rounds *rounds, size_t *order)
{
	size_t count = 0, fixed;

	for (size_t i = 0; i < rounds->config_count; i++)
		if ((rounds->left_out == NULL || !rounds->left_out[i]) &&
		    !rounds->had[i])
			order[count++] = i;
	fixed = is_first_run(rounds);
	for (size_t i = count; i > fixed + 1; i--) {
		size_t j = fixed + ratio_random(&rounds->random, i - fixed);
		size_t last = order[i - 1];

		order[i - 1] = order[j];
		order[j] = last;
	}
	return count;
}

static void close_round(struct rounds *rounds)
{
	free(rounds->had);
	rounds->had = NULL;
}

static enum rounds_end run_round(struct rounds *rounds,
				 struct rounds_sample *samples, bool logged)
{
	size_t *order = xcalloc(rounds->config_count, sizeof(*order)), count;
	enum rounds_end end = ROUNDS_DONE;

	if (rounds->had == NULL)
		rounds->had = xcalloc(rounds->config_count, 1);
	count = draw(rounds, order);
	for (size_t i = 0; i < count && end == ROUNDS_DONE; i++) {
		end = run_one(rounds, order[i], &samples[order[i]], logged);
		rounds->had[order[i]] = end == ROUNDS_DONE;
	}
	free(order);
	if (end == ROUNDS_DONE)
		close_round(rounds);
	return end;
}

enum rounds_end rounds_warm_up(struct rounds *rounds, size_t count)
{
	struct rounds_sample *samples =
		xcalloc(rounds->config_count, sizeof(*samples));
	enum rounds_end end = ROUNDS_DONE;

	for (size_t i = 0; i < count && end == ROUNDS_DONE; i++)
		end = run_round(rounds, samples,
				i == 0 && rounds->profiles != NULL);
	free(samples);
	return end;
}

static struct rounds_sample *new_samples(struct rounds *rounds, size_t count)
{
	size_t n = rounds->config_count, from = rounds->done * n;

	rounds->samples = xrealloc(
		rounds->samples, (from + count * n) * sizeof(*rounds->samples));
	if (rounds->had != NULL) { /* the open one has some of its own */
		from += n;
		count--;
	}
	memset(rounds->samples + from, 0, count * n * sizeof(*rounds->samples));
	return rounds->samples;
}

enum rounds_end rounds_measure(struct rounds *rounds, size_t count)
{
	struct rounds_sample *samples = new_samples(rounds, count);
	enum rounds_end end = ROUNDS_DONE;
	struct machine before, after;

	machine_look(&before);
	for (; count > 0 && end == ROUNDS_DONE; count--) {
		end = run_round(rounds,
				samples + rounds->done * rounds->config_count,
				false);
		rounds->done += end == ROUNDS_DONE;
	}
	machine_look(&after);
	machine_add(&rounds->machine, &before, &after);
	return end;
}

void rounds_forgive(struct rounds *rounds)
{
	measure_free(&rounds->last);
	free(rounds->failure);
	rounds->failure = NULL;
}

void rounds_free(struct rounds *rounds)
{
	close_round(rounds);
	free(rounds->samples);
	free(rounds->failure);
}

void rounds_tell_failure(const struct rounds *rounds)
{
	warn("%s: %s", rounds->configs[rounds->failed].text, rounds->failure);
	measure_show(&rounds->last);
}

const struct rounds_sample *rounds_sample(const struct rounds *rounds,
					  size_t round, size_t config)
{
	return &rounds->samples[round * rounds->config_count + config];
}
