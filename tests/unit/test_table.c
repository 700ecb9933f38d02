/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "../../tools/output.h"
#include "../../tools/table.h"
#include "check.h"

static char *printed;
static size_t printed_bytes;

static FILE *begin(void)
{
	free(printed);
	printed = NULL;
	return open_memstream(&printed, &printed_bytes);
}

static size_t longest_line(const char *text)
{
	size_t longest = 0, length;

	for (; *text; text += length + (text[length] == '\n')) {
		length = strcspn(text, "\n");
		longest = length > longest ? length : longest;
	}
	return longest;
}

/* --- a table of a name, two spare columns and a last one --- */

static struct table *small_table(void)
{
	struct table *t = table_new();

	table_column(t, NULL, "op", false);
	table_spare(t, 2);
	table_column(t, "time", "p50", true);
	table_spare(t, 1);
	table_column(t, "time", "max", true);
	table_spare(t, 0);
	table_column(t, NULL, "share", true);
	table_cell(t, "mmap");
	table_cell(t, "1");
	table_cell(t, "2");
	table_cell(t, "3");
	return t;
}

static size_t print_small(size_t width)
{
	FILE *out = begin();
	size_t dropped = table_print(small_table(), "  ", width, out);

	fclose(out);
	return dropped;
}

static void test_drops_what_is_spare(void)
{
	check_u64(0, print_small(23), "a table that fits loses no column");
	check_text("        - time -\n"
		   "  op    p50  max  share\n"
		   "  mmap    1    2      3\n",
		   printed, "and is whole");
	check_u64(1, print_small(22), "one character less costs a column");
	check_text("        - time \n"
		   "  op        max  share\n"
		   "  mmap        2      3\n",
		   printed, "the most spare one; a heading has its room");
	check_u64(1, print_small(21), "as long as there is any");
	check_text("        ---\n"
		   "  op    max  share\n"
		   "  mmap    2      3\n",
		   printed, "then it is cut");
	check_u64(2, print_small(17), "then the next");
	check_text("  op    share\n"
		   "  mmap      3\n",
		   printed, "its heading goes with it");
	check_u64(2, print_small(0), "what is not spare stays");
}

/* --- every width of every column --- */

enum { COLUMNS = 10, WIDEST = 40, WIDTH = 100 };

static void fill(struct table *t, unsigned mask)
{
	char cell[WIDEST + 1];
	unsigned i;

	memset(cell, '9', WIDEST);
	cell[WIDEST] = '\0';
	for (i = 0; i < COLUMNS; i++) {
		table_spare(t, i);
		table_column(t, i % 3 ? "a rather long heading" : NULL, "x",
			     true);
	}
	for (i = 0; i < COLUMNS; i++)
		table_cell(t, cell + (mask >> i & 1 ? 0 : WIDEST - 3));
}

static void test_any_widths(void)
{
	unsigned mask, wide = 0;
	struct table *t;
	FILE *out;

	for (mask = 0; mask < 1u << COLUMNS; mask++) {
		t = table_new();
		out = begin();
		fill(t, mask);
		table_print(t, "  ", WIDTH, out);
		fclose(out);
		wide += longest_line(printed) > WIDTH;
	}
	check_u64(0, wide, "tables that do not fit, of all %u widths",
		  1u << COLUMNS);
}

/* --- prose --- */

static void test_folding(void)
{
	static const struct {
		const char *what, *text, *expected;
	} rows[] = {
		{"a line that fits is left alone", "0123456789\n",
		 "0123456789\n"},
		{"a longer one is cut at a blank", "  one two three four\n",
		 "  one two\n     three\n     four\n"},
		{"a long word stays whole", "0123456789abcdef next\n",
		 "0123456789abcdef\n    next\n"},
		{"characters count, not bytes",
		 "\303\244\303\244\303\244\303\244 \303\244\303\244\303\244 "
		 "b\n",
		 "\303\244\303\244\303\244\303\244 "
		 "\303\244\303\244\303\244 b\n"},
		{"what is no text counts too", "\377\377\377\377\377 a bb\n",
		 "\377\377\377\377\377 a bb\n"},
		{"blanks at the cut go", "0123456   789   \n",
		 "0123456  \n    789   \n"},
		{"a last line without an end gets one", "abc", "abc\n"},
		{"empty lines stay", "\n\na\n", "\n\na\n"},
	};
	FILE *out;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		out = begin();
		output_folded(rows[i].text, 10, out);
		fclose(out);
		check_text(rows[i].expected, printed, "%s", rows[i].what);
	}
}

int main(void)
{
	test_drops_what_is_spare();
	test_any_widths();
	test_folding();
	free(printed);
	return check_done();
}
