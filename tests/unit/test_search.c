/* SPDX-License-Identifier: MIT */
/* Which settings are tried, and which go on, without running any. */
#include <stdlib.h>

#include "../../tools/die.h"
#include "../../tools/search.h"
#include "check.h"

static const struct profile busy = {
	.known = true,
	.wall_s = 1,
	.calls = 30000,
	.threads = 4,
	.kernel_ns = 1e9,
	.thread_ns = 4e9,
	.spread = 0.7,
	.op = {[OP_MMAP] = {10000, 3e8, 0},
	       [OP_MUNMAP] = {10000, 6e8, 0},
	       [OP_MADVISE] = {10000, 1e7, 0}},
};

static bool has(const struct search_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].text, text) == 0)
			return true;
	return false;
}

static void drop(struct search_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].text);
	free(list->items);
}

static void test_worth(void)
{
	char why[SEARCH_LINE];
	struct profile p = busy;

	check_true(search_is_worth(&p, why), "many calls of several threads");
	p.threads = 1;
	check_true(!search_is_worth(&p, why), "one thread");
	p = busy;
	p.kernel_ns = 1e6;
	check_true(!search_is_worth(&p, why), "a thousandth of the time");
	p = busy;
	p.calls = 20;
	check_true(!search_is_worth(&p, why), "a few slow calls");
	p = busy;
	p.spread = 0.001;
	check_true(!search_is_worth(&p, why), "one thread makes nearly all");
}

static void test_candidates(void)
{
	struct search_list list = search_candidates(&busy, 8, true);

	check_text("bare", list.items[0].text, "the first is as it is");
	check_true(has(&list, "lock=mutex"), "a lock");
	check_true(has(&list, "bare cpus=1") && has(&list, "bare cpus=4"),
		   "fewer CPUs");
	check_true(has(&list, "lock=limit:8") && has(&list, "lock=limit:4"),
		   "limits by the CPUs");
	check_true(has(&list, "lock=none place=thread"), "a place");
	check_true(has(&list, "lock=munmap:mutex") &&
			   has(&list, "lock=mmap:mutex"),
		   "the two ops that matter, alone");
	check_true(!has(&list, "lock=madvise:mutex"), "but not what does not");
	drop(&list);
	list = search_candidates(&busy, 1, true);
	check_true(!has(&list, "bare cpus=1") && !has(&list, "lock=limit:1"),
		   "of one CPU there are no fewer");
	drop(&list);
	list = search_candidates(&busy, 8, false);
	check_true(!has(&list, "bare cpus=1") && !has(&list, "bare cpus=4"),
		   "no fewer CPUs where they are no remedy");
	check_true(has(&list, "lock=mutex") && has(&list, "lock=limit:4"),
		   "but all the rest");
	drop(&list);
}

static void test_calls(void)
{
	struct profile p = busy;
	struct search_list list;

	p.op[OP_MREMAP] = (struct profile_op){10000, 5e8, 0};
	p.kernel_ns = 1.41e9;
	list = search_candidates(&p, 2, true);
	check_true(has(&list, "lock=mutex calls=mmap,munmap,mremap"),
		   "an op that takes no lock by default");
	drop(&list);
	p = busy;
	p.op[OP_MMAP].kernel_ns = 1e6;
	list = search_candidates(&p, 2, true);
	check_true(!has(&list, "lock=munmap:mutex"), "one op needs no list");
	drop(&list);
}

/* Four candidates, the later the less simple. */
static struct search_list four(void)
{
	struct search_list list = {0};

	search_add(&list, SEARCH_BARE, 0, xstrdup("bare"));
	search_add(&list, SEARCH_CPUS, 1, xstrdup("a"));
	search_add(&list, SEARCH_LOCK, 2, xstrdup("b"));
	search_add(&list, SEARCH_LOCK, 3, xstrdup("c"));
	search_add(&list, SEARCH_BOTH, 4, xstrdup("d"));
	return list;
}

static void test_drop(void)
{
	static const struct ratio r[] = {{0, 0, 0},
					 {1, 0.9, 1.1},
					 {1.2, 1.15, 1.3},
					 {1.18, 1, 1.4},
					 {1.18, 1, 1.4}};
	struct search_list list = four();
	bool out[5] = {false};

	search_drop(&list, r, 4, out);
	check_true(out[1] && !out[2] && !out[3] && !out[4],
		   "what is clearly worse goes, however many may stay");
	search_drop(&list, r, 2, out);
	check_true(!out[2] && !out[3] && out[4], "of equals the simpler stays");
	check_u64(2, search_best(&list, r, out), "the best");
	search_drop(&list, r, 1, out);
	check_true(!out[2] && out[3], "the worse goes");
	drop(&list);
}

static void test_hopeless(void)
{
	static const struct ratio none[] = {{0, 0, 0},
					    {1, 0.9, 1.005},
					    {0.9, 0.8, 1},
					    {1, 1, 1},
					    {1.1, 0.9, 1.3}};
	struct search_list list = four();
	bool out[5] = {false};

	check_true(!search_is_hopeless(&list, none, out), "one may be better");
	out[4] = true;
	check_true(search_is_hopeless(&list, none, out), "none can be");
	drop(&list);
}

static void test_simpler(void)
{
	static const struct ratio r[] = {{0, 0, 0},
					 {1.5, 1, 2},
					 {1.48, 1, 2},
					 {1.2, 1, 2},
					 {1.51, 1, 2}};
	struct search_list list = four();
	bool failed[5] = {false};

	check_u64(1, search_simpler(&list, r, failed, 4), "nearly the same");
	failed[1] = true;
	check_u64(2, search_simpler(&list, r, failed, 4), "what failed is not");
	check_u64(1, search_simpler(&list, r, (bool[5]){false}, 1),
		  "none is simpler than the simplest");
	drop(&list);
}

int main(void)
{
	test_worth();
	test_candidates();
	test_calls();
	test_drop();
	test_hopeless();
	test_simpler();
	return check_done();
}
