/* SPDX-License-Identifier: MIT */
/*
 * The books of an arena: what they give out never overlaps what is in use and
 * known to them, and what comes back is given out again.
 */
#include "check.h"

/* The test is no guest in another program. */
#define MMGATE_POISON_H

#include "place.c"

/* What place.c calls and these tests do not need. */
struct world_page world_page;

void gate_enter(struct span *span)
{
	(void)span;
}

long gate_leave(struct span *span, long result)
{
	(void)span;
	return result;
}

enum { LARGE_UNITS = LARGE_BYTES >> UNIT_SHIFT };

static struct arena *fresh(uint32_t first)
{
	static struct arena arena;

	page_bytes = 4096;
	memset(&arena, 0, sizeof(arena));
	arena.first = first;
	arena.edge = first;
	return &arena;
}

static struct range take(struct arena *arena, uint32_t units, uint32_t align)
{
	struct range r = {0, units};

	if (!take_hole(arena, &r, align))
		take_edge(arena, &r, align);
	return r;
}

static void test_last_in_first_out(void)
{
	struct arena *arena = fresh(1);
	struct range a = take(arena, 16, 1), b = take(arena, 1, 1);

	check_u64(1, a.at, "the first follows the anchor");
	check_u64(17, b.at, "the second follows the first");
	give_back(arena, b);
	check_u64(17, arena->edge, "the edge goes back");
	check_u64(17, take(arena, 300, 1).at, "another size goes there");
}

static void test_holes(void)
{
	struct arena *arena = fresh(1);
	struct range a = take(arena, 8, 1), b = take(arena, 8, 1);
	struct range c = take(arena, 4, 1), d = take(arena, 8, 1);
	struct range both = {0, 16};

	give_back(arena, c);
	give_back(arena, a);
	check_u64(c.at, take(arena, 4, 1).at, "the smallest hole that fits");
	give_back(arena, b);
	check_true(take_hole(arena, &both, 1), "holes side by side are one");
	check_u64(a.at, both.at, "it begins with the first");
	give_back(arena, both);
	give_back(arena, c);
	give_back(arena, d);
	check_u64(1, arena->edge, "all is back: as in the beginning");
	check_u64(0, pack((struct range){0, 0}), "no hole");
	for (int i = 0; i < HOLES; i++)
		check_u64(0, arena->holes[i], "no hole is left");
}

static void test_boundaries(void)
{
	struct arena *arena = fresh(LARGE_UNITS);
	struct range a = take(arena, LARGE_UNITS, LARGE_UNITS);
	struct range b = take(arena, LARGE_UNITS + 1, 1);
	struct range c = take(arena, LARGE_UNITS + 1, 1);
	struct range d = take(arena, 2 * LARGE_UNITS, LARGE_UNITS);
	uint64_t top = UINT64_C(1) << 40;

	check_u64(LARGE_UNITS, a.at, "no gap behind the anchor");
	check_u64(0, address_of(top, 3, a) % LARGE_BYTES, "one boundary");
	check_u64(a.at + a.units, b.at, "an odd size needs none");
	check_u64(b.at + b.units, c.at, "odd sizes are side by side");
	check_u64(0, address_of(top, 3, d) % LARGE_BYTES, "after an odd size");
	check_true(d.at > c.at + c.units, "no overlap");
	give_back(arena, d);
	check_u64(c.at + c.units, arena->edge, "what was left comes back too");
	give_back(arena, b);
	check_u64(b.at, take(arena, b.units, 1).at, "the same size again");
}

/* What all hold together is dealt out, and comes back. */
static void test_shares(void)
{
	struct arena *one = fresh(1), two = *one;

	spare = 3 * SHARE + 1;
	for (int i = 0; i < SHARE; i++, one->live++)
		check_true(has_share(one), "there is room");
	check_true(has_share(&two), "for another too");
	check_true(has_share(one), "and for more than a share");
	one->live++;
	two.live = SHARE;
	check_true(!has_share(&two), "until there is no more");
	check_u64(2 * SHARE, one->share, "two shares");
	while (one->live > 0)
		count_one_less(one);
	check_true(has_share(&two), "what one gave back the other has");
	count_one_less(one);
	check_u64(0, one->live, "never below none");
	check_u64(SHARE, one->share, "one share is kept");
}

/* Mappings are counted, whatever is cut off them. */
static void test_cuts(void)
{
	struct arena *arena = fresh(1);

	spare = SHARE;
	has_share(arena);
	arena->live = 4;
	arena->newest = pack((struct range){100, 40});
	freed_here(arena, (struct range){100, 10}, true);
	freed_here(arena, (struct range){130, 10}, true);
	check_u64(4, arena->live, "both ends cut off: still one");
	freed_here(arena, (struct range){115, 5}, true);
	check_u64(5, arena->live, "the middle: two");
	freed_here(arena, (struct range){120, 10}, true);
	freed_here(arena, (struct range){110, 5}, true);
	check_u64(3, arena->live, "both unmapped");
	check_u64(0, arena->newest, "nothing is left of it");
	freed_here(arena, (struct range){50, 10}, true);
	check_u64(2, arena->live, "an older one");
	freed_here(arena, (struct range){70, 10}, false);
	check_u64(2, arena->live, "the end of an older one");
}

/* Who was to find the region may never come back. */
static void test_torn_away(void)
{
	slot_count = 1;
	region = 0;
	turn_begin(&reserving);
	check_u64(0, find_region(), "another thread is at it");
	reserving.since = 1;
	check_true(find_region() != 0, "for so long that it is the next one's");
	check_u64(region, find_region(), "it stays where it is");
	check_u64(0, reserving.since, "the turn is over");
	region = 0;
}

/* What says that the kernel allows no more. */
static void test_ran_out(void)
{
	struct span span = {.op = OP_MMAP, .length = 4096};

	check_true(ran_out(&span, -ENOMEM), "a small mapping");
	check_true(!ran_out(&span, -EINVAL), "not any error");
	span.flags = MAP_HUGETLB;
	check_true(!ran_out(&span, -ENOMEM), "not a huge page");
	span.flags = 0;
	span.length = MOST_BYTES + 1;
	check_true(!ran_out(&span, -ENOMEM), "not a large one");
	span.op = OP_MUNMAP;
	check_true(ran_out(&span, -ENOMEM), "a split");
	span.op = OP_MREMAP;
	span.arg = 8192;
	check_true(!ran_out(&span, -ENOMEM), "not where nothing may move");
	span.flags = MREMAP_MAYMOVE;
	check_true(ran_out(&span, -ENOMEM), "a larger one");
	span.fd = 1;
	check_true(!ran_out(&span, -ENOMEM), "not to a large size");
	span.op = OP_MPROTECT;
	check_true(!ran_out(&span, -ENOMEM), "not protection of nothing");
	span.op = OP_MADVISE;
	check_true(!ran_out(&span, -ENOMEM), "not advice on nothing");
	check_true(!ran_out(&span, -EAGAIN), "not advice that came to naught");
}

static void test_end(void)
{
	struct arena *arena = fresh(1);
	struct range r;

	arena->edge = ARENA_UNITS - 4;
	check_u64(ARENA_UNITS - 4, take(arena, 4, 1).at, "up to the end");
	r = take(arena, 4, 1);
	check_u64(1, r.at, "and from the beginning again");
	skip(arena, r);
	check_u64(5 + SKIPPED_UNITS, arena->edge, "past what lies there");
	arena->edge = ARENA_UNITS;
	skip(arena, (struct range){ARENA_UNITS - 4, 4});
	check_u64(ARENA_UNITS, arena->edge, "not past the end");
	freed_here(arena, (struct range){0, 2}, true);
	check_u64(EDGE_LOST, arena->edge, "without its anchor it is given up");
	r.units = 1;
	check_true(!take_edge(arena, &r, 1), "and gives nothing out");
}

enum { LIVE = 200, STEPS = 100000 };

static bool overlaps(const struct range *live, int but, struct range r)
{
	for (int i = 0; i < LIVE; i++)
		if (i != but && live[i].at < r.at + r.units &&
		    r.at < live[i].at + live[i].units)
			return true;
	return false;
}

/* The kernel's part: a range that is in use is not given. */
static void test_any_order(uint32_t first, uint32_t most, uint32_t align,
			   unsigned count)
{
	struct arena *arena = fresh(first);
	struct range live[LIVE] = {{0, 0}};
	uint64_t random = 88172645463325252;
	int badly = 0, missed = 0;

	for (int n = 0; n < STEPS; n++) {
		int i;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		i = (int)(random % count);
		if (live[i].units != 0)
			give_back(arena, live[i]);
		live[i] =
			take(arena, 1 + (uint32_t)(random >> 32) % most, align);
		badly += live[i].at < first ||
			 (live[i].at + live[i].units) % align != 0 ||
			 live[i].at + live[i].units > ARENA_UNITS;
		if (overlaps(live, i, live[i])) {
			missed++;
			skip(arena, live[i]);
			live[i].units = 0;
		}
	}
	check_int(0, badly, "ranges that lie badly");
	check_between(0, STEPS / 20, missed, "%d were in use", missed);
	for (int i = 0; i < LIVE; i++)
		if (live[i].units != 0)
			give_back(arena, live[i]);
	check_true(arena->edge < ARENA_UNITS, "room is left");
}

/* Who frees what, by address: pieces of several arenas, and of none. */
static void test_freed(void)
{
	static struct arena books[4];
	uint64_t top = UINT64_C(1) << 45;
	struct range r = {100, 10};
	struct arena *second = &books[1];

	arenas = books;
	region_arenas = 4;
	region = top;
	arenas_made = 2;
	arenas[0].first = second->first = 1;
	arenas[0].edge = second->edge = 1000;
	freed(address_of(top, 1, r) - 8192, 4096 * 10, true);
	check_u64(pack((struct range){102, 10}), second->holes[0],
		  "in the second arena");
	freed(address_of(top, 1, r) + 1, 1, true);
	freed(top + 4096, 4096, true);
	freed(top - 3 * ARENA_BYTES, 4096, true);
	freed(4096, 4096, true);
	check_u64(109, unpack(second->holes[0]).at + 7, "joined one page more");
	check_u64(0, arenas[0].holes[0], "nothing in the first");
	freed(top - ARENA_BYTES - 8192, 16384, true);
	check_u64(EDGE_LOST, second->edge, "the second lost its anchor");
	check_u64(pack((struct range){ARENA_UNITS - 2, 2}), arenas[0].holes[0],
		  "the first got its end back");
	freed(0, UINT64_C(1) << 47, true);
	check_u64(EDGE_LOST, arenas[0].edge, "all of it");
}

/* Everybody but one made a call since the newcomer was counted. */
static void test_busy_slots(void)
{
	const uint64_t me = 4096;
	uint32_t home, i;

	slot_count = 4 * WINDOW;
	home = home_of(me);
	newcomers = 1000;
	for (i = 0; i < slot_count; i++) {
		slots[i].owner = 1 + i;
		slots[i].used = newcomers + 1;
	}
	check_u64(GUEST, find_slot(me) & GUEST, "slots in use are not taken");
	slots[(home + 1) % slot_count].used = newcomers - slot_count - 2;
	check_u64((home + 1) % slot_count, find_slot(me),
		  "one that was not used for long is");
	slots[(home + 1) % slot_count].owner = 1;
	slots[(home + 1) % slot_count].used = newcomers;
	slots[(home + WINDOW) % slot_count].owner = 0;
	check_u64((home + WINDOW) % slot_count, find_slot(me),
		  "a free one is, wherever");
	check_u64((home + WINDOW) % slot_count, find_slot(me),
		  "and is known again");
}

int main(void)
{
	test_last_in_first_out();
	test_holes();
	test_boundaries();
	test_shares();
	test_cuts();
	test_torn_away();
	test_ran_out();
	test_end();
	test_any_order(1, 40, 1, LIVE);
	test_any_order(LARGE_UNITS, 3 * LARGE_UNITS, LARGE_UNITS, LIVE / 4);
	test_freed();
	test_busy_slots();
	return check_done();
}
