/* SPDX-License-Identifier: MIT */
#include "../../tools/metric.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static void test_kinds(void)
{
	char why[METRIC_LINE];
	struct metric m;

	check_true(metric_set(&m, "wall", false, why) && m.lower &&
			   m.kind == METRIC_WALL,
		   "wall: less is better");
	check_true(metric_set(&m, "cpu", false, why) && m.lower &&
			   m.kind == METRIC_CPU,
		   "cpu: less is better");
	check_true(metric_set(&m, "a(b)", false, why) && !m.lower,
		   "a number: more is better");
	metric_free(&m);
	check_true(metric_set(&m, "a(b)", true, why) && m.lower,
		   "unless it is said that less is");
	metric_free(&m);
	check_true(!metric_set(&m, "ab", false, why), "a group is needed");
	check_true(!metric_set(&m, "a(b", false, why), "no regular expression");
}

static const struct {
	const char *regex, *output;
	double value; /* 0: none */
	double unit;  /* of its last digit */
} finds[] = {
	{"x: ([0-9.]+)", "x: 1.5\n", 1.5, 0.1},
	{"x: ([0-9.]+)", "x: 1\nx: 2\ny: 3\n", 2, 0},
	{"x: ([0-9.]+) y: ([0-9.]+)", "x: 1 y: 2\n", 1, 0},
	{"^x: (.*)$", "wax: 1\nx: 2\nwax: 3\n", 2, 0},
	{"^x: (.*)", "x: 1 x: 2\n", 0, 0},
	{"^(x)?[0-9]", "1\n", 0, 0},
	{"^([0-9]*)", "7\n\nabc", 0, 0},
	{"x: (.*)", "x: 2e3\n", 2000, 1000},
	{"x: (.*)", "x: 120\n", 120, 1},
	{"x: (.*)", "x:  +0.120 \n", 0.12, 0.001},
	{"x: (.*)", "x: 1.25E-3\n", 0.00125, 1e-5},
	{"x: (.*)", "x: .5\n", 0.5, 0.1},
	{"x: (.*)", "x: -1\n", 0, 0},
	{"x: (.*)", "x: 0\n", 0, 0},
	{"x: (.*)", "x: nan\n", 0, 0},
	{"x: (.*)", "x: inf\n", 0, 0},
	{"x: (.*)", "x: \n", 0, 0},
	{"x: (.*)", "x: 12 k\n", 0, 0},
	{"x: (.*)", "", 0, 0},
	{"\n(.)", "1\n2\n3", 3, 0},
	{"([0-9])$", "12\n34\nx5", 5, 0},
};

static void test_find(void)
{
	for (size_t i = 0; i < sizeof(finds) / sizeof(finds[0]); i++) {
		char why[METRIC_LINE] = "";
		struct metric m;
		struct metric_number n = {0};

		metric_set(&m, finds[i].regex, false, why);
		if (!metric_find(&m, finds[i].output, &n, why))
			n.value = 0;
		metric_free(&m);
		check_between(finds[i].value, finds[i].value, n.value,
			      "row %zu: %s", i, finds[i].regex);
		check_true((n.value == 0) == (why[0] != '\0'),
			   "row %zu: a reason, or none", i);
		if (finds[i].unit > 0)
			check_between(finds[i].unit * (1 - 1e-9),
				      finds[i].unit * (1 + 1e-9), n.unit,
				      "row %zu: its last digit", i);
	}
}

static void mask(const char *name, const char *regex, const char *output,
		 const char *wanted)
{
	char text[64], why[METRIC_LINE];
	struct metric m;

	snprintf(text, sizeof(text), "%s", output);
	metric_set(&m, regex, false, why);
	metric_mask(&m, text);
	metric_free(&m);
	check_text(wanted, text, "%s", name);
}

static void test_mask(void)
{
	mask("the number goes", "x: ([0-9]+)", "a\nx: 12\nb\n", "a\nx: \nb\n");
	mask("all of them go", "x: ([0-9]+)", "x: 1 x: 234x: 5", "x:  x: x: ");
	mask("nothing to leave out", "x: ([0-9]+)", "y: 1\n", "y: 1\n");
	mask("empty groups", "x([0-9]*)", "xx1x", "xxx");
	mask("empty matches", "([0-9]*)", "a1b22", "ab");
	mask("an empty output", "([0-9]*)", "", "");
}

/* A sanitizer looks for the end of the text at each match itself. */
#ifdef __SANITIZE_ADDRESS__
enum { MANY = 1 << 12 };
#else
enum { MANY = 1 << 20 };
#endif

/* Where the time grew with the square of their number, it would be minutes. */
static void test_many(void)
{
	enum { LINE = 8 };
	char why[METRIC_LINE], *text = malloc((size_t)MANY * LINE + 1);
	struct metric m;
	struct metric_number n = {0};

	for (size_t i = 0; i < MANY; i++)
		memcpy(text + i * LINE, "x: 0001\n", LINE + 1);
	text[(size_t)MANY * LINE - 2] = '2';
	metric_set(&m, "^x: ([0-9]+)", false, why);
	alarm(60);
	check_true(metric_find(&m, text, &n, why), "many matches");
	check_between(2, 2, n.value, "the last of them");
	metric_mask(&m, text);
	alarm(0);
	check_int((long)MANY * 4, (long)strlen(text), "without all of them");
	metric_free(&m);
	free(text);
}

int main(void)
{
	test_kinds();
	test_many();
	test_find();
	test_mask();
	return check_done();
}
