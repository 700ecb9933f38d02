/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "html.h"
#include "utf8.h"

static void put_char(FILE *out, const char *at, size_t length)
{
	switch (*at) {
	case '&':
		fputs("&amp;", out);
		break;
	case '<':
		fputs("&lt;", out);
		break;
	case '>':
		fputs("&gt;", out);
		break;
	case '"':
		fputs("&quot;", out);
		break;
	case '\'':
		fputs("&#39;", out);
		break;
	default:
		fwrite(at, 1, length, out);
	}
}

void html_text(FILE *out, const char *text)
{
	size_t length;

	for (; *text; text += length) {
		length = utf8_length(text);
		if (length > 0 && !utf8_is_control(text)) {
			put_char(out, text, length);
			continue;
		}
		fputs("&#xFFFD;", out);
		length += length == 0;
	}
}

void html_cell(FILE *out, const char *text, double value)
{
	fprintf(out, "<td data-value=\"%.12g\">", isfinite(value) ? value : 0);
	html_text(out, text);
	fputs("</td>", out);
}

void html_name_cell(FILE *out, const char *text)
{
	fputs("<td class=name>", out);
	html_text(out, text);
	fputs("</td>", out);
}

void html_head(FILE *out, const char *title, int is_name)
{
	fprintf(out, "<th scope=col%s>", is_name ? " class=name" : "");
	html_text(out, title);
	fputs("</th>", out);
}

void html_table(FILE *out, const char *class, const char *caption)
{
	fprintf(out,
		"<div class=scroll tabindex=0 role=region aria-label=\"%s\">"
		"<table class=\"%s\"><caption>%s</caption><thead><tr>",
		caption, class, caption);
}

void html_table_rows(FILE *out)
{
	fputs("</tr></thead><tbody>\n", out);
}

void html_table_end(FILE *out)
{
	fputs("</tbody></table></div>\n", out);
}

void html_json(FILE *out, const char *text)
{
	size_t length;

	fputc('"', out);
	for (; *text; text += length) {
		length = utf8_length(text);
		if (length == 0 || utf8_is_control(text))
			fputs("\\ufffd", out);
		else if (strchr("<>&\"\\", *text))
			fprintf(out, "\\u%04x", (unsigned char)*text);
		else
			fwrite(text, 1, length, out);
		length += length == 0;
	}
	fputc('"', out);
}
