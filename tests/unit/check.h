/* SPDX-License-Identifier: MIT */
/*
 * check: what a unit test says about each of its expectations.
 *
 * "ok - NAME", or "not ok - NAME: expected X, got Y".  NAME is a format with
 * the arguments behind it, so a loop over a table can name its row.  main()
 * ends in `return check_done();`.
 */
#ifndef MMGATE_CHECK_H
#define MMGATE_CHECK_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static unsigned check_passed, check_failed;

__attribute__((format(printf, 1, 0))) static inline const char *
check_name(const char *format, va_list arguments)
{
	static char name[256];

	vsnprintf(name, sizeof(name), format, arguments);
	return name;
}

/* Prints the line up to its name. */
static inline bool check_begin(bool ok, const char *name)
{
	ok ? check_passed++ : check_failed++;
	printf("%s - %s", ok ? "ok" : "not ok", name);
	return ok;
}

__attribute__((format(printf, 2, 3))) static inline bool
check_true(bool ok, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	puts(check_begin(ok, check_name(format, arguments))
		     ? ""
		     : ": expected true, got false");
	va_end(arguments);
	return ok;
}

__attribute__((format(printf, 3, 4))) static inline bool
check_u64(uint64_t expected, uint64_t got, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (!check_begin(expected == got, check_name(format, arguments)))
		printf(": expected %" PRIu64 ", got %" PRIu64, expected, got);
	putchar('\n');
	va_end(arguments);
	return expected == got;
}

__attribute__((format(printf, 3, 4))) static inline bool
check_int(int64_t expected, int64_t got, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (!check_begin(expected == got, check_name(format, arguments)))
		printf(": expected %" PRId64 ", got %" PRId64, expected, got);
	putchar('\n');
	va_end(arguments);
	return expected == got;
}

/* low <= got <= high */
__attribute__((format(printf, 4, 5))) static inline bool
check_between(double low, double high, double got, const char *format, ...)
{
	bool ok = low <= got && got <= high;
	va_list arguments;

	va_start(arguments, format);
	if (!check_begin(ok, check_name(format, arguments)))
		printf(": expected %g to %g, got %g", low, high, got);
	putchar('\n');
	va_end(arguments);
	return ok;
}

/* Either may be NULL. */
__attribute__((format(printf, 3, 4))) static inline bool
check_text(const char *expected, const char *got, const char *format, ...)
{
	bool ok = expected == NULL || got == NULL ? expected == got
						  : !strcmp(expected, got);
	va_list arguments;

	va_start(arguments, format);
	if (!check_begin(ok, check_name(format, arguments)))
		printf(": expected \"%s\", got \"%s\"",
		       expected != NULL ? expected : "(none)",
		       got != NULL ? got : "(none)");
	putchar('\n');
	va_end(arguments);
	return ok;
}

/* Numbers that look random, the same in each run. */
static inline uint64_t check_random(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* The program's exit status. */
static inline int check_done(void)
{
	printf("# %u passed, %u failed\n", check_passed, check_failed);
	return check_failed != 0 || check_passed == 0;
}

#endif
