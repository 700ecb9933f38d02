/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "table.h"

static const char gap[] = "  ";

struct column {
	const char *group;
	const char *title;
	bool right;
	bool gone;
	unsigned spare;
	int width;
};

struct table {
	struct column *columns;
	size_t column_count;
	unsigned spare; /* of the next column */
	char **cells;
	size_t cell_count, cell_room;
};

struct table *table_new(void)
{
	return xcalloc(1, sizeof(struct table));
}

static void widen(struct column *c, const char *text)
{
	int width = (int)strlen(text);

	if (width > c->width)
		c->width = width;
}

void table_column(struct table *t, const char *group, const char *title,
		  bool right)
{
	struct column *c;

	t->columns = xrealloc(t->columns,
			      (t->column_count + 1) * sizeof(*t->columns));
	c = &t->columns[t->column_count++];
	*c = (struct column){
		.group = group,
		.title = title,
		.right = right,
		.spare = t->spare,
	};
	widen(c, title);
}

void table_spare(struct table *t, unsigned order)
{
	t->spare = order;
}

void table_cell(struct table *t, const char *text)
{
	if (t->cell_count == t->cell_room) {
		t->cell_room = t->cell_room ? 2 * t->cell_room : 64;
		t->cells = xrealloc(t->cells, t->cell_room * sizeof(*t->cells));
	}
	widen(&t->columns[t->cell_count % t->column_count], text);
	t->cells[t->cell_count++] = xstrdup(text);
}

/* --- what fits --- */

static size_t width_of(const struct table *t)
{
	size_t width = 0, i;

	for (i = 0; i < t->column_count; i++)
		if (!t->columns[i].gone)
			width += (width ? sizeof(gap) - 1 : 0) +
				 (size_t)t->columns[i].width;
	return width;
}

static unsigned most_spare(const struct table *t)
{
	unsigned most = 0;
	size_t i;

	for (i = 0; i < t->column_count; i++)
		if (!t->columns[i].gone && t->columns[i].spare > most)
			most = t->columns[i].spare;
	return most;
}

static size_t drop(struct table *t, unsigned spare)
{
	size_t dropped = 0, i;

	for (i = 0; i < t->column_count; i++)
		if (t->columns[i].spare == spare) {
			t->columns[i].gone = true;
			dropped++;
		}
	return dropped;
}

static size_t fit(struct table *t, size_t width)
{
	size_t dropped = 0;
	unsigned spare;

	while (width_of(t) > width && (spare = most_spare(t)) > 0)
		dropped += drop(t, spare);
	return dropped;
}

/* Takes out what is gone, so that nobody behind has to know of it. */
static void close_up(struct table *t)
{
	size_t all = t->column_count, left = 0, i;

	for (i = 0; i < t->cell_count; i++)
		if (t->columns[i % all].gone)
			free(t->cells[i]);
		else
			t->cells[left++] = t->cells[i];
	t->cell_count = left;
	for (i = left = 0; i < all; i++)
		if (!t->columns[i].gone)
			t->columns[left++] = t->columns[i];
	t->column_count = left;
}

/* --- printing --- */

static bool same_group(const struct column *a, const struct column *b)
{
	return a->group && b->group && !strcmp(a->group, b->group);
}

/* Columns up to the last one that has a group. */
static size_t grouped_columns(const struct table *t)
{
	size_t count = t->column_count;

	while (count > 0 && !t->columns[count - 1].group)
		count--;
	return count;
}

/* Prints `- group ---` over `width` characters, or blanks. */
static void print_group(const char *group, int width, FILE *out)
{
	int used = 0, i;

	if (group && width > 3)
		used = fprintf(out, "- %.*s ", width - 3, group);
	for (i = used; i < width; i++)
		fputc(group ? '-' : ' ', out);
}

/* Index behind the last column of the group that begins at `from`. */
static size_t group_end(const struct table *t, size_t from)
{
	size_t to = from + 1;

	while (to < t->column_count &&
	       same_group(&t->columns[from], &t->columns[to]))
		to++;
	return to;
}

static size_t group_width(const struct table *t, size_t from, size_t to)
{
	size_t width = (size_t)t->columns[from].width;

	while (++from < to)
		width += sizeof(gap) - 1 + (size_t)t->columns[from].width;
	return width;
}

/* Makes room for the headings of groups, as far as there is any. */
static void widen_groups(struct table *t, size_t width)
{
	size_t from, to, need, has;

	for (from = 0; from < t->column_count; from = to) {
		to = group_end(t, from);
		if (!t->columns[from].group)
			continue;
		need = strlen(t->columns[from].group) + 3;
		has = group_width(t, from, to);
		if (has < need && width_of(t) + need - has <= width)
			t->columns[to - 1].width += (int)(need - has);
	}
}

static void print_groups(const struct table *t, const char *indent, FILE *out)
{
	size_t from, to, end = grouped_columns(t);

	if (end == 0)
		return;
	fputs(indent, out);
	for (from = 0; from < end; from = to) {
		to = group_end(t, from);
		if (from > 0)
			fputs(gap, out);
		print_group(t->columns[from].group,
			    (int)group_width(t, from, to), out);
	}
	fputc('\n', out);
}

static void print_cell(const struct table *t, size_t i, const char *text,
		       FILE *out)
{
	const struct column *c = &t->columns[i];
	bool last = i + 1 == t->column_count;

	if (i > 0)
		fputs(gap, out);
	if (c->right)
		fprintf(out, "%*s", c->width, text);
	else
		fprintf(out, "%-*s", last ? 0 : c->width, text);
	if (last)
		fputc('\n', out);
}

static void table_free(struct table *t)
{
	size_t i;

	for (i = 0; i < t->cell_count; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t->columns);
	free(t);
}

size_t table_print(struct table *t, const char *indent, size_t width, FILE *out)
{
	size_t before = strlen(indent), dropped, i;

	width = width > before ? width - before : 0;
	dropped = fit(t, width);
	close_up(t);
	widen_groups(t, width);
	print_groups(t, indent, out);
	fputs(indent, out);
	for (i = 0; i < t->column_count; i++)
		print_cell(t, i, t->columns[i].title, out);
	for (i = 0; i < t->cell_count; i++) {
		if (i % t->column_count == 0)
			fputs(indent, out);
		print_cell(t, i % t->column_count, t->cells[i], out);
	}
	table_free(t);
	return dropped;
}

/* A bar would end the cell. */
void table_put_cell(const char *text, FILE *out)
{
	fputs("| ", out);
	for (; *text != '\0'; text++) {
		if (*text == '|')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc(' ', out);
}
