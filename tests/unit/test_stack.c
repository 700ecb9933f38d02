/* SPDX-License-Identifier: MIT */
/* Places for copies of stacks: who has one, and for how long. */
#include "check.h"

/* The test is no guest in another program. */
#define MMGATE_POISON_H
/* Another than the tool's. */
#define log_stacks test_log_stacks

#include "stack.c"

/* What stack.c calls and these tests do not need. */
bool libc_maps_stacks(uint32_t protection, uint32_t flags)
{
	return protection == 0 && flags == 0;
}

struct record_stacks *log_stacks(void)
{
	static struct record_stacks none;

	return &none;
}

const struct record_stacks *log_layout(void)
{
	static const struct record_stacks layout;

	return &layout;
}

void *log_at(uint64_t offset)
{
	(void)offset;
	return NULL;
}

enum { PLACES = 1000, OTHERS = 7 };

static uint64_t asked, counted_twice;
static uint32_t calls, next_place;
static bool alone;
static uint64_t room = UINT64_MAX; /* pages */

static bool use_next(void)
{
	uint32_t place = next_place++;

	return want(&self.copies[0], place, place + 1) &&
	       is_there(&self.copies[0], place);
}

/* Other threads take the next places while this one waits for the kernel. */
bool log_fill(uint64_t from, uint64_t bytes)
{
	(void)from;
	calls++;
	if (bytes / PAGE > room)
		return false;
	room -= bytes / PAGE;
	asked += bytes / PAGE;
	if (!alone) {
		alone = true;
		for (int i = 0; i < OTHERS && next_place < PLACES; i++)
			use_next();
		alone = false;
	}
	return true;
}

void log_filled_twice(uint64_t bytes)
{
	counted_twice += bytes / PAGE;
}

void modules_unmapped(uint64_t start, uint64_t length, uint64_t now)
{
	(void)start;
	(void)length;
	(void)now;
}

static void test_places(void)
{
	check_true(claim(3), "a free place");
	check_true(!claim(3), "not twice");
	check_true(claim(4), "another is free");
	release(3);
	check_true(claim(3), "it is given back");
}

/* A jump out of a handler leaves it taken. */
static void test_torn_away(void)
{
	self.busy[5].since = 1;
	check_true(!is_busy(5), "nobody has it for that long");
	check_true(claim(5), "it is the next one's");
	check_true(is_busy(5), "who has it now");
}

static void test_worst(void)
{
	self.worst.first = 10;
	self.worst.slots = 2;
	check_int(0, displace(100), "the first slot");
	check_int(1, displace(90), "the second");
	check_int(-1, displace(200), "threads are at both");
	self.busy[10].since = 1;
	check_int(0, displace(200), "one was torn away");
}

/* Threads that make few calls count as much as those that make many: each call
 * is picked as often as any other. */
static void test_short_threads(void)
{
	enum { EVERY = 16, CALLS = 3, THREADS = 100000 };
	uint64_t random = 88172645463325252;
	double stood_for[CALLS] = {0};

	self.pools[POOL_EVERY].spread = 1;
	for (int i = 0; i < THREADS; i++) {
		struct thread t = {0};

		for (int k = 0; k < CALLS; k++)
			stood_for[k] += every_weight(&t, EVERY, &random);
	}
	for (int k = 0; k < CALLS; k++)
		check_between(0.95 * THREADS, 1.05 * THREADS, stood_for[k],
			      "each call of a short thread stands for one");
}

static void test_long_thread(void)
{
	enum { EVERY = 16, CALLS = 1000000 };
	uint64_t random = 88172645463325252;
	double stood_for = 0;
	struct thread t = {0};

	self.pools[POOL_EVERY].spread = 4;
	for (int i = 0; i < CALLS; i++)
		stood_for += every_weight(&t, EVERY, &random);
	check_between(0.97 * CALLS, 1.03 * CALLS, stood_for,
		      "so do those of a long one, where picks are rarer");
}

static uint32_t count_there(const struct row *row)
{
	uint32_t count = 0;

	for (uint32_t page = 0; page < PLACES; page++)
		count += is_there(row, page);
	return count;
}

/* Memory for all places, in few calls, though threads come together. */
static void test_memory(void)
{
	self.places = PLACES;
	while (next_place < PLACES)
		check_true(use_next(), "a place that is used has memory");
	check_int(PLACES, count_there(&self.copies[0]), "each place has");
	check_int(PLACES, (int64_t)(asked - counted_twice), "counted once");
	check_between(0, PLACES / 20, (double)counted_twice,
		      "few were asked for twice");
	check_between(0, PLACES / 20, calls, "few calls");
}

/* A program of few samples, of which each is in two pools. */
static void test_little_memory(void)
{
	struct row *row = &self.copies[1];

	alone = true;
	for (uint32_t used = 1; used <= 10; used++) {
		want(row, used - 1, used);
		want(row, PLACES / 2 + used - 1, used);
	}
	check_between(20, 50, count_there(row), "little more than it used");
}

/* Too many so soon: picks get rarer, the sooner the more. */
static void test_rate(void)
{
	enum { SECOND = 8000000, WINDOW = SECOND / WINDOWS };
	struct pool *pool = &self.pools[POOL_SLOW];
	uint64_t now = 1;

	pool->spread = 1;
	self.pools[POOL_EVERY].spread = 1;
	self.second_ticks = SECOND;
	begin_window(self.window, now);
	for (int i = 0; i < A_WINDOW; i++)
		check_true(keep_rate(pool, now), "as many as it may be");
	check_int(1, pool->spread, "so far each one");
	keep_rate(pool, now + WINDOW / 100);
	check_int(8, pool->spread, "too many at once");
	for (int i = 0; i < A_WINDOW; i++)
		keep_rate(pool, self.window + WINDOW * 3 / 4);
	check_int(16, pool->spread, "a few too many");
	self.window_pages = PAGES_A_WINDOW;
	keep_rate(pool, self.window + WINDOW * 3 / 4);
	check_int(32, pool->spread, "too much memory that is new");
	check_int(0, self.window_pages, "and another window");
	spread_out(self.window - 1, self.window + 1);
	check_int(32, pool->spread, "another thread has done so");
	keep_rate(pool, self.window + WINDOW);
	check_int(16, pool->spread, "few in a whole window");
	pool->spread = 512;
	keep_rate(pool, self.window + 5 * WINDOW);
	check_int(16, pool->spread, "few in five windows");
	check_int(1, self.pools[POOL_EVERY].spread, "the other pool has none");
}

/* Counted are pages that no copy was in before. */
static void test_new_memory(void)
{
	struct part part = {.bytes = 3 * PAGE};

	alone = true;
	self.places = PLACES;
	self.pools[POOL_EVERY].slots = 64;
	self.pools[POOL_SLOW].first = 64;
	self.pools[POOL_SLOW].slots = 32;
	self.worst.first = 96;
	self.window_pages = 0;
	check_true(fill_copy(63, 63, &part), "the last one of a pool");
	check_int(3, self.window_pages, "its pages");
	check_true(fill_copy(64, 0, &part), "the first one of the next");
	check_int(6, self.window_pages, "its pages, too");
	check_true(fill_copy(64, 32, &part), "on the next lap");
	check_true(fill_copy(96, 0, &part), "of the worst");
	check_int(6, self.window_pages, "that is none of the rate");
	check_int(64, used_with(63), "all of the pool");
	check_int(1, used_with(96), "the first of the worst");
}

/* Little is left: what is needed is given, then no more is asked for. */
static void test_refusal(void)
{
	struct row *row = &self.copies[2];
	uint32_t before;

	alone = true;
	room = 2;
	check_true(want(row, 100, 100), "one of the thirty-two asked for");
	check_true(is_there(row, 100) && !is_there(row, 101), "one only");
	check_true(want(row, 101, 101), "another");
	check_true(!want(row, 102, 102), "there is no more");
	before = calls;
	check_true(!want(row, 103, 103), "nor later");
	check_int(before, calls, "which is not asked again");
	check_true(want(row, 101, 101), "what was given stays");
	self.refused = 0;
	room = UINT64_MAX;
}

int main(void)
{
	test_rate();
	test_memory();
	test_little_memory();
	test_refusal();
	test_places();
	test_short_threads();
	test_long_thread();
	test_torn_away();
	test_worst();
	test_new_memory();
	return check_done();
}
