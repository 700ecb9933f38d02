/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "die.h"
#include "launch.h"
#include "units.h"

static const uint64_t ready_ns = UINT64_C(30000000000),
		      end_ns = UINT64_C(5000000000);

static const double longest_stop_s = 3600, longest_timeout_s = 24 * 3600;

void target_init(struct target *target, const char *who)
{
	*target = (struct target){
		.who = who,
		.metric_text = "wall",
		.server = {.ready_ns = ready_ns, .end_ns = end_ns},
	};
}

bool target_option(struct target *t, int option)
{
	switch (option) {
	case TARGET_METRIC:
		t->metric_text = optarg;
		return true;
	case TARGET_LOWER:
		t->lower = true;
		return true;
	case TARGET_CHECK_OUTPUT:
		t->check_output = true;
		return true;
	case TARGET_TIMEOUT:
		t->timeout_text = optarg;
		return true;
	case TARGET_LOAD:
		t->server.load = optarg;
		return true;
	case TARGET_READY:
		t->ready_text = optarg;
		return true;
	case TARGET_STOP_WAIT:
		t->stop_wait_text = optarg;
		return true;
	default:
		return false;
	}
}

uint64_t target_number(const struct target *t, const char *option,
		       const char *value, uint64_t least, uint64_t most)
{
	uint64_t number;

	if (text_parse_u64(value, strlen(value), &number) != 0 ||
	    number < least || number > most)
		die(EXIT_USAGE, "%s: %s %s: give a number from %llu to %llu",
		    t->who, option, value, (unsigned long long)least,
		    (unsigned long long)most);
	return number;
}

/* "90s", "5m", "1.5h"; what is shorter, as all durations. */
double target_seconds(const struct target *t, const char *option,
		      const char *value, double most_s)
{
	double seconds = 0;
	uint64_t ns;
	char *end;

	if (text_parse_duration(value, strlen(value), &ns) == 0) {
		seconds = (double)ns / 1e9;
	} else if (strchr("0123456789", *value) != NULL) {
		seconds = strtod(value, &end);
		if (strcmp(end, "m") == 0)
			seconds *= 60;
		else if (strcmp(end, "h") == 0)
			seconds *= 3600;
		else
			seconds = 0;
	}
	if (!(seconds > 0 && seconds <= most_s))
		die(EXIT_USAGE,
		    "%s: %s %s: give a duration such as 90s, 5m or 1h, at "
		    "most %.0fh",
		    t->who, option, value, most_s / 3600);
	return seconds;
}

static void need_load(const struct target *t, const char *option)
{
	if (t->server.load == NULL)
		die(EXIT_USAGE, "%s: %s is for servers: give --load too",
		    t->who, option);
}

static void take_stop_wait(struct target *t)
{
	need_load(t, "--stop-wait");
	t->server.end_ns = (uint64_t)(1e9 * target_seconds(t, "--stop-wait",
							   t->stop_wait_text,
							   longest_stop_s));
}

static void check_words(struct target *t)
{
	char why[METRIC_LINE];

	if (!metric_set(&t->metric, t->metric_text, t->lower, why))
		die(EXIT_USAGE, "%s: --metric %s: %s", t->who, t->metric_text,
		    why);
	if (t->timeout_text != NULL)
		t->timeout_s = target_seconds(t, "--timeout", t->timeout_text,
					      longest_timeout_s);
	if (t->stop_wait_text != NULL)
		take_stop_wait(t);
	if (t->ready_text == NULL)
		return;
	need_load(t, "--ready");
	if (!server_set_ready(&t->server, t->ready_text, why))
		die(EXIT_USAGE, "%s: --ready %s: %s", t->who, t->ready_text,
		    why);
}

static void check_command(struct target *t, char **command, bool bare)
{
	struct preflight *p = &t->preflight;

	preflight_check(p, command[0], t->library);
	preflight_arguments(p, command, t->library);
	if (p->status != EXIT_DONE && !(p->status == EXIT_NOT_GATED && bare))
		die(p->status, "%s", p->reason);
	for (size_t i = 0; i < p->note_count; i++)
		warn("note: %s", p->notes[i]);
}

void target_check(struct target *t, char **command, bool bare)
{
	char why[512];

	check_words(t);
	t->library = launch_library(why);
	if (t->library == NULL)
		die(EXIT_USAGE, "%s", why);
	check_command(t, command, bare);
	if (t->server.load != NULL)
		t->server.variables = config_bare_variables();
}

void target_begin(struct target *t, char **command)
{
	measure_begin(&t->measure, t->preflight.path, command);
	if (t->server.load != NULL)
		t->measure.server = &t->server;
	t->measure.timeout_s = t->timeout_s;
}

static void tell_left(const struct target *t)
{
	const struct measure *m = &t->measure;
	const char *who = t->server.load != NULL ? "the load" : m->argv[0];

	warn("note: in %zu of %zu runs %s ended and left processes behind "
	     "(such as %s), which were killed, so that they do not run beside "
	     "the next: what they took is in no figure; let %s wait for what "
	     "it starts",
	     m->left_behind, m->runs, who, m->left_name, who);
}

static void tell_killed(const struct target *t)
{
	const struct measure *m = &t->measure;

	warn("note: the server did not end within %s of SIGTERM and was killed "
	     "in %zu of %zu runs: if it recovers from that when it starts, the "
	     "run after is measured so; give it more time (--stop-wait T)",
	     units_time((double)t->server.end_ns), m->killed, m->runs);
}

static void tell_unlogged(const struct target *t)
{
	const struct measure *m = &t->measure;

	warn("note: %.2f s of the %.2f s of CPU time of a run were spent by "
	     "processes that left no log (such as %s): what is set does "
	     "nothing there; they are static, have another LD_PRELOAD, or "
	     "were forked (follow=fork)",
	     m->unlogged_s, m->unlogged_of_s, m->unlogged_name);
}

void target_end(struct target *t)
{
	measure_end(&t->measure);
	if (t->measure.unlogged_s > 0)
		tell_unlogged(t);
	if (t->measure.left_behind > 0)
		tell_left(t);
	if (t->measure.killed > 0)
		tell_killed(t);
}
