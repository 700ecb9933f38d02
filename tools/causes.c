/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "causes.h"
#include "units.h"

static void add_cause(struct verdict *v, enum verdict_cause id, double ns,
		      char *text)
{
	v->cause[v->causes++] = (struct verdict_item){id, ns, text};
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
		return sums_say("%s", "");
	name = sums_name(s, worst);
	out = sums_say(
		"; in the way was most often %s from %s (%s of this time)",
		op_name(worst->op), name,
		units_percent(sums_ratio(worst->blocked_ns, s->blocked_all)));
	free(name);
	return out;
}

static double average_ns(const struct crowd_sum *sum)
{
	return sums_ratio(sum->sum_ns, (double)sum->count);
}

static const char *average(const struct crowd_sum *sum)
{
	return units_time(average_ns(sum));
}

static void add_sum(struct crowd_sum *to, const struct crowd_sum *sum)
{
	to->count += sum->count;
	to->sum_ns += sum->sum_ns;
}

/* The kind of call that waited most, and its two prices. */
static unsigned take_prices(const struct crowd *c, struct crowd_sum *alone,
			    struct crowd_sum *crowded)
{
	unsigned i, worst = 0;

	for (i = 1; i < KIND_COUNT; i++)
		if (crowd_waits(c, i).likely > crowd_waits(c, worst).likely)
			worst = i;
	for (i = 0; i < SIZE_CLASSES; i++) {
		add_sum(alone, &c->of[worst][i].alone);
		add_sum(crowded, &c->of[worst][i].crowded);
	}
	return worst;
}

enum { FEW_ALONE = 30 };

/* Where the waiting was, and for whom. */
static char *evidence(const struct sums *s)
{
	const struct crowd *c = s->facts->digest->crowd;
	struct crowd_sum alone = {0}, crowded = {0};
	const char *kind = kind_name(take_prices(c, &alone, &crowded));
	char *culprit, *out;

	if (s->sleeps > s->kernel_waits.likely / 2)
		return sums_say(
			"%s of it are maps of memory that slept with no other "
			"call in the kernel, so page faults, fork() or "
			"somebody who reads /proc/PID/smaps held it",
			units_percent(
				sums_ratio(s->sleeps, s->kernel_waits.likely)));
	culprit = culprits(s);
	/* What a few took is chance, and no price. */
	out = alone.count < FEW_ALONE
		      ? sums_say("%s took %s on average, and all but %s of %s "
				 "calls found another thread's call in the "
				 "kernel%s",
				 kind, average(&crowded),
				 units_count(alone.count),
				 units_count(alone.count + crowded.count),
				 culprit)
		      : sums_say("%s took %s on average when another thread's "
				 "call was in the kernel (%s calls), %s when "
				 "none was (%s calls)%s",
				 kind, average(&crowded),
				 units_count(crowded.count), average(&alone),
				 units_count(alone.count), culprit);
	free(culprit);
	return out;
}

static void find_lock(struct verdict *v, const struct sums *s)
{
	const struct crowd_range *w = &s->kernel_waits;
	char *why;

	if (!s->seen || w->likely < SUMS_TRACE * s->lived)
		return;
	why = evidence(s);
	add_cause(v, CAUSE_LOCK, w->likely,
		  sums_say("waiting in the kernel for the lock: %s, "
			   "between %s and %s: %s",
			   sums_time(s, w->likely), units_time(w->low),
			   units_time(w->high), why));
	free(why);
}

/* Who held the gate's lock while others waited. */
static char *holders(const struct sums *s)
{
	const struct crowd *c =
		s->facts->digest ? s->facts->digest->crowd : NULL;
	double sum, most = 0;
	unsigned w, h, worst = 0;
	char *name, *out;

	for (h = 0; c && h < CROWD_CALLERS; h++) {
		for (sum = 0, w = 0; w < CROWD_CALLERS; w++)
			sum += c->held[w][h];
		if (h >= c->callers || sum <= most)
			continue;
		worst = h;
		most = sum;
	}
	if (most <= 0)
		return sums_say("%s", "");
	name = sums_name(s, &c->caller[worst]);
	if (s->facts->digest->part == DIGEST_ALL)
		/* Of all the waiting: for the rest the holder is not known, or
		 * was none, as who is woken takes a while to run. */
		out = sums_say(
			"; meanwhile most often %s from %s held it (%s of the "
			"time)",
			op_name(c->caller[worst].op), name,
			units_percent(
				fmin(sums_ratio(most * s->scale, s->gate), 1)));
	else
		out = sums_say(
			"; of the recorded calls most often %s from %s held it",
			op_name(c->caller[worst].op), name);
	free(name);
	return out;
}

static void find_gate(struct verdict *v, const struct sums *s)
{
	char *who;

	if (s->gate < SUMS_TRACE * s->lived)
		return;
	who = holders(s);
	add_cause(
		v, CAUSE_GATE, s->gate,
		sums_say(
			"waiting at the gate (lock=%s): %s%s%s", s->lock,
			sums_time(s, s->gate),
			s->gate_shared > s->gate / 2
				? ", mostly for madvise, which the kernel runs "
				  "side by side when nobody holds it up"
				: "",
			who));
	free(who);
}

static void find_alone(struct verdict *v, const struct sums *s)
{
	if (s->facts->process->threads > 1 || s->cost <= 0 || sums_is_blind(s))
		return;
	add_cause(
		v, CAUSE_ALONE, s->kernel,
		sums_say("one thread made all %s calls, so no other call held "
			 "the lock (a page fault, fork() or a reader of "
			 "/proc/PID/smaps may have); what they cost is the "
			 "kernel's work for the most part: %s",
			 sums_count(s->calls), sums_time(s, s->kernel)));
}

static void find_above(struct verdict *v, const struct sums *s)
{
	if (s->cost >= SUMS_PART * s->lived || s->lived <= 0 ||
	    sums_is_blind(s))
		return;
	add_cause(v, CAUSE_ABOVE, s->lived - s->cost,
		  sums_say("all %s calls together took %s: whatever is slow is "
			   "not "
			   "in them; look above the system calls",
			   sums_count(s->calls), sums_time(s, s->cost)));
}

static void find_huge(struct verdict *v, const struct sums *s)
{
	const struct habits *h = sums_habits(s);
	double ns = h ? sums_scaled(s, &h->huge) : 0;

	/* What is reserved and hardly used is long by chance only. */
	if (!sums_matters(s, ns) || h->huge.count < h->large.count / 2)
		return;
	add_cause(
		v, CAUSE_HUGE, ns,
		sums_say("%s unmaps of %s and more, %s in all: %s; the lock is "
			 "held for as long as one takes",
			 units_count(h->huge.count),
			 units_bytes((double)HABITS_HUGE),
			 units_bytes(h->huge.bytes), sums_time(s, ns)));
}

static void find_populate(struct verdict *v, const struct sums *s)
{
	double ns = sums_kind_ns(s, KIND_MAP_POPULATE) +
		    sums_kind_ns(s, KIND_POPULATE);
	const struct habits *h = sums_habits(s);

	if (!sums_matters(s, ns))
		return;
	add_cause(
		v, CAUSE_POPULATE, ns,
		sums_say("%s calls that fill pages before they return "
			 "(MAP_POPULATE, MAP_LOCKED, MADV_POPULATE): %s; they "
			 "hold the lock meanwhile",
			 units_count(h->of_kind[KIND_MAP_POPULATE].count +
				     h->of_kind[KIND_POPULATE].count),
			 sums_time(s, ns)));
}

static void find_thp(struct verdict *v, const struct sums *s)
{
	double ns = sums_kind_ns(s, KIND_HUGE);
	const struct habits *h = sums_habits(s);

	if (!sums_matters(s, ns))
		return;
	add_cause(v, CAUSE_THP, ns,
		  sums_say("%s calls of madvise(HUGEPAGE, COLLAPSE): %s; huge "
			   "pages "
			   "and compaction are suspected, not the lock itself",
			   units_count(h->of_kind[KIND_HUGE].count),
			   sums_time(s, ns)));
}

static void find_shootdown(struct verdict *v, const struct sums *s)
{
	double per_call = 0, ns = 0;

	if (!sums_shootdowns(s, &per_call, &ns))
		return;
	add_cause(
		v, CAUSE_SHOOTDOWN, ns,
		sums_say(
			"TLB shoot-downs: the machine counted %s of these "
			"interrupts, %.1f for each munmap, mprotect and "
			"madvise(DONTNEED); such a call waits for the other "
			"CPUs "
			"that run the program's threads, whoever has the lock; "
			"up to %s",
			units_count(s->facts->info->tlb_shootdowns), per_call,
			sums_time(s, ns)));
}

static void find_reader(struct verdict *v, const struct sums *s)
{
	const struct habits *h = sums_habits(s);
	double period;
	size_t count;

	period = h ? habits_period_ns(h, &count) : 0;
	if (period <= 0)
		return;
	add_cause(
		v, CAUSE_READER, sums_scaled(s, &h->slow),
		sums_say(
			"%zu times a call was held up with no other thread's "
			"call in sight, %s after each other: somebody, another "
			"process or the program itself, seems to read "
			"/proc/PID/smaps or maps at this interval; these "
			"took %s",
			count, units_time(period),
			sums_time(s, sums_scaled(s, &h->slow))));
}

/* System time that is in no call: page faults, as far as there are so many; the
 * rest is other system calls. */
static double faults_ns(const struct sums *s, uint64_t *faults)
{
	const double fault_ns = 20000; /* one that waits for others, too */
	const struct record_dir *info = s->facts->info;

	*faults = info ? info->minor_faults + info->major_faults : 0;
	return *faults < 1000 ? 0
			      : fmin((double)info->system_ns - s->kernel,
				     fault_ns * (double)*faults);
}

static void find_faults(struct verdict *v, const struct sums *s)
{
	uint64_t faults;
	double ns = faults_ns(s, &faults);

	if (ns < 0.1 * s->lived || ns < 2 * s->kernel)
		return;
	add_cause(v, CAUSE_FAULTS, ns,
		  sums_say("page faults: %s of system time outside of these "
			   "calls, for %s page faults (%s each); first "
			   "touches of "
			   "memory and the locks of page tables, which no gate "
			   "can "
			   "see",
			   units_time(ns), units_count(faults),
			   units_time(sums_ratio(ns, (double)faults))));
}

static void find_cpus(struct verdict *v, const struct sums *s)
{
	double ns = s->facts->queue_ns;

	if (ns < 0.2 * s->lived)
		return;
	/* Of all threads, those without a call too. */
	add_cause(v, CAUSE_CPUS, fmin(ns, s->lived),
		  sums_say("too few CPUs: threads that could run had none for "
			   "%s in "
			   "all%s",
			   units_time(ns),
			   s->cost > SUMS_PART * s->lived
				   ? "; some of that is in the calls' times"
				   : ""));
}

static void find_stalls(struct verdict *v, const struct sums *s)
{
	double ns = s->stalls - s->queue;
	const struct record_dir *info = s->facts->info;

	if (ns < SUMS_PART * s->lived || s->facts->process->threads <= 1)
		return;
	if (sums_faults_meet_calls(s))
		add_cause(
			v, CAUSE_STALLS, ns,
			sums_say("calls were held up by no other call, for %s: "
				 "probably by page faults of other threads or "
				 "by fork(), which take the lock as well (%s "
				 "faults, %s voluntary context switches, %s "
				 "calls)",
				 sums_time(s, ns),
				 units_count(info->minor_faults +
					     info->major_faults),
				 units_count(info->voluntary_switches),
				 sums_count(s->calls)));
	else
		add_cause(
			v, CAUSE_STALLS, ns,
			sums_say("calls were held up by no other call, for %s: "
				 "by fork(), by somebody who reads "
				 "/proc/PID/smaps, by interrupts, by reclaim, "
				 "or for want of a CPU",
				 sums_time(s, ns)));
}

static void find_work(struct verdict *v, const struct sums *s)
{
	double ns = s->kernel - s->kernel_waits.likely - s->stalls;

	if (!s->seen || s->facts->process->threads <= 1 ||
	    ns < SUMS_PART * s->lived || ns < s->cost / 4)
		return;
	add_cause(v, CAUSE_WORK, ns,
		  sums_say("the calls' own work in the kernel: %s",
			   sums_time(s, ns)));
}

/* Something must be said, if it is that there is little to say. */
static void find_little(struct verdict *v, const struct sums *s)
{
	if (v->causes > 0 || s->cost <= 0 || sums_is_blind(s))
		return;
	add_cause(v, CAUSE_WORK, s->cost,
		  sums_say("all %s calls together took %s; none of what this "
			   "verdict knows stands out in them",
			   sums_count(s->calls), sums_time(s, s->cost)));
}

void causes_find(struct verdict *v, const struct sums *s)
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
		qsort(v->cause, v->causes, sizeof(*v->cause), verdict_by_ns);
}

struct verdict_item *causes_get(struct verdict *v, enum verdict_cause id)
{
	size_t i;

	for (i = 0; i < v->causes; i++)
		if (v->cause[i].id == (int)id)
			return &v->cause[i];
	return NULL;
}

void causes_put_first(struct verdict *v, struct verdict_item *cause)
{
	struct verdict_item first = *cause;

	memmove(v->cause + 1, v->cause,
		(size_t)(cause - v->cause) * sizeof(first));
	v->cause[0] = first;
}
