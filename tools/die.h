/* SPDX-License-Identifier: MIT */
/*
 * die: one line on stderr, and out.
 *
 * Every message is "mmgate: " and one line that says what, which value and
 * what to do.  Control characters in it come out as '?'.
 */
#ifndef MMGATE_DIE_H
#define MMGATE_DIE_H

#include <stddef.h>

enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,      /* a check failed, a log could not be read */
	EXIT_USAGE = 2,       /* usage or environment */
	EXIT_NOT_GATED = 125, /* the command cannot be instrumented */
	EXIT_NOT_RUN = 126,   /* found, but could not be executed */
	EXIT_NOT_FOUND = 127,
};

/* Says it and exits with `status`. */
_Noreturn void die(int status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same with ": " and the text of errno behind it. */
_Noreturn void die_errno(int status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* From here on whatever dies exits with `status`: that of a program that has
 * run, which nothing of ours may hide. */
void die_as(int status);
/* Says it and goes on. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Memory or death. */
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *old, size_t size);
char *xstrdup(const char *s);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Flushes stdout; a write error there (full disk, closed pipe) is fatal. */
void finish_stdout(void);

#endif
