/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "utf8.h"

enum { LINE = 8192 }; /* a path of any length, and what is wrong with it */

static void say(const char *format, va_list args, const char *reason)
	__attribute__((format(printf, 1, 0)));

/* One write for the whole line, so that lines of several processes do not
 * mix.  Names, words and values in it may hold anything: the line neither ends
 * early nor tells a terminal what to do. */
static void say(const char *format, va_list args, const char *reason)
{
	char line[LINE], shown[LINE];

	vsnprintf(line, sizeof(line), format, args);
	utf8_clean(shown, line, sizeof(shown) - 1, 0);
	if (reason)
		fprintf(stderr, "mmgate: %s: %s\n", shown, reason);
	else
		fprintf(stderr, "mmgate: %s\n", shown);
}

static int status_of_all = -1;

void die_as(int status)
{
	status_of_all = status;
}

static _Noreturn void leave(int status)
{
	exit(status_of_all >= 0 ? status_of_all : status);
}

void die(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args, NULL);
	va_end(args);
	leave(status);
}

void die_errno(int status, const char *format, ...)
{
	const char *reason = strerror(errno);
	va_list args;

	va_start(args, format);
	say(format, args, reason);
	va_end(args);
	leave(status);
}

void warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args, NULL);
	va_end(args);
}

static void *need(void *memory)
{
	if (!memory)
		die(EXIT_USAGE, "out of memory");
	return memory;
}

void *xcalloc(size_t count, size_t size)
{
	return need(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *old, size_t size)
{
	return need(realloc(old, size ? size : 1));
}

char *xstrdup(const char *s)
{
	return need(strdup(s));
}

char *xasprintf(const char *format, ...)
{
	va_list args;
	char *out;
	int length;

	va_start(args, format);
	length = vasprintf(&out, format, args);
	va_end(args);
	return need(length < 0 ? NULL : out);
}

void finish_stdout(void)
{
	if (fflush(stdout) || ferror(stdout))
		die_errno(EXIT_FAILED, "cannot write to standard output");
}
