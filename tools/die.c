/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"

static void say(const char *format, va_list args, const char *reason)
	__attribute__((format(printf, 1, 0)));

/* One write for the whole line, so that lines of several processes do not
 * mix. */
static void say(const char *format, va_list args, const char *reason)
{
	char line[4096];

	vsnprintf(line, sizeof(line), format, args);
	if (reason)
		fprintf(stderr, "mmgate: %s: %s\n", line, reason);
	else
		fprintf(stderr, "mmgate: %s\n", line);
}

void die(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args, NULL);
	va_end(args);
	exit(status);
}

void die_errno(int status, const char *format, ...)
{
	const char *reason = strerror(errno);
	va_list args;

	va_start(args, format);
	say(format, args, reason);
	va_end(args);
	exit(status);
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
