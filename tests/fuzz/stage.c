/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <getopt.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../tools/die.h"
#include "../../tools/utf8.h"
#include "json_check.h"
#include "stage.h"

enum { WORDS = 16, CSV_COMMAS = 15, KEPT = 16 << 20 };

const char *__asan_default_options(void);

static char directory[64];

/* What was written to one of the two outputs: its first KEPT bytes. */
struct output {
	FILE *file;
	char *text;
	size_t length, room;
};

static struct output out, err;
static jmp_buf back;
static bool playing;

void stage_check(bool holds, const char *what)
{
	if (holds)
		return;
	dprintf(STDERR_FILENO, "broken promise: %s\noutput: %.2000s\n", what,
		out.text ? out.text : "");
	dprintf(STDERR_FILENO, "errors: %.2000s\n", err.text ? err.text : "");
	abort();
}

/* Freed memory is kept for so long that every page of it is a new one. */
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=8";
}

/* --- exit() that comes back (linked with --wrap=exit) --- */

_Noreturn void __real_exit(int status);
_Noreturn void __wrap_exit(int status);

void __wrap_exit(int status)
{
	if (playing)
		longjmp(back, status + 1);
	__real_exit(status);
}

/* --- outputs --- */

static ssize_t keep(void *cookie, const char *bytes, size_t count)
{
	struct output *o = cookie;

	if (o->length + count >= KEPT)
		return (ssize_t)count;
	if (o->length + count >= o->room) {
		o->room = 2 * (o->length + count) + 4096;
		o->text = xrealloc(o->text, o->room);
	}
	memcpy(o->text + o->length, bytes, count);
	o->length += count;
	o->text[o->length] = '\0';
	return (ssize_t)count;
}

static void open_output(struct output *o)
{
	const cookie_io_functions_t calls = {.write = keep};

	o->file = fopencookie(o, "w", calls);
	stage_check(o->file != NULL, "the stage has outputs");
	keep(o, "", 0);
}

static void empty(struct output *o)
{
	o->length = 0;
	o->text[0] = '\0';
}

static unsigned lines(const struct output *o)
{
	unsigned count = 0;
	size_t i;

	for (i = 0; i < o->length; i++)
		count += o->text[i] == '\n';
	return count;
}

/* FNV-1a */
static uint64_t hash(const struct output *o)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	size_t i;

	for (i = 0; i < o->length; i++)
		h = (h ^ (unsigned char)o->text[i]) * UINT64_C(0x100000001b3);
	return h;
}

/* --- what they must be --- */

static void check_characters(const struct output *o, bool tabs)
{
	size_t i, length;

	for (i = 0; i < o->length; i += length) {
		stage_check(o->text[i] != '\0', "no zero byte");
		length = utf8_length(o->text + i);
		stage_check(length == 0 || o->text[i] == '\n' ||
				    (tabs && o->text[i] == '\t') ||
				    !utf8_is_control(o->text + i),
			    "no control character but the line's end");
		length += length == 0;
	}
	stage_check(o->length == 0 || o->text[o->length - 1] == '\n',
		    "the last line is whole");
}

static void check_complaints(void)
{
	const char *line = err.text;

	for (; *line; line = strchr(line, '\n') + 1)
		stage_check(!strncmp(line, "mmgate: ", 8),
			    "a complaint says whose it is");
}

static void check_csv(void)
{
	const char *s;
	int commas = 0;

	for (s = out.text; *s; s++) {
		commas += *s == ',';
		if (*s != '\n')
			continue;
		stage_check(commas == CSV_COMMAS, "a line has all columns");
		commas = 0;
	}
}

/* The whole of it, and nothing of a log among its tags. */
static void check_html(void)
{
	const char *end = strstr(out.text, "<script>"), *s;

	stage_check(!strncmp(out.text, "<!DOCTYPE html>", 15), "it begins");
	stage_check(end && !strcmp(out.text + out.length - 8, "</html>\n"),
		    "it ends");
	for (s = out.text; s < end; s++)
		stage_check(*s != '<' || strchr("!/abcdefghilmnopstu", s[1]),
			    "a tag");
}

static void check_form(enum stage_form form)
{
	if (form == STAGE_CSV)
		check_csv();
	else if (form == STAGE_JSON)
		stage_check(json_check(out.text, 1), "one JSON value");
	else if (form == STAGE_HTML)
		check_html();
	else if (form == STAGE_JSON_LINES)
		stage_check(json_check(out.text, lines(&out)),
			    "a JSON value a line");
}

/* --- the play --- */

static int split(const char *line, char *words, char **argv)
{
	int argc = 0;

	strcpy(words, line);
	while ((argv[argc] = strsep(&words, " "))) {
		if (!strcmp(argv[argc], "DIR"))
			argv[argc] = directory;
		argc++;
	}
	return argc;
}

/* The next descriptor to be opened. */
static unsigned next_descriptor(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return (unsigned)fd;
}

/* -1: it did not return.  Descriptors that it leaves behind do not stay. */
static int play(int (*command)(int argc, char **argv), const char *line,
		int *status)
{
	char words[256], *argv[WORDS + 1];
	int argc = split(line, words, argv), code;
	unsigned first = next_descriptor();

	optind = 0;
	playing = true;
	code = setjmp(back);
	if (code == 0)
		*status = command(argc, argv);
	else
		*status = code - 1;
	playing = false;
	close_range(first, ~0u, 0);
	return code == 0 ? 0 : -1;
}

struct stage_end stage_run(int (*command)(int argc, char **argv),
			   const char *line, enum stage_form form)
{
	FILE *real_out = stdout, *real_err = stderr;
	struct stage_end end;

	empty(&out);
	empty(&err);
	stdout = out.file;
	stderr = err.file;
	end.died = play(command, line, &end.status) != 0;
	fflush(stdout);
	fflush(stderr);
	stdout = real_out;
	stderr = real_err;
	check_characters(&out, form == STAGE_HTML);
	check_characters(&err, false);
	check_complaints();
	if (!end.died && out.length + 4096 < KEPT)
		check_form(form);
	end.complaints = lines(&err);
	end.output = hash(&out);
	return end;
}

/* --- the directory --- */

static void remove_directory(void)
{
	DIR *names = opendir(directory);
	struct dirent *entry;

	while (names && (entry = readdir(names)))
		unlinkat(dirfd(names), entry->d_name, 0);
	if (names)
		closedir(names);
	rmdir(directory);
}

void stage_begin(void)
{
	bool memory = access("/dev/shm", W_OK) == 0;

	snprintf(directory, sizeof(directory), "%s/mmgate-fuzz-XXXXXX",
		 memory ? "/dev/shm" : "/tmp");
	stage_check(mkdtemp(directory) != NULL, "the stage has a directory");
	atexit(remove_directory);
	open_output(&out);
	open_output(&err);
}

char *stage_path(const char *name)
{
	return xasprintf("%s/%s", directory, name);
}
