/* SPDX-License-Identifier: MIT */
/*
 * Phases:
 *
 * WATCH   one choice is in force.  Once a second the rate and its share by
 *         group are compared with those at the decision; when they changed
 *         much, or it is time for a glance, -> GLANCE.  Too few calls to
 *         matter: none, and no glance.
 * GLANCE  a few rounds of the choice in force against one other: no lock, or
 *         a mutex for all when there is none.  The other looks better:
 *         -> WHERE.
 * WHERE   rounds of: none, a mutex for all active groups, a mutex for each
 *         alone.  Nothing better than none: -> WATCH under none.
 * WHICH   fresh rounds of: none, a mutex there, spin there.  The better one,
 *         if it is better than none here too.  -> WATCH
 *
 * What looks better, but not surely, gets more rounds beside none alone: under
 * a lock the rate may differ from window to window by half.
 *
 * A window that was too short of calls is prolonged, one that nobody ended in
 * time (the program paused) is begun anew.  The second time the search is given
 * up: bursts shorter than a window would stay under what is tried for ever.
 */
#include "auto.h"

#include "poison.h"

/* A test makes it so many times as fast, to see many decisions. */
#ifndef AUTO_HASTE
#define AUTO_HASTE 1
#endif

#define MS (UINT64_C(1000000) / AUTO_HASTE)

enum {
	WINDOW_MS = 25,   /* long beside the scheduler's time slices */
	SETTLE_MS = 5,    /* those of the old choice are still inside */
	LONGEST_MS = 200, /* of a window short of calls */
	WATCH_MS = 1000,
	FIRST_GLANCE_MS = 4000,
	LAST_GLANCE_MS = 32000,
	TORN_AWAY_MS = 5000,
	FIRST_LOOK_MS = 100, /* a start is not what the program is like */

	ROUNDS = 6, /* of a search, and as many more while it is open */
	MOST_ROUNDS = 24,
	GLANCE_ROUNDS = 3,
	MOST_CHOICES = 2 + AUTO_GROUPS,
	MOST_PAUSES = 2,

	FEW_CALLS = 100,     /* in a window: too few to compare */
	FEW_A_SECOND = 4000, /* no lock can matter */
	ACTIVE_PERCENT = 5,
	STILL_PERCENT = 3,   /* of one that was active */
	CHANGE_PERCENT = 50, /* of the rate: another load */

	MIN_GAIN = 50,  /* per mille, to take a lock or to change it */
	KEEP_GAIN = 30, /* and once more, in fresh rounds */
	MOST_GAIN = 10000,

	/* What a gain must be in standard errors of its mean, tenths. */
	SURE = 25,
	LIKELY = 15, /* in fresh rounds */
};

enum outcome { NO, YES, OPEN };

enum phase { WATCH, GLANCE, WHERE, WHICH };

struct choice {
	uint8_t kind[AUTO_GROUPS]; /* enum lock_id */
};

struct auto_counts auto_counts[AUTO_LINES];

static struct auto_state {
	uint32_t groups; /* decided on */
	enum phase phase;
	uint64_t until, began; /* of the window, or of the watch, ns */
	bool settling;
	uint64_t at_begin[AUTO_GROUPS];
	unsigned pauses; /* since a window was ended */
	/* The search. */
	struct choice choices[MOST_CHOICES];
	unsigned choice_count, rounds, round, turn;
	uint32_t rate[MOST_CHOICES][MOST_ROUNDS]; /* calls a second */
	/* What is in force, and what was seen under it. */
	struct choice decision;
	uint64_t decided_at, decided_rate;
	uint32_t decided_active;
	uint64_t next_glance; /* 0: there was no search yet */
	uint32_t glance_ms;
	unsigned glances;
	/* A load that changes all the time, and not what is best for it, gets
	 * its glances after ever longer times. */
	uint32_t change_ms;
	bool by_change; /* the search was begun for a change */
} state;

static struct choice in_force;

/* When the one who looks began, ns; 0: nobody.  One that never ends was torn
 * away, and another takes over. */
static _Atomic uint64_t busy;

/* To begin anew with these groups, asked for while somebody looked. */
#define ANEW UINT32_C(0x80000000)
static _Atomic uint32_t wanted;

enum lock_id auto_kind(enum auto_group group)
{
	return (enum lock_id)in_force.kind[group];
}

bool auto_decided(void)
{
	return state.phase == WATCH;
}

unsigned auto_patience(void)
{
	return state.phase == WATCH ? 64 : 8;
}

static void count_calls(uint64_t calls[AUTO_GROUPS])
{
	for (int g = 0; g < AUTO_GROUPS; g++) {
		calls[g] = 0;
		for (int i = 0; i < AUTO_LINES; i++)
			calls[g] += atomic_load_explicit(
				&auto_counts[i].calls[g], memory_order_relaxed);
	}
}

static bool is_active(int group, uint64_t calls, uint64_t all)
{
	bool was = state.decided_active >> group & 1;

	return calls * 100 > all * (was ? STILL_PERCENT : ACTIVE_PERCENT);
}

/* Calls since the window began; `active`: groups that matter, a bit each. */
static uint64_t calls_since(uint32_t *active)
{
	uint64_t calls[AUTO_GROUPS], sum = 0;

	count_calls(calls);
	*active = 0;
	for (int g = 0; g < AUTO_GROUPS; g++)
		if (state.groups >> g & 1)
			sum += calls[g] - state.at_begin[g];
	for (int g = 0; g < AUTO_GROUPS; g++)
		if (state.groups >> g & 1 &&
		    is_active(g, calls[g] - state.at_begin[g], sum))
			*active |= 1u << g;
	return sum;
}

static uint64_t a_second(uint64_t calls, uint64_t ns)
{
	return ns != 0 ? calls * 1000000000 / ns : 0;
}

static bool is_same(const struct choice *a, const struct choice *b)
{
	for (int g = 0; g < AUTO_GROUPS; g++)
		if (a->kind[g] != b->kind[g])
			return false;
	return true;
}

/* A lock for some groups. */
static struct choice choice_of(enum lock_id kind, uint32_t groups)
{
	struct choice c = {{LOCK_none}};

	for (int g = 0; g < AUTO_GROUPS; g++)
		if (groups >> g & 1)
			c.kind[g] = (uint8_t)kind;
	return c;
}

static uint32_t groups_of(const struct choice *c)
{
	uint32_t groups = 0;

	for (int g = 0; g < AUTO_GROUPS; g++)
		if (c->kind[g] != LOCK_none)
			groups |= 1u << g;
	return groups;
}

/* --- windows --- */

static void begin_count(uint64_t now, uint64_t ms)
{
	state.began = now;
	state.until = now + ms * MS;
	count_calls(state.at_begin);
}

/* Whose turn it is: the order changes from round to round. */
static unsigned turn(void)
{
	unsigned choices = state.choice_count != 0 ? state.choice_count : 1;

	return (state.turn + state.round) % choices;
}

static void begin_window(uint64_t now)
{
	in_force = state.choices[turn()];
	state.settling = true;
	begin_count(now, SETTLE_MS);
}

static void watch(uint64_t now)
{
	state.phase = WATCH;
	in_force = state.decision;
	state.decided_rate = 0; /* seen in the first second */
	begin_count(now, WATCH_MS);
}

static void begin_search(enum phase phase, unsigned rounds, uint64_t now)
{
	state.phase = phase;
	state.rounds = rounds;
	state.round = state.turn = 0;
	state.pauses = 0;
	begin_window(now);
}

/* --- what the rounds say --- */

/* One that was thought to be torn away may come back late. */
static unsigned rounds_done(void)
{
	unsigned rounds = __atomic_load_n(&state.rounds, __ATOMIC_RELAXED);

	return rounds < MOST_ROUNDS ? rounds : MOST_ROUNDS;
}

static uint64_t mean_rate(unsigned choice, unsigned rounds)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < rounds; i++)
		sum += state.rate[choice][i];
	return rounds != 0 && sum >= rounds ? sum / rounds : 1;
}

/* How much more choice `a` did than `b` in a round, per mille of what `b` did
 * in the mean. */
static int64_t gain_in(unsigned round, unsigned a, unsigned b, uint64_t mean)
{
	int64_t more = (int64_t)state.rate[a][round] - state.rate[b][round];
	int64_t gain = more * 1000 / (int64_t)mean;

	if (gain > MOST_GAIN)
		return MOST_GAIN;
	return gain < -MOST_GAIN ? -MOST_GAIN : gain;
}

/* Is `a` better than `b` by `least` per mille in the mean of the rounds, and
 * that mean `sure` tenths of its standard errors or more?  OPEN: only the
 * first.  Rounds are pairs: what changes with time is the same for both. */
static enum outcome is_better(unsigned a, unsigned b, int64_t least,
			      int64_t sure)
{
	unsigned n = rounds_done();
	uint64_t mean = mean_rate(b, n);
	int64_t sum = 0, squares = 0;

	for (unsigned i = 0; i < n; i++) {
		int64_t gain = gain_in(i, a, b, mean);

		sum += gain;
		squares += gain * gain;
	}
	if (n < 2 || sum < least * n)
		return NO;
	/* The mean over its error, squared: sum^2 (n - 1) / (...) */
	return sum * sum * (n - 1) * 100 >=
			       sure * sure * (n * squares - sum * sum)
		       ? YES
		       : OPEN;
}

/* The best choice but the first, which is none. */
static unsigned best_choice(void)
{
	unsigned n = rounds_done(), best = 1;

	for (unsigned i = 2; i < state.choice_count; i++)
		if (mean_rate(i, n) > mean_rate(best, n))
			best = i;
	return best;
}

/* --- from phase to phase --- */

static void search_where(uint32_t active, uint64_t now)
{
	unsigned n = 0;

	state.choices[n++] = choice_of(LOCK_none, 0);
	state.choices[n++] = choice_of(LOCK_mutex, active);
	for (unsigned g = 0; g < AUTO_GROUPS; g++)
		if (active >> g & 1 && active != 1u << g)
			state.choices[n++] = choice_of(LOCK_mutex, 1u << g);
	state.choice_count = n;
	begin_search(WHERE, ROUNDS, now);
}

static void search_which(uint32_t groups, uint64_t now)
{
	state.choices[0] = choice_of(LOCK_none, 0);
	state.choices[1] = choice_of(LOCK_mutex, groups);
	state.choices[2] = choice_of(LOCK_spin, groups);
	state.choice_count = 3;
	begin_search(WHICH, ROUNDS, now);
}

static uint32_t twice(uint32_t ms)
{
	return 2 * ms < LAST_GLANCE_MS ? 2 * ms : LAST_GLANCE_MS;
}

/* The glances of a decision that stays become rare. */
static void decide(const struct choice *c, uint64_t now)
{
	if (!is_same(c, &state.decision)) {
		state.glance_ms = FIRST_GLANCE_MS;
		state.change_ms = 0;
	} else {
		state.glance_ms = twice(state.glance_ms);
		state.change_ms = !state.by_change ? state.change_ms / 2
				  : state.change_ms == 0
					  ? WATCH_MS
					  : twice(state.change_ms);
	}
	state.by_change = false;
	state.decided_at = now;
	state.next_glance = now + state.glance_ms * MS;
	state.decision = *c;
	watch(now);
}

/* More rounds of the first choice and this one.  False: there were enough. */
static bool go_on(unsigned choice, unsigned more, uint64_t now)
{
	unsigned rounds = rounds_done();

	if (rounds + more > MOST_ROUNDS)
		return false;
	state.choices[1] = state.choices[choice];
	for (unsigned i = 0; i < rounds; i++)
		state.rate[1][i] = state.rate[choice][i];
	state.choice_count = 2;
	state.rounds = rounds + more;
	begin_window(now);
	return true;
}

static void end_where(uint64_t now)
{
	unsigned best = best_choice();
	enum outcome better = is_better(best, 0, MIN_GAIN, SURE);

	if (better == OPEN && go_on(best, ROUNDS, now))
		return;
	if (better == OPEN) /* fresh rounds are to say more */
		better = is_better(best, 0, MIN_GAIN, LIKELY);
	if (better == YES)
		search_which(groups_of(&state.choices[best]), now);
	else
		decide(&state.choices[0], now);
}

static void end_which(uint64_t now)
{
	bool spin = state.choice_count > 2 &&
		    is_better(2, 1, MIN_GAIN, LIKELY) == YES;
	unsigned best = spin ? 2 : 1;
	enum outcome better = is_better(best, 0, KEEP_GAIN, LIKELY);

	if (better == OPEN && go_on(best, ROUNDS, now))
		return;
	decide(&state.choices[better == YES ? best : 0], now);
}

/* What to try beside none: all active groups at first, then each in turn. */
static uint32_t next_groups(uint32_t active)
{
	unsigned n = state.glances++ % (AUTO_GROUPS + 1);

	return n > 0 && active >> (n - 1) & 1 ? 1u << (n - 1) : active;
}

static void glance(uint32_t active, uint64_t now)
{
	state.choices[0] = state.decision;
	state.choices[1] = groups_of(&state.decision) != 0
				   ? choice_of(LOCK_none, 0)
				   : choice_of(LOCK_mutex, next_groups(active));
	state.choice_count = 2;
	begin_search(GLANCE, GLANCE_ROUNDS, now);
}

static void end_glance(uint64_t now)
{
	uint32_t active = groups_of(&state.choices[0]) |
			  groups_of(&state.choices[1]) | state.decided_active;
	enum outcome better = is_better(1, 0, MIN_GAIN, LIKELY);

	if (better == OPEN && rounds_done() == GLANCE_ROUNDS &&
	    go_on(1, GLANCE_ROUNDS, now))
		return;
	if (better == YES)
		search_where(active, now);
	else
		decide(&state.choices[0], now);
}

static void end_search(uint64_t now)
{
	switch (state.phase) {
	case GLANCE:
		end_glance(now);
		break;
	case WHERE:
		end_where(now);
		break;
	default:
		end_which(now);
		break;
	}
}

static void end_window(uint64_t now)
{
	uint32_t active;
	uint64_t ns = now - state.began, calls = calls_since(&active);
	unsigned round = __atomic_load_n(&state.round, __ATOMIC_RELAXED);

	if (state.settling) {
		state.settling = false;
		begin_count(now, WINDOW_MS);
		return;
	}
	if (ns > 2 * LONGEST_MS * MS) { /* it paused */
		if (++state.pauses < MOST_PAUSES)
			begin_window(now);
		else
			decide(&state.decision, now);
		return;
	}
	if (calls < FEW_CALLS && ns < LONGEST_MS * MS) {
		state.until = now + WINDOW_MS * MS;
		return;
	}
	if (round >= rounds_done()) { /* two were in here at a time */
		watch(now);
		return;
	}
	state.pauses = 0;
	state.rate[turn()][round] = (uint32_t)a_second(calls, ns);
	if (++state.turn >= state.choice_count) {
		state.turn = 0;
		state.round++;
	}
	if (state.round >= state.rounds)
		end_search(now);
	else
		begin_window(now);
}

static bool has_changed(uint64_t rate, uint32_t active)
{
	uint64_t before = state.decided_rate;

	if (before == 0)
		return false;
	return active != state.decided_active ||
	       rate * 100 > before * (100 + CHANGE_PERCENT) ||
	       rate * (100 + CHANGE_PERCENT) < before * 100;
}

/* As soon as the last ones for a change leave it worth while. */
static void glance_soon(uint64_t now)
{
	uint64_t soon = state.decided_at + state.change_ms * MS;

	if (soon >= state.next_glance)
		return;
	state.next_glance = soon > now ? soon : now;
	state.glance_ms = FIRST_GLANCE_MS;
	state.by_change = true;
}

static void end_watch(uint64_t now)
{
	uint32_t active;
	uint64_t calls = calls_since(&active);
	uint64_t rate = a_second(calls, now - state.began);

	if (rate < FEW_A_SECOND) {
		/* A lock that is not needed can only be in the way. */
		state.decision = choice_of(LOCK_none, 0);
		watch(now);
		return;
	}
	if (state.next_glance == 0) { /* the first time that it matters */
		state.decided_active = active;
		search_where(active, now);
		return;
	}
	if (has_changed(rate, active))
		glance_soon(now);
	state.decided_rate = rate;
	state.decided_active = active;
	if (now >= state.next_glance)
		glance(active, now);
	else
		begin_count(now, WATCH_MS);
}

static bool is_due(uint64_t now)
{
	return now >= __atomic_load_n(&state.until, __ATOMIC_RELAXED);
}

static bool get_busy(uint64_t now)
{
	uint64_t since = atomic_load(&busy);

	if (since != 0 && now < since + TORN_AWAY_MS * MS)
		return false;
	return atomic_compare_exchange_strong(&busy, &since, now);
}

static void begin(uint32_t groups, uint64_t now)
{
	state = (struct auto_state){0};
	in_force = choice_of(LOCK_none, 0);
	state.groups = groups;
	state.glance_ms = FIRST_GLANCE_MS;
	state.decision = in_force;
	begin_count(now, FIRST_LOOK_MS);
}

void auto_begin(uint32_t groups, uint64_t now, bool alone)
{
	if (alone)
		auto_done();
	if (get_busy(now)) {
		begin(groups, now);
		auto_done();
	} else {
		atomic_store(&wanted, groups | ANEW);
	}
}

bool auto_look(uint64_t now)
{
	struct choice before = in_force;

	if (!is_due(now) || !get_busy(now))
		return false;
	if (atomic_load(&wanted) != 0)
		begin(atomic_exchange(&wanted, 0) & ~ANEW, now);
	else if (is_due(now)) {
		if (state.phase == WATCH)
			end_watch(now);
		else
			end_window(now);
	}
	if (!is_same(&before, &in_force))
		return true;
	auto_done();
	return false;
}

void auto_done(void)
{
	atomic_store(&busy, 0);
}
