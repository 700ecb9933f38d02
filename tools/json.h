/* SPDX-License-Identifier: MIT */
/*
 * json: writes JSON as it goes.
 *
 * Commas, nesting and escapes are taken care of; what is no UTF-8 becomes
 * U+FFFD; numbers do not depend on the locale.  `key` is the member's name in
 * an object and NULL in an array and at the top.
 */
#ifndef MMGATE_JSON_H
#define MMGATE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 32 };

struct json_level {
	char bracket; /* '{' or '[' */
	bool filled;  /* it has a member */
};

struct json {
	FILE *out;
	bool pretty; /* a line per member, else all in one line */
	bool inner;  /* part of a larger text: no end of line at its own */
	int depth;
	struct json_level levels[JSON_DEPTH];
};

struct json json_to(FILE *out, bool pretty);

/* Begins an object ('{') or an array ('[').
 * pre: fewer than JSON_DEPTH - 1 are open. */
void json_open(struct json *j, const char *key, char bracket);
/* Ends the innermost one; the outermost ends the line too. */
void json_close(struct json *j);

void json_string(struct json *j, const char *key, const char *value);
void json_u64(struct json *j, const char *key, uint64_t value);
void json_i64(struct json *j, const char *key, int64_t value);
void json_hex(struct json *j, const char *key, uint64_t value);
/* Rounded to an integer; 0 for what is negative or no number. */
void json_round(struct json *j, const char *key, double value);
void json_null(struct json *j, const char *key);
/* With ten digits; null when it is infinite or no number. */
void json_double(struct json *j, const char *key, double value);
/* `text` is a number already. */
void json_number(struct json *j, const char *key, const char *text);
void json_bool(struct json *j, const char *key, bool value);

#endif
