/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "control.h"
#include "die.h"
#include "opts.h"
#include "output.h"
#include "text.h"

enum { EXIT_STANDS = 3, OPT_DIR = 256 };

static const struct option longs[] = {
	{"dir", required_argument, NULL, OPT_DIR},
	{NULL, 0, NULL, 0},
};

/* --- what is asked for --- */

/* Why a setting is as it is until the end. */
static const char *reason(const char *name)
{
	static const struct {
		const char *name, *reason;
	} reasons[] = {
		{"hooks", "code is changed at the start, while there is one "
			  "thread"},
		{"place", "arenas are laid out at the start"},
		{"log", "the log is made at the start"},
		{"log_size", "the log is laid out at the start"},
		{"log_total", "the log is made at the start"},
		{"stack_size", "the log is laid out at the start"},
	};

	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		if (!strcmp(reasons[i].name, name))
			return reasons[i].reason;
	return "it is looked at when a program starts";
}

static char *name_of(const struct knob *knob)
{
	char name[64];
	struct text out = text_over(name, sizeof(name));

	knob_name(knob, &out);
	return xstrdup(name);
}

_Noreturn static void refuse_name(const char *name)
{
	struct opts_guess guess = {.word = name};
	char *best;

	for (size_t i = 0; i < knob_count(); i++)
		if (knob_is_live(knob_at(i)))
			opts_guess(&guess, name_of(knob_at(i)));
	best = guess.best ? xasprintf("did you mean %s?", guess.best)
			  : xstrdup("`mmgate set PID` lists what can change");
	die(EXIT_USAGE, "set: %s: unknown setting; %s", name, best);
}

/* max-wait is max_wait. */
static const struct knob *find(const char *word, size_t length)
{
	char *name = xasprintf("%.*s", (int)length, word), *dash;
	const struct knob *knob;

	while ((dash = strchr(name, '-')))
		*dash = '_';
	knob = knob_find(name, strlen(name));
	if (!knob)
		refuse_name(name);
	if (!knob_is_live(knob))
		die(EXIT_USAGE,
		    "set: %s cannot change while the program runs: %s", name,
		    reason(name));
	free(name);
	return knob;
}

/* One NAME=VALUE. */
static void take(char **values, const char *word)
{
	size_t length = strcspn(word, "=");
	char complaint[512];
	struct text out = text_over(complaint, sizeof(complaint));
	const struct knob *knob;
	struct knobs scratch;
	size_t i = 0;
	int error;

	if (word[length] != '=')
		die(EXIT_USAGE, "set: %s: NAME=VALUE is wanted", word);
	knob = find(word, length);
	knobs_init(&scratch);
	error = knob->parse(&scratch, word + length + 1);
	if (error) {
		knob_complain(knob, word + length + 1, error, &out);
		die(EXIT_USAGE, "set: %s", complaint);
	}
	while (knob_at(i) != knob)
		i++;
	if (values[i])
		die(EXIT_USAGE, "set: %.*s is given twice: once, please",
		    (int)length, word);
	values[i] = xstrdup(word + length + 1);
}

struct request {
	uint32_t pid;
	const char *directory;
	char **values; /* one a knob, as given; NULL: it stays */
	bool changes;
};

static uint32_t parse_pid(const char *word)
{
	uint64_t pid;

	if (!word)
		die(EXIT_USAGE,
		    "set: the number of a process is wanted; see `mmgate help "
		    "set`");
	if (text_parse_u64(word, strlen(word), &pid) != 0 || pid == 0 ||
	    pid > INT32_MAX)
		die(EXIT_USAGE, "set: %s: the number of a process is wanted",
		    word);
	return (uint32_t)pid;
}

static struct request parse(int argc, char **argv)
{
	struct request r = {.directory = OUTPUT_DIRECTORY};

	while (opts_next(argc, argv, ":", longs) != -1)
		r.directory = optarg;
	r.pid = parse_pid(argv[optind]);
	r.values = xcalloc(knob_count(), sizeof(*r.values));
	r.changes = optind + 1 < argc;
	for (int i = optind + 1; i < argc; i++)
		take(r.values, argv[i]);
	return r;
}

/* --- what is so --- */

/* In memory of its own. */
static char *present(const struct control *c, const char *name)
{
	const struct log_process *p = log_process(c->log);
	char *value = xcalloc(1, sizeof(p->settings));

	log_setting(p->settings, name, value, sizeof(p->settings));
	return value;
}

static void list_one(const struct control *c, const struct knob *knob,
		     const char *pending)
{
	char *name = name_of(knob), *value = present(c, name);

	printf("%s=%s\n", name, value);
	if (pending)
		printf("    asked for: %s; it has made no call since\n",
		       pending);
	printf("    %s: %s\n", knob->help, knob->values);
	free(value);
	free(name);
}

static int list(const struct request *r)
{
	struct control_values pending;
	struct control c;
	char *why, *now;

	if (!control_open(&c, r->directory, r->pid, false, &why))
		die(EXIT_FAILED, "set: %s", why);
	pending = control_pending(&c);
	for (size_t i = 0; i < knob_count(); i++)
		if (knob_is_live(knob_at(i)))
			list_one(&c, knob_at(i), pending.of[i]);
	now = log_lock_now(log_process(c.log));
	printf("lock now: %s\n", now);
	free(now);
	control_free(&pending);
	control_close(&c);
	return EXIT_DONE;
}

/* --- what becomes so --- */

/* What was asked before and not answered goes with it. */
static struct control_values gather(const struct control *c,
				    const struct request *r)
{
	struct control_values all = control_pending(c);

	for (size_t i = 0; i < knob_count(); i++) {
		const char *why;

		if (!r->values[i])
			continue;
		why = control_no_room(c, knob_at(i), r->values[i]);
		if (why)
			die(EXIT_FAILED, "set: %s=%s: process %u: %s",
			    name_of(knob_at(i)), r->values[i], r->pid, why);
		free(all.of[i]);
		all.of[i] = xstrdup(r->values[i]);
	}
	return all;
}

static char **all_present(const struct control *c)
{
	char **values = xcalloc(knob_count(), sizeof(*values));

	for (size_t i = 0; i < knob_count(); i++) {
		char *name = name_of(knob_at(i));

		values[i] = present(c, name);
		free(name);
	}
	return values;
}

static void say_changes(const struct control_values *asked, char **before,
			char **after)
{
	for (size_t i = 0; i < knob_count(); i++) {
		char *name;

		if (!asked->of[i])
			continue;
		name = name_of(knob_at(i));
		if (strcmp(before[i], after[i]) != 0)
			printf("%s: %s -> %s\n", name, before[i], after[i]);
		else
			printf("%s: %s, as before\n", name, after[i]);
		free(name);
	}
}

static void ask(struct control *c, const struct control_values *asked)
{
	int error = control_ask(c, asked);

	if (error)
		die(EXIT_FAILED, "set: %s: %s", c->path, strerror(-error));
}

static int end(enum control_answer answer, uint32_t pid)
{
	switch (answer) {
	case CONTROL_DONE:
		return EXIT_DONE;
	case CONTROL_REFUSED:
		warn("set: process %u refused it: its library does not take "
		     "these values",
		     pid);
		return EXIT_FAILED;
	case CONTROL_ENDED:
		warn("set: process %u ended before it followed", pid);
		return EXIT_FAILED;
	default:
		warn("set: process %u has made no call since: the request "
		     "stands, and its next call follows it",
		     pid);
		return EXIT_STANDS;
	}
}

static int change(const struct request *r)
{
	struct control c;
	struct control_values asked;
	enum control_answer answer;
	char **before, *why;

	if (!control_open(&c, r->directory, r->pid, true, &why))
		die(EXIT_FAILED, "set: %s", why);
	before = all_present(&c);
	asked = gather(&c, r);
	ask(&c, &asked);
	answer = control_wait(&c);
	if (answer == CONTROL_DONE)
		say_changes(&asked, before, all_present(&c));
	control_free(&asked);
	control_close(&c);
	return end(answer, r->pid);
}

static int run(int argc, char **argv)
{
	struct request r = parse(argc, argv);

	return r.changes ? change(&r) : list(&r);
}

const struct command cmd_set = {
	.name = "set",
	.summary = "changes settings of a program while it runs",
	.synopsis = "set PID [NAME=VALUE...] [--dir DIR]",
	.help = "Asks the process PID, which runs with a log in DIR "
		"(default " OUTPUT_DIRECTORY "),\n"
		"to go on with other settings.  Without NAME=VALUE: lists what "
		"can change, and its\n"
		"present values.\n"
		"\n"
		"  NAME       lock, calls, long, delay, max_wait, events or "
		"stacks; VALUE as\n"
		"             `mmgate help run` has it for the option of that "
		"name\n"
		"  --dir DIR  where the program's log is\n"
		"\n"
		"The program follows at the end of its next call, all of it or "
		"nothing; until then\n"
		"the request stands.  Calls that wait at the gate wait on for "
		"the lock that they\n"
		"asked for.  Events need a program that was started with some, "
		"stacks one that was\n"
		"started with the same sort of them.  A forked child with a "
		"log of its own begins\n"
		"with what its parent had, and is asked by its own number.\n"
		"\n"
		"Exit status: 0 it is so; 1 there is no such process or log, "
		"it is another user's, or\n"
		"the program refused; 2 usage; 3 the program has made no call "
		"since, and the request\n"
		"stands.\n"
		"\n"
		"Example: no lock from now on\n"
		"  mmgate set 4711 lock=none --dir /dev/shm/try\n",
	.run = run,
};
