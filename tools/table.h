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

struct table;

struct table *table_new(void);
/* Adds a column.  `group`, when not NULL, is a heading above this column and
 * those after it that name the same one.
 * pre: no cell was added yet. */
void table_column(struct table *t, const char *group, const char *title,
		  bool right);
/* Adds the next cell; a full row begins the next. */
void table_cell(struct table *t, const char *text);
/* Prints headings and rows, each behind `indent`, and frees the table. */
void table_print(struct table *t, const char *indent, FILE *out);

#endif
