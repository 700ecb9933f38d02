/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "die.h"
#include "sums.h"
#include "units.h"

/* What an interrupt for a TLB shoot-down costs the one who sends it, at most.
 */
static const double shootdown_ns = 10000;

/* --- words --- */

char *sums_say(const char *format, ...)
{
	va_list args;
	char *out;

	va_start(args, format);
	if (vasprintf(&out, format, args) < 0)
		die(EXIT_FAILED, "out of memory");
	va_end(args);
	return out;
}

double sums_ratio(double part_ns, double whole_ns)
{
	return whole_ns > 0 ? part_ns / whole_ns : 0;
}

const char *sums_count(double count)
{
	return units_count((uint64_t)fmin(count, 1e18));
}

/* "1.20 s (3.1 %)" */
const char *sums_time(const struct sums *s, double ns)
{
	static char texts[4][64];
	static unsigned turn;
	char *out = texts[turn++ % 4];

	snprintf(out, sizeof(texts[0]), "%s (%s of the threads' time)",
		 units_time(ns), units_percent(sums_ratio(ns, s->lived)));
	return out;
}

const struct habits *sums_habits(const struct sums *s)
{
	return s->facts->digest ? s->facts->digest->habits : NULL;
}

/* Of what was seen to all there was. */
double sums_scaled(const struct sums *s, const struct habits_sum *sum)
{
	return sum->ns * s->scale;
}

double sums_kind_ns(const struct sums *s, enum kind kind)
{
	const struct habits *h = sums_habits(s);

	return h ? sums_scaled(s, &h->of_kind[kind]) : 0;
}

/* Does it make up that part of the calls' time, and of all? */
bool sums_matters(const struct sums *s, double ns)
{
	return ns > SUMS_HABIT * s->cost && ns > SUMS_TRACE * s->lived;
}

bool sums_is_blind(const struct sums *s)
{
	double lost = (double)s->facts->process->unrecorded;

	return lost > SUMS_PART * (s->calls + lost);
}

/* --- sums --- */

static bool is_shared_op(unsigned op)
{
	return op == OP_MADVISE;
}

static void sum_ops(struct sums *s, const struct log_process *p)
{
	unsigned i;

	for (i = 0; i < OP_COUNT; i++) {
		s->calls += (double)p->op[i].count;
		s->kernel += p->op[i].kernel.sum_ns;
		s->gate += p->op[i].wait.sum_ns;
		if (is_shared_op(i))
			s->gate_shared += p->op[i].wait.sum_ns;
	}
	s->cost = s->kernel + s->gate;
	s->lived = (double)p->thread_ns;
}

/* Which part of the times without a CPU was sleep.  Who sleeps for a lock gives
 * the CPU away, and others have it taken away. */
static double sleeping_part(const struct sums *s, double sleeps)
{
	const struct record_dir *info = s->facts->info;
	double given = info ? (double)info->voluntary_switches : 0;
	double taken = info ? (double)info->involuntary_switches : 0;

	return fmin(sums_ratio(given, sleeps), 1) *
	       sums_ratio(given, given + taken);
}

static void add_sleeps(struct sums *s, const struct crowd *c)
{
	struct crowd_range maps = crowd_waits(c, KIND_MAP);
	double count, ns = crowd_sleeps_ns(c, &count);

	ns *= sleeping_part(s, count);
	s->sleeps = fmax(ns - maps.likely, 0) * s->scale;
	s->kernel_waits.low += fmax(ns / 2 - maps.low, 0) * s->scale;
	s->kernel_waits.likely += s->sleeps;
	s->kernel_waits.high =
		fmin(s->kernel_waits.high + fmax(ns - maps.high, 0) * s->scale,
		     s->kernel);
	s->stalls = fmax(s->stalls - s->sleeps, 0);
}

static void sum_crowd(struct sums *s, const struct digest *d)
{
	struct crowd_range r = crowd_waits(d->crowd, KIND_COUNT);
	unsigned i;

	/* Slow calls stand for themselves only. */
	if (d->kernel_ns > 0 && d->part != DIGEST_SLOW)
		s->scale = s->kernel / d->kernel_ns;
	s->seen = d->part == DIGEST_ALL && d->crowd->calls > 0;
	s->kept = sums_ratio((double)d->crowd->calls, s->calls);
	if (!s->seen)
		return;
	s->kernel_waits = (struct crowd_range){
		.low = r.low * s->scale,
		.likely = r.likely * s->scale,
		.high = fmin(r.high * s->scale, s->kernel),
	};
	s->shown = crowd_waits_show(d->crowd) ||
		   crowd_usual_waits_ns(d->crowd) * s->scale >=
			   SUMS_PART * s->lived;
	s->stalls = crowd_stalls_ns(d->crowd) * s->scale;
	add_sleeps(s, d->crowd);
	for (i = 0; i <= KIND_COUNT; i++)
		s->blocked_all += d->crowd->blocked_by[i];
	for (i = 0; i <= KIND_COUNT; i++)
		s->blocked[i] =
			sums_ratio(d->crowd->blocked_by[i], s->blocked_all);
}

/* Of calls that are not seen one by one: what is above the cheapest tenth might
 * be waiting. */
static double above_cheapest(const struct log_process *p)
{
	const struct hist *h;
	double sum = 0;
	unsigned i;

	for (i = 0; i < OP_COUNT; i++) {
		h = &p->op[i].kernel;
		sum += fmax(h->sum_ns -
				    (double)h->count * hist_percentile(h, 0.1),
			    0);
	}
	return sum;
}

struct sums sums_of(const struct verdict_facts *facts)
{
	const struct log_process *p = facts->process;
	struct sums s = {.facts = facts, .scale = 1};

	sum_ops(&s, p);
	log_setting(p->settings, "lock", s.lock, sizeof(s.lock));
	if (facts->digest)
		sum_crowd(&s, facts->digest);
	s.queue = facts->queue_ns * sums_ratio(s.cost, s.lived);
	if (p->threads <= 1)
		s.kernel_waits = (struct crowd_range){0, 0, 0};
	else if (!s.seen || s.kept <= SUMS_WHOLE)
		/* The others may have waited more. */
		s.kernel_waits.high =
			fmax(s.kernel_waits.high, above_cheapest(p));
	s.kernel_waits.low = fmin(s.kernel_waits.low, s.kernel_waits.likely);
	s.kernel_waits.high = fmax(s.kernel_waits.high, s.kernel_waits.likely);
	return s;
}

char *sums_name(const struct sums *s, const struct crowd_caller *caller)
{
	const struct verdict_facts *f = s->facts;

	if (caller->name)
		return xstrdup(caller->name);
	if (f->name)
		return f->name(f->context, caller);
	return sums_say("0x%llx", (unsigned long long)caller->address);
}

/* Since 6.4 they have a lock of their own mapping. */
static bool faults_take_lock(const char *kernel)
{
	unsigned major, minor;

	if (!kernel || sscanf(kernel, "%u.%u", &major, &minor) != 2)
		return true;
	return major < 6 || (major == 6 && minor < 4);
}

bool sums_faults_meet_calls(const struct sums *s)
{
	const struct record_dir *info = s->facts->info;

	return info && s->facts->process->threads > 1 &&
	       faults_take_lock(s->facts->kernel) &&
	       (double)(info->minor_faults + info->major_faults) > s->calls &&
	       (double)info->voluntary_switches > s->calls / 10;
}

/* Calls that take rights to pages away, which other CPUs must hear of. */
static double taking_calls(const struct sums *s, double *ns)
{
	static const enum kind kinds[] = {KIND_UNMAP, KIND_PROTECT, KIND_ZAP,
					  KIND_REMAP};
	const struct habits *h = sums_habits(s);
	double count = 0;
	size_t i;

	*ns = 0;
	for (i = 0; h && i < sizeof(kinds) / sizeof(*kinds); i++) {
		count += (double)h->of_kind[kinds[i]].count;
		*ns += crowd_work_ns(s->facts->digest->crowd, kinds[i]);
	}
	*ns *= s->scale;
	return count * s->scale;
}

bool sums_shootdowns(const struct sums *s, double *per_call, double *ns)
{
	const struct record_dir *info = s->facts->info;
	double calls = taking_calls(s, ns);

	*per_call = info ? sums_ratio((double)info->tlb_shootdowns, calls) : 0;
	if (info)
		*ns = fmin(*ns, shootdown_ns * (double)info->tlb_shootdowns);
	/* Even one thread has other CPUs to tell, if more threads run. */
	return *per_call > 0.3 && *ns > SUMS_PART * s->lived &&
	       s->facts->cpus != 1;
}
