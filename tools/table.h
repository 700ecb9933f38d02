/* SPDX-License-Identifier: MIT */
/*
 * table: aligned columns of text.
 *
 * Rows are collected and printed when all widths are known.  Cells are
 * copied.
 */
#ifndef MMGATE_TABLE_H
#define MMGATE_TABLE_H

#include <stdbool.h>
#include <stdio.h>

/* Of a screen, with its margin. */
enum { TABLE_WIDTH = 120 };

struct table;

struct table *table_new(void);
/* Adds a column.  `group`, when not NULL, is a heading above this column and
 * those after it that name the same one.
 * pre: no cell was added yet. */
void table_column(struct table *t, const char *group, const char *title,
		  bool right);
/* May the columns from here on go when the table is too wide?  Those with the
 * highest number go first, all together; 0, as at first: they stay. */
void table_spare(struct table *t, unsigned order);
/* Adds the next cell; a full row begins the next. */
void table_cell(struct table *t, const char *text);
/* Prints headings and rows, each behind `indent` and no longer than `width`
 * with it, as far as columns may go; frees the table.  The number of columns
 * that went. */
size_t table_print(struct table *t, const char *indent, size_t width,
		   FILE *out);

/* One cell of a row of Markdown; the row ends with "|\n". */
void table_put_cell(const char *text, FILE *out);

#endif
