/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "export.h"
#include "sites.h"

/* A line, and its nanoseconds. */
struct folded {
	char *stack;
	double ns;
};

struct lines {
	struct folded *line;
	size_t count, room;
};

/* A name, in which nothing is taken for the end of it, or of its line. */
static void put_name(const char *name, FILE *out)
{
	for (; *name; name++)
		fputc(*name == ';'                 ? ':'
		      : (unsigned char)*name < ' ' ? '?'
						   : *name,
		      out);
	fputc(';', out);
}

/* Outermost first. */
static char *folded_stack(const struct sites *s, size_t index, unsigned op)
{
	const struct sites_stack *stack = &s->stacks[index];
	char *text = NULL;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		die(EXIT_FAILED, "out of memory");
	put_name(s->process->image, out);
	if (stack->cut)
		put_name("[cut]", out);
	for (i = stack->count; i-- > 0;)
		put_name(stack->frames[i]->name, out);
	fputs(op_name(op), out);
	fclose(out);
	return text;
}

static void add_line(struct lines *lines, char *stack, double ns)
{
	if (lines->count == lines->room) {
		lines->room = 2 * lines->room + 256;
		lines->line = xrealloc(lines->line,
				       lines->room * sizeof(*lines->line));
	}
	lines->line[lines->count++] = (struct folded){stack, ns};
}

/* The time by stack and op. */
static double *fold(const struct sites *s)
{
	double *ns = xcalloc(s->stack_count * OP_COUNT + 1, sizeof(*ns));
	size_t i;

	for (i = 0; i < s->sample_count; i++) {
		const struct sites_sample *sample = &s->samples[i];

		ns[sample->stack * OP_COUNT + sample->event.raw.op] +=
			sample->wait_ns + sample->kernel_ns;
	}
	return ns;
}

static void add_process(struct lines *lines, const struct sites *s)
{
	double *ns = fold(s);
	size_t i;

	for (i = 0; i < s->stack_count * OP_COUNT; i++)
		if (ns[i] > 0)
			add_line(lines,
				 folded_stack(s, i / OP_COUNT,
					      (unsigned)(i % OP_COUNT)),
				 ns[i]);
	free(ns);
}

static int by_stack(const void *a, const void *b)
{
	const struct folded *x = a, *y = b;

	return strcmp(x->stack, y->stack);
}

/* Stacks that differ in addresses or processes alone are one line. */
static void write_lines(struct lines *lines, FILE *out)
{
	struct folded *line = lines->line;
	size_t i;

	if (lines->count > 0)
		qsort(line, lines->count, sizeof(*line), by_stack);
	for (i = 0; i < lines->count; i++) {
		if (i + 1 < lines->count && !by_stack(&line[i], &line[i + 1]))
			line[i + 1].ns += line[i].ns;
		else
			fprintf(out, "%s %.0f\n", line[i].stack, line[i].ns);
		free(line[i].stack);
	}
	free(line);
}

int export_folded(const struct export *x)
{
	struct lines lines = {NULL, 0, 0};
	struct sites *sites;
	size_t i;

	for (i = 0; i < x->dir->count; i++) {
		sites = sites_open(x->dir->logs[i], x->images);
		add_process(&lines, sites);
		sites_close(sites);
	}
	write_lines(&lines, x->out);
	return EXIT_DONE;
}
