/* SPDX-License-Identifier: MIT */
/* Callers that read the same are one. */
#include <stdlib.h>

#include "../../tools/crowd.h"
#include "check.h"

enum { MAP_A = 0x1000, MAP_B = 0x1010, OTHER = 0x2000, US = 1000 };

/* A call at `at` us that waits and is in the kernel for so many. */
static void call(struct crowd *c, enum op op, uint64_t caller, uint32_t tid,
		 uint64_t at, uint64_t wait, uint64_t kernel)
{
	const struct log_event e = {
		.raw = {.kind = EVENT_CALL,
			.op = (uint8_t)op,
			.outcome = OUTCOME_GATED,
			.caller = caller,
			.tid = tid,
			.length = 4096},
		.time_ns = at * US,
		.wait_ns = wait * US,
		.kernel_ns = kernel * US,
	};
	int others;

	crowd_add(c, &e, &others);
}

static char *name(void *context, const struct crowd_caller *caller)
{
	(void)context;
	return strdup(caller->address == OTHER ? "other" : "fill");
}

/* Thread 1 holds the lock from three places in turn, thread 2 waits. */
static struct crowd *waits(void)
{
	static const unsigned char domain[OP_COUNT];
	struct crowd *c = crowd_new(domain);

	call(c, OP_MMAP, MAP_A, 1, 0, 0, 30);
	call(c, OP_MUNMAP, OTHER, 2, 0, 30, 10);
	call(c, OP_MMAP, MAP_B, 1, 100, 0, 50);
	call(c, OP_MUNMAP, OTHER, 2, 100, 50, 10);
	call(c, OP_MUNMAP, MAP_B, 1, 200, 0, 70);
	call(c, OP_MMAP, MAP_B, 2, 200, 70, 10);
	crowd_end(c);
	return c;
}

static const struct crowd_caller *find(const struct crowd *c, enum op op,
				       const char *called, unsigned *at)
{
	for (*at = 0; *at < c->callers; ++*at)
		if (c->caller[*at].op == op &&
		    !strcmp(c->caller[*at].name, called))
			return &c->caller[*at];
	return NULL;
}

static double held(const struct crowd *c)
{
	double all = 0;
	unsigned w, h;

	for (w = 0; w < CROWD_CALLERS; w++)
		for (h = 0; h < CROWD_CALLERS; h++)
			all += c->held[w][h];
	return all;
}

static void test_join(void)
{
	struct crowd *c = waits();
	const struct crowd_caller *map;
	unsigned waiter, holder;
	double before = held(c);

	check_u64(4, c->callers, "each address and op is a caller");
	crowd_join(c, name, NULL);
	check_u64(3, c->callers, "those of one op and name are joined");
	map = find(c, OP_MMAP, "fill", &holder);
	find(c, OP_MUNMAP, "other", &waiter);
	check_true(map && waiter < c->callers, "the joined ones are there");
	check_between(90 * US, 90 * US, map->inside_ns,
		      "their time is added up");
	check_between(80 * US, 80 * US, c->held[waiter][holder],
		      "so is that for which they held the lock");
	check_between(before, before, held(c), "and nothing is lost");
	find(c, OP_MUNMAP, "fill", &waiter);
	check_between(70 * US, 70 * US, c->held[holder][waiter],
		      "another op of that name is another caller");
	crowd_free(c);
}

/* Two threads whose calls overlap, but for the first of each `row`, and take as
 * long either way. */
static struct crowd *overlapping(unsigned rows, unsigned row)
{
	static const unsigned char domain[OP_COUNT];
	struct crowd *c = crowd_new(domain);
	uint64_t at = 0;

	for (unsigned i = 0; i < rows; i++, at += 100)
		for (unsigned k = 0; k < row; k++, at += 30)
			call(c, OP_MPROTECT, OTHER, 1 + k % 2, at, 0, 40);
	crowd_end(c);
	return c;
}

/* That they took as long tells nothing when they were too few to tell. */
static void test_hardly_alone(void)
{
	struct crowd *c = overlapping(40, 100);

	check_true(crowd_waits_show(c), "a hundredth is no comparison");
	crowd_free(c);
	c = overlapping(400, 10);
	check_true(!crowd_waits_show(c), "a tenth is, and shows no waiting");
	crowd_free(c);
}

int main(void)
{
	test_join();
	test_hardly_alone();
	return check_done();
}
