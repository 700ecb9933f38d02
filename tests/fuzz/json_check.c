/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "../../tools/utf8.h"
#include "json_check.h"

/* Each takes what it is about off the front; NULL: it is not there. */
static const char *value(const char *s, int depth);

static const char *blank(const char *s)
{
	return s + strspn(s, " \n");
}

static const char *escape(const char *s)
{
	int i;

	if (*s != 'u')
		return *s && strchr("\"\\/bfnrt", *s) ? s + 1 : NULL;
	for (i = 1; i <= 4; i++)
		if (!isxdigit((unsigned char)s[i]))
			return NULL;
	return s + 5;
}

static const char *string(const char *s)
{
	size_t length;

	if (*s++ != '"')
		return NULL;
	while (s && *s != '"') {
		if (!*s || utf8_is_control(s))
			return NULL;
		length = utf8_length(s);
		if (length == 0)
			return NULL;
		s = *s == '\\' ? escape(s + 1) : s + length;
	}
	return s ? s + 1 : NULL;
}

static const char *digits(const char *s)
{
	size_t length = strspn(s, "0123456789"), places;

	/* The tools write no zeros in front, and no exponents. */
	if (length == 0 || (*s == '0' && length > 1))
		return NULL;
	s += length;
	if (*s != '.')
		return s;
	places = strspn(s + 1, "0123456789");
	return places > 0 ? s + 1 + places : NULL;
}

static const char *word(const char *s, const char *expected)
{
	size_t length = strlen(expected);

	return strncmp(s, expected, length) ? NULL : s + length;
}

static const char *member(const char *s, char end, int depth)
{
	if (end == '}') {
		s = string(s);
		s = s ? word(blank(s), ":") : NULL;
	}
	return s ? value(blank(s), depth) : NULL;
}

static const char *members(const char *s, char end, int depth)
{
	s = blank(s);
	if (*s == end)
		return s + 1;
	for (;;) {
		s = member(s, end, depth);
		if (!s)
			return NULL;
		s = blank(s);
		if (*s == end)
			return s + 1;
		if (*s++ != ',')
			return NULL;
		s = blank(s);
	}
}

static const char *value(const char *s, int depth)
{
	if (depth == 0)
		return NULL;
	switch (*s) {
	case '{':
		return members(s + 1, '}', depth - 1);
	case '[':
		return members(s + 1, ']', depth - 1);
	case '"':
		return string(s);
	case 't':
		return word(s, "true");
	case 'f':
		return word(s, "false");
	case 'n':
		return word(s, "null");
	case '-':
		return digits(s + 1);
	default:
		return digits(s);
	}
}

bool json_check(const char *text, unsigned count)
{
	const char *s = blank(text);

	while (s && *s && count > 0) {
		s = value(s, 32);
		s = s ? blank(s) : NULL;
		count--;
	}
	return s && !*s && count == 0;
}
