/* SPDX-License-Identifier: MIT */
#include "text.h"

#include <errno.h>

#include "check.h"

struct parse_case {
	const char *s;
	int error;
	uint64_t value;
};

static const struct parse_case numbers[] = {
	{"0", 0, 0},
	{"7", 0, 7},
	{"007", 0, 7},
	{"18446744073709551615", 0, UINT64_MAX},
	{"18446744073709551616", -ERANGE, 0},
	{"99999999999999999999", -ERANGE, 0},
	{"", -EINVAL, 0},
	{"-1", -EINVAL, 0},
	{"+1", -EINVAL, 0},
	{" 1", -EINVAL, 0},
	{"1 ", -EINVAL, 0},
	{"0x10", -EINVAL, 0},
	{"1.0", -EINVAL, 0},
	{"99999999999999999999x", -EINVAL, 0},
};

static const struct parse_case durations[] = {
	{"0", 0, 0},
	{"00", 0, 0},
	{"0s", 0, 0},
	{"200ns", 0, 200},
	{"5us", 0, 5000},
	{"1ms", 0, 1000000},
	{"2s", 0, 2000000000},
	{"1.5ms", 0, 1500000},
	{"0.25us", 0, 250},
	{"1.000000001s", 0, 1000000001},
	{"0.0000000019s", 0, 1},
	{"1.9ns", 0, 1},
	{"1.50ms", 0, 1500000},
	{"18446744073709551615ns", 0, UINT64_MAX},
	{"18446744073s", 0, UINT64_C(18446744073000000000)},
	{"18446744074s", -ERANGE, 0},
	{"18446744073.709551615s", 0, UINT64_MAX},
	{"18446744073.709551616s", -ERANGE, 0},
	{"18446744073709551616ns", -ERANGE, 0},
	{"", -EINVAL, 0},
	{"s", -EINVAL, 0},
	{".5s", -EINVAL, 0},
	{"1.s", -EINVAL, 0},
	{"1..5s", -EINVAL, 0},
	{"1.5.5s", -EINVAL, 0},
	{"5", -EINVAL, 0},
	{"0.0", -EINVAL, 0},
	{"5 us", -EINVAL, 0},
	{"5US", -EINVAL, 0},
	{"5m", -EINVAL, 0},
	{"5min", -EINVAL, 0},
	{"-5us", -EINVAL, 0},
	{"5usx", -EINVAL, 0},
	{"1e3ns", -EINVAL, 0},
};

static const struct parse_case sizes[] = {
	{"0", 0, 0},
	{"4096", 0, 4096},
	{"64K", 0, 65536},
	{"64M", 0, 64 << 20},
	{"1G", 0, 1 << 30},
	{"1.5K", 0, 1536},
	{"0.5G", 0, 1 << 29},
	{"17179869183G", 0, UINT64_C(17179869183) << 30},
	{"17179869184G", -ERANGE, 0},
	{"", -EINVAL, 0},
	{"K", -EINVAL, 0},
	{"64k", -EINVAL, 0},
	{"64KB", -EINVAL, 0},
	{"64KiB", -EINVAL, 0},
	{"1T", -EINVAL, 0},
	{"64 K", -EINVAL, 0},
	{"-64K", -EINVAL, 0},
};

static void check_parser(const char *what,
			 int (*parse)(const char *, size_t, uint64_t *),
			 const struct parse_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct parse_case *c = &cases[i];
		uint64_t value = 0;
		int error = parse(c->s, strlen(c->s), &value);

		check_int(c->error, error, "%s \"%s\": status", what, c->s);
		if (c->error == 0)
			check_u64(c->value, value, "%s \"%s\"", what, c->s);
	}
}

#define CHECK_PARSER(what, parse, cases)                                       \
	check_parser(what, parse, cases, sizeof(cases) / sizeof((cases)[0]))

/* What lies behind `len` is somebody else's. */
static void check_lengths(void)
{
	uint64_t value = 0;

	check_int(0, text_parse_u64("123", 2, &value), "length of a number");
	check_u64(12, value, "number of length 2");
	check_int(0, text_parse_duration("5us,7ms", 3, &value),
		  "length of a duration");
	check_u64(5000, value, "duration of length 3");
	check_int(0, text_parse_size("64Kx", 3, &value), "length of a size");
	check_u64(65536, value, "size of length 3");
	check_int(-EINVAL, text_parse_duration("5us", 1, &value),
		  "a unit out of reach");
	value = 99;
	text_parse_u64("x", 1, &value);
	text_parse_duration("5m", 2, &value);
	text_parse_size("1T", 2, &value);
	check_u64(99, value, "an error leaves the value");
}

static const struct {
	const char *pattern, *s;
	bool match;
} globs[] = {
	{"", "", true},
	{"", "a", false},
	{"a", "", false},
	{"*", "", true},
	{"*", "anything", true},
	{"**", "x", true},
	{"?", "", false},
	{"?", "x", true},
	{"?", "xy", false},
	{"python3", "python3", true},
	{"python3", "python3.11", false},
	{"python*", "python3.11", true},
	{"*.so", "a.so.so", true},
	{"*.so", "a.so.1", false},
	{"a*b*c", "abc", true},
	{"a*b*c", "aXbYc", true},
	{"a*b*c", "aXbYcZ", false},
	{"*ab", "aab", true},
	{"*aab", "aaaab", true},
	{"a?c*", "abcdef", true},
	{"*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
	{"[ab]", "a", false},
	{"[ab]", "[ab]", true},
	{"\\*", "*", false},
	{"\\*", "\\x", true},
};

static void check_globs(void)
{
	for (size_t i = 0; i < sizeof(globs) / sizeof(globs[0]); i++)
		check_int(globs[i].match,
			  text_glob(globs[i].pattern, strlen(globs[i].pattern),
				    globs[i].s),
			  "glob \"%s\" on \"%s\"", globs[i].pattern,
			  globs[i].s);
	check_true(text_glob("abX", 2, "ab"), "glob of length 2");
}

static void check_words(void)
{
	const char *s = "prefix-rest";

	check_u64(0, text_len(""), "length of nothing");
	check_u64(3, text_len("abc"), "length of abc");
	check_true(text_equal("", ""), "nothing equals nothing");
	check_true(text_equal("abc", "abc"), "abc equals abc");
	check_true(!text_equal("abc", "ab"), "abc is not ab");
	check_true(!text_equal("ab", "abc"), "ab is not abc");
	check_true(text_is("abc", 2, "ab"), "two of abc are ab");
	check_true(!text_is("abc", 2, "abc"), "two of abc are not abc");
	check_true(!text_is("abc", 3, "ab"), "three of abc are not ab");
	check_true(text_is("x", 0, ""), "none of x is nothing");
	check_text(s + 7, text_after(s, "prefix-"), "what follows a prefix");
	check_text(s, text_after(s, ""), "what follows nothing");
	check_text("", text_after("all", "all"), "nothing follows the whole");
	check_text(NULL, text_after("pre", "prefix"), "shorter than a prefix");
	check_text(NULL, text_after("other", "prefix"), "another prefix");
	check_u64(3, text_word("abc,def"), "first word");
	check_u64(3, text_word("abc"), "only word");
	check_u64(0, text_word(",abc"), "empty word");
	check_u64(0, text_word(""), "word of nothing");
}

static const struct {
	void (*put)(struct text *t, uint64_t value);
	uint64_t value;
	const char *expected;
} writers[] = {
	{text_put_u64, 0, "0"},
	{text_put_u64, 10, "10"},
	{text_put_u64, UINT64_MAX, "18446744073709551615"},
	{text_put_duration, 0, "0ns"},
	{text_put_duration, 1, "1ns"},
	{text_put_duration, 1000, "1us"},
	{text_put_duration, 1001, "1001ns"},
	{text_put_duration, 1000000, "1ms"},
	{text_put_duration, 1500000, "1500us"},
	{text_put_duration, 1000000000, "1s"},
	{text_put_duration, UINT64_C(3600000000000), "3600s"},
	{text_put_duration, UINT64_MAX, "18446744073709551615ns"},
	{text_put_size, 0, "0"},
	{text_put_size, 1023, "1023"},
	{text_put_size, 1024, "1K"},
	{text_put_size, 1536, "1536"},
	{text_put_size, 64 << 20, "64M"},
	{text_put_size, UINT64_C(1) << 40, "1024G"},
};

static void check_writers(void)
{
	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
		char buffer[32];
		struct text t = text_over(buffer, sizeof(buffer));

		writers[i].put(&t, writers[i].value);
		check_text(writers[i].expected, buffer, "writes %s",
			   writers[i].expected);
	}
}

/* What is written is read back as it was. */
static void check_round_trips(void)
{
	uint64_t value = 1, back;
	bool same = true;

	for (int i = 0; i < 2000; i++) {
		char buffer[32];
		struct text t = text_over(buffer, sizeof(buffer));

		text_put_duration(&t, value);
		same &= text_parse_duration(buffer, strlen(buffer), &back) ==
				0 &&
			back == value;
		t = text_over(buffer, sizeof(buffer));
		text_put_size(&t, value);
		same &= text_parse_size(buffer, strlen(buffer), &back) == 0 &&
			back == value;
		value = value * 6364136223846793005 + 1442695040888963407;
		value >>= i % 50;
	}
	check_true(same, "durations and sizes are read back");
}

static void check_cutting(void)
{
	char buffer[] = "********";
	struct text t = text_over(buffer, 4);

	check_text("", buffer, "an empty text is ended");
	text_put(&t, "abc");
	check_text("abc", buffer, "what fits exactly");
	check_true(!t.cut, "is not cut");
	text_put(&t, "d");
	check_text("abc", buffer, "one byte more");
	check_true(t.cut, "is cut");
	text_put(&t, "");
	check_text("****", buffer + 4, "nothing behind the end is touched");
	t = text_over(buffer, 3);
	text_put_u64(&t, 12345);
	check_text("12", buffer, "a number is cut too");
	check_true(t.cut, "and it says so");
	t = text_over(buffer, 1);
	text_put(&t, "x");
	check_text("", buffer, "room for the end only");
	t = text_over(buffer, 0);
	text_put(&t, "x");
	check_true(t.cut, "no room at all");
	t = text_over(buffer, sizeof(buffer));
	text_put_bytes(&t, "a\0b", 3);
	check_true(memcmp(buffer, "a\0b", 4) == 0, "bytes are bytes");
}

int main(void)
{
	CHECK_PARSER("number", text_parse_u64, numbers);
	CHECK_PARSER("duration", text_parse_duration, durations);
	CHECK_PARSER("size", text_parse_size, sizes);
	check_lengths();
	check_globs();
	check_words();
	check_writers();
	check_round_trips();
	check_cutting();
	return check_done();
}
