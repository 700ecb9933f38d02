/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "flame.h"
#include "html.h"

enum { DEEPEST = 96 };

/* Of all the time, below which nothing is drawn. */
static const double least = 0.001;

struct node {
	char *name;
	double wait_ns, kernel_ns;
	struct node *parent, *child, *next;
};

static struct node *node_new(struct node *parent, char *name)
{
	struct node *n = xcalloc(1, sizeof(*n));

	n->name = name;
	n->parent = parent;
	if (parent) {
		n->next = parent->child;
		parent->child = n;
	}
	return n;
}

static void node_free(struct node *n)
{
	struct node *child, *next;

	for (child = n->child; child; child = next) {
		next = child->next;
		node_free(child);
	}
	free(n->name);
	free(n);
}

/* The child of this name; the name is freed or kept. */
static struct node *child_of(struct node *parent, char *name)
{
	struct node *n;

	for (n = parent->child; n; n = n->next)
		if (!strcmp(n->name, name)) {
			free(name);
			return n;
		}
	return node_new(parent, name);
}

/* Without the line: two lines of a function are one box. */
static char *frame_name(const struct sites_frame *frame)
{
	if (frame->function)
		return xasprintf("%s!%s", frame->module, frame->function);
	return xstrdup(frame->name);
}

/* The innermost frame of a stack, under the process's node. */
static struct node *add_stack(struct node *process,
			      const struct sites_stack *stack)
{
	size_t count = stack->count < DEEPEST ? stack->count : DEEPEST;
	struct node *n = process;
	size_t i;

	if (stack->cut)
		n = child_of(n, xstrdup("[cut]"));
	for (i = 0; i < count; i++)
		n = child_of(n,
			     frame_name(stack->frames[stack->count - 1 - i]));
	return n;
}

static void add_sample(struct node *leaf, const struct sites_sample *sample)
{
	struct node *n = child_of(leaf, xstrdup(op_name(sample->event.raw.op)));

	for (; n; n = n->parent) {
		n->wait_ns += sample->wait_ns;
		n->kernel_ns += sample->kernel_ns;
	}
}

static void add_study(struct node *root, const struct study *study)
{
	const struct sites *s = study->sites;
	struct node *process, **leaf;
	size_t i;

	if (s->sample_count == 0)
		return;
	process = child_of(root, xstrdup(study->process->image));
	leaf = xcalloc(s->stack_count, sizeof(struct node *));
	for (i = 0; i < s->stack_count; i++)
		leaf[i] = add_stack(process, &s->stacks[i]);
	for (i = 0; i < s->sample_count; i++)
		add_sample(leaf[s->samples[i].stack], &s->samples[i]);
	free(leaf);
}

static double weight(const struct node *n)
{
	return n->wait_ns + n->kernel_ns;
}

static void put_node(const struct node *n, double smallest, FILE *out)
{
	const char *between = "";
	const struct node *child;

	fputs("{\"n\":", out);
	html_json(out, n->name);
	fprintf(out, ",\"w\":%.0f,\"k\":%.0f,\"c\":[", n->wait_ns,
		n->kernel_ns);
	for (child = n->child; child; child = child->next) {
		if (weight(child) < smallest || weight(child) <= 0)
			continue;
		fputs(between, out);
		put_node(child, smallest, out);
		between = ",";
	}
	fputs("]}", out);
}

bool flame_write(const struct studies *studies, FILE *out)
{
	struct node *root = node_new(NULL, xstrdup("all"));
	bool any;
	size_t i;

	for (i = 0; i < studies->count; i++)
		add_study(root, &studies->of[i]);
	any = weight(root) > 0;
	if (any)
		put_node(root, weight(root) * least, out);
	node_free(root);
	return any;
}
