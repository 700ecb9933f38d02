/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "die.h"
#include "launch.h"

static const uint64_t ready_ns = UINT64_C(30000000000),
		      end_ns = UINT64_C(5000000000);

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
	case TARGET_LOAD:
		t->server.load = optarg;
		return true;
	case TARGET_READY:
		t->ready_text = optarg;
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

static void check_words(struct target *t)
{
	char why[METRIC_LINE];

	if (!metric_set(&t->metric, t->metric_text, t->lower, why))
		die(EXIT_USAGE, "%s: --metric %s: %s", t->who, t->metric_text,
		    why);
	if (t->ready_text == NULL)
		return;
	if (t->server.load == NULL)
		die(EXIT_USAGE, "%s: --ready is for servers: give --load too",
		    t->who);
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

void target_end(struct target *t)
{
	measure_end(&t->measure);
	if (t->measure.left_behind > 0)
		tell_left(t);
}
