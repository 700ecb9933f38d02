/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "die.h"
#include "gaps.h"
#include "sites.h"
#include "units.h"
#include "unwind.h"

/* Part of an op's calls by which its samples may be too few or too many, but
 * for chance, and stand for all of them. */
#define NEARLY 0.1

/* A chain under its frames' addresses. */
struct chain {
	UT_hash_handle hh;
	size_t index;
	size_t key_bytes;
	const struct sites_frame **frames;
	size_t count;
	bool cut;
};

/* What only sites.c knows. */
struct inside {
	struct sites public;
	struct images *images;
	struct samples_modules modules;
	struct jit *jit;
	struct frames *frames;
	struct unwind *unwind;
	struct unwind_chain *chain;
	struct chain *chains;
	size_t stacks_room, samples_room;
	uint64_t since_ns, until_ns; /* what is wanted */
	struct {
		double count, squares;
	} drawn[OP_COUNT];             /* weights of what was picked */
	const struct sites_frame **at; /* for sites_frames_at() */
	char *missing;
};

static struct inside *inside(const struct sites *sites)
{
	return (struct inside *)(uintptr_t)sites;
}

/* --- sums --- */

static unsigned size_class(uint64_t length)
{
	return length == 0 ? 0 : 63 - (unsigned)__builtin_clzll(length);
}

static bool has_failed(const struct log_event *event)
{
	return event->raw.result < 0 && event->raw.result >= -4095;
}

static void add(struct sites_sum *sum, const struct sites_sample *s)
{
	double cost = (double)s->event.wait_ns + (double)s->event.kernel_ns;

	sum->samples++;
	sum->count += s->weight;
	if (has_failed(&s->event))
		sum->errors += s->weight;
	else
		sum->bytes += s->weight * (double)s->event.raw.length;
	sum->wait_ns += s->wait_ns;
	sum->kernel_ns += s->kernel_ns;
	if (cost > sum->max_ns)
		sum->max_ns = cost;
	sum->of_op[s->event.raw.op] += s->weight;
	sum->of_size[size_class(s->event.raw.length)] += s->weight;
}

/* --- chains --- */

/* The frames of a chain, those that were inlined too, in memory of its own. */
static const struct sites_frame **spell_out(struct inside *in,
					    const struct record_frame *records,
					    uint32_t count, size_t *length)
{
	const struct sites_frame **frames;
	const struct frames_place *place;
	size_t i, k;

	*length = 0;
	for (i = 0; i < count; i++)
		*length += frames_at(in->frames, &records[i])->count;
	frames = xcalloc(*length + 1, sizeof(const struct sites_frame *));
	*length = 0;
	for (i = 0; i < count; i++) {
		place = frames_at(in->frames, &records[i]);
		for (k = 0; k < place->count; k++)
			frames[(*length)++] = &place->frames[k];
	}
	return frames;
}

static void add_stack(struct inside *in, const struct chain *chain)
{
	struct sites *s = &in->public;

	if (s->stack_count == in->stacks_room) {
		in->stacks_room = 2 * in->stacks_room + 64;
		s->stacks = xrealloc(s->stacks,
				     in->stacks_room * sizeof(*s->stacks));
	}
	s->stacks[s->stack_count++] = (struct sites_stack){
		.frames = chain->frames,
		.count = chain->count,
		.cut = chain->cut,
	};
}

/* The index of the stack with these frames. */
static size_t stack_of(struct inside *in, const struct record_frame *records,
		       uint32_t count, bool cut)
{
	size_t length, bytes;
	const struct sites_frame **frames =
		spell_out(in, records, count, &length);
	struct chain *chain;

	/* The last word, which is no frame, tells a cut chain. */
	frames[length] = cut ? (const void *)in : NULL;
	bytes = (length + 1) * sizeof(const struct sites_frame *);
	HASH_FIND(hh, in->chains, frames, bytes, chain);
	if (chain) {
		free(frames);
		return chain->index;
	}
	chain = xcalloc(1, sizeof(*chain));
	chain->frames = frames;
	chain->count = length;
	chain->cut = cut;
	chain->index = in->public.stack_count;
	HASH_ADD_KEYPTR(hh, in->chains, chain->frames, bytes, chain);
	add_stack(in, chain);
	return chain->index;
}

/* --- samples --- */

static size_t resolve(struct inside *in, const struct samples_call *call)
{
	/* Where there is no chain the caller is known all the same. */
	const struct samples_module *module = samples_module_at(
		&in->modules, call->event.raw.caller - 1, call->event.time_ns);
	const struct record_frame caller = {
		.pc = call->event.raw.caller,
		.module = module ? module->slot + 1 : 0,
	};

	if (call->frames && call->frame_count > 0)
		return stack_of(in, call->frames, call->frame_count, call->cut);
	if (call->copy) {
		unwind_call(in->unwind, call, in->chain);
		if (in->chain->count > 0)
			return stack_of(in, in->chain->frames, in->chain->count,
					in->chain->cut);
	}
	in->public.unresolved++;
	return stack_of(in, &caller, 1, true);
}

static bool is_wanted(const struct inside *in, const struct log_event *event)
{
	return event->time_ns >= in->since_ns && event->time_ns < in->until_ns;
}

/* Those that are not wanted tell how much the others stand for. */
static void take(void *context, const struct samples_call *call)
{
	struct inside *in = context;
	struct sites *s = &in->public;
	unsigned op = call->event.raw.op;

	if (!call->worst) {
		in->drawn[op].count += call->weight;
		in->drawn[op].squares += call->weight * call->weight;
	}
	if (s->sample_count == in->samples_room) {
		in->samples_room = 2 * in->samples_room + 256;
		s->samples = xrealloc(s->samples,
				      in->samples_room * sizeof(*s->samples));
	}
	s->samples[s->sample_count++] = (struct sites_sample){
		.event = call->event,
		.weight = call->weight,
		.wait_ns = call->weight * (double)call->event.wait_ns,
		.kernel_ns = call->weight * (double)call->event.kernel_ns,
		.slow = call->slow,
		.worst = call->worst,
		.stack = is_wanted(in, &call->event) ? resolve(in, call) : 0,
	};
}

static int sample_by_call(const void *a, const void *b)
{
	const struct sites_sample *x = a, *y = b;

	if (x->event.time_ns != y->event.time_ns)
		return x->event.time_ns < y->event.time_ns ? -1 : 1;
	return (x->event.raw.tid > y->event.raw.tid) -
	       (x->event.raw.tid < y->event.raw.tid);
}

static int sample_worst_first(const void *a, const void *b)
{
	const struct sites_sample *x = a, *y = b;
	int order = sample_by_call(a, b);

	return order ? order : y->worst - x->worst;
}

/* By time.  Of a call that was sampled and is one of the longest too, the
 * latter counts: those are all there, and stand for themselves alone. */
static void sort_samples(struct sites *s)
{
	size_t i, count = 0;

	qsort(s->samples, s->sample_count, sizeof(*s->samples),
	      sample_worst_first);
	for (i = 0; i < s->sample_count; i++)
		if (count == 0 ||
		    sample_by_call(&s->samples[count - 1], &s->samples[i]) != 0)
			s->samples[count++] = s->samples[i];
	s->sample_count = count;
}

struct total {
	double count, wait_ns, kernel_ns;
};

/* Of an op's samples that stand for others too, or for themselves alone. */
static struct total total_of(const struct sites *s, unsigned op, bool others)
{
	struct total total = {0, 0, 0};
	const struct sites_sample *sample;
	size_t i;

	for (i = 0; i < s->sample_count; i++) {
		sample = &s->samples[i];
		if (sample->event.raw.op != op ||
		    (sample->weight > 1) != others)
			continue;
		total.count += sample->weight;
		total.wait_ns += sample->wait_ns;
		total.kernel_ns += sample->kernel_ns;
	}
	return total;
}

/* Or do they stand only for slow ones, or for a part of the run? */
static bool stand_for_all(const struct inside *in, unsigned op)
{
	double count = (double)in->public.process->op[op].count;

	return fabs(in->drawn[op].count - count) <=
	       NEARLY * count + 3 * sqrt(in->drawn[op].squares);
}

static double factor(double all, double own, double others)
{
	return all > own && others > 0 ? (all - own) / others : 1;
}

/*
 * One slow call that is sampled stands for many, though the others were not
 * slow, or for none when it is not.  What an op's calls come to is known: those
 * samples that stand for others share what is left of it.
 */
static void scale(struct inside *in, unsigned op)
{
	struct sites *s = &in->public;
	const struct log_op *all = &s->process->op[op];
	struct total own = total_of(s, op, false);
	struct total others = total_of(s, op, true);
	double count = factor((double)all->count, own.count, others.count);
	double wait = factor(all->wait.sum_ns, own.wait_ns, others.wait_ns);
	double kernel =
		factor(all->kernel.sum_ns, own.kernel_ns, others.kernel_ns);
	size_t i;

	for (i = 0; i < s->sample_count; i++)
		if (s->samples[i].event.raw.op == op &&
		    s->samples[i].weight > 1) {
			s->samples[i].weight *= count;
			s->samples[i].wait_ns *= wait;
			s->samples[i].kernel_ns *= kernel;
		}
}

static void scale_all(struct inside *in)
{
	struct sites *s = &in->public;
	size_t i, count = 0;
	unsigned op;

	for (op = 0; op < OP_COUNT; op++)
		if (stand_for_all(in, op))
			scale(in, op);
	for (i = 0; i < s->sample_count; i++)
		if (is_wanted(in, &s->samples[i].event))
			s->samples[count++] = s->samples[i];
	s->sample_count = count;
}

static void add_up(struct inside *in)
{
	struct sites *s = &in->public;
	size_t i;

	for (i = 0; i < s->sample_count; i++) {
		const struct sites_sample *sample = &s->samples[i];
		struct sites_stack *stack = &s->stacks[sample->stack];

		add(&s->all, sample);
		s->cut += stack->cut;
		stack->samples++;
		stack->calls += sample->weight;
		stack->wait_ns += sample->wait_ns;
		stack->kernel_ns += sample->kernel_ns;
	}
}

/* --- groups --- */

struct group {
	UT_hash_handle hh;
	struct sites_row row;
	size_t index;
	char key[];
};

struct groups {
	struct group *all;
	struct seen *seen;
	size_t count;
};

/* A thread that was seen in a group. */
struct seen {
	UT_hash_handle hh;
	struct {
		const struct group *group;
		uint64_t tid;
	} key;
};

static void count_thread(struct groups *g, struct group *group, uint32_t tid)
{
	struct seen *seen = xcalloc(1, sizeof(*seen)), *found;

	seen->key.group = group;
	seen->key.tid = tid;
	HASH_FIND(hh, g->seen, &seen->key, sizeof(seen->key), found);
	if (found) {
		free(seen);
		return;
	}
	HASH_ADD(hh, g->seen, key, sizeof(seen->key), seen);
	group->row.sum.threads++;
}

/* The group of this name; the key is freed. */
static struct group *group_of(struct groups *g, char *key)
{
	size_t length = strlen(key);
	struct group *group;

	HASH_FIND(hh, g->all, key, length, group);
	if (!group) {
		group = xcalloc(1, sizeof(*group) + length + 1);
		memcpy(group->key, key, length);
		HASH_ADD(hh, g->all, key[0], (unsigned)length, group);
		g->count++;
	}
	free(key);
	return group;
}

static double cost_of(const struct sites_row *row)
{
	return row->sum.wait_ns + row->sum.kernel_ns;
}

static int by_cost(const void *a, const void *b)
{
	const struct group *const *x = a, *const *y = b;
	double of_x = cost_of(&(*x)->row), of_y = cost_of(&(*y)->row);

	if (of_x != of_y)
		return of_x < of_y ? 1 : -1;
	return strcmp((*x)->key, (*y)->key);
}

/* In order, each with its index in it. */
static struct group **sorted(struct groups *g)
{
	struct group **order = xcalloc(g->count + 1, sizeof(*order));
	struct group *group, *next;
	size_t i = 0;

	HASH_ITER(hh, g->all, group, next)
	order[i++] = group;
	qsort(order, g->count, sizeof(*order), by_cost);
	for (i = 0; i < g->count; i++)
		order[i]->index = i;
	return order;
}

static struct sites_row *rows_of(struct groups *g)
{
	struct group **order = sorted(g);
	struct sites_row *rows = xcalloc(g->count + 1, sizeof(*rows));
	size_t i;

	for (i = 0; i < g->count; i++)
		rows[i] = order[i]->row;
	free(order);
	return rows;
}

static void groups_free(struct groups *g)
{
	struct group *group, *next_group;
	struct seen *seen, *next;

	HASH_ITER(hh, g->seen, seen, next)
	{
		HASH_DEL(g->seen, seen);
		free(seen);
	}
	HASH_ITER(hh, g->all, group, next_group)
	{
		HASH_DEL(g->all, group);
		free(group);
	}
}

/* --- sites --- */

static bool is_program(const struct sites_frame *frame)
{
	return frame->owner == OWNER_PROGRAM;
}

/* What a thread begins with says nothing. */
static bool begins_thread(const struct sites_frame *frame)
{
	return frame->function && (!strncmp(frame->function, "clone", 5) ||
				   !strncmp(frame->function, "__clone", 7));
}

/* Index of the frame that is the site; where there is none of the program, the
 * outermost one. */
static size_t site_frame(const struct sites_stack *stack)
{
	size_t i;

	for (i = 0; i < stack->count; i++)
		if (is_program(stack->frames[i]))
			return i;
	i = stack->count - 1;
	return i > 0 && begins_thread(stack->frames[i]) ? i - 1 : i;
}

static bool leads(const struct sites_frame *frame)
{
	return frame->owner == OWNER_LIBC || frame->owner == OWNER_LOADER ||
	       frame->owner == OWNER_ALLOCATOR;
}

/* The outermost one below the site that is libc's or the like. */
static const char *via_of(const struct sites_stack *stack, size_t site)
{
	size_t i;

	for (i = site; i-- > 0;)
		if (leads(stack->frames[i]) && !stack->frames[i]->inlined)
			return stack->frames[i]->function
				       ? stack->frames[i]->function
				       : stack->frames[i]->module;
	return NULL;
}

static struct group *site_group(struct groups *g,
				const struct sites_stack *stack)
{
	size_t at = site_frame(stack);
	const struct sites_frame *frame = stack->frames[at];
	const char *via = is_program(frame) ? via_of(stack, at) : NULL;
	struct group *group =
		group_of(g, xasprintf("%s\n%s", frame->name, via ? via : ""));

	if (!group->row.name) {
		group->row.name = xstrdup(frame->name);
		group->row.via = via ? xstrdup(via) : NULL;
		group->row.frame = frame;
	}
	return group;
}

/* Each stack gets the index of its site. */
static void find_sites(struct inside *in)
{
	struct sites *s = &in->public;
	struct group **of_stack =
		xcalloc(s->stack_count + 1, sizeof(*of_stack));
	struct groups g = {0};
	size_t i;

	for (i = 0; i < s->stack_count; i++)
		of_stack[i] = site_group(&g, &s->stacks[i]);
	for (i = 0; i < s->sample_count; i++) {
		struct group *group = of_stack[s->samples[i].stack];

		add(&group->row.sum, &s->samples[i]);
		count_thread(&g, group, s->samples[i].event.raw.tid);
	}
	s->list = rows_of(&g);
	s->count = g.count;
	free(sorted(&g));
	for (i = 0; i < s->stack_count; i++)
		s->stacks[i].site = of_stack[i]->index;
	free(of_stack);
	groups_free(&g);
}

static char *group_key(const struct sites *s, enum sites_by by,
		       const struct sites_sample *sample)
{
	const struct sites_stack *stack = &s->stacks[sample->stack];
	unsigned class = size_class(sample->event.raw.length);

	switch (by) {
	case BY_THREAD:
		return xasprintf("%u", sample->event.raw.tid);
	case BY_LIBRARY:
		return xstrdup(stack->frames[site_frame(stack)]->module);
	case BY_CALL:
		return xstrdup(op_name(sample->event.raw.op));
	case BY_SIZE:
		if (sample->event.raw.length == 0)
			return xstrdup("none");
		return xasprintf("%s to %s", units_bytes(exp2(class)),
				 units_bytes(exp2(class + 1)));
	default:
		return xasprintf("%zu", stack->site);
	}
}

static void name_group(const struct sites *s, enum sites_by by,
		       const struct sites_sample *sample, struct group *group)
{
	const struct sites_row *site = &s->list[s->stacks[sample->stack].site];

	if (group->row.name)
		return;
	group->row.name = xstrdup(by == BY_SITE ? site->name : group->key);
	if (by != BY_SITE)
		return;
	group->row.via = site->via ? xstrdup(site->via) : NULL;
	group->row.frame = site->frame;
}

struct sites_row *sites_group(const struct sites *s, enum sites_by by,
			      size_t *count)
{
	struct groups g = {0};
	struct sites_row *rows;
	size_t i;

	for (i = 0; i < s->sample_count; i++) {
		const struct sites_sample *sample = &s->samples[i];
		struct group *group = group_of(&g, group_key(s, by, sample));

		name_group(s, by, sample, group);
		add(&group->row.sum, sample);
		count_thread(&g, group, sample->event.raw.tid);
	}
	rows = rows_of(&g);
	*count = g.count;
	groups_free(&g);
	return rows;
}

void sites_rows_free(struct sites_row *rows, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		free((void *)(uintptr_t)rows[i].name);
		free((void *)(uintptr_t)rows[i].via);
	}
	free(rows);
}

/* --- order --- */

static int stack_by_cost(const void *a, const void *b)
{
	const struct sites_stack *x = a, *y = b;
	double of_x = x->wait_ns + x->kernel_ns;
	double of_y = y->wait_ns + y->kernel_ns;

	if (of_x != of_y)
		return of_x < of_y ? 1 : -1;
	return (x->calls < y->calls) - (x->calls > y->calls);
}

/* Worst first; the samples follow. */
static void sort_stacks(struct inside *in)
{
	struct sites *s = &in->public;
	size_t *moved = xcalloc(s->stack_count + 1, sizeof(*moved)), i;

	for (i = 0; i < s->stack_count; i++)
		s->stacks[i].site = i; /* for now: where it was */
	qsort(s->stacks, s->stack_count, sizeof(*s->stacks), stack_by_cost);
	for (i = 0; i < s->stack_count; i++)
		moved[s->stacks[i].site] = i;
	for (i = 0; i < s->sample_count; i++)
		s->samples[i].stack = moved[s->samples[i].stack];
	free(moved);
}

/* --- stacks as they read --- */

struct reading {
	UT_hash_handle hh;
	struct sites_stack stack;
	const char *names[]; /* NULL behind a chain that goes on */
};

static struct reading *reading_new(const struct sites_stack *stack, size_t most,
				   size_t *bytes)
{
	size_t count = stack->count < most ? stack->count : most;
	bool more = stack->cut || stack->count > most;
	struct reading *r;

	*bytes = (count + more) * sizeof(r->names[0]);
	r = xcalloc(1, sizeof(*r) + *bytes);
	r->stack = *stack;
	r->stack.count = count;
	r->stack.cut = more;
	for (size_t i = 0; i < count; i++)
		r->names[i] = stack->frames[i]->name;
	return r;
}

static void read_stack(struct reading **all, const struct sites_stack *stack,
		       size_t most)
{
	size_t bytes;
	struct reading *r = reading_new(stack, most, &bytes), *found;

	HASH_FIND(hh, *all, r->names, bytes, found);
	if (!found) {
		HASH_ADD(hh, *all, names[0], (unsigned)bytes, r);
		return;
	}
	found->stack.samples += stack->samples;
	found->stack.calls += stack->calls;
	found->stack.wait_ns += stack->wait_ns;
	found->stack.kernel_ns += stack->kernel_ns;
	free(r);
}

struct sites_stack *sites_stacks_of(const struct sites *s, size_t site,
				    size_t most, size_t *count)
{
	struct reading *all = NULL, *r, *next;
	struct sites_stack *stacks;
	size_t i;

	for (i = 0; i < s->stack_count; i++)
		if (s->stacks[i].site == site)
			read_stack(&all, &s->stacks[i], most);
	stacks = xcalloc(HASH_COUNT(all) + 1, sizeof(*stacks));
	*count = 0;
	HASH_ITER(hh, all, r, next)
	{
		HASH_DEL(all, r);
		stacks[(*count)++] = r->stack;
		free(r);
	}
	qsort(stacks, *count, sizeof(*stacks), stack_by_cost);
	return stacks;
}

/* --- open, close --- */

static bool are_off(const struct log *log)
{
	char stacks[64];

	log_setting(log_process(log)->settings, "stacks", stacks,
		    sizeof(stacks));
	return !strcmp(stacks, "off") || !*stacks;
}

static char *why_none(const struct log *log)
{
	if (are_off(log))
		return xstrdup("no stacks were recorded (--stacks off)");
	if (log_samples(log) == 0)
		return xasprintf("its log has no room for stacks (%s keeps "
				 "them)",
				 gaps_more_room(log_process(log)));
	return xstrdup("no call was sampled");
}

struct sites *sites_open(struct log *log, struct images *images)
{
	return sites_open_part(log, images, 0, UINT64_MAX);
}

struct sites *sites_open_part(struct log *log, struct images *images,
			      uint64_t since_ns, uint64_t until_ns)
{
	struct inside *in = xcalloc(1, sizeof(*in));
	struct sites *s = &in->public;
	struct samples_count count;

	s->process = log_process(log);
	in->images = images;
	in->since_ns = since_ns;
	in->until_ns = until_ns;
	in->modules = samples_modules(log);
	in->jit = jit_of_log(log_path(log));
	in->frames = frames_new(images, &in->modules, in->jit);
	in->unwind = unwind_new(images, &in->modules, log_stacks(log)->machine);
	in->chain = xcalloc(1, sizeof(*in->chain));
	s->samples = xcalloc(1, sizeof(*s->samples));
	s->stacks = xcalloc(1, sizeof(*s->stacks));
	samples_each(log, &count, take, in);
	s->lost = count.lost;
	sort_samples(s);
	scale_all(in);
	add_up(in);
	sort_stacks(in);
	find_sites(in);
	if (s->sample_count == 0)
		s->missing = in->missing = why_none(log);
	s->stopped = s->sample_count > 0 && are_off(log);
	return s;
}

void sites_close(struct sites *sites)
{
	struct inside *in = inside(sites);
	struct chain *chain, *next;

	HASH_ITER(hh, in->chains, chain, next)
	{
		HASH_DEL(in->chains, chain);
		free(chain->frames);
		free(chain);
	}
	sites_rows_free(sites->list, sites->count);
	free(sites->stacks);
	free(sites->samples);
	free(in->at);
	free(in->chain);
	free(in->missing);
	unwind_free(in->unwind);
	frames_free(in->frames);
	jit_free(in->jit);
	samples_modules_free(&in->modules);
	free(in);
}

const struct sites_stack *sites_stack_of(const struct sites *sites,
					 const struct log_event *event)
{
	const struct sites_sample wanted = {.event = *event};
	const struct sites_sample *sample =
		bsearch(&wanted, sites->samples, sites->sample_count,
			sizeof(*sites->samples), sample_by_call);

	return sample ? &sites->stacks[sample->stack] : NULL;
}

size_t sites_frames_at(struct sites *sites, uint64_t pc, uint64_t time_ns,
		       bool is_return, const struct sites_frame *const **frames)
{
	struct inside *in = inside(sites);
	const struct samples_module *module =
		samples_module_at(&in->modules, pc - is_return, time_ns);
	const struct record_frame record = {
		.pc = pc,
		.module = module ? module->slot + 1 : 0,
		.flags = is_return ? 0 : FRAME_EXACT,
	};
	size_t count;

	free(in->at);
	in->at = spell_out(in, &record, 1, &count);
	*frames = in->at;
	return count;
}
