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
	return NULL;
}

void *log_at(uint64_t offset)
{
	(void)offset;
	return NULL;
}

bool log_fill(uint64_t from, uint64_t bytes)
{
	(void)from;
	return bytes == 0;
}

void log_filled_twice(uint64_t bytes)
{
	(void)bytes;
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

int main(void)
{
	test_places();
	test_short_threads();
	test_long_thread();
	test_torn_away();
	test_worst();
	return check_done();
}
