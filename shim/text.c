/* SPDX-License-Identifier: MIT */
#include "text.h"

#include <errno.h>

#include "poison.h"

size_t text_len(const char *s)
{
	size_t n = 0;

	while (s[n] != '\0')
		n++;
	return n;
}

bool text_is(const char *s, size_t len, const char *name)
{
	for (size_t i = 0; i < len; i++)
		if (name[i] == '\0' || s[i] != name[i])
			return false;
	return name[len] == '\0';
}

bool text_equal(const char *a, const char *b)
{
	return text_is(a, text_len(a), b);
}

const char *text_after(const char *s, const char *prefix)
{
	while (*prefix != '\0')
		if (*s++ != *prefix++)
			return NULL;
	return s;
}

const char *text_base_name(const char *path)
{
	const char *base = path;

	for (; *path != '\0'; path++)
		if (*path == '/')
			base = path + 1;
	return base;
}

bool text_glob(const char *pattern, size_t pattern_len, const char *s)
{
	const char *end = pattern + pattern_len, *p = pattern;
	const char *star = NULL, *retry = NULL; /* where the last * took over */

	while (*s != '\0') {
		if (p < end && *p == '*') {
			star = ++p;
			retry = s;
		} else if (p < end && (*p == '?' || *p == *s)) {
			p++;
			s++;
		} else if (star != NULL) {
			p = star;
			s = ++retry;
		} else {
			return false;
		}
	}
	while (p < end && *p == '*')
		p++;
	return p == end;
}

size_t text_word(const char *s)
{
	size_t n = 0;

	while (s[n] != '\0' && s[n] != ',')
		n++;
	return n;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int text_parse_u64(const char *s, size_t len, uint64_t *value)
{
	uint64_t v = 0;

	if (len == 0)
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if (!is_digit(s[i]))
			return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(s[i] - '0'), &v))
			return -ERANGE;
	*value = v;
	return 0;
}

struct unit {
	const char *name;
	uint64_t scale;
};

static const struct unit durations[] = {
	{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
static const struct unit sizes[] = {{"", 1},
				    {"K", UINT64_C(1) << 10},
				    {"M", UINT64_C(1) << 20},
				    {"G", UINT64_C(1) << 30}};

enum { UNITS = 4 };

/* DIGITS[.DIGITS]UNIT; what a decimal leaves below one is dropped. */
static int parse_scaled(const char *s, size_t len,
			const struct unit units[UNITS], uint64_t *value)
{
	size_t whole = 0, dot, end;
	uint64_t v, scale = 0, part;
	int error;

	while (whole < len && is_digit(s[whole]))
		whole++;
	dot = end = whole;
	if (dot < len && s[dot] == '.') {
		end++;
		while (end < len && is_digit(s[end]))
			end++;
		if (end == dot + 1)
			return -EINVAL;
	}
	for (int i = 0; i < UNITS; i++)
		if (text_is(s + end, len - end, units[i].name))
			scale = units[i].scale;
	error = text_parse_u64(s, whole, &v);
	if (error != 0)
		return error;
	if (scale == 0) {
		if (end != len || v != 0 || dot != end)
			return -EINVAL;
		scale = 1;
	}
	if (__builtin_mul_overflow(v, scale, &v))
		return -ERANGE;
	part = scale;
	for (size_t i = dot + 1; i < end && part != 0; i++) {
		uint64_t digit = (uint64_t)(s[i] - '0');

		/* Exact while part * 10 divides the scale; sizes round. */
		if (__builtin_add_overflow(v, digit * part / 10, &v))
			return -ERANGE;
		part /= 10;
	}
	*value = v;
	return 0;
}

int text_parse_duration(const char *s, size_t len, uint64_t *ns)
{
	return parse_scaled(s, len, durations, ns);
}

int text_parse_size(const char *s, size_t len, uint64_t *bytes)
{
	return parse_scaled(s, len, sizes, bytes);
}

struct text text_over(char *buffer, size_t size)
{
	struct text t = {.at = buffer, .room = size, .cut = false};

	if (size > 0)
		*buffer = '\0';
	return t;
}

void text_put_bytes(struct text *t, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (t->room < 2) {
			t->cut = true;
			return;
		}
		*t->at++ = s[i];
		*t->at = '\0';
		t->room--;
	}
}

void text_put(struct text *t, const char *s)
{
	text_put_bytes(t, s, text_len(s));
}

void text_put_u64(struct text *t, uint64_t value)
{
	char digits[20];
	size_t n = sizeof(digits);

	do {
		digits[--n] = (char)('0' + value % 10);
		value /= 10;
	} while (value != 0);
	text_put_bytes(t, digits + n, sizeof(digits) - n);
}

static void put_scaled(struct text *t, uint64_t value,
		       const struct unit units[UNITS])
{
	int i = UNITS - 1;

	while (i > 0 && (value == 0 || value % units[i].scale != 0))
		i--;
	text_put_u64(t, value / units[i].scale);
	text_put(t, units[i].name);
}

void text_put_duration(struct text *t, uint64_t ns)
{
	put_scaled(t, ns, durations);
}

void text_put_size(struct text *t, uint64_t bytes)
{
	put_scaled(t, bytes, sizes);
}
