/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "crowd.h"
#include "die.h"

enum {
	MOST_INSIDE = 16384, /* calls that are followed at a time */
	ENOUGH = 30,         /* calls for a mean */
	NOWHERE = -1,
};

/* Of a class's calls: fewer that came in alone are no typical ones, as whatever
 * kept all others out may have held them up too. */
#define ALONE_PART 0.05
/* Shorter waits are no waits: the lock was free. */
#define LEAST_WAIT_NS 1000u
/* Who sleeps and is woken does not come back sooner. */
#define SLEEP_NS 20000
/* An unmap of much memory that was hardly used is short. */
#define LONG_NS 1000000u

/* A call that waits at the gate, or is in the kernel. */
struct call {
	uint64_t begin, end; /* in the kernel */
	uint64_t kernel_ns, wait_ns;
	uint32_t tid;
	uint8_t caller, kind, class, domain;
	bool gated, large, plain;
	int before, behind; /* in the order of entry */
	double *seen;       /* held[] of its domain when it began to wait */
};

/* Calls by a time, the earliest first. */
struct heap {
	struct heap_entry {
		uint64_t time;
		int call;
	} * entry;
	size_t count;
};

struct crowd_state {
	unsigned char domain[OP_COUNT];
	unsigned char near[256]; /* where callers were found last */
	struct call *call;
	int *free_call;
	size_t free_calls;
	struct heap waiting; /* by entry into the kernel */
	struct heap inside;  /* by end */
	int first, last;     /* of those inside */
	size_t exclusive;    /* how many of them run alone */
	/* Time that each caller has held the lock of a domain. */
	double held[OP_COUNT][CROWD_CALLERS];
};

/* --- heaps --- */

static void heap_push(struct heap *h, uint64_t time, int call)
{
	size_t at = h->count++, up;

	for (; at > 0 && h->entry[up = (at - 1) / 2].time > time; at = up)
		h->entry[at] = h->entry[up];
	h->entry[at] = (struct heap_entry){time, call};
}

static int heap_pop(struct heap *h)
{
	int top = h->entry[0].call;
	struct heap_entry last = h->entry[--h->count];
	size_t at = 0, down;

	while ((down = 2 * at + 1) < h->count) {
		if (down + 1 < h->count &&
		    h->entry[down + 1].time < h->entry[down].time)
			down++;
		if (h->entry[down].time >= last.time)
			break;
		h->entry[at] = h->entry[down];
		at = down;
	}
	if (h->count > 0)
		h->entry[at] = last;
	return top;
}

static uint64_t heap_time(const struct heap *h)
{
	return h->count > 0 ? h->entry[0].time : UINT64_MAX;
}

/* --- callers --- */

static bool is_caller(const struct crowd_caller *caller,
		      const struct record_event *e)
{
	return caller->address == e->caller && caller->op == e->op;
}

static unsigned find_caller(struct crowd *c, const struct log_event *event)
{
	const struct record_event *e = &event->raw;
	unsigned i;

	for (i = 0; i < c->callers; i++)
		if (is_caller(&c->caller[i], e))
			return i;
	if (c->callers == CROWD_CALLERS - 1)
		return CROWD_CALLERS - 1;
	c->callers++;
	c->caller[i] = (struct crowd_caller){
		.op = e->op,
		.layer = e->layer,
		.address = e->caller,
		.first_ns = event->time_ns,
	};
	return i;
}

static unsigned caller_of(struct crowd *c, const struct log_event *event)
{
	const struct record_event *e = &event->raw;
	unsigned char *near = &c->state->near[(e->caller ^ e->op) & 255];

	if (*near >= c->callers || !is_caller(&c->caller[*near], e))
		*near = (unsigned char)find_caller(c, event);
	return *near;
}

/* --- classes --- */

static void add_value(struct crowd_sum *sum, uint64_t value)
{
	double ns = (double)value;

	sum->count++;
	sum->sum_ns += ns;
	sum->squares += ns * ns;
	sum->bucket[rows_bucket(ns)]++;
}

static double mean(const struct crowd_sum *sum)
{
	return sum->count > 0 ? sum->sum_ns / (double)sum->count : 0;
}

/* Variance of the mean.  What a few calls have in common may be chance: their
 * sum is in doubt by one of them, at least. */
static double doubt(const struct crowd_sum *sum)
{
	double n = (double)sum->count, m = mean(sum);
	double spread = n > 1 ? (sum->squares / n - m * m) / (n - 1) : 0;

	return n > 0 ? fmax(spread, m * m / (n * n)) : 0;
}

static void add_others(struct crowd_class *class, const struct call *call,
		       size_t inside)
{
	double others = (double)inside;

	class->others += others;
	class->others_squares += others * others;
	class->others_ns += others * (double)call->kernel_ns;
}

/* --- who waits for whom at the gate --- */

/* What each caller has held until now, those that hold it now too. */
static void take_held(const struct crowd_state *s, unsigned domain,
		      uint64_t now, double *held)
{
	const struct call *call;
	int at;

	memcpy(held, s->held[domain], sizeof(s->held[domain]));
	for (at = s->first; at != NOWHERE; at = call->behind) {
		call = &s->call[at];
		if (call->gated && call->domain == domain && call->begin < now)
			held[call->caller] += (double)(now - call->begin);
	}
}

static void begin_wait(struct crowd *c, struct call *call, uint64_t now)
{
	if (!call->gated || call->wait_ns < LEAST_WAIT_NS)
		return;
	call->seen = xcalloc(CROWD_CALLERS, sizeof(*call->seen));
	take_held(c->state, call->domain, now, call->seen);
}

static void end_wait(struct crowd *c, struct call *call)
{
	double now[CROWD_CALLERS];
	unsigned i;

	if (!call->seen)
		return;
	take_held(c->state, call->domain, call->begin, now);
	for (i = 0; i < CROWD_CALLERS; i++)
		c->held[call->caller][i] += now[i] - call->seen[i];
	free(call->seen);
	call->seen = NULL;
}

/* --- in and out of the kernel --- */

static void link_last(struct crowd_state *s, int at)
{
	s->call[at].before = s->last;
	s->call[at].behind = NOWHERE;
	if (s->last == NOWHERE)
		s->first = at;
	else
		s->call[s->last].behind = at;
	s->last = at;
}

static void unlink_call(struct crowd_state *s, int at)
{
	struct call *call = &s->call[at];

	if (call->before == NOWHERE)
		s->first = call->behind;
	else
		s->call[call->before].behind = call->behind;
	if (call->behind == NOWHERE)
		s->last = call->before;
	else
		s->call[call->behind].before = call->before;
}

/* Can one be in the other's way?  The kernel runs what shares side by side. */
static bool meets(const struct call *call, const struct call *other)
{
	return other->tid != call->tid && (kind_is_exclusive(call->kind) ||
					   kind_is_exclusive(other->kind));
}

/* How many may be in its way. */
static size_t count_inside(const struct crowd_state *s, const struct call *call)
{
	return kind_is_exclusive(call->kind) ? s->inside.count : s->exclusive;
}

/* The first that is in its way, if there is one. */
static const struct call *in_the_way(const struct crowd_state *s,
				     const struct call *call)
{
	int at = count_inside(s, call) > 0 ? s->first : NOWHERE;

	while (at != NOWHERE && !meets(call, &s->call[at]))
		at = s->call[at].behind;
	return at != NOWHERE ? &s->call[at] : NULL;
}

static double percentile(const struct crowd_class *class, double p)
{
	uint32_t all[ROWS_BUCKETS];
	unsigned i;

	for (i = 0; i < ROWS_BUCKETS; i++)
		all[i] = class->alone.bucket[i] + class->crowded.bucket[i];
	return rows_percentile(all, p);
}

/* What it costs alone, as far as is known by now. */
static double price_so_far(const struct crowd_class *class)
{
	return class->alone.count >= ENOUGH ? mean(&class->alone)
					    : class->least_ns;
}

/* Its place in blocked_by.  An unmap of much memory is huge when most such are
 * long: what is reserved and hardly used is long by chance only. */
static unsigned culprit(const struct crowd *c, const struct call *call)
{
	const struct crowd_class *class = &c->of[call->kind][call->class];

	if ((call->kind == KIND_UNMAP || call->kind == KIND_ZAP) &&
	    call->large && call->kernel_ns >= LONG_NS &&
	    percentile(class, 0.5) >= LONG_NS)
		return KIND_COUNT;
	return call->kind;
}

static void blame(struct crowd *c, const struct call *call,
		  const struct call *other)
{
	const struct crowd_class *class = &c->of[call->kind][call->class];
	double longer = (double)call->kernel_ns - price_so_far(class);

	if (longer <= 0)
		return;
	c->caller[other->caller].blocked_ns += longer;
	c->caller[other->caller].blocked_calls++;
	c->blocked_by[culprit(c, other)] += longer;
}

static void add_call(struct crowd_class *class, const struct call *call,
		     bool crowded)
{
	double ns = (double)call->kernel_ns;

	if (class->alone.count + class->crowded.count == 0 ||
	    ns < class->least_ns)
		class->least_ns = ns;
	add_value(crowded ? &class->crowded : &class->alone, call->kernel_ns);
}

static int enter(struct crowd *c, int at)
{
	struct crowd_state *s = c->state;
	struct call *call = &s->call[at];
	const struct call *other = in_the_way(s, call);
	struct crowd_class *class = &c->of[call->kind][call->class];

	end_wait(c, call);
	add_call(class, call, other != NULL);
	if (call->kind == KIND_MAP && call->plain)
		add_value(&c->maps, call->kernel_ns);
	if (other)
		add_others(class, call, count_inside(s, call));
	if (other)
		blame(c, call, other);
	c->caller[call->caller].inside_ns += (double)call->kernel_ns;
	s->exclusive += kind_is_exclusive(call->kind);
	link_last(s, at);
	heap_push(&s->inside, call->end, at);
	if (s->inside.count > c->most_inside)
		c->most_inside = s->inside.count;
	return (int)s->inside.count - 1;
}

static void leave(struct crowd *c)
{
	struct crowd_state *s = c->state;
	int at = heap_pop(&s->inside);
	struct call *call = &s->call[at];

	if (call->gated)
		s->held[call->domain][call->caller] +=
			(double)(call->end - call->begin);
	s->exclusive -= kind_is_exclusive(call->kind);
	unlink_call(s, at);
	s->free_call[s->free_calls++] = at;
}

/* All that happened up to now, and what must go to make room. */
static void advance(struct crowd *c, uint64_t now)
{
	struct crowd_state *s = c->state;

	for (;;) {
		uint64_t in = heap_time(&s->waiting);
		uint64_t out = heap_time(&s->inside);
		bool full = s->free_calls == 0;

		if (s->inside.count > 0 && ((out <= now && out <= in) ||
					    (full && s->waiting.count == 0)))
			leave(c);
		else if (s->waiting.count > 0 && (in <= now || full))
			enter(c, heap_pop(&s->waiting));
		else
			return;
	}
}

/* --- the outside --- */

struct crowd *crowd_new(const unsigned char domain[OP_COUNT])
{
	struct crowd *c = xcalloc(1, sizeof(*c));
	struct crowd_state *s = xcalloc(1, sizeof(*s));
	int i;

	c->held = xcalloc(CROWD_CALLERS, sizeof(*c->held));
	c->state = s;
	memcpy(s->domain, domain, sizeof(s->domain));
	s->call = xcalloc(MOST_INSIDE, sizeof(*s->call));
	s->free_call = xcalloc(MOST_INSIDE, sizeof(*s->free_call));
	s->waiting.entry = xcalloc(MOST_INSIDE, sizeof(*s->waiting.entry));
	s->inside.entry = xcalloc(MOST_INSIDE, sizeof(*s->inside.entry));
	for (i = 0; i < MOST_INSIDE; i++)
		s->free_call[s->free_calls++] = MOST_INSIDE - 1 - i;
	s->first = s->last = NOWHERE;
	return c;
}

static void fill(struct crowd *c, struct call *call, const struct log_event *e)
{
	*call = (struct call){
		.begin = e->time_ns + e->wait_ns,
		.end = e->time_ns + e->wait_ns + e->kernel_ns,
		.kernel_ns = e->kernel_ns,
		.wait_ns = e->wait_ns,
		.tid = e->raw.tid,
		.caller = (uint8_t)caller_of(c, e),
		.kind = (uint8_t)kind_of(&e->raw),
		.class = (uint8_t)size_class(e->raw.length),
		.domain = c->state->domain[e->raw.op],
		.gated = e->raw.outcome == OUTCOME_GATED,
		.large = e->raw.length >= CROWD_HUGE,
		.plain = !(e->raw.flags & MAP_FIXED),
	};
}

static void extend(struct crowd *c, const struct log_event *e)
{
	uint64_t end = e->time_ns + e->wait_ns + e->kernel_ns;

	if (c->calls++ == 0)
		c->from_ns = e->time_ns;
	if (end > c->to_ns)
		c->to_ns = end;
}

void crowd_add(struct crowd *c, const struct log_event *e, int *others)
{
	struct crowd_state *s = c->state;
	struct call *call;
	int at;

	*others = NOWHERE;
	if (e->raw.kind != EVENT_CALL)
		return;
	extend(c, e);
	advance(c, e->time_ns);
	at = s->free_call[--s->free_calls];
	call = &s->call[at];
	fill(c, call, e);
	if (call->wait_ns == 0) {
		*others = enter(c, at);
		return;
	}
	begin_wait(c, call, e->time_ns);
	heap_push(&s->waiting, call->begin, at);
}

void crowd_end(struct crowd *c)
{
	struct crowd_state *s = c->state;

	if (!s)
		return;
	advance(c, UINT64_MAX);
	free(s->call);
	free(s->free_call);
	free(s->waiting.entry);
	free(s->inside.entry);
	free(s);
	c->state = NULL;
}

void crowd_free(struct crowd *c)
{
	unsigned i;

	crowd_end(c);
	for (i = 0; i < CROWD_CALLERS; i++)
		free(c->caller[i].name);
	free(c->held);
	free(c);
}

/* --- callers of one name --- */

/* The first of the kept ones that reads the same; `kept`: there is none. */
static unsigned namesake(const struct crowd *c, unsigned kept,
			 const struct crowd_caller *caller)
{
	unsigned i = 0;

	while (i < kept && (c->caller[i].op != caller->op ||
			    strcmp(c->caller[i].name, caller->name) != 0))
		i++;
	return i;
}

static void add_caller(struct crowd_caller *to, struct crowd_caller *from)
{
	to->inside_ns += from->inside_ns;
	to->blocked_ns += from->blocked_ns;
	to->blocked_calls += from->blocked_calls;
	free(from->name);
}

/* `to` is never behind what it is of, so nothing is moved twice. */
static void move_held(struct crowd *c, const unsigned to[CROWD_CALLERS])
{
	double ns;
	unsigned w, h;

	for (w = 0; w < CROWD_CALLERS; w++)
		for (h = 0; h < CROWD_CALLERS; h++) {
			ns = c->held[w][h];
			c->held[w][h] = 0;
			c->held[to[w]][to[h]] += ns;
		}
}

void crowd_join(struct crowd *c,
		char *(*name)(void *context, const struct crowd_caller *caller),
		void *context)
{
	const unsigned others = CROWD_CALLERS - 1;
	unsigned to[CROWD_CALLERS], kept = 0, i;
	struct crowd_caller caller;

	for (i = 0; i < CROWD_CALLERS; i++)
		to[i] = i;
	for (i = 0; i < c->callers; i++) {
		caller = c->caller[i];
		caller.name = name(context, &caller);
		c->caller[i] = (struct crowd_caller){.name = NULL};
		to[i] = namesake(c, kept, &caller);
		if (to[i] < kept)
			add_caller(&c->caller[to[i]], &caller);
		else
			c->caller[kept++] = caller;
	}
	c->callers = kept;
	c->caller[others].name = name(context, &c->caller[others]);
	move_held(c, to);
}

/* --- what it means --- */

static double count_of(const struct crowd_class *class)
{
	return (double)(class->alone.count + class->crowded.count);
}

static double sum_of(const struct crowd_class *class)
{
	return class->alone.sum_ns + class->crowded.sum_ns;
}

/*
 * What a call costs that comes in alone.  When hardly any did, it is told by
 * how the cost grows with the number of others: a straight line, as each in
 * the queue takes its turn.  *doubt_ns: its standard deviation.
 */
static double price(const struct crowd_class *class, double *doubt_ns)
{
	double n = count_of(class), x = class->others / n;
	double y = sum_of(class) / n;
	double spread = class->others_squares / n - x * x;
	double squares = class->alone.squares + class->crowded.squares;
	double slope;

	if (class->alone.count >= ENOUGH) {
		*doubt_ns = sqrt(doubt(&class->alone));
		return mean(&class->alone);
	}
	if (spread <= 0) {
		*doubt_ns = y / 2;
		return y / 2;
	}
	slope = (class->others_ns / n - x * y) / spread;
	*doubt_ns =
		sqrt(fmax(squares / n - y * y, 0) / n * (1 + x * x / spread));
	return fmin(fmax(y - slope * x, percentile(class, 0.1)), y);
}

/* The mean of a quantity that is told to be `at`, with a deviation, and that
 * lies between 0 and `high`. */
static double expected(double at, double deviation, double high)
{
	double low = -at / deviation, top = (high - at) / deviation;
	double within = (erf(top / M_SQRT2) - erf(low / M_SQRT2)) / 2;
	double slope = exp(-low * low / 2) - exp(-top * top / 2);

	if (deviation <= 0 || within < 1e-6)
		return fmin(fmax(at, 0), high);
	return fmin(fmax(at + deviation * slope / sqrt(2 * M_PI) / within, 0),
		    high);
}

/* How much longer crowded calls took than others. */
struct longer {
	double ns, variance;
	double most;   /* if all above the cheapest were waiting */
	double others; /* the same of all calls, what is slow alone too */
};

static struct longer class_longer(const struct crowd_class *class)
{
	double n = (double)class->crowded.count, alone, alone_doubt, least;
	struct longer l = {0, 0, 0, 0};

	if (count_of(class) == 0)
		return l;
	least = percentile(class, 0.1);
	l.others = fmax(sum_of(class) - least * count_of(class), 0);
	if (n == 0)
		return l;
	alone = price(class, &alone_doubt);
	l.ns = class->crowded.sum_ns - n * alone;
	l.variance =
		n * n * (doubt(&class->crowded) + alone_doubt * alone_doubt);
	l.most = fmax(class->crowded.sum_ns - n * least, 0);
	l.others = fmax(l.others, l.ns);
	return l;
}

/* Chance makes some classes' crowded calls shorter than the others, as it makes
 * those of others longer, and the one takes the other away.  What is more than
 * chance does not: no call is shorter for having waited. */
static void add_longer(struct longer *to, const struct longer *l)
{
	to->ns += fmax(l->ns, -2 * sqrt(l->variance));
	to->variance += l->variance;
	to->most += l->most;
	to->others += l->others;
}

static struct longer all_longer(const struct crowd *c, enum kind kind)
{
	struct longer sum = {0, 0, 0, 0}, l;
	unsigned i, k;

	for (i = 0; i < KIND_COUNT; i++)
		for (k = 0; k < SIZE_CLASSES; k++) {
			if (kind != KIND_COUNT && i != (unsigned)kind)
				break;
			l = class_longer(&c->of[i][k]);
			add_longer(&sum, &l);
		}
	return sum;
}

static struct crowd_range range_of(const struct longer *l)
{
	double deviation = sqrt(l->variance);

	return (struct crowd_range){
		.low = fmax(l->ns - 2 * deviation, 0),
		.likely = expected(l->ns, deviation, l->most),
		.high = l->others,
	};
}

double crowd_sleeps_ns(const struct crowd *c, double *count)
{
	double least = rows_percentile(c->maps.bucket, 0.1), sum = 0;
	unsigned i;

	*count = 0;
	if (c->maps.count < ENOUGH)
		return 0;
	for (i = rows_bucket(fmax(8 * least, SLEEP_NS)); i < ROWS_BUCKETS;
	     i++) {
		*count += c->maps.bucket[i];
		sum += c->maps.bucket[i] *
		       ((rows_bucket_floor(i) + rows_bucket_floor(i + 1)) / 2 -
			least);
	}
	return fmin(sum, c->maps.sum_ns);
}

struct crowd_range crowd_waits(const struct crowd *c, enum kind kind)
{
	struct longer l = all_longer(c, kind);

	return range_of(&l);
}

/* Did enough calls come in alone to hold most of the others against? */
static bool can_compare(const struct crowd *c)
{
	const struct crowd_class *class;
	double compared = 0, others = 0;
	unsigned i, k;

	for (i = 0; i < KIND_COUNT; i++)
		for (k = 0; k < SIZE_CLASSES; k++) {
			class = &c->of[i][k];
			if (class->alone.count >= ENOUGH &&
			    (double)class->alone.count >=
				    ALONE_PART * count_of(class))
				compared += class->crowded.sum_ns;
			else
				others += class->crowded.sum_ns;
		}
	return compared >= others;
}

bool crowd_waits_show(const struct crowd *c)
{
	struct longer l = all_longer(c, KIND_COUNT);

	return !can_compare(c) || (l.ns > 0 && l.ns * l.ns >= l.variance);
}

/* The mean of all but the longest twentieth. */
static double usual(const struct crowd_sum *sum)
{
	double most = (double)sum->count * 0.95, n = 0, ns = 0, part;
	unsigned i;

	for (i = 0; i < ROWS_BUCKETS && n < most; i++) {
		part = fmin(sum->bucket[i], most - n);
		ns += part * (rows_bucket_floor(i) + rows_bucket_floor(i + 1)) /
		      2;
		n += part;
	}
	return n > 0 ? ns / n : 0;
}

double crowd_usual_waits_ns(const struct crowd *c)
{
	const struct crowd_class *class;
	double sum = 0;
	unsigned i, k;

	for (i = 0; i < KIND_COUNT; i++)
		for (k = 0; k < SIZE_CLASSES; k++) {
			class = &c->of[i][k];
			if (class->alone.count >= ENOUGH)
				sum += (double)class->crowded.count *
				       (usual(&class->crowded) -
					usual(&class->alone));
		}
	return sum;
}

/* Beyond the median of those that came in alone, but for the waiting. */
static double class_stalls(const struct crowd_class *class)
{
	double usual = rows_percentile(class->alone.bucket, 0.5);
	struct longer l = class_longer(class);

	if (class->alone.count < ENOUGH)
		return 0;
	return fmax(sum_of(class) - count_of(class) * usual -
			    range_of(&l).likely,
		    0);
}

double crowd_stalls_ns(const struct crowd *c)
{
	double sum = 0;
	unsigned i, k;

	for (i = 0; i < KIND_COUNT; i++)
		for (k = 0; k < SIZE_CLASSES; k++)
			sum += class_stalls(&c->of[i][k]);
	return sum;
}

double crowd_work_ns(const struct crowd *c, enum kind kind)
{
	const struct crowd_class *class;
	double work = 0, unused;
	unsigned i;

	for (i = 0; i < SIZE_CLASSES; i++) {
		class = &c->of[kind][i];
		if (count_of(class) > 0)
			work += price(class, &unused) * count_of(class);
	}
	return work;
}
