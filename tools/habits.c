/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "die.h"
#include "habits.h"
#include "tids.h"

enum {
	MAPPINGS = 1 << 15, /* places in tables: powers of two */
	SIZES = 1 << 12,
	ZAPS = 1 << 14,
	RUN_LEAST = 16, /* calls that make a burst */
	SMALL_FILE = 256 * 1024,
};

/* Between the calls of a burst, at most. */
#define GAP_NS 20000u
#define SPIKE_NS 1000000u
/* A spike is so many times as long as what else there is of its class. */
#define SPIKE_FACTOR 8

/* A mapping that is known to be there. */
struct mapping {
	uint64_t addr, length;
	double ns;       /* of the call that made it */
	uint64_t end_ns; /* when that was over */
	uint32_t tid, weight;
	uint8_t kind, layer;
};

/* What a thread does over and over. */
struct streak {
	uint64_t caller, addr, begin_ns, end_ns, count;
	double ns, bytes;
	uint32_t arg;
	uint8_t op;
};

struct habits_state {
	struct mapping mapping[MAPPINGS];
	uint64_t size[SIZES]; /* hashes of (thread, length) seen */
	struct {
		uint64_t addr, length;
	} zap[ZAPS];
	struct tids tids;
	struct streak *streak; /* by place, as habits.thread is */
	/* In the kernel, by kind and size: all, and perhaps spikes. */
	struct habits_sum of_class[KIND_COUNT][SIZE_CLASSES];
	struct habits_sum slow[KIND_COUNT][SIZE_CLASSES];
};

static uint64_t mix(uint64_t x)
{
	x *= UINT64_C(0x9e3779b97f4a7c15);
	return x ^ x >> 32;
}

static double cost(const struct log_event *e)
{
	return (double)e->wait_ns + (double)e->kernel_ns;
}

static void add_ns(struct habits_sum *sum, uint64_t count, double ns,
		   double bytes)
{
	sum->count += count;
	sum->ns += ns;
	sum->bytes += bytes;
}

/* What an event stands for. */
static void add(struct habits_sum *sum, const struct log_event *e)
{
	double weight = e->raw.weight;

	add_ns(sum, e->raw.weight, weight * cost(e),
	       weight * (double)e->raw.length);
}

static bool failed(const struct log_event *e)
{
	return e->raw.result < 0 && e->raw.result >= -4095;
}

/* --- threads --- */

static void add_place(struct habits *h, uint32_t tid)
{
	struct habits_state *state = h->state;
	size_t at = h->threads++, room = at == 0 ? 1 : 2 * at;

	/* Room is a power of two. */
	if ((at & (at - 1)) == 0) {
		h->thread = xrealloc(h->thread, room * sizeof(*h->thread));
		state->streak =
			xrealloc(state->streak, room * sizeof(*state->streak));
	}
	h->thread[at] = (struct habits_thread){.tid = tid};
	state->streak[at] = (struct streak){.count = 0};
}

/* TIDS_MOST: no room for it. */
static size_t thread_of(struct habits *h, uint32_t tid)
{
	size_t at = tids_place(&h->state->tids, tid);

	if (at == h->threads && at < TIDS_MOST)
		add_place(h, tid);
	return at;
}

static void add_group(struct habits_group *g, const struct log_event *e)
{
	double weight = e->raw.weight;

	g->count += e->raw.weight;
	g->errors += failed(e) ? e->raw.weight : 0;
	g->bytes += failed(e) ? 0 : weight * (double)e->raw.length;
	g->wait_ns += weight * (double)e->wait_ns;
	g->kernel_ns += weight * (double)e->kernel_ns;
	g->max_ns = fmax(g->max_ns, cost(e));
}

static void add_thread(struct habits *h, size_t at, const struct log_event *e)
{
	add_group(at == TIDS_MOST ? &h->other_threads : &h->thread[at].sum, e);
}

/* --- mappings that come and go --- */

static struct mapping *mapping_at(struct habits *h, uint64_t addr)
{
	return &h->state->mapping[mix(addr) & (MAPPINGS - 1)];
}

/* Does another thread's mapping begin where this one ends? */
static bool has_neighbour(struct habits *h, const struct log_event *e)
{
	uint64_t end = (uint64_t)e->raw.result + e->raw.length;
	const struct mapping *m = mapping_at(h, end);

	return m->addr == end && m->length > 0 && m->kind == KIND_MAP &&
	       m->tid != e->raw.tid;
}

static void map(struct habits *h, const struct log_event *e, enum kind kind)
{
	if (kind == KIND_MAP && has_neighbour(h, e))
		add(&h->neighbours, e);
	*mapping_at(h, (uint64_t)e->raw.result) = (struct mapping){
		.addr = (uint64_t)e->raw.result,
		.length = e->raw.length,
		.ns = cost(e),
		.end_ns = e->time_ns + e->wait_ns + e->kernel_ns,
		.tid = e->raw.tid,
		.weight = e->raw.weight,
		.kind = (uint8_t)kind,
		.layer = e->raw.layer,
	};
}

/* A copy costs about as much as this: the calls, and 4 bytes a ns. */
static double copy_ns(uint64_t bytes)
{
	return 1000 + (double)bytes / 4;
}

/* True when this thread has had such a pair before. */
static bool is_repeated(struct habits *h, uint32_t tid, uint64_t length)
{
	uint64_t key = mix(length ^ (uint64_t)tid << 40) | 1;
	uint64_t *seen = &h->state->size[key >> 1 & (SIZES - 1)];
	bool repeated = *seen == key;

	*seen = key;
	return repeated;
}

static void add_memory_pair(struct habits *h, const struct mapping *m,
			    const struct log_event *e, double ns, double bytes)
{
	bool libc = m->layer == CALLER_LIBC && e->raw.layer == CALLER_LIBC;

	if (libc)
		add_ns(&h->malloc_pairs, m->weight, ns, bytes);
	if (m->tid != e->raw.tid) {
		add_ns(&h->crossed, m->weight, ns, bytes);
		return;
	}
	add_ns(&h->pairs, m->weight, ns, bytes);
	if (is_repeated(h, m->tid, m->length))
		add_ns(&h->repeated, m->weight, ns, bytes);
}

static void unmap(struct habits *h, const struct log_event *e)
{
	struct mapping *m = mapping_at(h, e->raw.addr);
	double ns = m->ns + cost(e), bytes = (double)m->length;

	if (m->addr != e->raw.addr || m->length != e->raw.length ||
	    m->length == 0)
		return;
	/* Not this one: it was still being made, and got the address of one
	 * that this call unmapped. */
	if (m->end_ns > e->time_ns)
		return;
	ns *= m->weight;
	bytes *= m->weight;
	if (m->kind == KIND_MAP)
		add_memory_pair(h, m, e, ns, bytes);
	else if (m->kind == KIND_MAP_STACK)
		add_ns(&h->stacks, m->weight, ns, bytes);
	else if (m->kind == KIND_MAP_FILE && m->length <= SMALL_FILE &&
		 m->ns + cost(e) > copy_ns(m->length))
		add_ns(&h->small_files, m->weight, ns, bytes);
	m->length = 0;
}

/* A thread that ends gives its stack back, for the next one. */
static bool is_stack(struct habits *h, uint64_t addr)
{
	const struct mapping *m = mapping_at(h, addr);

	return m->addr == addr && m->length > 0 && m->kind == KIND_MAP_STACK;
}

static void zap(struct habits *h, const struct log_event *e)
{
	uint64_t key = mix(e->raw.addr ^ e->raw.length << 20);
	size_t at = key & (ZAPS - 1);

	add(&h->zaps, e);
	if (is_stack(h, e->raw.addr))
		return;
	if (h->state->zap[at].addr == e->raw.addr &&
	    h->state->zap[at].length == e->raw.length)
		add(&h->zaps_again, e);
	h->state->zap[at].addr = e->raw.addr;
	h->state->zap[at].length = e->raw.length;
}

/* --- many calls in a row --- */

static void end_streak(struct habits *h, size_t at)
{
	struct streak *s = &h->state->streak[at];

	if (s->count >= RUN_LEAST)
		add_ns(&h->bursts, s->count, s->ns, s->bytes);
	if (s->count >= RUN_LEAST && s->count > h->burst.count) {
		h->burst.count = s->count;
		h->burst.ns = s->end_ns - s->begin_ns;
		h->burst.begin_ns = s->begin_ns;
		h->burst.bytes = s->bytes;
		h->burst.caller = s->caller;
		h->burst.op = s->op;
		h->burst.tid = h->thread[at].tid;
	}
	s->count = 0;
}

/* One call might do for both.  What goes back and forth is another matter. */
static bool continues(const struct streak *s, const struct log_event *e)
{
	return s->caller == e->raw.caller && s->op == e->raw.op &&
	       s->addr != e->raw.addr && s->arg == e->raw.arg &&
	       e->time_ns <= s->end_ns + GAP_NS && e->raw.weight == 1;
}

static void add_streak(struct habits *h, size_t at, const struct log_event *e)
{
	struct streak *s;

	if (at == TIDS_MOST)
		return;
	s = &h->state->streak[at];
	if (s->count > 0 && !continues(s, e))
		end_streak(h, at);
	if (s->count == 0)
		*s = (struct streak){.caller = e->raw.caller,
				     .op = e->raw.op,
				     .arg = e->raw.arg,
				     .begin_ns = e->time_ns};
	s->count++;
	s->addr = e->raw.addr;
	s->ns += cost(e);
	s->bytes += (double)e->raw.length;
	s->end_ns = e->time_ns + e->wait_ns + e->kernel_ns;
}

/* --- spikes --- */

/* A heap, the least on top. */
static void keep_spike(struct habits *h, struct habits_spike spike)
{
	struct habits_spike *s = h->spike;
	size_t at, down;

	if (h->spikes < HABITS_SPIKES) {
		for (at = h->spikes++; at > 0 && s[(at - 1) / 2].ns > spike.ns;
		     at = (at - 1) / 2)
			s[at] = s[(at - 1) / 2];
		s[at] = spike;
		return;
	}
	if (spike.ns <= s[0].ns)
		return;
	for (at = 0; (down = 2 * at + 1) < h->spikes; at = down) {
		if (down + 1 < h->spikes && s[down + 1].ns < s[down].ns)
			down++;
		if (s[down].ns >= spike.ns)
			break;
		s[at] = s[down];
	}
	s[at] = spike;
}

static bool is_long_by_nature(const struct log_event *e, enum kind kind)
{
	return e->raw.length >= HABITS_HUGE || kind == KIND_MAP_POPULATE ||
	       kind == KIND_POPULATE || kind == KIND_HUGE;
}

static void add_spike(struct habits *h, const struct log_event *e,
		      enum kind kind, int others)
{
	unsigned size = size_class(e->raw.length);
	double ns = (double)e->raw.weight * (double)e->kernel_ns;

	add_ns(&h->state->of_class[kind][size], e->raw.weight, ns, 0);
	if (e->kernel_ns < SPIKE_NS || others != 0 ||
	    is_long_by_nature(e, kind))
		return;
	add_ns(&h->state->slow[kind][size], e->raw.weight, ns, 0);
	keep_spike(h, (struct habits_spike){
			      .time_ns = e->time_ns,
			      .ns = e->kernel_ns,
			      .tid = e->raw.tid,
			      .op = e->raw.op,
			      .kind = (uint8_t)kind,
			      .size = (uint8_t)size,
		      });
}

static int by_time(const void *a, const void *b)
{
	const struct habits_spike *s = a, *t = b;

	return (s->time_ns > t->time_ns) - (s->time_ns < t->time_ns);
}

/* Is a call that took so long one that something held up?  Where all of a class
 * are long that is what they cost. */
static bool stands_out(const struct habits_state *state, unsigned kind,
		       unsigned size, double ns)
{
	const struct habits_sum *all = &state->of_class[kind][size];
	const struct habits_sum *slow = &state->slow[kind][size];
	double others = (double)(all->count - slow->count);

	return others > 0 && ns * others > SPIKE_FACTOR * (all->ns - slow->ns);
}

/* What proves to be a class's own price is no spike. */
static void end_spikes(struct habits *h)
{
	size_t i, count = 0;
	unsigned kind, size;

	for (i = 0; i < h->spikes; i++)
		if (stands_out(h->state, h->spike[i].kind, h->spike[i].size,
			       (double)h->spike[i].ns))
			h->spike[count++] = h->spike[i];
	h->spikes = count;
	if (count > 0)
		qsort(h->spike, count, sizeof(*h->spike), by_time);
	for (kind = 0; kind < KIND_COUNT; kind++)
		for (size = 0; size < SIZE_CLASSES; size++) {
			const struct habits_sum *slow =
				&h->state->slow[kind][size];

			if (slow->count > 0 &&
			    stands_out(h->state, kind, size,
				       slow->ns / (double)slow->count))
				add_ns(&h->slow, slow->count, slow->ns, 0);
		}
}

/* --- the outside --- */

struct habits *habits_new(void)
{
	struct habits *h = xcalloc(1, sizeof(*h));

	h->state = xcalloc(1, sizeof(*h->state));
	return h;
}

static void add_totals(struct habits *h, const struct log_event *e,
		       enum kind kind)
{
	if (h->calls++ == 0)
		h->first_ns = e->time_ns;
	h->last_ns = e->time_ns;
	h->weights += e->raw.weight;
	add(&h->of_kind[kind], e);
	add_group(&h->of_size[size_class(e->raw.length)], e);
	if (e->raw.layer <= CALLER_LOADER)
		add(&h->of_layer[e->raw.layer], e);
	if ((kind == KIND_UNMAP || kind == KIND_ZAP) &&
	    e->raw.length >= HABITS_HUGE) {
		add(&h->large, e);
		if (e->kernel_ns >= SPIKE_NS)
			add(&h->huge, e);
	}
}

void habits_add(struct habits *h, const struct log_event *e, int others)
{
	enum kind kind = kind_of(&e->raw);
	size_t thread;

	if (e->raw.kind != EVENT_CALL)
		return;
	add_totals(h, e, kind);
	thread = thread_of(h, e->raw.tid);
	add_thread(h, thread, e);
	add_streak(h, thread, e);
	add_spike(h, e, kind, others);
	if (failed(e))
		return;
	if (e->raw.op == OP_MMAP)
		map(h, e, kind);
	else if (kind == KIND_UNMAP)
		unmap(h, e);
	else if (kind == KIND_ZAP)
		zap(h, e);
}

void habits_end(struct habits *h)
{
	size_t i;

	if (!h->state)
		return;
	for (i = 0; i < h->threads; i++)
		end_streak(h, i);
	end_spikes(h);
	tids_drop(&h->state->tids);
	free(h->state->streak);
	free(h->state);
	h->state = NULL;
}

void habits_free(struct habits *h)
{
	habits_end(h);
	free(h->thread);
	free(h);
}

/* --- the period of spikes --- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Beginnings of the large ones; what overlaps is one. */
static size_t beginnings(const struct habits *h, double *at)
{
	uint64_t largest = 0, end = 0;
	size_t count = 0, i;

	for (i = 0; i < h->spikes; i++)
		if (h->spike[i].ns > largest)
			largest = h->spike[i].ns;
	for (i = 0; i < h->spikes; i++) {
		if (h->spike[i].ns < largest / 4)
			continue;
		if (count == 0 || h->spike[i].time_ns >= end)
			at[count++] = (double)h->spike[i].time_ns;
		if (h->spike[i].time_ns + h->spike[i].ns > end)
			end = h->spike[i].time_ns + h->spike[i].ns;
	}
	return count;
}

/* Which part of the intervals is one, two or three periods long? */
static double regular(const double *interval, size_t count, double period)
{
	size_t good = 0, i;
	double times;

	for (i = 0; i < count; i++) {
		times = interval[i] / period;
		if (times > 0.5 && times < 3.5 &&
		    fabs(times - round(times)) < 0.15)
			good++;
	}
	return (double)good / (double)count;
}

double habits_period_ns(const struct habits *h, size_t *count)
{
	double at[HABITS_SPIKES], sorted[HABITS_SPIKES], period;
	size_t i;

	*count = beginnings(h, at);
	if (*count < 6)
		return 0;
	for (i = 0; i + 1 < *count; i++)
		sorted[i] = at[i] = at[i + 1] - at[i];
	qsort(sorted, *count - 1, sizeof(*sorted), by_value);
	period = sorted[(*count - 1) / 2];
	/* Faster than that nobody looks from outside. */
	if (period < 2e7 || regular(at, *count - 1, period) < 0.85)
		return 0;
	return period;
}
