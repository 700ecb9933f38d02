/* SPDX-License-Identifier: MIT */
/*
 * One region of address space, where the kernel itself would have put it when
 * the second thread came, cut into arenas of equal size.  All is counted from
 * the top: the first arenas lie there, below room for what the kernel places by
 * itself, and each grows downwards.  Nothing of it is mapped but the anchors: a
 * readable and writable page at the start of each arena in use.  It keeps the
 * arena's page table, and a mapping beside it is a longer area for the kernel,
 * not a new one.  (Below it: the nodes of the kernel's tree of areas end with
 * an area, never with a gap, so that moving the lower end of one stays within a
 * node, and moving the upper end may rebuild two, each time.)
 *
 * A thread is known by the address of its thread-local data: two that live at
 * once never share it, and a new thread that is given a dead one's takes over
 * its arenas, warm as they are.  So nobody need tell when a thread ends.
 *
 * An arena's books: all from its edge on was not given out yet, and holes are
 * what was given back below.  What they lose is found again when the edge has
 * gone round.  A fork's child goes on with its copy of all this, and of the
 * arenas.
 *
 * The kernel itself fills every hole, these books do not, and in the end each
 * mapping may be an area of its own.  The kernel counts areas before it looks
 * at an address, so nothing can be mended when there are too many: arenas hold
 * half as many mappings as it allows areas, and the rest is left to it.
 */
#include "place.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "clock.h"
#include "sys.h"
#include "text.h"
#include "turn.h"
#include "world.h"

#include "poison.h"

#define ARENA_BYTES (UINT64_C(1) << 30)
#define LARGE_BYTES (UINT64_C(1) << 21) /* what a huge page takes */
#define MOST_BYTES (ARENA_BYTES / 8)
#define RESERVATION_BYTES (UINT64_C(1) << 24) /* of PROT_NONE: too many */
#define ASIDE_NS UINT64_C(10000000000)

enum {
	UNIT_SHIFT = 12, /* the books count in units of 4 KiB */
	ARENA_UNITS = (int)(ARENA_BYTES >> UNIT_SHIFT),
	SKIPPED_UNITS = ARENA_UNITS / 32,
	HOLES = 13,
	SHARE = 16,        /* mappings that an arena may have, at a time */
	SLOTS = 512,       /* threads with arenas of their own */
	WINDOW = 16,       /* slots that a thread looks at first */
	ROOM_SHARE = 16,   /* the kernel's part of the region: a 16th */
	SMALL_REGION = 16, /* arenas where there is little address space */
	TRIES = 8,
	MAPPINGS_A_SLOT = 64, /* of those that the kernel allows a process */
};

/* Mappings below 2 MiB, and the others.  Multiples of 2 MiB begin on a boundary
 * of 2 MiB as the kernel's own do; what it did to other sizes left a gap beside
 * each. */
enum zone { ZONE_SMALL, ZONE_LARGE, ZONES };

struct slot {
	_Atomic uint64_t owner;        /* a thread, 0: nobody yet */
	_Atomic uint32_t used;         /* newcomers when it was last used */
	_Atomic uint16_t arena[ZONES]; /* 1 + number; 0: none */
};

/* Units from the top of an arena on. */
struct range {
	uint32_t at, units;
};

struct arena {
	_Alignas(64) _Atomic uint32_t edge;
	_Atomic uint32_t first; /* unit behind the anchor; 0: not made yet */
	_Atomic uint32_t live;  /* mappings in it */
	_Atomic uint32_t share; /* as many may be */
	/* at << 32 | units; 0: none */
	_Atomic uint64_t newest; /* of the mappings */
	_Atomic uint64_t holes[HOLES];
};

_Static_assert(sizeof(struct arena) == 128, "place.h says what books take");

#define EDGE_LOST UINT32_MAX /* somebody unmapped the anchor */

bool place_in_use;

static uint64_t page_bytes;
static uint32_t slot_count;

static struct slot slots[SLOTS];
static struct arena *arenas;

static _Atomic uint64_t region; /* its end; 0: not yet */
static struct turn reserving;
static uint32_t region_arenas; /* set before it */
static _Atomic uint32_t arenas_made;
static _Atomic uint32_t spare; /* mappings that no arena has a share for */

static uint64_t main_thread;
static _Atomic bool has_threads; /* another than that has mapped */
static _Atomic uint32_t newcomers;
static _Atomic uint64_t aside_until; /* ns; 0: not aside */

/* This thread's slot, if it is still its own, or as a guest's. */
static __thread uint32_t my_slot;

#define GUEST UINT32_C(0x80000000)

/* --- the start --- */

static uint64_t thread_self(void)
{
	return (uintptr_t)&my_slot;
}

static uint64_t allowed_mappings(void)
{
	char digits[24];
	long fd = sys_openat(-1, "/proc/sys/vm/max_map_count", 0, 0);
	long n = sys_failed(fd) ? 0 : sys_read((int)fd, digits, sizeof(digits));
	uint64_t count;

	if (!sys_failed(fd))
		sys_close((int)fd);
	if (n > 1 && text_parse_u64(digits, (size_t)n - 1, &count) == 0)
		return count;
	return 65530; /* the kernel's default */
}

static bool is_limited(int which)
{
	struct sys_rlimit limit;

	return sys_getrlimit(which, &limit) == 0 && limit.soft != UINT64_MAX;
}

/* Memory for the books that only who places has.  Marked so that the kernel
 * seldom joins a mapping of the program's to it. */
static bool make_books(void)
{
	long at = sys_mmap(NULL, SLOTS * ZONES * sizeof(*arenas),
			   PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (sys_failed(at))
		return false;
	arenas = (struct arena *)at;
	return true;
}

const char *place_init(uint64_t page_size)
{
	uint64_t allowed = allowed_mappings();
	uint64_t count = allowed / MAPPINGS_A_SLOT;

	if (is_limited(RLIMIT_AS))
		return "address space is limited (RLIMIT_AS)";
	if (is_limited(RLIMIT_DATA))
		return "data is limited (RLIMIT_DATA)";
	if (count < WINDOW)
		return "too few mappings are allowed (vm.max_map_count)";
	if (!make_books())
		return "there is no memory for its books";
	slot_count = count < SLOTS ? (uint32_t)count : SLOTS;
	atomic_store(&spare, (uint32_t)(allowed / 2));
	page_bytes = page_size;
	main_thread = thread_self();
	place_in_use = true;
	return NULL;
}

/* --- stepping aside: more areas of the kernel's, or more memory, might be
 * what the program fails for --- */

static void step_aside(void)
{
	atomic_store(&aside_until, clock_monotonic() + ASIDE_NS);
}

static bool is_aside(void)
{
	uint64_t until =
		atomic_load_explicit(&aside_until, memory_order_relaxed);

	if (__builtin_expect(until == 0, 1))
		return false;
	if (clock_monotonic() < until)
		return true;
	atomic_compare_exchange_strong(&aside_until, &until, 0);
	return false;
}

/* --- how many mappings arenas hold --- */

/* Is there room for one more?  Shares, so that threads seldom meet here. */
static bool has_share(struct arena *arena)
{
	uint32_t left;

	if (atomic_load_explicit(&arena->live, memory_order_relaxed) <
	    atomic_load_explicit(&arena->share, memory_order_relaxed))
		return true;
	left = atomic_load(&spare);
	do {
		if (left < SHARE)
			return false;
	} while (!atomic_compare_exchange_weak(&spare, &left, left - SHARE));
	atomic_fetch_add(&arena->share, SHARE);
	return true;
}

static void return_shares(struct arena *arena, uint32_t live)
{
	uint32_t share =
		atomic_load_explicit(&arena->share, memory_order_relaxed);

	while (share >= live + 2 * SHARE)
		if (atomic_compare_exchange_weak(&arena->share, &share,
						 share - SHARE)) {
			atomic_fetch_add(&spare, SHARE);
			share -= SHARE;
		}
}

static void count_one_less(struct arena *arena)
{
	uint32_t live =
		atomic_load_explicit(&arena->live, memory_order_relaxed);

	/* It may have been the kernel that placed it here. */
	while (live > 0 &&
	       !atomic_compare_exchange_weak(&arena->live, &live, live - 1))
		;
	if (live > 0)
		return_shares(arena, live - 1);
}

/* --- an arena's books --- */

static uint64_t pack(struct range r)
{
	return (uint64_t)r.at << 32 | r.units;
}

static struct range unpack(uint64_t hole)
{
	return (struct range){(uint32_t)(hole >> 32), (uint32_t)hole};
}

/* The first range of so many units from `at` on whose address is a multiple of
 * `align` units. */
static uint32_t align_at(uint32_t at, uint32_t units, uint32_t align)
{
	return ((at + units + align - 1) & ~(align - 1)) - units;
}

/* Adds a hole in place of nothing, or of the smallest if that is smaller. */
static void keep(struct arena *arena, struct range r)
{
	_Atomic uint64_t *least = NULL;
	uint64_t seen = 0;

	if (r.units == 0)
		return;
	for (int i = 0; i < HOLES; i++) {
		uint64_t hole = atomic_load_explicit(&arena->holes[i],
						     memory_order_relaxed);

		if (least != NULL && (uint32_t)hole >= (uint32_t)seen)
			continue;
		least = &arena->holes[i];
		seen = hole;
		if (hole == 0)
			break;
	}
	if ((uint32_t)seen < r.units)
		atomic_compare_exchange_strong(least, &seen, pack(r));
}

/* Takes a hole that touches the range into it. */
static bool join(struct arena *arena, struct range *r)
{
	for (int i = 0; i < HOLES; i++) {
		uint64_t hole = atomic_load_explicit(&arena->holes[i],
						     memory_order_relaxed);
		struct range h = unpack(hole);

		if (hole == 0 ||
		    (h.at + h.units != r->at && r->at + r->units != h.at))
			continue;
		if (!atomic_compare_exchange_strong(&arena->holes[i], &hole, 0))
			continue;
		r->at = h.at < r->at ? h.at : r->at;
		r->units += h.units;
		return true;
	}
	return false;
}

static void give_back(struct arena *arena, struct range r)
{
	uint32_t end;

	while (join(arena, &r))
		;
	end = r.at + r.units;
	if (!atomic_compare_exchange_strong(&arena->edge, &end, r.at))
		keep(arena, r);
}

/* Some map more than they want, to cut the ends off: what is left of the newest
 * mapping is still one.  Of others nobody knows where they end: they count as
 * unmapped whole. */
static bool is_cut(struct arena *arena, struct range r)
{
	struct range newest = unpack(
		atomic_load_explicit(&arena->newest, memory_order_relaxed));
	uint32_t before = r.at - newest.at;
	uint32_t after = newest.units - before - r.units;

	if (r.at < newest.at || before + r.units > newest.units)
		return false;
	if (before > 0 && after > 0)
		atomic_fetch_add(&arena->live, 1);
	if (before == 0)
		newest.at += r.units;
	newest.units = before > 0 ? before : after;
	atomic_store(&arena->newest, newest.units > 0 ? pack(newest) : 0);
	return newest.units > 0;
}

/* A hole that is large enough, the smallest such. */
static bool take_hole(struct arena *arena, struct range *r, uint32_t align)
{
	struct range best = {0, UINT32_MAX}, rest;
	_Atomic uint64_t *from = NULL;
	uint64_t seen;

	for (int i = 0; i < HOLES; i++) {
		struct range h = unpack(atomic_load_explicit(
			&arena->holes[i], memory_order_relaxed));

		if (h.units >= best.units ||
		    align_at(h.at, r->units, align) + r->units > h.at + h.units)
			continue;
		best = h;
		from = &arena->holes[i];
	}
	seen = pack(best);
	if (from == NULL || !atomic_compare_exchange_strong(from, &seen, 0))
		return false;
	r->at = align_at(best.at, r->units, align);
	keep(arena, (struct range){best.at, r->at - best.at});
	rest.at = r->at + r->units;
	rest.units = best.at + best.units - rest.at;
	keep(arena, rest);
	return true;
}

/* From the edge on; at the arena's end, from its beginning again.  What a
 * boundary leaves in between is a hole. */
static bool take_edge(struct arena *arena, struct range *r, uint32_t align)
{
	uint32_t edge = atomic_load(&arena->edge);

	do {
		if (edge == EDGE_LOST)
			return false;
		r->at = align_at(edge, r->units, align);
		if (r->at + r->units > ARENA_UNITS)
			r->at = align_at(arena->first, r->units, align);
	} while (!atomic_compare_exchange_weak(&arena->edge, &edge,
					       r->at + r->units));
	if (r->at > edge)
		keep(arena, (struct range){edge, r->at - edge});
	return true;
}

/* Something else lies in the range: on past it. */
static void skip(struct arena *arena, struct range r)
{
	uint32_t edge = r.at + r.units, next = edge + SKIPPED_UNITS;

	atomic_compare_exchange_strong(&arena->edge, &edge,
				       next < ARENA_UNITS ? next : ARENA_UNITS);
}

/* --- arenas --- */

/* Address of the range's first byte, in the arena of that number. */
static uint64_t address_of(uint64_t top, uint32_t number, struct range r)
{
	return top - number * ARENA_BYTES -
	       ((uint64_t)(r.at + r.units) << UNIT_SHIFT);
}

/* The kernel says where there is room for so many arenas. */
static uint64_t reserve(uint32_t count)
{
	uint64_t room = count * ARENA_BYTES / ROOM_SHARE;
	uint64_t whole = count * ARENA_BYTES + room + ARENA_BYTES;
	long at = sys_mmap(NULL, whole, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (sys_failed(at))
		return 0;
	sys_munmap((void *)at, whole);
	region_arenas = count;
	return ((uint64_t)at + whole - room) & ~(ARENA_BYTES - 1);
}

/* The region's end, 0: there is none (yet). */
static uint64_t find_region(void)
{
	uint64_t top = atomic_load(&region), other = 0;

	if (top != 0 || !turn_begin(&reserving))
		return top;
	top = atomic_load(&region); /* somebody's turn is over by now */
	if (top == 0)
		top = reserve(slot_count * ZONES);
	if (top == 0)
		top = reserve(SMALL_REGION);
	if (top == 0)
		step_aside();
	else if (!atomic_compare_exchange_strong(&region, &other, top))
		top = other;
	turn_end(&reserving);
	return top;
}

/* Maps the page that ends the arena's `first` units.  1: it is there; 0: it
 * could only be had elsewhere; -1: not at all. */
static int anchor(uint64_t top, uint32_t number, uint32_t first)
{
	uint64_t at = address_of(top, number, (struct range){0, first});
	long got = sys_mmap((void *)at, page_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (sys_failed(got))
		return -1;
	if ((uint64_t)got == at)
		return 1;
	sys_munmap((void *)got, page_bytes);
	return 0;
}

/* The number of an arena that nobody has, or where they end. */
static uint32_t next_arena(void)
{
	uint32_t number = atomic_load(&arenas_made);

	while (number < region_arenas &&
	       !atomic_compare_exchange_weak(&arenas_made, &number, number + 1))
		;
	return number;
}

/* There was no memory for it.  If others were made since, it is lost. */
static void give_arena_back(uint32_t number)
{
	uint32_t next = number + 1;

	atomic_compare_exchange_strong(&arenas_made, &next, number);
}

/* A new arena's number + 1, or 0. */
static uint32_t make_arena(uint64_t top, enum zone zone)
{
	uint32_t first =
		(uint32_t)((zone == ZONE_LARGE ? LARGE_BYTES : page_bytes) >>
			   UNIT_SHIFT);

	for (int i = 0; i < TRIES; i++) {
		uint32_t number = next_arena();
		int got;

		if (number == region_arenas)
			return 0;
		got = anchor(top, number, first);
		if (got < 0) {
			give_arena_back(number);
			break;
		}
		if (got == 0)
			continue;
		atomic_store(&arenas[number].edge, first);
		atomic_store(&arenas[number].first, first);
		return number + 1;
	}
	step_aside();
	return 0;
}

static __attribute__((noinline)) uint32_t
new_arena(struct slot *slot, enum zone zone, uint16_t lost)
{
	uint64_t top = find_region();
	uint32_t number = top != 0 ? make_arena(top, zone) : 0;

	/* A guest may have been first: then one arena is wasted. */
	if (number != 0)
		atomic_compare_exchange_strong(&slot->arena[zone], &lost,
					       (uint16_t)number);
	return number;
}

static struct arena *slot_arena(struct slot *slot, enum zone zone)
{
	uint16_t seen = atomic_load(&slot->arena[zone]);
	uint32_t number = seen;

	if (seen == 0 ||
	    atomic_load_explicit(&arenas[seen - 1].edge,
				 memory_order_relaxed) == EDGE_LOST)
		number = new_arena(slot, zone, seen);
	return number != 0 ? &arenas[number - 1] : NULL;
}

/* --- threads --- */

/* Has a second thread mapped anything yet? */
static bool are_threads(uint64_t me)
{
	if (atomic_load_explicit(&has_threads, memory_order_relaxed))
		return true;
	if (me == main_thread)
		return false;
	atomic_store(&has_threads, true);
	return true;
}

static uint32_t home_of(uint64_t me)
{
	return (uint32_t)((me * UINT64_C(0x9e3779b97f4a7c15)) >> 40) %
	       slot_count;
}

static bool take_slot(struct slot *slot, uint64_t me)
{
	uint64_t owner =
		atomic_load_explicit(&slot->owner, memory_order_relaxed);

	return owner == me || (owner == 0 && atomic_compare_exchange_strong(
						     &slot->owner, &owner, me));
}

/* The thread's slot: a dead thread's with the same address, a free one, one
 * that was not used for long; else somebody's, as a guest. */
static __attribute__((noinline)) uint32_t find_slot(uint64_t me)
{
	uint32_t home = home_of(me), now = atomic_fetch_add(&newcomers, 1);
	int32_t age = 0, unused, old = (int32_t)slot_count;
	uint32_t oldest = home;
	uint64_t owner;

	for (uint32_t i = 0; i < slot_count; i++) {
		uint32_t n = (home + i) % slot_count;

		if (i == WINDOW && age > old)
			break;
		if (take_slot(&slots[n], me))
			return n;
		/* Below 0: it was used since. */
		unused = (int32_t)(now - atomic_load(&slots[n].used));
		if (unused > age) {
			age = unused;
			oldest = n;
		}
	}
	owner = atomic_load(&slots[oldest].owner);
	if (age > old &&
	    atomic_compare_exchange_strong(&slots[oldest].owner, &owner, me))
		return oldest;
	return oldest | GUEST;
}

static struct slot *thread_slot(uint64_t me)
{
	uint32_t n = my_slot;
	struct slot *slot;

	if (!(n & GUEST) &&
	    atomic_load_explicit(&slots[n].owner, memory_order_relaxed) != me)
		my_slot = n = find_slot(me);
	slot = &slots[n & ~GUEST];
	atomic_store_explicit(
		&slot->used,
		atomic_load_explicit(&newcomers, memory_order_relaxed),
		memory_order_relaxed);
	return slot;
}

/* --- calls --- */

static bool is_placeable(const struct span *s)
{
	const uint32_t needed = MAP_PRIVATE | MAP_ANONYMOUS;
	const uint32_t allowed = needed | MAP_NORESERVE | MAP_POPULATE |
				 MAP_LOCKED | MAP_NONBLOCK;

	return s->addr == 0 && s->length - 1 < MOST_BYTES &&
	       (s->flags & needed) == needed && (s->flags & ~allowed) == 0 &&
	       !(s->arg & PROT_EXEC) &&
	       (s->arg != PROT_NONE || s->length < RESERVATION_BYTES);
}

static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + page_bytes - 1) & ~(page_bytes - 1);
}

static uint32_t units_of(uint64_t bytes)
{
	return (uint32_t)(whole_pages(bytes) >> UNIT_SHIFT);
}

void place_choose(struct span *span)
{
	uint64_t me = thread_self();
	enum zone zone = span->length < LARGE_BYTES ? ZONE_SMALL : ZONE_LARGE;
	bool whole = span->length % LARGE_BYTES == 0;
	uint32_t align = whole ? LARGE_BYTES >> UNIT_SHIFT : 1;
	struct range r = {0, units_of(span->length)};
	struct arena *arena;

	if (!is_placeable(span) || !world_active(world_self()) ||
	    !are_threads(me) || is_aside())
		return;
	arena = slot_arena(thread_slot(me), zone);
	if (arena == NULL || !has_share(arena))
		return;
	if (take_hole(arena, &r, align) || take_edge(arena, &r, align))
		span->hint = address_of(atomic_load(&region),
					(uint32_t)(arena - arenas), r);
}

/* The arena at that distance from the region's end, or NULL when there is none
 * in use. */
static struct arena *arena_at(uint64_t at)
{
	uint64_t number = at / ARENA_BYTES;

	if (number >= atomic_load(&arenas_made) ||
	    atomic_load(&arenas[number].first) == 0)
		return NULL;
	return &arenas[number];
}

static void freed_here(struct arena *arena, struct range r, bool whole)
{
	uint32_t anchor_at = arena->first - units_of(1);

	if (r.at >= arena->first) {
		if (!is_cut(arena, r) && whole)
			count_one_less(arena);
		give_back(arena, r);
	} else if (r.at + r.units > anchor_at) {
		atomic_store(&arena->edge, EDGE_LOST);
	}
}

/* The address range is free now, whoever mapped and unmapped it.  whole: it was
 * a mapping, as far as is known, and not the end of one. */
static void freed(uint64_t addr, uint64_t length, bool whole)
{
	uint64_t top = atomic_load_explicit(&region, memory_order_acquire);
	uint64_t end = addr + whole_pages(length);
	uint64_t all = region_arenas * ARENA_BYTES, from, to;

	if (top == 0 || addr >= top)
		return;
	from = end < top ? top - end : 0;
	to = top - addr < all ? top - addr : all;
	while (from < to) {
		uint64_t next = from - from % ARENA_BYTES + ARENA_BYTES;
		uint64_t size = (next < to ? next : to) - from;
		struct arena *arena = arena_at(from);
		struct range r = {(uint32_t)(from % ARENA_BYTES >> UNIT_SHIFT),
				  units_of(size)};

		if (arena != NULL)
			freed_here(arena, r, whole);
		from = next;
	}
}

static void learn_mmap(const struct span *span, long result)
{
	uint64_t at = atomic_load(&region) - span->hint;
	struct range r = {0, units_of(span->length)};
	struct arena *arena;

	if (span->hint == span->addr)
		return;
	at -= (uint64_t)r.units << UNIT_SHIFT;
	arena = arena_at(at);
	r.at = (uint32_t)(at % ARENA_BYTES >> UNIT_SHIFT);
	if (arena == NULL)
		return;
	if (sys_failed(result)) {
		give_back(arena, r);
	} else if ((uint64_t)result != span->hint) {
		skip(arena, r);
	} else {
		atomic_fetch_add(&arena->live, 1);
		atomic_store_explicit(&arena->newest, pack(r),
				      memory_order_relaxed);
	}
}

static void learn_mremap(const struct span *span, uint64_t result)
{
	uint64_t left = whole_pages(span_new_length(span));

	if (result != span->addr) {
		if (!(span->flags & MREMAP_DONTUNMAP))
			freed(span->addr, span->length, true);
	} else if (left < span->length) {
		freed(span->addr + left, span->length - left, false);
	}
}

/* Was it for want of areas, or of memory?  Other calls say ENOMEM where nothing
 * is mapped, or there is no room to grow; and of large pieces and of huge pages
 * programs try for more than there is. */
static bool ran_out(const struct span *span, long result)
{
	if (result != -ENOMEM)
		return false;
	switch (span->op) {
	case OP_MMAP:
		return span->length <= MOST_BYTES &&
		       !(span->flags & MAP_HUGETLB);
	case OP_MUNMAP:
		return true;
	case OP_MREMAP:
		return span->flags & MREMAP_MAYMOVE &&
		       span_new_length(span) <= MOST_BYTES;
	default:
		return false;
	}
}

void place_learn(const struct span *span, long result)
{
	if (!world_active(world_self()))
		return;
	if (span->op == OP_MMAP)
		learn_mmap(span, result);
	else if (span->op == OP_MUNMAP && result == 0)
		freed(span->addr, span->length, true);
	else if (span->op == OP_MREMAP && !sys_failed(result))
		learn_mremap(span, (uint64_t)result);
	if (ran_out(span, result))
		step_aside();
}
