/* SPDX-License-Identifier: MIT */
/*
 * html: writes text into HTML and SVG.
 *
 * Whatever comes from a program or a file passes html_text(): no byte of it
 * can be markup, and none is a control character.
 */
#ifndef MMGATE_HTML_H
#define MMGATE_HTML_H

#include <stdint.h>
#include <stdio.h>

/* In content and in quoted attributes. */
void html_text(FILE *out, const char *text);

/* A table, up to its headings; they follow, then its rows.  Its words are none
 * of the program's. */
void html_table(FILE *out, const char *class, const char *caption);
/* <th scope=col>; the first column of names is to the left. */
void html_head(FILE *out, const char *title, int is_name);
void html_table_rows(FILE *out);
/* A cell: text that is shown, and a number to sort by. */
void html_cell(FILE *out, const char *text, double value);
void html_name_cell(FILE *out, const char *text);
void html_table_end(FILE *out);

/* A string of JSON, quotes and all, for a script element. */
void html_json(FILE *out, const char *text);

#endif
