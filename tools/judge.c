/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "causes.h"
#include "gaps.h"
#include "judge.h"
#include "remedies.h"
#include "units.h"

static double kind_count(const struct sums *s, enum kind kind)
{
	const struct habits *h = sums_habits(s);

	return h ? (double)h->of_kind[kind].count : 0;
}

/* Are these few calls what most waiting is for? */
static bool carries(const struct sums *s, double blocked, double calls)
{
	return blocked > 0.5 ||
	       (blocked > 1.0 / 3 && calls < 0.1 * s->calls / s->scale);
}

/* What the threads queue behind, when it is something rare and long. */
static const char *carrier(struct verdict *v, const struct sums *s)
{
	const struct habits *h = sums_habits(s);
	const struct verdict_item *reader = causes_get(v, CAUSE_READER);

	if (reader && reader->ns > v->lost.likely / 2)
		return "readers of /proc/PID/smaps";
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

static double gate_waits(const struct sums *s)
{
	return s->gate - s->gate_shared / 2;
}

/* Is most of what was waited for mmgate's doing?  What the kernel's lock would
 * cost in its place is not known. */
static bool is_gates_own(const struct sums *s)
{
	return gate_waits(s) > s->kernel_waits.likely;
}

enum { FEW_CALLS = 100 };

/* May it all be chance: did calls beside others take no longer than alone? */
/* Not even how many others there were. */
static bool has_slow_alone(const struct sums *s)
{
	const struct verdict_facts *f = s->facts;

	return f->windowed && f->digest && f->digest->part == DIGEST_SLOW;
}

static bool is_chance(const struct sums *s, const struct crowd_range *lost)
{
	return s->seen && lost->low <= 0 && !s->shown;
}

static enum verdict_answer answer_of(struct verdict *v, const struct sums *s)
{
	const struct crowd_range *lost = &v->lost;

	if (sums_is_blind(s))
		return VERDICT_UNKNOWN;
	if (s->facts->process->threads <= 1 ||
	    lost->high < SUMS_PART * s->lived)
		return VERDICT_NO;
	if (!s->seen && lost->likely < SUMS_MUCH * s->lived)
		return VERDICT_UNKNOWN;
	if (lost->likely < SUMS_PART * s->lived)
		return sums_faults_meet_calls(s) &&
				       causes_get(v, CAUSE_STALLS) &&
				       !causes_get(v, CAUSE_READER)
			       ? VERDICT_PARTLY
			       : VERDICT_NO;
	if (carrier(v, s))
		return VERDICT_INDIRECT;
	if (is_gates_own(s))
		return VERDICT_UNKNOWN;
	/* One that lost its CPU looks like that. */
	if (lost->low <= 0 && s->calls < FEW_CALLS)
		return VERDICT_NO;
	if (is_chance(s, lost))
		return VERDICT_UNKNOWN;
	return lost->likely >= SUMS_MUCH * s->lived &&
			       lost->low >= SUMS_PART * s->lived
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
		[CAUSE_READER] = "a reader of /proc/PID/smaps is suspected",
		[CAUSE_FAULTS] = "page faults take the time",
		[CAUSE_CPUS] = "there are too few CPUs for its threads",
		[CAUSE_STALLS] = "the calls are held up by something else",
		[CAUSE_WORK] = "the calls' own work takes the time",
	};
	static const enum verdict_cause first[] = {
		CAUSE_READER, CAUSE_ALONE,     CAUSE_THP,    CAUSE_POPULATE,
		CAUSE_HUGE,   CAUSE_SHOOTDOWN, CAUSE_FAULTS, CAUSE_ABOVE,
		CAUSE_STALLS, CAUSE_CPUS,      CAUSE_WORK,
	};
	struct verdict_item *cause;
	size_t i;

	for (i = 0; i < sizeof(first) / sizeof(*first); i++) {
		cause = causes_get(v, first[i]);
		/* A few spikes are worth their line, not the headline. */
		if (!cause || (first[i] == CAUSE_READER &&
			       cause->ns < SUMS_TRACE * v->thread_ns))
			continue;
		causes_put_first(v, cause);
		return names[first[i]];
	}
	return NULL;
}

static char *range(const struct verdict *v)
{
	return sums_say("%s of %s thread time (%s; between %s and %s)",
			units_time(v->lost.likely), units_time(v->thread_ns),
			units_percent(sums_ratio(v->lost.likely, v->thread_ns)),
			units_percent(sums_ratio(v->lost.low, v->thread_ns)),
			units_percent(sums_ratio(v->lost.high, v->thread_ns)));
}

/* Why it does not show who was in the way. */
static char *unseen(const struct sums *s)
{
	const struct digest *d = s->facts->digest;
	char *why = gaps_why(s->facts->process), *out;

	out = sums_say("%s of the calls are in the log%s%s",
		       d && d->crowd->calls > 0 ? "only some" : "none",
		       why ? ": " : "", why ? why : "");
	free(why);
	return out;
}

static char *unknown(const struct verdict *v, const struct sums *s)
{
	char *why, *out;

	if (sums_is_blind(s))
		return sums_say(
			"cannot tell whether the address-space lock is the "
			"problem: %s calls found no room in the log (a larger "
			"--log-total, or disk, keeps them)",
			units_count(s->facts->process->unrecorded));
	if (has_slow_alone(s))
		return sums_say(
			"cannot tell whether the address-space lock is the "
			"problem: of that part of the run only slow calls are "
			"known; they took %s of %s thread time (%s)",
			units_time(s->cost), units_time(v->thread_ns),
			units_percent(sums_ratio(s->cost, v->thread_ns)));
	if (s->seen && is_gates_own(s))
		return sums_say(
			"threads wait at mmgate's own gate (lock=%s) for %s of "
			"%s thread time (%s); whether they would wait for the "
			"address-space lock without it, --lock none shows",
			s->lock, units_time(gate_waits(s)),
			units_time(v->thread_ns),
			units_percent(sums_ratio(gate_waits(s), v->thread_ns)));
	if (is_chance(s, &v->lost))
		return sums_say(
			"cannot tell whether the address-space lock is the "
			"problem: calls took no longer beside other threads' "
			"calls than alone, but for what may be chance; it "
			"costs at most %s (%s of the threads' time)",
			units_time(v->lost.high),
			units_percent(sums_ratio(v->lost.high, v->thread_ns)));
	why = unseen(s);
	out = sums_say(
		"cannot tell whether the address-space lock is the problem: "
		"%s; it costs at most %s (%s of the threads' time)",
		why, units_time(v->lost.high),
		units_percent(sums_ratio(v->lost.high, v->thread_ns)));
	free(why);
	return out;
}

/* What is said of the lock is the first evidence. */
static void put_lock_first(struct verdict *v)
{
	struct verdict_item *lock = causes_get(v, CAUSE_LOCK);
	struct verdict_item *gate = causes_get(v, CAUSE_GATE);

	if (gate && (!lock || gate->ns > lock->ns))
		lock = gate;
	if (lock)
		causes_put_first(v, lock);
}

/* Part of the problem, by what is likely or by what may be. */
static char *partly(const struct verdict *v, const struct sums *s,
		    const char *cost)
{
	if (v->lost.likely < SUMS_PART * s->lived)
		return sums_say(
			"the address-space lock is probably part of the "
			"problem: page faults and calls seem to wait for each "
			"other, for at most %s of the threads' time",
			units_percent(sums_ratio(v->lost.high, v->thread_ns)));
	return sums_say("the address-space lock is part of the problem: "
			"threads wait for it for %s",
			cost);
}

static char *answer_text(struct verdict *v, const struct sums *s)
{
	const char *other = v->answer == VERDICT_NO ? instead(v) : NULL;
	char *cost = range(v), *out;

	if (v->answer != VERDICT_NO)
		put_lock_first(v);
	switch (v->answer) {
	case VERDICT_YES:
		out = sums_say(
			"yes, the address-space lock is a problem: threads "
			"wait for it for %s",
			cost);
		break;
	case VERDICT_INDIRECT:
		out = sums_say(
			"threads wait for the address-space lock for %s, but "
			"because of %s that hold it long",
			cost, carrier(v, s));
		break;
	case VERDICT_PARTLY:
		out = partly(v, s, cost);
		break;
	case VERDICT_NO:
		out = sums_say(
			"no, the address-space lock is not the problem%s%s",
			other ? ": " : "", other ? other : "");
		break;
	default:
		out = unknown(v, s);
	}
	free(cost);
	return out;
}

/* A log may not have all calls: what is told by some alone is told so. */
static char *headline(struct verdict *v, const struct sums *s)
{
	const struct log_process *p = s->facts->process;
	char *answer = answer_text(v, s), *why, *out;
	const struct crowd *c;

	if (!s->seen || sums_is_blind(s) || s->kept > SUMS_WHOLE ||
	    p->threads <= 1)
		return answer;
	c = s->facts->digest->crowd;
	why = gaps_why(p);
	out = sums_say("%s; judged by %s%s of the calls, of %s%s%s", answer,
		       gaps_is_newest(p) ? "the newest " : "",
		       units_percent(s->kept),
		       units_time((double)(c->to_ns - c->from_ns)),
		       why ? ": " : "", why ? why : "");
	free(why);
	free(answer);
	return out;
}

/* --- all --- */

struct verdict judge_process(const struct verdict_facts *facts)
{
	struct sums s = sums_of(facts);
	struct verdict v = {.thread_ns = s.lived};

	v.lost = s.kernel_waits;
	if (facts->process->threads > 1) {
		/* What waits at the gate for a call that the kernel would run
		 * beside it did not wait for the kernel's lock. */
		v.lost.low += s.gate - s.gate_shared;
		v.lost.likely += gate_waits(&s);
		v.lost.high += s.gate;
	}
	if (has_slow_alone(&s))
		v.lost.high = v.thread_ns;
	causes_find(&v, &s);
	v.answer = answer_of(&v, &s);
	v.headline = headline(&v, &s);
	remedies_find(&v, &s);
	return v;
}
