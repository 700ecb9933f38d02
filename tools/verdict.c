/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "units.h"
#include "verdict.h"

/* Shares of the threads' time from which something is worth a word, is part of
 * the problem, is the problem. */
static const double trace = 0.01, part = 0.02, much = 0.05;
/* Share of the calls' time from which a habit is worth a remedy. */
static const double habit = 0.1;

/* What an interrupt for a TLB shoot-down costs the one who sends it, at most.
 */
static const double shootdown_ns = 10000;

/* What the facts come to, before it is put into words. */
struct sums {
	const struct verdict_facts *facts;
	double lived;        /* thread time */
	double kernel, gate; /* in calls, waiting at the gate */
	double gate_shared;  /* for calls that the kernel runs side by side */
	double calls, cost;  /* number, and time of all */
	double scale;        /* from the events that are kept to all calls */
	bool seen;           /* events show who was inside */
	struct crowd_range kernel_waits;
	double stalls; /* of calls that came in alone */
	double queue;  /* part of the calls' time without a CPU */
	double blocked[KIND_COUNT + 1], blocked_all; /* shares of all */
	char lock[64];
};

/* --- words --- */

static char *say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *say(const char *format, ...)
{
	va_list args;
	char *out;

	va_start(args, format);
	if (vasprintf(&out, format, args) < 0)
		die(EXIT_FAILED, "out of memory");
	va_end(args);
	return out;
}

static double of(double part_ns, double whole_ns)
{
	return whole_ns > 0 ? part_ns / whole_ns : 0;
}

static const char *count_text(double count)
{
	return units_count((uint64_t)fmin(count, 1e18));
}

/* "1.20 s (3.1 %)" */
static const char *time_of(const struct sums *s, double ns)
{
	static char texts[4][64];
	static unsigned turn;
	char *out = texts[turn++ % 4];

	snprintf(out, sizeof(texts[0]), "%s (%s of the threads' time)",
		 units_time(ns), units_percent(of(ns, s->lived)));
	return out;
}

static const struct habits *habits_of(const struct sums *s)
{
	return s->facts->digest ? s->facts->digest->habits : NULL;
}

/* Of what was seen to all there was. */
static double scaled(const struct sums *s, const struct habits_sum *sum)
{
	return sum->ns * s->scale;
}

static double kind_ns(const struct sums *s, enum kind kind)
{
	const struct habits *h = habits_of(s);

	return h ? scaled(s, &h->of_kind[kind]) : 0;
}

/* Does it make up that part of the calls' time, and of all? */
static bool matters(const struct sums *s, double ns)
{
	return ns > habit * s->cost && ns > trace * s->lived;
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

static void sum_crowd(struct sums *s, const struct digest *d)
{
	struct crowd_range r = crowd_waits(d->crowd, KIND_COUNT);
	unsigned i;

	/* Slow calls stand for themselves only. */
	if (d->kernel_ns > 0 && d->part != DIGEST_SLOW)
		s->scale = s->kernel / d->kernel_ns;
	s->seen = d->part == DIGEST_ALL && d->crowd->calls > 0;
	if (!s->seen)
		return;
	s->kernel_waits = (struct crowd_range){
		.low = r.low * s->scale,
		.likely = r.likely * s->scale,
		.high = fmin(r.high * s->scale, s->kernel),
	};
	s->stalls = crowd_stalls_ns(d->crowd) * s->scale;
	for (i = 0; i <= KIND_COUNT; i++)
		s->blocked_all += d->crowd->blocked_by[i];
	for (i = 0; i <= KIND_COUNT; i++)
		s->blocked[i] = of(d->crowd->blocked_by[i], s->blocked_all);
}

/* Without single calls: what is above the cheapest tenth might be waiting. */
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

static struct sums sums_of(const struct verdict_facts *facts)
{
	const struct log_process *p = facts->process;
	struct sums s = {.facts = facts, .scale = 1};

	sum_ops(&s, p);
	log_setting(p->settings, "lock", s.lock, sizeof(s.lock));
	if (facts->digest)
		sum_crowd(&s, facts->digest);
	s.queue = facts->queue_ns * of(s.cost, s.lived);
	if (p->threads <= 1)
		s.kernel_waits = (struct crowd_range){0, 0, 0};
	else if (!s.seen)
		s.kernel_waits.high = above_cheapest(p);
	return s;
}

/* --- causes --- */

static void add_cause(struct verdict *v, enum verdict_cause id, double ns,
		      char *text)
{
	v->cause[v->causes++] = (struct verdict_item){id, ns, text};
}

static char *name_of(const struct sums *s, const struct crowd_caller *caller)
{
	const struct verdict_facts *f = s->facts;

	if (f->name)
		return f->name(f->context, caller);
	return say("0x%llx", (unsigned long long)caller->address);
}

/* Where the calls came from that stood in the way. */
static char *culprits(const struct sums *s)
{
	const struct crowd *c = s->facts->digest->crowd;
	const struct crowd_caller *worst = NULL;
	char *name, *out;
	unsigned i;

	for (i = 0; i < c->callers; i++)
		if (!worst || c->caller[i].blocked_ns > worst->blocked_ns)
			worst = &c->caller[i];
	if (!worst || s->blocked_all <= 0 || worst->blocked_ns <= 0)
		return say("%s", "");
	name = name_of(s, worst);
	out = say("; in the way was most often %s from %s (%s of this time)",
		  op_name(worst->op), name,
		  units_percent(of(worst->blocked_ns, s->blocked_all)));
	free(name);
	return out;
}

static const char *average(const struct crowd_sum *sum)
{
	return units_time(of(sum->sum_ns, (double)sum->count));
}

/* The two prices of the kind of call that waited most. */
static char *prices(const struct sums *s)
{
	const struct crowd *c = s->facts->digest->crowd;
	struct crowd_sum alone = {0}, crowded = {0};
	unsigned i, worst = 0;

	for (i = 1; i < KIND_COUNT; i++)
		if (crowd_waits(c, i).likely > crowd_waits(c, worst).likely)
			worst = i;
	for (i = 0; i < SIZE_CLASSES; i++) {
		alone.count += c->of[worst][i].alone.count;
		alone.sum_ns += c->of[worst][i].alone.sum_ns;
		crowded.count += c->of[worst][i].crowded.count;
		crowded.sum_ns += c->of[worst][i].crowded.sum_ns;
	}
	if (alone.count == 0)
		return say("%s took %s on average, and each of %s calls found "
			   "another thread's call in the kernel",
			   kind_name(worst), average(&crowded),
			   units_count(crowded.count));
	return say("%s took %s on average when another thread's call was in "
		   "the kernel (%s calls), %s when none was (%s calls)",
		   kind_name(worst), average(&crowded),
		   units_count(crowded.count), average(&alone),
		   units_count(alone.count));
}

static void find_lock(struct verdict *v, const struct sums *s)
{
	const struct crowd_range *w = &s->kernel_waits;
	char *price, *culprit;

	if (!s->seen || w->likely < trace * s->lived)
		return;
	price = prices(s);
	culprit = culprits(s);
	add_cause(v, CAUSE_LOCK, w->likely,
		  say("waiting in the kernel for other threads' calls: %s, "
		      "between %s and %s: %s%s",
		      time_of(s, w->likely), units_time(w->low),
		      units_time(w->high), price, culprit));
	free(price);
	free(culprit);
}

/* Who held the gate's lock while others waited. */
static char *holders(const struct sums *s)
{
	const struct crowd *c =
		s->facts->digest ? s->facts->digest->crowd : NULL;
	double sum, all = 0, most = 0;
	unsigned w, h, worst = 0;
	char *name, *out;

	for (h = 0; c && h < c->callers; h++) {
		for (sum = 0, w = 0; w < CROWD_CALLERS; w++)
			sum += c->held[w][h];
		all += sum;
		worst = sum > most ? h : worst;
		most = sum > most ? sum : most;
	}
	if (most <= 0)
		return say("%s", "");
	name = name_of(s, &c->caller[worst]);
	out = say("; meanwhile most often %s from %s held it (%s of the time)",
		  op_name(c->caller[worst].op), name,
		  units_percent(most / all));
	free(name);
	return out;
}

static void find_gate(struct verdict *v, const struct sums *s)
{
	char *who;

	if (s->gate < trace * s->lived)
		return;
	who = holders(s);
	add_cause(v, CAUSE_GATE, s->gate,
		  say("waiting at the gate (lock=%s): %s%s%s", s->lock,
		      time_of(s, s->gate),
		      s->gate_shared > s->gate / 2
			      ? ", mostly for madvise, which the kernel runs "
				"side by side when nobody holds it up"
			      : "",
		      who));
	free(who);
}

static void find_alone(struct verdict *v, const struct sums *s)
{
	if (s->facts->process->threads > 1 || s->cost <= 0)
		return;
	add_cause(v, CAUSE_ALONE, s->kernel,
		  say("one thread made all %s calls, so no other could hold "
		      "the lock; what they cost (%s) is the kernel's work",
		      count_text(s->calls), time_of(s, s->kernel)));
}

static void find_above(struct verdict *v, const struct sums *s)
{
	if (s->cost >= part * s->lived || s->lived <= 0)
		return;
	add_cause(v, CAUSE_ABOVE, s->lived - s->cost,
		  say("all %s calls together took %s: whatever is slow is not "
		      "in them; look above the system calls",
		      count_text(s->calls), time_of(s, s->cost)));
}

static void find_huge(struct verdict *v, const struct sums *s)
{
	const struct habits *h = habits_of(s);
	double ns = h ? scaled(s, &h->huge) : 0;

	if (!matters(s, ns))
		return;
	add_cause(v, CAUSE_HUGE, ns,
		  say("%s unmaps of %s and more, %s in all: %s; the lock is "
		      "held for as long as one takes",
		      units_count(h->huge.count),
		      units_bytes((double)HABITS_HUGE),
		      units_bytes(h->huge.bytes), time_of(s, ns)));
}

static void find_populate(struct verdict *v, const struct sums *s)
{
	double ns = kind_ns(s, KIND_MAP_POPULATE) + kind_ns(s, KIND_POPULATE);
	const struct habits *h = habits_of(s);

	if (!matters(s, ns))
		return;
	add_cause(v, CAUSE_POPULATE, ns,
		  say("%s calls that fill pages before they return "
		      "(MAP_POPULATE, MAP_LOCKED, MADV_POPULATE): %s; they "
		      "hold the lock meanwhile",
		      units_count(h->of_kind[KIND_MAP_POPULATE].count +
				  h->of_kind[KIND_POPULATE].count),
		      time_of(s, ns)));
}

static void find_thp(struct verdict *v, const struct sums *s)
{
	double ns = kind_ns(s, KIND_HUGE);
	const struct habits *h = habits_of(s);

	if (!matters(s, ns))
		return;
	add_cause(v, CAUSE_THP, ns,
		  say("%s calls of madvise(HUGEPAGE, COLLAPSE): %s; huge pages "
		      "and compaction are suspected, not the lock itself",
		      units_count(h->of_kind[KIND_HUGE].count),
		      time_of(s, ns)));
}

/* Calls that take rights to pages away, which other CPUs must hear of. */
static double taking_calls(const struct sums *s, double *ns)
{
	static const enum kind kinds[] = {KIND_UNMAP, KIND_PROTECT, KIND_ZAP,
					  KIND_REMAP};
	const struct habits *h = habits_of(s);
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

static bool has_shootdowns(const struct sums *s, double *per_call, double *ns)
{
	const struct record_dir *info = s->facts->info;
	double calls = taking_calls(s, ns);

	*per_call = info ? of((double)info->tlb_shootdowns, calls) : 0;
	if (info)
		*ns = fmin(*ns, shootdown_ns * (double)info->tlb_shootdowns);
	/* Even one thread has other CPUs to tell, if more threads run. */
	return *per_call > 0.3 && *ns > part * s->lived && s->facts->cpus != 1;
}

static void find_shootdown(struct verdict *v, const struct sums *s)
{
	double per_call = 0, ns = 0;

	if (!has_shootdowns(s, &per_call, &ns))
		return;
	add_cause(v, CAUSE_SHOOTDOWN, ns,
		  say("TLB shoot-downs: the machine counted %s of these "
		      "interrupts, %.1f for each munmap, mprotect and "
		      "madvise(DONTNEED); such a call waits for the other CPUs "
		      "that run the program's threads, whoever has the lock; "
		      "up to %s",
		      units_count(s->facts->info->tlb_shootdowns), per_call,
		      time_of(s, ns)));
}

static void find_reader(struct verdict *v, const struct sums *s)
{
	const struct habits *h = habits_of(s);
	double period;
	size_t count;

	period = h ? habits_period_ns(h, &count) : 0;
	if (period <= 0)
		return;
	add_cause(v, CAUSE_READER, scaled(s, &h->slow),
		  say("%zu times a call was held up with no other thread's "
		      "call in sight, %s after each other: somebody outside "
		      "seems to read /proc/PID/smaps or maps at this interval; "
		      "these took %s",
		      count, units_time(period),
		      time_of(s, scaled(s, &h->slow))));
}

/* System time that is in no call: page faults, for the most part. */
static double elsewhere_ns(const struct sums *s)
{
	const struct record_dir *info = s->facts->info;

	if (!info || info->minor_faults + info->major_faults < 1000)
		return 0;
	return (double)info->system_ns - s->kernel;
}

static void find_faults(struct verdict *v, const struct sums *s)
{
	const struct record_dir *info = s->facts->info;
	double ns = elsewhere_ns(s);
	uint64_t faults;

	if (ns < 0.1 * s->lived || ns < 2 * s->kernel)
		return;
	faults = info->minor_faults + info->major_faults;
	add_cause(v, CAUSE_FAULTS, ns,
		  say("page faults: %s of system time is outside of these "
		      "calls, with %s page faults (%s each); first touches of "
		      "memory and the locks of page tables, which no gate can "
		      "see",
		      units_time(ns), units_count(faults),
		      units_time(of(ns, (double)faults))));
}

static void find_cpus(struct verdict *v, const struct sums *s)
{
	double ns = s->facts->queue_ns;

	if (ns < 0.2 * s->lived)
		return;
	/* Of all threads, those without a call too. */
	add_cause(v, CAUSE_CPUS, fmin(ns, s->lived),
		  say("too few CPUs: threads that could run had none for %s in "
		      "all%s",
		      units_time(ns),
		      s->cost > part * s->lived
			      ? "; some of that is in the calls' times"
			      : ""));
}

static bool faults_meet_calls(const struct sums *s)
{
	const struct record_dir *info = s->facts->info;

	return info && s->facts->process->threads > 1 &&
	       (double)(info->minor_faults + info->major_faults) > s->calls &&
	       (double)info->voluntary_switches > s->calls / 10;
}

static void find_stalls(struct verdict *v, const struct sums *s)
{
	double ns = s->stalls - s->queue;
	const struct record_dir *info = s->facts->info;

	if (ns < part * s->lived || s->facts->process->threads <= 1)
		return;
	if (faults_meet_calls(s))
		add_cause(v, CAUSE_STALLS, ns,
			  say("calls that found no other call in the kernel "
			      "were held up too, for %s: probably by page "
			      "faults of other threads, which take the lock "
			      "as well (%s faults, %s voluntary context "
			      "switches, %s calls)",
			      time_of(s, ns),
			      units_count(info->minor_faults +
					  info->major_faults),
			      units_count(info->voluntary_switches),
			      count_text(s->calls)));
	else
		add_cause(v, CAUSE_STALLS, ns,
			  say("calls that found no other call in the kernel "
			      "were held up too, for %s: by interrupts, by "
			      "reclaim, or for want of a CPU",
			      time_of(s, ns)));
}

static void find_work(struct verdict *v, const struct sums *s)
{
	double ns = s->kernel - s->kernel_waits.likely - s->stalls;

	if (!s->seen || s->facts->process->threads <= 1 ||
	    ns < part * s->lived || ns < s->cost / 4)
		return;
	add_cause(v, CAUSE_WORK, ns,
		  say("the calls' own work in the kernel: %s", time_of(s, ns)));
}

/* Something must be said, if it is that there is little to say. */
static void find_little(struct verdict *v, const struct sums *s)
{
	if (v->causes > 0 || s->cost <= 0)
		return;
	add_cause(v, CAUSE_WORK, s->cost,
		  say("all %s calls together took %s; none of what this "
		      "verdict knows stands out in them",
		      count_text(s->calls), time_of(s, s->cost)));
}

static int by_ns(const void *a, const void *b)
{
	double x = ((const struct verdict_item *)a)->ns;
	double y = ((const struct verdict_item *)b)->ns;

	return (x < y) - (x > y);
}

static void find_causes(struct verdict *v, const struct sums *s)
{
	find_lock(v, s);
	find_gate(v, s);
	find_alone(v, s);
	find_above(v, s);
	find_huge(v, s);
	find_populate(v, s);
	find_thp(v, s);
	find_shootdown(v, s);
	find_reader(v, s);
	find_faults(v, s);
	find_cpus(v, s);
	find_stalls(v, s);
	find_work(v, s);
	find_little(v, s);
	if (v->causes > 0)
		qsort(v->cause, v->causes, sizeof(*v->cause), by_ns);
}

static struct verdict_item *cause_of(struct verdict *v, enum verdict_cause id)
{
	size_t i;

	for (i = 0; i < v->causes; i++)
		if (v->cause[i].id == (int)id)
			return &v->cause[i];
	return NULL;
}

static void put_first(struct verdict *v, struct verdict_item *cause)
{
	struct verdict_item first = *cause;

	memmove(v->cause + 1, v->cause,
		(size_t)(cause - v->cause) * sizeof(first));
	v->cause[0] = first;
}

/* --- the answer --- */

/* Are these few calls what most waiting is for? */
static bool carries(const struct sums *s, double blocked, double calls)
{
	return blocked > 0.5 ||
	       (blocked > 1.0 / 3 && calls < 0.1 * s->calls / s->scale);
}

static double kind_count(const struct sums *s, enum kind kind)
{
	const struct habits *h = habits_of(s);

	return h ? (double)h->of_kind[kind].count : 0;
}

/* What the threads queue behind, when it is something rare and long. */
static const char *carrier(const struct sums *s)
{
	const struct habits *h = habits_of(s);

	if (carries(s, s->blocked[KIND_HUGE], kind_count(s, KIND_HUGE)))
		return "madvise(HUGEPAGE, COLLAPSE)";
	if (carries(s,
		    s->blocked[KIND_MAP_POPULATE] + s->blocked[KIND_POPULATE],
		    kind_count(s, KIND_MAP_POPULATE) +
			    kind_count(s, KIND_POPULATE)))
		return "calls that fill pages (MAP_POPULATE)";
	if (h && carries(s, s->blocked[KIND_COUNT], (double)h->huge.count))
		return "unmaps of very much memory";
	return NULL;
}

static enum verdict_answer answer_of(struct verdict *v, const struct sums *s)
{
	const struct crowd_range *lost = &v->lost;

	if (s->facts->process->threads <= 1 || lost->high < part * s->lived)
		return VERDICT_NO;
	if (!s->seen && lost->likely < much * s->lived)
		return VERDICT_UNKNOWN;
	if (lost->likely < part * s->lived)
		return faults_meet_calls(s) && cause_of(v, CAUSE_STALLS)
			       ? VERDICT_PARTLY
			       : VERDICT_NO;
	if (carrier(s))
		return VERDICT_INDIRECT;
	return lost->likely >= much * s->lived && lost->low >= part * s->lived
		       ? VERDICT_YES
		       : VERDICT_PARTLY;
}

/* The cause to name in place of the lock; it is the first one then. */
static const char *instead(struct verdict *v)
{
	static const char *const names[CAUSE_COUNT] = {
		[CAUSE_ALONE] = "one thread makes all calls",
		[CAUSE_ABOVE] = "the calls take next to no time",
		[CAUSE_HUGE] = "unmaps of very much memory take the time",
		[CAUSE_POPULATE] = "calls that fill pages take the time",
		[CAUSE_THP] = "huge pages and compaction are suspected",
		[CAUSE_SHOOTDOWN] = "TLB shoot-downs take the time",
		[CAUSE_READER] = "an outside reader of /proc/PID/smaps is "
				 "suspected",
		[CAUSE_FAULTS] = "page faults take the time",
		[CAUSE_CPUS] = "there are too few CPUs for its threads",
		[CAUSE_STALLS] = "the calls are held up by something else",
		[CAUSE_WORK] = "the calls' own work takes the time",
	};
	static const enum verdict_cause first[] = {
		CAUSE_ALONE,  CAUSE_READER,    CAUSE_THP,    CAUSE_POPULATE,
		CAUSE_HUGE,   CAUSE_SHOOTDOWN, CAUSE_FAULTS, CAUSE_ABOVE,
		CAUSE_STALLS, CAUSE_CPUS,      CAUSE_WORK,
	};
	struct verdict_item *cause;
	size_t i;

	for (i = 0; i < sizeof(first) / sizeof(*first); i++) {
		cause = cause_of(v, first[i]);
		if (!cause)
			continue;
		put_first(v, cause);
		return names[first[i]];
	}
	return NULL;
}

static char *range(const struct verdict *v)
{
	return say("%s of %s thread time (%s; between %s and %s)",
		   units_time(v->lost.likely), units_time(v->thread_ns),
		   units_percent(of(v->lost.likely, v->thread_ns)),
		   units_percent(of(v->lost.low, v->thread_ns)),
		   units_percent(of(v->lost.high, v->thread_ns)));
}

static char *unknown(const struct verdict *v, const struct sums *s)
{
	const struct digest *d = s->facts->digest;

	return say("cannot tell whether the address-space lock is the problem: "
		   "%s; it costs at most %s (%s of the threads' time)",
		   d && d->crowd->calls > 0
			   ? "only some of the calls are in the log (--events "
			     "all shows who was in the way)"
			   : "no single calls are in the log (--events all)",
		   units_time(v->lost.high),
		   units_percent(of(v->lost.high, v->thread_ns)));
}

static char *headline(struct verdict *v, const struct sums *s)
{
	const char *other = v->answer == VERDICT_NO ? instead(v) : NULL;
	char *cost = range(v), *out;

	switch (v->answer) {
	case VERDICT_YES:
		out = say("yes, the address-space lock is a problem: threads "
			  "wait for it for %s",
			  cost);
		break;
	case VERDICT_INDIRECT:
		out = say("threads wait for the address-space lock for %s, but "
			  "because of %s that hold it long",
			  cost, carrier(s));
		break;
	case VERDICT_PARTLY:
		if (v->lost.likely < part * s->lived) {
			out = say(
				"the address-space lock is probably part of "
				"the problem: page faults and calls seem to "
				"wait for each other, for at most %s of the "
				"threads' time",
				units_percent(of(v->lost.high, v->thread_ns)));
			break;
		}
		out = say("the address-space lock is part of the problem: "
			  "threads wait for it for %s",
			  cost);
		break;
	case VERDICT_NO:
		out = say("no, the address-space lock is not the problem%s%s",
			  other ? ": " : "", other ? other : "");
		break;
	default:
		out = unknown(v, s);
	}
	free(cost);
	return out;
}

/* --- remedies --- */

static void add_remedy(struct verdict *v, enum verdict_remedy id, double ns,
		       char *text)
{
	v->remedy[v->remedies++] = (struct verdict_item){id, ns, text};
}

/* glibc's threshold has a limit. */
static uint64_t threshold_for(double bytes)
{
	uint64_t threshold = 128 * 1024;

	while ((double)threshold < 2 * bytes && threshold < 32u << 20)
		threshold *= 2;
	return threshold;
}

static void try_reuse(struct verdict *v, const struct sums *s)
{
	const struct habits *h = habits_of(s);
	double malloc_ns = scaled(s, &h->malloc_pairs);
	double own = scaled(s, &h->repeated) - malloc_ns;
	double bytes = of(h->malloc_pairs.bytes, (double)h->malloc_pairs.count);
	unsigned long long threshold = threshold_for(bytes);

	if (matters(s, malloc_ns))
		add_remedy(
			v, REMEDY_MALLOC, malloc_ns,
			say("let malloc keep the memory: libc mapped and "
			    "unmapped %s blocks of %s on average for malloc "
			    "and free; GLIBC_TUNABLES=glibc.malloc.mmap_"
			    "threshold=%llu:glibc.malloc.trim_threshold=%llu",
			    units_count(h->malloc_pairs.count),
			    units_bytes(bytes), threshold, 4 * threshold));
	if (matters(s, own))
		add_remedy(v, REMEDY_REUSE, own,
			   say("keep mappings and use them again: %s times a "
			       "thread mapped memory of a size that it had "
			       "mapped and unmapped before",
			       units_count(h->repeated.count)));
	if (matters(s, scaled(s, &h->crossed)) &&
	    scaled(s, &h->crossed) > malloc_ns)
		add_remedy(v, REMEDY_REUSE, scaled(s, &h->crossed),
			   say("keep a larger pool of mappings: %s mappings "
			       "of one thread were unmapped by another",
			       units_count(h->crossed.count)));
}

static void try_decay(struct verdict *v, const struct sums *s)
{
	const struct habits *h = habits_of(s);
	double ns = scaled(s, &h->zaps_again);

	/* A thread that ends gives its stack back. */
	if (!matters(s, ns) ||
	    h->of_kind[KIND_MAP_STACK].count > h->zaps.count / 4)
		return;
	add_remedy(v, REMEDY_DECAY, ns,
		   say("give memory back later: %s of the madvise(DONTNEED) "
		       "calls gave back a range that had been used again since "
		       "the last time; a decay time of the allocator "
		       "(jemalloc: dirty_decay_ms) or a higher trim threshold "
		       "(glibc: MALLOC_TRIM_THRESHOLD_) avoids them",
		       units_percent(of((double)h->zaps_again.count,
					(double)h->zaps.count))));
}

static void try_stacks(struct verdict *v, const struct sums *s)
{
	const struct habits *h = habits_of(s);
	double ns = scaled(s, &h->stacks) + kind_ns(s, KIND_MAP_STACK);

	if (!matters(s, ns))
		return;
	add_remedy(v, REMEDY_STACKS, ns,
		   say("keep threads, or more of their stacks: %s stacks were "
		       "mapped for new threads",
		       units_count(h->of_kind[KIND_MAP_STACK].count)));
}

static void try_batch(struct verdict *v, const struct sums *s)
{
	const struct habits *h = habits_of(s);
	double ns = scaled(s, &h->bursts) * 0.9;
	struct crowd_caller caller = {.op = h->burst.op,
				      .address = h->burst.caller,
				      .first_ns = h->burst.begin_ns};
	char *name;

	if (!matters(s, ns) || h->burst.count < 64)
		return;
	name = name_of(s, &caller);
	add_remedy(v, REMEDY_BATCH, ns,
		   say("one call in place of many: %s calls followed a like "
		       "call of the same thread at once; the longest row: %s "
		       "%s calls, %s in %s, from %s",
		       units_count(h->bursts.count),
		       units_count(h->burst.count), op_name(h->burst.op),
		       units_bytes(h->burst.bytes),
		       units_time((double)h->burst.ns), name));
	free(name);
}

static void try_read(struct verdict *v, const struct sums *s)
{
	const struct habits *h = habits_of(s);
	double ns = scaled(s, &h->small_files);

	if (!matters(s, ns))
		return;
	add_remedy(v, REMEDY_READ, ns,
		   say("read() small files in place of mapping them: %s files "
		       "of %s on average were mapped and unmapped, which took "
		       "longer than a copy would",
		       units_count(h->small_files.count),
		       units_bytes(of(h->small_files.bytes,
				      (double)h->small_files.count))));
}

static void try_for_causes(struct verdict *v)
{
	static const struct {
		enum verdict_cause cause;
		enum verdict_remedy remedy;
		const char *text;
	} rows[] = {
		{CAUSE_HUGE, REMEDY_SPLIT,
		 "unmap very large areas in parts, or in a thread that nobody "
		 "waits for; madvise(DONTNEED) first leaves the lock to others "
		 "meanwhile"},
		{CAUSE_POPULATE, REMEDY_POPULATE,
		 "fill pages where nobody waits: at start-up, in smaller "
		 "steps, or by touching them after the call"},
		{CAUSE_THP, REMEDY_THP,
		 "look at /sys/kernel/mm/transparent_hugepage/defrag and "
		 "khugepaged; advise and collapse less often"},
		{CAUSE_READER, REMEDY_READER,
		 "find who reads this process's /proc/PID/smaps (a monitoring "
		 "agent), and make it read smaps_rollup or statm, or seldom"},
		{CAUSE_FAULTS, REMEDY_PREFAULT,
		 "fill memory before the threads touch it "
		 "(MADV_POPULATE_WRITE), give each thread memory of its own, "
		 "or use huge pages"},
	};
	const struct verdict_item *cause;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		cause = cause_of(v, rows[i].cause);
		if (cause)
			add_remedy(v, rows[i].remedy, cause->ns,
				   say("%s", rows[i].text));
	}
}

static void try_cpus(struct verdict *v, const struct sums *s)
{
	double per_call, ns;

	if (s->facts->process->threads <= 1 ||
	    !has_shootdowns(s, &per_call, &ns))
		return;
	add_remedy(v, REMEDY_CPUS, ns / 2,
		   say("fewer CPUs (taskset), or fewer and larger calls: TLB "
		       "shoot-downs need none where the threads share a CPU"));
}

static bool is_bad(const struct verdict *v)
{
	return v->answer == VERDICT_YES || v->answer == VERDICT_PARTLY;
}

static void try_lock(struct verdict *v, const struct sums *s)
{
	bool none = !strcmp(s->lock, "none") || !*s->lock;

	if (none && is_bad(v))
		add_remedy(v, REMEDY_LOCK, v->lost.likely / 4,
			   say("a lock at the gate: `mmgate run --lock mutex "
			       "-- CMD`, and spin; it helps some programs and "
			       "harms others, so measure both ways"));
	else if (!none && s->gate > much * s->lived)
		add_remedy(v, REMEDY_NO_LOCK, s->gate_shared,
			   say("measure without the lock (--lock none)%s",
			       s->gate_shared > s->gate / 2
				       ? ", or with --calls "
					 "mmap,munmap,mprotect: the kernel "
					 "runs madvise side by side"
				       : ""));
}

static void try_place(struct verdict *v, const struct sums *s)
{
	const struct habits *h = habits_of(s);
	char place[16];

	log_setting(s->facts->process->settings, "place", place, sizeof(place));
	if (!strcmp(place, "thread") || !is_bad(v) ||
	    h->neighbours.count < 100 ||
	    (double)h->neighbours.count <
		    habit * (double)h->of_kind[KIND_MAP].count)
		return;
	add_remedy(v, REMEDY_PLACE, v->lost.likely / 5,
		   say("an address range per thread (--place thread): %s of "
		       "the mappings lie side by side with another thread's, "
		       "where the kernel makes one of them, with one lock for "
		       "their page faults",
		       units_percent(of((double)h->neighbours.count,
					(double)h->of_kind[KIND_MAP].count))));
}

static void try_nothing(struct verdict *v)
{
	if (cause_of(v, CAUSE_ABOVE))
		add_remedy(v, REMEDY_ABOVE, 0,
			   say("nothing here: look above the system calls"));
	else
		add_remedy(v, REMEDY_NOTHING, 0,
			   say("nothing that these figures show"));
}

static void find_remedies(struct verdict *v, const struct sums *s)
{
	if (s->facts->digest) {
		try_reuse(v, s);
		try_decay(v, s);
		try_stacks(v, s);
		try_batch(v, s);
		try_read(v, s);
		try_place(v, s);
	}
	try_for_causes(v);
	try_cpus(v, s);
	try_lock(v, s);
	if (v->remedies == 0)
		try_nothing(v);
	qsort(v->remedy, v->remedies, sizeof(*v->remedy), by_ns);
}

/* --- all --- */

struct verdict verdict_of(const struct verdict_facts *facts)
{
	struct sums s = sums_of(facts);
	struct verdict v = {.thread_ns = s.lived};

	v.lost = s.kernel_waits;
	if (facts->process->threads > 1) {
		/* What waits at the gate for a call that the kernel would run
		 * beside it did not wait for the kernel's lock. */
		v.lost.low += s.gate - s.gate_shared;
		v.lost.likely += s.gate - s.gate_shared / 2;
		v.lost.high += s.gate;
	}
	find_causes(&v, &s);
	v.answer = answer_of(&v, &s);
	v.headline = headline(&v, &s);
	find_remedies(&v, &s);
	return v;
}

void verdict_drop(struct verdict *v)
{
	size_t i;

	for (i = 0; i < v->causes; i++)
		free(v->cause[i].text);
	for (i = 0; i < v->remedies; i++)
		free(v->remedy[i].text);
	free(v->headline);
	memset(v, 0, sizeof(*v));
}

const char *verdict_answer_name(enum verdict_answer answer)
{
	static const char *const names[] = {
		[VERDICT_YES] = "yes",         [VERDICT_INDIRECT] = "indirect",
		[VERDICT_PARTLY] = "partly",   [VERDICT_NO] = "no",
		[VERDICT_UNKNOWN] = "unknown",
	};

	return names[answer];
}

const char *verdict_cause_name(int cause)
{
	static const char *const names[CAUSE_COUNT] = {
		[CAUSE_LOCK] = "lock",
		[CAUSE_GATE] = "gate",
		[CAUSE_ALONE] = "one thread",
		[CAUSE_ABOVE] = "above",
		[CAUSE_HUGE] = "huge unmaps",
		[CAUSE_POPULATE] = "populate",
		[CAUSE_THP] = "huge pages",
		[CAUSE_SHOOTDOWN] = "shoot-downs",
		[CAUSE_READER] = "outside reader",
		[CAUSE_FAULTS] = "page faults",
		[CAUSE_CPUS] = "cpus",
		[CAUSE_STALLS] = "stalls",
		[CAUSE_WORK] = "work",
	};

	return names[cause];
}

const char *verdict_remedy_name(int remedy)
{
	static const char *const names[REMEDY_COUNT] = {
		[REMEDY_REUSE] = "reuse",       [REMEDY_MALLOC] = "malloc",
		[REMEDY_DECAY] = "decay",       [REMEDY_STACKS] = "stacks",
		[REMEDY_BATCH] = "batch",       [REMEDY_READ] = "read",
		[REMEDY_SPLIT] = "split",       [REMEDY_POPULATE] = "populate",
		[REMEDY_THP] = "huge pages",    [REMEDY_READER] = "reader",
		[REMEDY_PREFAULT] = "prefault", [REMEDY_CPUS] = "cpus",
		[REMEDY_LOCK] = "lock",         [REMEDY_NO_LOCK] = "no lock",
		[REMEDY_PLACE] = "place",       [REMEDY_ABOVE] = "above",
		[REMEDY_NOTHING] = "nothing",
	};

	return names[remedy];
}
