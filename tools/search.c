/* SPDX-License-Identifier: MIT */
#include "search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "knobs.h"
#include "units.h"

enum { LEAST_CALLS = 100, LEAST_OF_OP = 20, OPS_ALONE = 2, WORDS = 128 };

/* Effort of a remedy. */
enum { EASY = 1, PLAIN, SPECIAL, DETAILED, COMBINED };

static const double least_time = 0.005;  /* calls', of the time that passed */
static const double least_part = 0.05;   /* an op's, of all calls' time */
static const double least_spread = 0.01; /* calls of other threads */
static const double same = 0.97;

bool search_is_worth(const struct profile *p, char why[SEARCH_LINE])
{
	double part = p->wall_s > 0 ? p->kernel_ns / 1e9 / p->wall_s : 0;

	if (p->threads < 2)
		snprintf(why, SEARCH_LINE,
			 "no process of it has two threads that make such "
			 "calls: there is nobody to wait for");
	else if (p->calls < LEAST_CALLS || part < least_time)
		snprintf(why, SEARCH_LINE,
			 "it makes too few such calls: %s in %s, and their "
			 "time in the kernel is %s of that",
			 units_count(p->calls), units_time(p->wall_s * 1e9),
			 units_percent(part));
	else if (p->spread < least_spread)
		snprintf(why, SEARCH_LINE,
			 "one thread makes nearly all of its such calls: there "
			 "is nobody to wait for");
	else
		return true;
	return false;
}

/* --- what is tried --- */

static bool accepts(const char *option, const char *value)
{
	struct knobs knobs;

	knobs_init(&knobs);
	for (size_t i = 0; i < knob_count(); i++)
		if (strcmp(knob_at(i)->option, option) == 0)
			return knob_at(i)->parse(&knobs, value) == 0;
	return false;
}

void search_add(struct search_list *list, enum search_kind kind,
		unsigned effort, char *text)
{
	list->items =
		xrealloc(list->items, (list->count + 1) * sizeof(*list->items));
	list->items[list->count++] =
		(struct search_candidate){text, kind, effort};
}

static bool matters(const struct profile *p, unsigned op)
{
	return p->op[op].count >= LEAST_OF_OP &&
	       p->op[op].kernel_ns >= least_part * p->kernel_ns;
}

/* " calls=..." when one that matters takes no lock by default; else "". */
static const char *calls_of(const struct profile *p, char words[WORDS])
{
	struct text out = text_over(words, WORDS);
	unsigned wanted = 0;

	for (unsigned op = 0; op < OP_COUNT; op++)
		wanted |= matters(p, op) ? 1u << op : 0;
	words[0] = '\0';
	if ((wanted & ~(unsigned)OPS_DEFAULT) == 0)
		return words;
	text_put(&out, " calls=");
	for (unsigned op = 0; op < OP_COUNT; op++) {
		if ((wanted >> op & 1) == 0)
			continue;
		text_put(&out, strchr(words, '=')[1] != '\0' ? "," : "");
		text_put(&out, op_name(op));
	}
	return words;
}

struct builder {
	struct search_list list;
	const struct profile *profile;
	char calls[WORDS];
};

static void add_lock(struct builder *b, unsigned effort, const char *lock)
{
	if (accepts("lock", lock))
		search_add(&b->list, SEARCH_LOCK, effort,
			   xasprintf("lock=%s%s", lock, b->calls));
}

static void add_limit(struct builder *b, unsigned threads)
{
	char *lock = xasprintf("limit:%u", threads);

	if (threads > 1)
		add_lock(b, SPECIAL, lock);
	free(lock);
}

static void add_cpus(struct builder *b, unsigned cpus)
{
	search_add(&b->list, SEARCH_CPUS, EASY,
		   xasprintf("bare cpus=%u", cpus));
}

static void add_places(struct builder *b)
{
	if (!accepts("place", "thread"))
		return;
	search_add(&b->list, SEARCH_PLACE, SPECIAL,
		   xstrdup("lock=none place=thread"));
	search_add(&b->list, SEARCH_BOTH, COMBINED,
		   xasprintf("lock=mutex place=thread%s", b->calls));
}

/* The op whose calls take longest, of those that matter and are not in `done`;
 * OP_COUNT: there is none. */
static unsigned heaviest(const struct profile *p, unsigned done)
{
	unsigned best = OP_COUNT;

	for (unsigned op = 0; op < OP_COUNT; op++)
		if (matters(p, op) && (done >> op & 1) == 0 &&
		    (best == OP_COUNT ||
		     p->op[op].kernel_ns > p->op[best].kernel_ns))
			best = op;
	return best;
}

/* A lock for one op alone, when there are several that matter. */
static void add_single_ops(struct builder *b)
{
	unsigned done = 0, op, n = 0;

	for (op = 0; op < OP_COUNT; op++)
		n += matters(b->profile, op);
	for (unsigned i = 0; n > 1 && i < OPS_ALONE; i++) {
		char *lock;

		op = heaviest(b->profile, done);
		done |= 1u << op;
		lock = xasprintf("%s:mutex", op_name(op));
		if (accepts("lock", lock))
			search_add(&b->list, SEARCH_LOCK, DETAILED,
				   xasprintf("lock=%s", lock));
		free(lock);
	}
}

/* Where the library's start is a cost, and calls by symbol are most of them. */
static void add_hooks(struct builder *b)
{
	const double soon_s = 0.1, few = 0.5;

	if (b->profile->wall_s < soon_s && b->profile->libc_share < few)
		search_add(&b->list, SEARCH_LOCK, DETAILED,
			   xasprintf("lock=mutex hooks=symbols%s", b->calls));
}

struct search_list search_candidates(const struct profile *p, unsigned cpus,
				     bool fewer)
{
	struct builder b = {.profile = p};

	calls_of(p, b.calls);
	search_add(&b.list, SEARCH_BARE, 0, xstrdup("bare"));
	add_lock(&b, PLAIN, "mutex");
	if (fewer && cpus > 1)
		add_cpus(&b, 1);
	add_places(&b);
	add_lock(&b, PLAIN, "spin");
	add_limit(&b, cpus);
	add_lock(&b, SPECIAL, "auto");
	if (fewer && cpus > 3)
		add_cpus(&b, cpus / 2);
	add_lock(&b, SPECIAL, "rw");
	add_single_ops(&b);
	if (cpus > 3)
		add_limit(&b, cpus / 2);
	add_hooks(&b);
	return b.list;
}

/* --- which go on --- */

static size_t count_in(const struct search_list *list, const bool *out)
{
	size_t n = 0;

	for (size_t i = 1; i < list->count; i++)
		n += !out[i];
	return n;
}

/* Is a worse than b? */
static bool is_worse(const struct search_list *list, const struct ratio *ratios,
		     size_t a, size_t b)
{
	if (ratios[a].value != ratios[b].value)
		return ratios[a].value < ratios[b].value;
	return list->items[a].effort > list->items[b].effort;
}

size_t search_best(const struct search_list *list, const struct ratio *ratios,
		   const bool *out)
{
	size_t best = 0;

	for (size_t i = 1; i < list->count; i++)
		if (!out[i] && (best == 0 || is_worse(list, ratios, best, i)))
			best = i;
	return best;
}

static size_t find_worst(const struct search_list *list,
			 const struct ratio *ratios, const bool *out)
{
	size_t worst = 0;

	for (size_t i = 1; i < list->count; i++)
		if (!out[i] &&
		    (worst == 0 || !is_worse(list, ratios, worst, i)))
			worst = i;
	return worst;
}

void search_drop(const struct search_list *list, const struct ratio *ratios,
		 size_t keep, bool *out)
{
	size_t best = search_best(list, ratios, out);

	for (size_t i = 1; i < list->count; i++)
		out[i] |= ratios[i].high < ratios[best].low;
	while (count_in(list, out) > keep)
		out[find_worst(list, ratios, out)] = true;
}

bool search_is_hopeless(const struct search_list *list,
			const struct ratio *ratios, const bool *out)
{
	for (size_t i = 1; i < list->count; i++)
		if (!out[i] && ratios[i].high >= 1.01)
			return false;
	return true;
}

size_t search_simpler(const struct search_list *list,
		      const struct ratio *ratios, const bool *failed,
		      size_t best)
{
	size_t simplest = best;

	for (size_t i = 1; i < list->count; i++)
		if (!failed[i] &&
		    ratios[i].value >= same * ratios[best].value &&
		    list->items[i].effort < list->items[simplest].effort)
			simplest = i;
	return simplest;
}
