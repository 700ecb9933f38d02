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

/* A document of its own: its object is begun, with the version of the format.
 */
struct json json_document(FILE *out, uint64_t version);
/* What is begun next is a line by itself. */
struct json json_line(FILE *out);

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
/* An array of the two. */
void json_range(struct json *j, const char *key, double low, double high);
/* `text` is a number already. */
void json_number(struct json *j, const char *key, const char *text);
void json_bool(struct json *j, const char *key, bool value);

#endif
