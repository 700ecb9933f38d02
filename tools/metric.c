/* SPDX-License-Identifier: MIT */
#include "metric.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 40 }; /* of what is no number */

bool metric_set(struct metric *metric, const char *text, bool lower,
		char why[METRIC_LINE])
{
	int error;

	*metric = (struct metric){.text = text, .lower = true};
	if (strcmp(text, "wall") == 0)
		return true;
	metric->kind = METRIC_CPU;
	if (strcmp(text, "cpu") == 0)
		return true;
	metric->kind = METRIC_REGEX;
	metric->lower = lower;
	error = regcomp(&metric->regex, text, REG_EXTENDED | REG_NEWLINE);
	if (error != 0) {
		regerror(error, &metric->regex, why, METRIC_LINE);
		return false;
	}
	if (metric->regex.re_nsub > 0)
		return true;
	snprintf(why, METRIC_LINE,
		 "not wall or cpu, and a regular expression needs a group ( ) "
		 "around the number");
	regfree(&metric->regex);
	return false;
}

void metric_free(struct metric *metric)
{
	if (metric->kind == METRIC_REGEX)
		regfree(&metric->regex);
}

/* The next match from `at` on; offsets are those in the whole. */
static bool next_match(const struct metric *metric, const char *output,
		       size_t at, size_t len, regmatch_t groups[2])
{
#ifdef REG_STARTEND
	/* Where regexec() has to look for the end itself, many matches in a
	 * long output take for ever. */
	groups[0] = (regmatch_t){(regoff_t)at, (regoff_t)len};
	return regexec(&metric->regex, output, 2, groups, REG_STARTEND) == 0;
#else
	bool inside = at > 0 && output[at - 1] != '\n';

	(void)len;
	if (regexec(&metric->regex, output + at, 2, groups,
		    inside ? REG_NOTBOL : 0) != 0)
		return false;
	for (int i = 0; i < 2; i++)
		if (groups[i].rm_so >= 0) {
			groups[i].rm_so += (regoff_t)at;
			groups[i].rm_eo += (regoff_t)at;
		}
	return true;
#endif
}

/* Calls `each` with the first group of each match, if it took part. */
static void each_match(const struct metric *metric, const char *output,
		       void (*each)(void *context, size_t from, size_t to),
		       void *context)
{
	size_t at = 0, len = strlen(output);
	regmatch_t groups[2];

	while (at <= len && next_match(metric, output, at, len, groups)) {
		if (groups[1].rm_so >= 0)
			each(context, (size_t)groups[1].rm_so,
			     (size_t)groups[1].rm_eo);
		at = (size_t)groups[0].rm_eo;
		/* An empty match is there again and again. */
		if (groups[0].rm_so == groups[0].rm_eo)
			at++;
	}
}

struct group {
	size_t from, to;
	bool found;
};

static void keep_last(void *context, size_t from, size_t to)
{
	*(struct group *)context = (struct group){from, to, true};
}

static double unit_of(const char *number)
{
	static const char digits[] = "0123456789";
	const char *at = number + strspn(number, " \t\n+");
	double exponent = 0;

	at += strspn(at, digits);
	if (*at == '.') {
		exponent = -(double)strspn(at + 1, digits);
		at += 1 + strspn(at + 1, digits);
	}
	if (*at == 'e' || *at == 'E')
		exponent += (double)strtol(at + 1, NULL, 10);
	return pow(10, exponent);
}

static bool parse(const char *s, size_t len, struct metric_number *number)
{
	char text[64], *end;

	if (len == 0 || len >= sizeof(text))
		return false;
	memcpy(text, s, len);
	text[len] = '\0';
	number->value = strtod(text, &end);
	number->unit = unit_of(text);
	end += strspn(end, " \t\n");
	return end != text && *end == '\0' && isfinite(number->value);
}

bool metric_find(const struct metric *metric, const char *output,
		 struct metric_number *number, char why[METRIC_LINE])
{
	struct group last = {0};
	size_t len;

	each_match(metric, output, keep_last, &last);
	len = last.to - last.from;
	if (!last.found)
		snprintf(why, METRIC_LINE, "nothing in it matches %s",
			 metric->text);
	else if (!parse(output + last.from, len, number))
		snprintf(why, METRIC_LINE,
			 "what %s finds in it is no number: "
			 "'%.*s'",
			 metric->text, (int)(len < SHOWN ? len : SHOWN),
			 output + last.from);
	else if (number->value <= 0)
		snprintf(why, METRIC_LINE,
			 "%s finds %g in it, and ratios need numbers above 0",
			 metric->text, number->value);
	else
		return true;
	return false;
}

/* The text up to `read` without groups, at the start of it. */
struct mask {
	char *output;
	size_t read, written;
};

static void leave_out(void *context, size_t from, size_t to)
{
	struct mask *mask = context;

	memmove(mask->output + mask->written, mask->output + mask->read,
		from - mask->read);
	mask->written += from - mask->read;
	mask->read = to;
}

void metric_mask(const struct metric *metric, char *output)
{
	struct mask mask = {.output = output};
	size_t len = strlen(output);

	/* What is written lies before what is searched. */
	each_match(metric, output, leave_out, &mask);
	leave_out(&mask, len, len);
	output[mask.written] = '\0';
}
