/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "json.h"
#include "utf8.h"

static void new_line(struct json *j)
{
	int i;

	if (!j->pretty)
		return;
	fputc('\n', j->out);
	for (i = 0; i < j->depth; i++)
		fputs("  ", j->out);
}

static void put_char(struct json *j, const char *s, size_t length)
{
	if (length == 0)
		fputs("\\ufffd", j->out);
	else if (*s == '"' || *s == '\\')
		fprintf(j->out, "\\%c", *s);
	else if (utf8_is_control(s))
		fprintf(j->out, "\\u%04x", (unsigned char)s[length - 1]);
	else
		fwrite(s, 1, length, j->out);
}

static void put_string(struct json *j, const char *s)
{
	size_t length;

	fputc('"', j->out);
	for (; *s; s += length ? length : 1) {
		length = utf8_length(s);
		put_char(j, s, length);
	}
	fputc('"', j->out);
}

/* What stands before a value: comma, line, name. */
static void begin(struct json *j, const char *key)
{
	if (j->depth > 0) {
		if (j->levels[j->depth].filled)
			fputc(',', j->out);
		j->levels[j->depth].filled = true;
		new_line(j);
	}
	if (!key)
		return;
	put_string(j, key);
	fputs(j->pretty ? ": " : ":", j->out);
}

void json_open(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	fputc(bracket, j->out);
	j->levels[++j->depth] = (struct json_level){.bracket = bracket};
}

void json_close(struct json *j)
{
	struct json_level level = j->levels[j->depth--];

	if (level.filled)
		new_line(j);
	fputc(level.bracket == '{' ? '}' : ']', j->out);
	if (j->depth == 0 && !j->inner)
		fputc('\n', j->out);
}

void json_string(struct json *j, const char *key, const char *value)
{
	begin(j, key);
	put_string(j, value);
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
	begin(j, key);
	fprintf(j->out, "%" PRIu64, value);
}

void json_i64(struct json *j, const char *key, int64_t value)
{
	begin(j, key);
	fprintf(j->out, "%" PRId64, value);
}

void json_hex(struct json *j, const char *key, uint64_t value)
{
	begin(j, key);
	fprintf(j->out, "\"0x%" PRIx64 "\"", value);
}

void json_round(struct json *j, const char *key, double value)
{
	bool positive = value > 0; /* false for NaN too */

	json_i64(j, key, positive ? llround(fmin(value, 0x1p62)) : 0);
}

void json_null(struct json *j, const char *key)
{
	begin(j, key);
	fputs("null", j->out);
}

void json_double(struct json *j, const char *key, double value)
{
	begin(j, key);
	if (isfinite(value))
		fprintf(j->out, "%.10g", value);
	else
		fputs("null", j->out);
}

void json_number(struct json *j, const char *key, const char *text)
{
	begin(j, key);
	fputs(text, j->out);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin(j, key);
	fputs(value ? "true" : "false", j->out);
}

void json_range(struct json *j, const char *key, double low, double high)
{
	json_open(j, key, '[');
	json_double(j, NULL, low);
	json_double(j, NULL, high);
	json_close(j);
}

struct json json_document(FILE *out, uint64_t version)
{
	struct json j = {.out = out, .pretty = true};

	json_open(&j, NULL, '{');
	json_u64(&j, "version", version);
	return j;
}

struct json json_line(FILE *out)
{
	return (struct json){.out = out};
}
