/* SPDX-License-Identifier: MIT */
/* Texts that users and environments give: settings, numbers, globs, options. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/cmd.h"
#include "../../tools/die.h"
#include "../../tools/opts.h"
#include "forge.h"
#include "fuzz.h"
#include "stage.h"

enum { MOST = 255 };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	stage_begin();
	return 0;
}

/* In memory of its very size, so that reading beyond its end is seen. */
static char *take_string(struct forge *f)
{
	char buffer[MOST + 1] = "";

	forge_bytes(f, buffer, MOST);
	return xstrdup(buffer);
}

/* --- settings --- */

static void show(const struct opts_settings *settings, size_t knob,
		 char line[4096 + 1])
{
	struct text out = text_over(line, 4096 + 1);

	knob_at(knob)->show(&settings->knobs, &out);
	stage_check(!out.cut, "a setting's value has room");
}

/* What is shown is taken back, and says the same. */
static void check_shown(size_t knob, struct opts_settings *settings)
{
	char first[4096 + 1], second[4096 + 1], line[1024];
	struct text complaint = text_over(line, sizeof(line));

	show(settings, knob, first);
	stage_check(opts_settings_set(settings, knob, first, OPTS_OPTION,
				      &complaint) == 0,
		    "a value that is shown is accepted");
	show(settings, knob, second);
	stage_check(!strcmp(first, second), "and means the same");
}

static void try_setting(struct forge *f)
{
	size_t knob = forge_byte(f) % knob_count();
	char line[1024], *value = take_string(f);
	struct text complaint = text_over(line, sizeof(line));
	struct opts_settings settings;
	int error;

	opts_settings_init(&settings);
	error = opts_settings_set(&settings, knob, value, OPTS_OPTION,
				  &complaint);
	stage_check((error != 0) == (line[0] != '\0'),
		    "what is refused is said, and nothing else");
	stage_check(!complaint.cut, "the complaint has room");
	if (error == 0)
		check_shown(knob, &settings);
	free(settings.given);
	free(value);
}

static void try_variable(struct forge *f)
{
	char *rest = take_string(f);
	char *variable = xasprintf("MMGATE_%s", rest);
	char line[1024];
	struct text complaint = text_over(line, sizeof(line));
	struct opts_settings settings;

	opts_settings_init(&settings);
	opts_settings_inherit(&settings, variable, &complaint);
	free(settings.given);
	free(variable);
	free(rest);
}

/* --- numbers --- */

static void check_number(int (*parse)(const char *, size_t, uint64_t *),
			 void (*put)(struct text *, uint64_t), const char *s)
{
	char line[64];
	struct text out = text_over(line, sizeof(line));
	uint64_t first, second;

	if (parse(s, strlen(s), &first))
		return;
	put(&out, first);
	stage_check(!parse(line, strlen(line), &second) && first == second,
		    "a number that is written is read back");
}

static void try_numbers(struct forge *f)
{
	char *s = take_string(f);

	check_number(text_parse_u64, text_put_u64, s);
	check_number(text_parse_duration, text_put_duration, s);
	check_number(text_parse_size, text_put_size, s);
	free(s);
}

/* --- globs --- */

/* libc's matcher knows more: brackets, backslashes, and multibyte text. */
static bool is_plain(const char *s)
{
	for (; *s; s++)
		if (*s == '[' || *s == '\\' || *s < 0)
			return false;
	return true;
}

static void try_glob(struct forge *f)
{
	char *pattern = take_string(f), *name = take_string(f);
	bool found = text_glob(pattern, strlen(pattern), name);

	/* It takes exponential time, too. */
	if (strlen(pattern) < 12 && is_plain(pattern) && is_plain(name))
		stage_check(found == !fnmatch(pattern, name, FNM_NOESCAPE),
			    "a glob matches as libc's does");
	(void)knob_list_names(pattern, name);
	free(name);
	free(pattern);
}

/* --- command lines --- */

static char given[MOST + 1];
static size_t given_length;
static struct opts_settings given_settings;

/* The words of a command line, with zeros between them. */
static int parse_line(int argc, char **argv)
{
	static const struct option own[] = {
		{"quiet", no_argument, NULL, 1},
		{"help", no_argument, NULL, 2},
		{0},
	};
	static struct option *longs;
	static char *shorts;
	char *words[MOST + 2] = {argv[0]}, *at = given;
	int option;

	if (!longs) {
		longs = opts_longs_with_knobs(own);
		shorts = opts_shorts_with_knobs("+:");
	}
	opts_settings_init(&given_settings);
	for (argc = 1; at < given + given_length; at += strlen(at) + 1)
		words[argc++] = at;
	while ((option = opts_next(argc, words, shorts, longs)) != -1)
		if (opts_knob(option) >= 0)
			opts_settings_option(&given_settings,
					     (size_t)opts_knob(option), optarg);
	return 0;
}

static void try_command_line(struct forge *f)
{
	struct stage_end end;

	memset(given, 0, sizeof(given));
	given_length = f->left < MOST ? f->left : MOST;
	memcpy(given, f->at, given_length);
	end = stage_run(parse_line, "run", STAGE_TEXT);
	free(given_settings.given);
	stage_check(end.status == 0 || end.status == EXIT_USAGE,
		    "status 0 or 2");
	stage_check(end.complaints == (end.status != 0),
		    "one line for what is wrong");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const tries[])(struct forge * f) = {
		try_setting, try_variable,     try_numbers,
		try_glob,    try_command_line,
	};
	struct forge f = {data, size};

	tries[forge_byte(&f) % (sizeof(tries) / sizeof(*tries))](&f);
	return 0;
}
