/* SPDX-License-Identifier: MIT */
#include "tune.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "clocks.h"
#include "die.h"
#include "units.h"

enum {
	LEAST_TRIED = 3, /* candidates; fewer are no search */
	LEAST_STAGE = 2, /* rounds of a stage */
	FIRST_STAGE = 4, /* at most; the next ones twice as many each */
	MOST_STAGE = 20,
	LEAST_FRESH = 8,
	FEW_ROUNDS = 5, /* enough for an interval that means something */
	MOST_FRESH = 60,
	QUICK = 5, /* rounds where there is nothing to look for */
	LOG_RUNS = 1,
};

static const double search_part = 0.5;  /* of the time that is left */
static const double combine_part = 0.3; /* of what is left then */
static const double much_slower = 0.5;  /* out after one look */
static const double better = 1.02;      /* worth a second setting */
static const double slack = 1.1;        /* how exactly a budget is kept */
static const double quick_s = 10;       /* for what no lock can help */

/* It stands while we are stopped. */
static double now_s(const struct tune *tune)
{
	return (double)clocks_now() / 1e9 - tune->target->measure.paused_s;
}

static double spent(const struct tune *t)
{
	return now_s(t) - t->started_s;
}

static double left(const struct tune *t)
{
	return t->budget_s - spent(t);
}

/* All that a run takes, on average; those with a log are not like others. */
static double run_s(const struct tune *t)
{
	return t->timed > 0 ? t->timed_s / (double)t->timed
			    : spent(t) / fmax(1, (double)t->runs);
}

/* Is there time for so many runs, as exactly as the budget is kept? */
static bool may_run(const struct tune *t, double runs)
{
	return spent(t) + runs * run_s(t) <= slack * t->budget_s;
}

/* Runs that fit in so many seconds. */
static double fitting(const struct tune *t, double seconds)
{
	return fmax(0, seconds / run_s(t));
}

static void say(struct tune *t, char *reason)
{
	free(t->reason);
	t->reason = reason;
}

static char *need_line(const struct tune *t)
{
	return xasprintf("a budget of %s is too small for a verdict: a run "
			 "takes %s, and about %s are needed (--budget %.0fs)",
			 units_time(t->budget_s * 1e9),
			 units_time(run_s(t) * 1e9),
			 units_time(t->needed_s * 1e9), ceil(t->needed_s));
}

/* The budget is too small by so many runs. */
static void need(struct tune *t, double runs)
{
	t->needed_s = spent(t) + slack * run_s(t) * runs;
	say(t, need_line(t));
}

/* --- rounds --- */

static void open_rounds(struct tune *t, struct rounds *r,
			const char *const *texts, size_t count)
{
	struct config *configs = xcalloc(count, sizeof(*configs));

	*r = (struct rounds){
		.measure = &t->target->measure,
		.metric = &t->target->metric,
		.configs = configs,
		.config_count = count,
		.variables = xcalloc(count, sizeof(*r->variables)),
		.left_out = xcalloc(count, sizeof(*r->left_out)),
		.check_output = t->target->check_output,
		.progress = &t->progress,
	};
	for (size_t i = 0; i < count; i++) {
		config_parse(&configs[i], "tune", texts[i]);
		r->variables[i] =
			config_variables(&configs[i], t->target->library,
					 t->target->preflight.runtimes, NULL);
	}
	rounds_begin(r);
	r->reference = t->reference;
}

static size_t taking_part(const struct rounds *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->config_count; i++)
		n += !r->left_out[i];
	return n;
}

static void expect(struct tune *t, double runs)
{
	size_t more = runs > 1 ? (size_t)runs : 1;

	if (t->progress.total < t->progress.done + more)
		t->progress.total = t->progress.done + more;
}

static enum rounds_end stop(struct tune *t, struct rounds *r,
			    enum rounds_end end)
{
	t->asked = r->asked;
	if (end == ROUNDS_FAILED)
		t->failed = r;
	return end;
}

/* What hangs shall not eat the budget.  True: a run that is ended by that limit
 * may have failed at nothing but the budget. */
static bool limit_run(struct tune *t)
{
	double rest = fmax(0.001, slack * t->budget_s - spent(t));

	t->target->measure.longest_s =
		t->longest_s > 0 ? fmin(t->longest_s, rest) : t->budget_s;
	t->target->measure.longest_hint =
		t->longest_s > 0 ? "the others were far shorter"
				 : "the whole budget: --budget T";
	return t->longest_s > rest;
}

/* All runs that it still needs. */
static enum rounds_end try_round(struct tune *t, struct rounds *r)
{
	size_t before = t->target->measure.runs, runs;
	double from = now_s(t);
	enum rounds_end end;

	expect(t, (double)taking_part(r));
	end = rounds_measure(r, 1);
	runs = t->target->measure.runs - before;
	t->runs += runs;
	t->reference = r->reference;
	if (end == ROUNDS_DONE) { /* one that hung is like no other */
		t->timed += runs;
		t->timed_s += now_s(t) - from;
	}
	return end;
}

/* One round more, or none when the budget is over meanwhile.  A configuration
 * from `mine` on that fails is out, and the round goes on; one before that is
 * the program's own failure. */
static enum rounds_end one_round(struct tune *t, struct rounds *r, size_t mine,
				 char **failures)
{
	for (;;) {
		bool tight = limit_run(t);
		enum rounds_end end = try_round(t, r);

		if (end != ROUNDS_FAILED)
			return end == ROUNDS_DONE ? end : stop(t, r, end);
		if (tight && r->last.too_long) {
			rounds_forgive(r);
			return ROUNDS_DONE;
		}
		if (r->failed < mine)
			return stop(t, r, end);
		failures[r->failed] = xstrdup(r->failure);
		r->left_out[r->failed] = true;
		rounds_forgive(r);
	}
}

/* --- what it does --- */

/* One run with a log, which also says how long a run takes. */
static enum rounds_end run_logged(struct tune *t, const char *text,
				  struct profile *profile)
{
	struct rounds *r = xcalloc(1, sizeof(*r));
	size_t before = t->target->measure.runs;
	bool tight = limit_run(t);
	enum rounds_end end;

	open_rounds(t, r, &text, 1);
	r->profiles = profile;
	expect(t, 1);
	end = rounds_warm_up(r, 1);
	t->runs += t->target->measure.runs - before;
	t->reference = r->reference;
	if (end != ROUNDS_FAILED || !tight || !r->last.too_long)
		return end == ROUNDS_DONE ? end : stop(t, r, end);
	*profile = (struct profile){.known = false}; /* it had no more time */
	rounds_forgive(r);
	return ROUNDS_DONE;
}

/* A run of the program as it is: how long one takes. */
static enum rounds_end run_once(struct tune *t)
{
	struct rounds *r = xcalloc(1, sizeof(*r));

	if (!may_run(t, 1))
		return ROUNDS_DONE;
	open_rounds(t, r, (const char *[]){"bare"}, 1);
	return one_round(t, r, 1, NULL);
}

/* Runs that a search among so many takes at least. */
static double least_runs(size_t candidates)
{
	return (double)(LEAST_STAGE * (candidates + 1) +
			LEAST_FRESH * (TUNE_WINNER + 1) + LOG_RUNS);
}

/* As many candidates as there is time for; false: too few. */
static bool plan(struct tune *t)
{
	size_t count = t->list.count - 1;
	double runs = fitting(t, left(t));

	while (count > LEAST_TRIED && least_runs(count) > runs)
		count--;
	t->untried = t->list.count - 1 - count;
	if (least_runs(count) > runs) {
		need(t, least_runs(t->list.count - 1));
		return false;
	}
	t->list.count -= t->untried;
	expect(t, fmin(runs, least_runs(count)));
	return true;
}

/* --- the search --- */

struct search {
	struct tune *tune;
	struct rounds rounds;
	bool *out;
	char **failures;
	struct ratio *ratios;
	double until_s; /* of the budget */
	size_t most;    /* rounds of the next stage */
};

static void take_ratios(struct search *s)
{
	struct tune *t = s->tune;

	for (size_t i = 1; i < t->list.count; i++) {
		struct tune_try *try = &t->tries[i];

		if (!s->out[i])
			try->rounds = s->rounds.done;
		s->out[i] |= s->failures[i] != NULL;
		try->failure = s->failures[i];
		if (try->rounds > 0)
			try->ratio =
				comparison_ratio(&s->rounds, 0, i, try->rounds);
		s->ratios[i] = try->ratio;
	}
}

/* As many of these rounds as leave time for fresh ones. */
static enum rounds_end run_stage(struct search *s, size_t rounds)
{
	struct tune *t = s->tune;
	enum rounds_end end = ROUNDS_DONE;

	for (; rounds > 0 && end == ROUNDS_DONE &&
	       may_run(t, (double)taking_part(&s->rounds) + least_runs(0) -
				  LEAST_STAGE);
	     rounds--)
		end = one_round(t, &s->rounds, 1, s->failures);
	take_ratios(s);
	return end;
}

/* After one look: those that can only cost time. */
static void drop_slow(struct search *s)
{
	for (size_t i = 1; i < s->tune->list.count; i++)
		if (s->ratios[i].value < much_slower)
			s->out[i] = true;
}

/* Each stage gets the same time, so that the fewer are left the more rounds
 * they run.  0: there is no time for one. */
static size_t stage_rounds(const struct search *s)
{
	size_t in = taking_part(&s->rounds);
	double stages = ceil(log2((double)in)), runs;

	runs = fitting(s->tune, s->until_s - spent(s->tune)) / stages;
	if (runs * stages < (double)in)
		return 0;
	return (size_t)fmax(LEAST_STAGE,
			    fmin((double)s->most, runs / (double)in));
}

static enum rounds_end run_stages(struct search *s)
{
	const struct search_list *list = &s->tune->list;
	enum rounds_end end = run_stage(s, 1);
	size_t rounds;

	drop_slow(s);
	while (end == ROUNDS_DONE && taking_part(&s->rounds) > 2) {
		rounds = stage_rounds(s);
		if (rounds == 0)
			break;
		end = run_stage(s, rounds);
		s->most = s->most * 2 < MOST_STAGE ? s->most * 2 : MOST_STAGE;
		if (search_is_hopeless(list, s->ratios, s->out))
			break;
		search_drop(list, s->ratios, taking_part(&s->rounds) / 2,
			    s->out);
	}
	return end;
}

static void take_winner(struct search *s)
{
	struct tune *t = s->tune;

	if (search_is_hopeless(&t->list, s->ratios, s->out))
		return;
	t->winner = search_best(&t->list, s->ratios, s->out);
}

static enum rounds_end search(struct tune *t)
{
	size_t count = t->list.count;
	const char **texts = xcalloc(count, sizeof(*texts));
	struct search *s = xcalloc(1, sizeof(*s));
	enum rounds_end end;

	for (size_t i = 0; i < count; i++)
		texts[i] = t->list.items[i].text;
	s->tune = t;
	s->most = FIRST_STAGE;
	open_rounds(t, &s->rounds, texts, count);
	s->out = s->rounds.left_out;
	s->failures = xcalloc(count, sizeof(*s->failures));
	s->ratios = xcalloc(count, sizeof(*s->ratios));
	s->until_s = spent(t) + search_part * left(t);
	end = run_stages(s);
	take_winner(s);
	if (end == ROUNDS_DONE && s->rounds.done == 0)
		need(t, least_runs(count - 1));
	free(texts);
	if (end == ROUNDS_FAILED)
		return end; /* the rounds have the failure */
	rounds_free(&s->rounds);
	free(s->failures);
	free(s->ratios);
	free(s);
	return end;
}

/* --- the best lock, with a place --- */

static size_t best_of(const struct tune *t, enum search_kind kind)
{
	size_t best = 0;

	for (size_t i = 1; i < t->list.count; i++)
		if (t->list.items[i].kind == kind &&
		    t->tries[i].failure == NULL &&
		    (best == 0 ||
		     t->tries[i].ratio.value > t->tries[best].ratio.value))
			best = i;
	return best;
}

/* What the search had no pair of; NULL: it had, or neither part is of use. */
static char *new_pair(const struct tune *t)
{
	size_t lock = best_of(t, SEARCH_LOCK), place = best_of(t, SEARCH_PLACE);
	const double harmful = 0.9;
	char *pair;

	if (lock == 0 || place == 0 || t->tries[lock].ratio.value < harmful ||
	    t->tries[place].ratio.value < harmful)
		return NULL;
	pair = xasprintf("%s place=thread", t->list.items[lock].text);
	for (size_t i = 1; i < t->list.count; i++)
		if (t->list.items[i].kind == SEARCH_BOTH &&
		    strncmp(t->list.items[i].text, t->list.items[lock].text,
			    strcspn(t->list.items[lock].text, " ")) == 0) {
			free(pair);
			return NULL;
		}
	return pair;
}

static void add_try(struct tune *t, char *text, const struct rounds *r,
		    char *failure)
{
	size_t at = t->list.count;

	search_add(&t->list, SEARCH_BOTH, t->list.items[t->winner].effort + 2,
		   text);
	t->tries = xrealloc(t->tries, t->list.count * sizeof(*t->tries));
	t->tries[at] = (struct tune_try){
		.rounds = r->done,
		.failure = failure,
	};
	if (r->done > 0)
		t->tries[at].ratio = comparison_ratio(r, 0, 2, r->done);
}

/* Takes the pair if it is better than the winner, or than nothing where that
 * failed beside it. */
static void take_pair(struct tune *t, char *pair, const struct rounds *r,
		      char *const *failures)
{
	double than = 1;

	add_try(t, pair, r, failures[2]);
	t->tries[t->winner].failure = failures[1];
	if (r->done == 0 || failures[2] != NULL)
		return;
	if (failures[1] == NULL)
		than = comparison_ratio(r, 0, 1, r->done).value;
	if (t->tries[t->list.count - 1].ratio.value > better * than)
		t->winner = t->list.count - 1;
}

/* The best of those that never failed, if it is better than nothing; else 0. */
static size_t best_left(const struct tune *t)
{
	double than = 1;
	size_t best = 0;

	for (size_t i = 1; i < t->list.count; i++)
		if (t->tries[i].failure == NULL &&
		    t->tries[i].ratio.value > than) {
			than = t->tries[i].ratio.value;
			best = i;
		}
	return best;
}

static enum rounds_end combine(struct tune *t)
{
	char *pair = t->winner != 0 ? new_pair(t) : NULL, *failures[3] = {0};
	double runs = fitting(t, combine_part * left(t));
	size_t rounds = (size_t)fmin(MOST_STAGE / 2, runs / 3);
	enum rounds_end end = ROUNDS_DONE;
	struct rounds *r;

	if (pair == NULL || rounds < LEAST_STAGE ||
	    fitting(t, left(t)) < 3 * (double)rounds + least_runs(0))
		return ROUNDS_DONE;
	r = xcalloc(1, sizeof(*r));
	open_rounds(
		t, r,
		(const char *[]){"bare", t->list.items[t->winner].text, pair},
		3);
	for (; rounds > 0 && end == ROUNDS_DONE && may_run(t, 3); rounds--)
		end = one_round(t, r, 1, failures);
	take_pair(t, pair, r, failures);
	if (t->tries[t->winner].failure != NULL)
		t->winner = best_left(t);
	if (end == ROUNDS_FAILED)
		return end; /* the rounds have the failure */
	rounds_free(r);
	free(r);
	return end;
}

/* --- fresh rounds --- */

static void find_simpler(struct tune *t)
{
	struct ratio *ratios = xcalloc(t->list.count, sizeof(*ratios));
	bool *failed = xcalloc(t->list.count, sizeof(*failed));

	for (size_t i = 1; i < t->list.count; i++) {
		ratios[i] = t->tries[i].ratio;
		failed[i] = t->tries[i].failure != NULL;
	}
	t->simpler = search_simpler(&t->list, ratios, failed, t->winner);
	free(ratios);
	free(failed);
}

static void take_fresh(struct tune *t, size_t rounds)
{
	size_t n = t->fresh.done;

	t->comparison = comparison_new(&t->fresh, rounds);
	for (size_t i = 0; i < t->fresh.config_count; i++) {
		t->to_none[i] = comparison_ratio(&t->fresh, TUNE_NONE, i, n);
		ratio_widen(&t->to_none[i],
			    comparison_rounding(&t->fresh, TUNE_NONE, i, n));
	}
}

static enum rounds_end run_fresh(struct tune *t, const char *const *texts,
				 size_t count, size_t rounds)
{
	char *failures[TUNE_ROWS] = {0};
	enum rounds_end end = ROUNDS_DONE;

	open_rounds(t, &t->fresh, texts, count);
	for (size_t i = 0;
	     i < rounds && end == ROUNDS_DONE && may_run(t, (double)count);
	     i++) {
		expect(t, (double)((rounds - i) * count));
		end = one_round(t, &t->fresh, TUNE_WINNER, failures);
	}
	for (size_t i = TUNE_WINNER; i < count; i++)
		if (failures[i] != NULL)
			t->tries[i == TUNE_WINNER ? t->winner : t->simpler]
				.failure = failures[i];
	if (t->fresh.done > 0)
		take_fresh(t, rounds);
	return end;
}

/* As many as there is time for; 0: too few. */
static size_t fresh_rounds(struct tune *t, size_t count)
{
	double each = (double)count * run_s(t), rest;
	size_t rounds;

	rest = fmax(0, left(t) - LOG_RUNS * run_s(t));
	rounds = (size_t)fmin(MOST_FRESH, rest / each);
	if (rounds >= LEAST_FRESH)
		return rounds;
	if (spent(t) + LEAST_FRESH * each <= slack * t->budget_s)
		return LEAST_FRESH;
	return rounds >= FEW_ROUNDS ? rounds : 0;
}

static enum rounds_end confirm(struct tune *t)
{
	const char *texts[TUNE_ROWS] = {"bare", "lock=none"};
	size_t count = TUNE_WINNER + 1, rounds;
	enum rounds_end end = ROUNDS_DONE;

	find_simpler(t);
	texts[TUNE_WINNER] = t->list.items[t->winner].text;
	if (t->simpler != t->winner) {
		texts[TUNE_SIMPLER] = t->list.items[t->simpler].text;
		count++;
	}
	rounds = fresh_rounds(t, count);
	if (rounds == 0 && count > TUNE_SIMPLER)
		rounds = fresh_rounds(t, --count);
	if (rounds > 0)
		end = run_fresh(t, texts, count, rounds);
	t->confirmed = end == ROUNDS_DONE && t->fresh.done >= FEW_ROUNDS;
	if (end == ROUNDS_DONE && !t->confirmed)
		need(t, (double)(count * LEAST_FRESH));
	return end;
}

/* --- what to take --- */

const struct search_candidate *tune_candidate(const struct tune *t, size_t row)
{
	switch (row) {
	case TUNE_NONE:
		return NULL;
	case TUNE_WINNER:
		return &t->list.items[t->winner];
	case TUNE_SIMPLER:
		return &t->list.items[t->simpler];
	default:
		return &t->list.items[0];
	}
}

const struct config *tune_config(const struct tune *t)
{
	return &t->fresh.configs[t->chosen];
}

char *tune_failure(const struct tune *t)
{
	return xasprintf("%s: %s", t->failed->configs[t->failed->failed].text,
			 t->failed->failure);
}

/* Of many that are tried one is always lucky, and a setting that stays for good
 * should gain something for certain. */
static bool is_sure(const struct ratio *ratio)
{
	const double sure_gain = 0.01;

	return ratio_judge(ratio) == RATIO_FASTER &&
	       ratio->low >= 1 + sure_gain;
}

/* Better than the program as it is, and by more than having the library. */
static bool holds(const struct tune *t, size_t row)
{
	const struct search_candidate *c;

	if (row >= t->comparison->count ||
	    !is_sure(&t->comparison->rows[row].ratio))
		return false;
	c = tune_candidate(t, row);
	return t->tries[c - t->list.items].failure == NULL &&
	       (c->kind == SEARCH_CPUS || is_sure(&t->to_none[row]));
}

static double value(const struct tune *t, size_t row)
{
	return t->comparison->rows[row].ratio.value;
}

static void choose(struct tune *t)
{
	const double same = 0.98;
	bool winner = holds(t, TUNE_WINNER), simpler = holds(t, TUNE_SIMPLER);

	if (simpler &&
	    (!winner || value(t, TUNE_SIMPLER) >= same * value(t, TUNE_WINNER)))
		t->chosen = TUNE_SIMPLER;
	else if (winner)
		t->chosen = TUNE_WINNER;
}

static char *tell_chosen(const struct tune *t)
{
	switch (tune_candidate(t, t->chosen)->kind) {
	case SEARCH_CPUS:
		return xstrdup("fewer CPUs are the answer: the cost is "
			       "probably that of keeping several CPUs in step "
			       "(TLB shoot-downs, shared lines), and a lock "
			       "does no more against it");
	case SEARCH_PLACE:
		return xstrdup("mappings of different threads lay side by "
			       "side, and apart they disturb each other less");
	case SEARCH_BOTH:
		return xstrdup("a lock and places apart together do more than "
			       "either alone");
	default:
		return xstrdup("threads that wait at the gate cost less than "
			       "threads that wait in the kernel");
	}
}

size_t tune_more_rounds(const struct tune *t)
{
	const struct comparison_row *row = &t->comparison->rows[TUNE_WINNER];
	struct ratio plain;

	if (row->verdict != RATIO_FASTER ||
	    tune_candidate(t, TUNE_WINNER)->kind == SEARCH_CPUS)
		return row->more_rounds;
	plain = comparison_ratio(&t->fresh, TUNE_NONE, TUNE_WINNER,
				 t->comparison->rounds);
	return ratio_more_rounds(&plain, t->comparison->rounds);
}

/* Faster than without the library, but not than with it. */
static char *tell_no_gain(const struct tune *t)
{
	const struct comparison_row *row = &t->comparison->rows[TUNE_WINNER];
	const struct ratio *none = &t->to_none[TUNE_WINNER];

	if (ratio_is_settled(none))
		return xasprintf("%s is faster than the program as it is, but "
				 "%s faster than the library without a lock",
				 row->config,
				 ratio_judge(none) == RATIO_FASTER ? "hardly"
								   : "no");
	return xasprintf("%s is faster than the program as it is, but to the "
			 "library without a lock it is %.3f [%.3f, %.3f], "
			 "which settles nothing",
			 row->config, none->value, none->low, none->high);
}

static char *tell_unconfirmed(const struct tune *t)
{
	const struct comparison_row *row = &t->comparison->rows[TUNE_WINNER];
	const char *failure = t->tries[t->winner].failure;

	if (failure != NULL)
		return xasprintf("%s was the best of the search, and failed "
				 "in a later round: %s",
				 row->config, failure);
	if (is_sure(&row->ratio))
		return tell_no_gain(t);
	if (row->verdict == RATIO_FASTER)
		return xasprintf("%s is faster in fresh rounds, but too little "
				 "to recommend it: %.3f [%.3f, %.3f], and it "
				 "should be 1 %% for certain",
				 row->config, row->ratio.value, row->ratio.low,
				 row->ratio.high);
	return xasprintf(
		"%s was the best of the search, but fresh rounds do "
		"not confirm it: %.3f [%.3f, %.3f]%s",
		row->config, row->ratio.value, row->ratio.low, row->ratio.high,
		row->more_rounds != 0 ? ", which settles nothing" : "");
}

static void judge(struct tune *t)
{
	if (t->comparison == NULL || t->needed_s > 0)
		return;
	choose(t);
	say(t, t->chosen != 0 ? tell_chosen(t) : tell_unconfirmed(t));
}

/* It was confirmed, and then it failed after all. */
static void take_back(struct tune *t)
{
	struct rounds *r = t->failed;
	size_t at = t->chosen == TUNE_WINNER ? t->winner : t->simpler;

	t->tries[at].failure = xstrdup(r->failure);
	say(t, xasprintf("%s was confirmed in fresh rounds, and failed in a "
			 "last run, with a log: %s",
			 tune_config(t)->text, r->failure));
	t->chosen = 0;
	t->failed = NULL;
	rounds_forgive(r);
	choose(t);
	if (t->chosen != 0)
		say(t, tell_chosen(t));
}

/* What it costs in the worst wait. */
static enum rounds_end look_at_waits(struct tune *t)
{
	enum rounds_end end;

	while (t->chosen != 0 &&
	       tune_candidate(t, t->chosen)->kind != SEARCH_CPUS &&
	       may_run(t, LOG_RUNS)) {
		end = run_logged(t, tune_config(t)->text, &t->waits);
		if (end != ROUNDS_FAILED)
			return end;
		take_back(t); /* then the other, if that holds too */
	}
	return ROUNDS_DONE;
}

/* --- all of it --- */

/* Nothing to look for; how noisy it is, and what the library costs. */
static enum rounds_end quick_look(struct tune *t)
{
	double fit = fitting(t, fmin(left(t), quick_s)) / 2;

	if (fit < 1)
		return ROUNDS_DONE;
	return run_fresh(t, (const char *[]){"bare", "lock=none"}, 2,
			 (size_t)fmin(QUICK, fit));
}

/* By the rounds of those that were in to the end. */
static char *tell_none(const struct tune *t)
{
	size_t rounds = 0;

	for (size_t i = 1; i < t->list.count; i++)
		if (t->tries[i].rounds > rounds)
			rounds = t->tries[i].rounds;
	if (rounds >= FEW_ROUNDS)
		return xasprintf("none of the %zu settings that were tried is "
				 "better than the program as it is",
				 t->list.count - 1);
	if (rounds == 0)
		return xasprintf("the program fails under each of the %zu "
				 "settings that were tried",
				 t->list.count - 1);
	return xasprintf("none of the %zu settings that were tried looked "
			 "better than the program as it is, in no more than "
			 "%zu round%s",
			 t->list.count - 1, rounds, rounds == 1 ? "" : "s");
}

static enum rounds_end look_and_confirm(struct tune *t)
{
	enum rounds_end end;

	t->tries = xcalloc(t->list.count, sizeof(*t->tries));
	end = search(t);
	if (end == ROUNDS_DONE)
		end = combine(t);
	if (end != ROUNDS_DONE || t->needed_s > 0)
		return end;
	if (t->winner == 0) {
		say(t, tell_none(t));
		return ROUNDS_DONE;
	}
	end = confirm(t);
	judge(t);
	return end == ROUNDS_DONE ? look_at_waits(t) : end;
}

static unsigned cpus_here(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0
		       ? (unsigned)CPU_COUNT(&set)
		       : 1;
}

static enum rounds_end run_all(struct tune *t)
{
	char why[SEARCH_LINE];
	enum rounds_end end;

	end = run_logged(t, "lock=none", &t->profile);
	if (end != ROUNDS_DONE)
		return end;
	t->longest_s =
		fmax(1 + 6 * t->profile.wall_s, fmin(10, t->budget_s / 30));
	end = run_once(t);
	if (end != ROUNDS_DONE)
		return end;
	if (!search_is_worth(&t->profile, why)) {
		say(t, xstrdup(why));
		return quick_look(t);
	}
	t->list = search_candidates(&t->profile, cpus_here(),
				    t->target->metric.kind != METRIC_CPU);
	return plan(t) ? look_and_confirm(t) : ROUNDS_DONE;
}

enum rounds_end tune_run(struct tune *t)
{
	enum rounds_end end;

	t->started_s = now_s(t);
	progress_begin(&t->progress, 1);
	end = run_all(t);
	if (end == ROUNDS_FAILED && t->reason == NULL)
		say(t, xstrdup("a run failed without a lock, and after that "
			       "nothing was measured"));
	progress_end(&t->progress);
	t->spent_s = spent(t);
	return end;
}
