/* SPDX-License-Identifier: MIT */
/*
 * text: strings, numbers and durations without libc.
 *
 * No function allocates, reads the locale or touches errno.  Writers end what
 * they write with '\0' and cut what does not fit.
 */
#ifndef MMGATE_TEXT_H
#define MMGATE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

size_t text_len(const char *s);
bool text_equal(const char *a, const char *b);

/* Is the `len`-long word at `s` the string `name`? */
bool text_is(const char *s, size_t len, const char *name);

/* `rest` of `s` behind `prefix`, or NULL when `s` does not start with it. */
const char *text_after(const char *s, const char *prefix);

/* Does the whole of `s` match the shell pattern (`*`, `?`, nothing else)? */
bool text_glob(const char *pattern, size_t pattern_len, const char *s);

/* What of a path comes behind the last slash. */
const char *text_base_name(const char *path);

/* Length of the comma-separated word at `s`. */
size_t text_word(const char *s);

/* Whole decimal number of `len` digits; -EINVAL for anything else, -ERANGE
 * when it does not fit. */
int text_parse_u64(const char *s, size_t len, uint64_t *value);

/* "200ns", "5us", "1.5ms", "2s" to nanoseconds; a bare 0 is taken.  Same
 * errors. */
int text_parse_duration(const char *s, size_t len, uint64_t *ns);

/* "4096", "64K", "64M", "1G" to bytes; same errors. */
int text_parse_size(const char *s, size_t len, uint64_t *bytes);

/* A growing string in a fixed buffer. */
struct text {
	char *at;
	size_t room; /* bytes left, the final '\0' included */
	bool cut;
};

struct text text_over(char *buffer, size_t size);
void text_put(struct text *t, const char *s);
void text_put_bytes(struct text *t, const char *s, size_t len);
void text_put_u64(struct text *t, uint64_t value);
/* In the largest unit that keeps it whole: 1ms, 1500us. */
void text_put_duration(struct text *t, uint64_t ns);
void text_put_size(struct text *t, uint64_t bytes);

#endif
