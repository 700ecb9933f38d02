/* SPDX-License-Identifier: MIT */
#include "opts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "die.h"
#include "utf8.h"

enum {
	FIRST_KNOB = 0x100, /* above every short option */
	HELP_WIDTH = 79,
	HELP_COLUMN = 24,
	COMPLAINT = 1024,
	PREFIX = 7, /* MMGATE_ */
};

static bool is_short(const struct knob *knob)
{
	return knob->option[1] == '\0';
}

/* Words of `text` from column HELP_COLUMN on, on as many lines as they need. */
static void print_wrapped(const char *text)
{
	int column = HELP_COLUMN;

	while (*text != '\0') {
		int len = (int)strcspn(text, " ");

		if (column > HELP_COLUMN && column + 1 + len > HELP_WIDTH) {
			printf("\n%*s", HELP_COLUMN, "");
			column = HELP_COLUMN;
		}
		if (column > HELP_COLUMN) {
			putchar(' ');
			column++;
		}
		printf("%.*s", len, text);
		column += len;
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void print_knob(const struct knob *knob)
{
	const char *of_run = knob_of_run(knob);
	char left[HELP_COLUMN * 2];
	char *right;

	snprintf(left, sizeof(left), "  %s%s VALUE",
		 is_short(knob) ? "-" : "--", knob->option);
	printf("%-*s", HELP_COLUMN, left);
	right = xasprintf("%s (%s)", knob->help, knob->variable);
	print_wrapped(right);
	free(right);
	right = xasprintf("= %s; default: %s%s%s%s", knob->values,
			  knob->initial != NULL ? knob->initial : "unset",
			  of_run != NULL ? " (run: " : "",
			  of_run != NULL ? of_run : "",
			  of_run != NULL ? ")" : "");
	printf("%*s", HELP_COLUMN, "");
	print_wrapped(right);
	free(right);
}

void opts_print_help(const struct command *command)
{
	const char *text = command->help;
	size_t before = strcspn(text, OPTS_SETTINGS);

	printf("mmgate %s: %s\n\nusage: mmgate %s\n\n%.*s", command->name,
	       command->summary, command->synopsis, (int)before, text);
	if (text[before] == '\0')
		return;
	for (size_t i = 0; i < knob_count(); i++)
		print_knob(knob_at(i));
	fputs(text + before + 1, stdout);
}

static _Noreturn void refuse_option(const char *command, const char *word,
				    const struct option *longs)
{
	struct opts_guess guess = {.word = word};

	for (; longs->name != NULL; longs++)
		opts_guess(&guess, longs->name);
	if (guess.best != NULL)
		die(EXIT_USAGE, "%s: unknown option --%s; did you mean --%s?",
		    command, word, guess.best);
	die(EXIT_USAGE, "%s: unknown option --%s; see `mmgate help %s`",
	    command, word, command);
}

/* getopt says only where it stopped: optopt is the letter or val of an option
 * that it knows, 0 for a long one that it does not. */
static _Noreturn void refuse(char **argv, int result,
			     const struct option *longs)
{
	const char *at = argv[optind - 1];

	if (result == ':')
		die(EXIT_USAGE, "%s: %s wants a value", argv[0], at);
	if (optopt == 0)
		refuse_option(argv[0], at + strspn(at, "-"), longs);
	for (; longs->name != NULL; longs++)
		if (longs->val == optopt && at[1] == '-')
			die(EXIT_USAGE, "%s: --%s takes no value", argv[0],
			    longs->name);
	die(EXIT_USAGE, "%s: unknown option -%c; see `mmgate help %s`", argv[0],
	    optopt, argv[0]);
}

int opts_next(int argc, char **argv, const char *shorts,
	      const struct option *longs)
{
	int result;

	opterr = 0;
	result = getopt_long(argc, argv, shorts, longs, NULL);
	if (result == '?' || result == ':')
		refuse(argv, result, longs);
	/* It was meant to end the options. */
	if (result != -1 && optarg != NULL && optarg == argv[optind - 1] &&
	    strcmp(optarg, "--") == 0)
		die(EXIT_USAGE, "%s: %s wants a value before the --", argv[0],
		    argv[optind - 2]);
	return result;
}

struct option *opts_longs_with_knobs(const struct option *own)
{
	size_t n = 0;
	struct option *longs;

	while (own[n].name != NULL)
		n++;
	longs = xcalloc(n + knob_count() + 1, sizeof(*longs));
	memcpy(longs, own, n * sizeof(*longs));
	for (size_t i = 0; i < knob_count(); i++) {
		if (is_short(knob_at(i)))
			continue;
		longs[n].name = knob_at(i)->option;
		longs[n].has_arg = required_argument;
		longs[n++].val = FIRST_KNOB + (int)i;
	}
	return longs;
}

char *opts_shorts_with_knobs(const char *own)
{
	char *shorts = xstrdup(own);

	for (size_t i = 0; i < knob_count(); i++) {
		char *longer;

		if (!is_short(knob_at(i)))
			continue;
		longer = xasprintf("%s%s:", shorts, knob_at(i)->option);
		free(shorts);
		shorts = longer;
	}
	return shorts;
}

int opts_knob(int option)
{
	if (option >= FIRST_KNOB)
		return option - FIRST_KNOB;
	for (size_t i = 0; i < knob_count(); i++)
		if (is_short(knob_at(i)) && knob_at(i)->option[0] == option)
			return (int)i;
	return -1;
}

static size_t least(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Letters to add, drop or change to make one word the other. */
static size_t distance(const char *a, const char *b)
{
	enum { LONGEST = 63 };
	size_t row[LONGEST + 1], len = strlen(b);

	if (len > LONGEST || strlen(a) > LONGEST)
		return SIZE_MAX;
	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 0; a[i] != '\0'; i++) {
		size_t corner = row[0];

		row[0] = i + 1;
		for (size_t j = 1; j <= len; j++) {
			size_t above = row[j];

			row[j] = least(above + 1, row[j - 1] + 1,
				       corner + (a[i] != b[j - 1]));
			corner = above;
		}
	}
	return row[len];
}

/* Bytes of the printable character at `s`, or 0. */
static size_t printable(const char *s)
{
	size_t length = utf8_length(s);

	return length != 0 && !utf8_is_control(s) ? length : 0;
}

static bool is_printable(const char *word)
{
	while (*word != '\0' && printable(word) != 0)
		word += printable(word);
	return *word == '\0';
}

/* '...', in which nothing is special but its end. */
static void quote(const char *word, FILE *out)
{
	putc('\'', out);
	for (; *word != '\0'; word++)
		if (*word == '\'')
			fputs("'\\''", out);
		else
			putc(*word, out);
	putc('\'', out);
}

/* $'...' can name any byte. */
static void quote_bytes(const char *word, FILE *out)
{
	fputs("$'", out);
	while (*word != '\0') {
		int n = (int)printable(word);

		if (n == 0) {
			fprintf(out, "\\%03o", (unsigned char)*word++);
			continue;
		}
		if (*word == '\'' || *word == '\\')
			putc('\\', out);
		fprintf(out, "%.*s", n, word);
		word += n;
	}
	putc('\'', out);
}

char *opts_quote(const char *word)
{
	const char *plain = "abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,+-";
	char *quoted = NULL;
	size_t size;
	FILE *out;

	if (*word != '\0' && word[strspn(word, plain)] == '\0')
		return xstrdup(word);
	out = open_memstream(&quoted, &size);
	if (out == NULL)
		die(EXIT_USAGE, "out of memory");
	if (is_printable(word))
		quote(word, out);
	else
		quote_bytes(word, out);
	fclose(out);
	return quoted;
}

void opts_guess(struct opts_guess *guess, const char *candidate)
{
	size_t d = distance(guess->word, candidate);

	/* More than a third wrong is another word, not a slip. */
	if (d > (strlen(guess->word) + 2) / 3)
		return;
	if (guess->best != NULL && d >= guess->distance)
		return;
	guess->best = candidate;
	guess->distance = d;
}

void opts_settings_init(struct opts_settings *settings)
{
	knobs_init(&settings->knobs);
	settings->given = xcalloc(knob_count(), sizeof(*settings->given));
}

int opts_settings_set(struct opts_settings *settings, size_t knob,
		      const char *value, enum opts_source source,
		      struct text *complaint)
{
	int error = knob_at(knob)->parse(&settings->knobs, value);

	if (error != 0) {
		knob_complain(knob_at(knob), value, error, complaint);
		return error;
	}
	settings->given[knob].value = value;
	settings->given[knob].source = source;
	return 0;
}

static int refuse_variable(const char *name, size_t len, struct text *complaint)
{
	char *word = xasprintf("%.*s", (int)(len - PREFIX), name + PREFIX);
	struct opts_guess guess = {.word = word};

	for (size_t i = 0; i < knob_count(); i++)
		opts_guess(&guess, knob_at(i)->variable + PREFIX);
	text_put_bytes(complaint, name, len);
	text_put(complaint, ": unknown setting; ");
	if (guess.best != NULL) {
		text_put(complaint, "did you mean MMGATE_");
		text_put(complaint, guess.best);
		text_put(complaint, "?");
	} else {
		text_put(complaint, "unset it, or see `mmgate help run`");
	}
	free(word);
	return -EINVAL;
}

int opts_settings_inherit(struct opts_settings *settings, const char *variable,
			  struct text *complaint)
{
	size_t len = strcspn(variable, "=");

	if (text_after(variable, "MMGATE_") == NULL || variable[len] == '\0' ||
	    text_is(variable, len, OPTS_STARTED))
		return 0;
	for (size_t i = 0; i < knob_count(); i++)
		if (text_is(variable, len, knob_at(i)->variable))
			return opts_settings_set(settings, i,
						 variable + len + 1,
						 OPTS_VARIABLE, complaint);
	return refuse_variable(variable, len, complaint);
}

void opts_settings_environment(struct opts_settings *settings)
{
	char line[COMPLAINT];

	for (char **e = environ; e != NULL && *e != NULL; e++) {
		struct text complaint = text_over(line, sizeof(line));

		if (opts_settings_inherit(settings, *e, &complaint) != 0)
			die(EXIT_USAGE, "%s", line);
	}
}

void opts_settings_option(struct opts_settings *settings, size_t knob,
			  const char *value)
{
	char line[COMPLAINT];
	struct text complaint = text_over(line, sizeof(line));

	/* It is the option that was typed; the line goes on with its
	 * variable. */
	if (opts_settings_set(settings, knob, value, OPTS_OPTION, &complaint) !=
	    0)
		die(EXIT_USAGE, "%s%s: %s",
		    is_short(knob_at(knob)) ? "-" : "--", knob_at(knob)->option,
		    line);
}

void opts_settings_of_run(struct opts_settings *settings)
{
	for (size_t i = 0; i < knob_count(); i++) {
		const char *value = knob_of_run(knob_at(i));

		if (value != NULL && settings->given[i].value == NULL)
			opts_settings_option(settings, i, value);
	}
}
