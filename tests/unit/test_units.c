/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "../../tools/units.h"
#include "../../tools/utf8.h"
#include "check.h"

static void test_units(void)
{
	check_text("0", units_time(0), "no time");
	check_text("0", units_time(0.4), "a time below one ns is none");
	check_text("812 ns", units_time(812.4), "ns have no decimals");
	check_text("4.31 us", units_time(4312), "us with three digits");
	check_text("43.1 us", units_time(43120), "tens");
	check_text("431 us", units_time(431200), "hundreds");
	check_text("1.00 ms", units_time(999600),
		   "rounding moves to the next unit");
	check_text("10.0 us", units_time(9996),
		   "rounding moves to the next digits");
	check_text("1.20 s", units_time(1.2e9), "seconds");
	check_text("1.50 min", units_time(90e9), "minutes");
	check_text("10.0 h", units_time(36000e9), "hours");
	check_text("0", units_time((double)NAN), "no number is no time");
	check_text("0", units_time(-5), "less than nothing is nothing");
	check_text("812", units_count(812), "a count");
	check_text("43.1 k", units_count(43100), "a thousand");
	check_text("1.20 M", units_count(1200000), "a million");
	check_text("18446744 T", units_count(UINT64_MAX), "the largest count");
	check_text("812 B", units_bytes(812), "bytes");
	check_text("4.31 KiB", units_bytes(4413), "KiB");
	check_text("3.00 GiB", units_bytes(3.0 * (1 << 30)), "GiB");
	check_text("12.3 %", units_percent(0.123), "a share");
	check_text("<0.1 %", units_percent(0.0001), "a small share");
	check_text("0 %", units_percent(0), "no share");
	check_text("150 %", units_percent(1.5), "more than all");
}

static void test_several_in_one_line(void)
{
	char line[128];

	snprintf(line, sizeof(line), "%s %s %s", units_time(1000),
		 units_count(7), units_bytes(1024));
	check_text("1.00 us 7 1.00 KiB", line,
		   "results live through one printf");
}

static void clean(const char *name, const char *from, char keep,
		  const char *wanted)
{
	char to[64];

	utf8_clean(to, from, sizeof(to) - 1, keep);
	check_text(wanted, to, "%s", name);
}

static void test_utf8(void)
{
	char cut[4];

	clean("plain text stays", "plain", 0, "plain");
	clean("a terminal escape does not", "a\033[31mb", 0, "a?[31mb");
	clean("nor its one-byte form in UTF-8",
	      "a\xc2\x9b"
	      "31m",
	      0, "a??31m");
	clean("nor a raw byte",
	      "a\x9b"
	      "b",
	      0, "a?b");
	clean("letters of any script stay", "\xc3\xa4\xe2\x82\xac", 0,
	      "\xc3\xa4\xe2\x82\xac");
	clean("four bytes stay", "\xf0\x9f\x98\x80", 0, "\xf0\x9f\x98\x80");
	clean("an overlong form does not", "\xc0\xaf", 0, "??");
	clean("a surrogate does not", "\xed\xa0\x80", 0, "???");
	clean("beyond Unicode does not", "\xf4\x90\x80\x80", 0, "????");
	clean("a line end goes", "a\nb", 0, "a?b");
	clean("unless it is wanted", "a\nb", '\n', "a\nb");
	utf8_clean(cut, "ab\xe2\x82\xac", 3, 0);
	check_text("ab?", cut, "a character that is cut goes");
}

int main(void)
{
	test_units();
	test_several_in_one_line();
	test_utf8();
	return check_done();
}
