/* SPDX-License-Identifier: MIT */
#include "stack.h"

#include <stddef.h>

#include "clock.h"
#include "interval.h"
#include "libc.h"
#include "log.h"
#include "modules.h"
#include "sys.h"
#include "turn.h"

#include "poison.h"

enum {
	PAGE = 4096, /* no page is smaller */
	MOST_PLACES = POOL_COUNT * LOG_MOST_SLOTS + LOG_MOST_WORST,
	SAMPLES_A_PAGE = PAGE / sizeof(struct record_sample),
	COPY_PAGES = KNOBS_MOST_STACK / RECORD_COPY_PAGE,
	/* Pages that one call gives, at most: where threads queue for the
	 * address-space lock it waits as they do, and they wait for it. */
	TOGETHER = 32,
	FEW = 8,     /* in use, before which none is given ahead */
	WINDOWS = 8, /* a second */
	/* Beyond which picks get rarer: copies in one, and pages that they are
	 * the first to use.  The kernel gives those with the address-space lock
	 * held: a thousand a second cost threads that queue for it 1 %. */
	A_WINDOW = 62,
	PAGES_A_WINDOW = 128,
	/* Copies in a second, at most: a thousand with both. */
	A_SECOND = 700,
	A_SECOND_WORST = 300,
	MOST_SPREAD = 1 << 16,
};

enum { MOST_PAGES = (1 << 27) - 1 };

/* What a thread carries. */
struct thread {
	uint32_t skip;       /* calls to the next pick of POOL_EVERY */
	uint32_t spread : 5; /* log2 of the spread that it was chosen by */
	/* What its libc-made stack has below the page with its control block;
	 * 0: not known. */
	uint32_t pages : 27;
};

static __thread struct thread this_thread;

_Static_assert(sizeof(struct thread) <= 8, "static TLS is scarce");
_Static_assert(PAGE == (int)RECORD_COPY_PAGE,
	       "a page of a copy is a page of memory");

/* Pages of the log that get memory as they come to be used, which is from the
 * first of each pool on. */
struct row {
	/* A thread gives some before they are wanted.  Torn away, it leaves
	 * that undone for a while. */
	struct turn ahead;
	uint64_t there[MOST_PLACES / 64 + 1]; /* which: a bit each */
};

struct pool {
	uint32_t slots, first;
	uint64_t head;
	/* Every spread-th candidate only is picked; a power of two. */
	uint32_t spread;
	uint32_t in_window;
};

/* So many in each second. */
struct budget {
	uint64_t second; /* ticks: when it began */
	uint32_t spent;
};

/* The calls that took longest. */
struct worst {
	uint32_t slots, first;
	struct budget budget;
	uint64_t floor; /* no call that took less is one; ticks */
	uint64_t cost[LOG_MOST_WORST];
};

static struct {
	uint32_t every;
	bool slow;
	uint64_t slow_ns, slow_ticks;
	uint64_t second_ticks;
	uint64_t size;
	uintptr_t main_low, main_top;
	char *samples;   /* NULL: the log has none */
	uint32_t places; /* for samples */
	struct pool pools[POOL_COUNT];
	struct worst worst;
	struct turn busy[MOST_PLACES]; /* a thread is at it */
	struct row sample_pages;
	struct row copies[COPY_PAGES]; /* first pages, second ones... */
	uint32_t refused;              /* 1: there is no more */
	uint64_t window;               /* ticks: when it began */
	uint32_t window_pages;         /* that its copies are the first in */
	struct budget budget;
} self;

static uint32_t load(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static uint64_t load64(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static void store(uint32_t *p, uint32_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELAXED);
}

static void store64(uint64_t *p, uint64_t value)
{
	__atomic_store_n(p, value, __ATOMIC_RELAXED);
}

/* --- settings, and the log --- */

void stack_derive(void)
{
	store64(&self.slow_ticks, clock_from_ns(load64(&self.slow_ns)));
	store64(&self.second_ticks, clock_from_ns(1000000000));
}

/* The kernel leaves as much room below the first stack pointer as the stack
 * may grow, and maps nothing there by itself. */
static uint64_t main_room(void)
{
	enum { LIMIT_STACK = 3, MOST = 1 << 30 };
	struct sys_rlimit limit;

	if (sys_getrlimit(LIMIT_STACK, &limit) != 0)
		return 0;
	return limit.soft < MOST ? limit.soft : MOST;
}

void stack_follow(const struct knobs *knobs)
{
	if (knobs->stacks_slow)
		store64(&self.slow_ns, knobs->stacks_slow_ns);
	stack_derive();
	store(&self.every, knobs->stacks_every);
	__atomic_store_n(&self.slow, knobs->stacks_slow, __ATOMIC_RELEASE);
}

void stack_init(const struct knobs *knobs, uintptr_t main_top)
{
	self.size = knobs->stack_size;
	self.main_top = main_top;
	self.main_low = main_top - main_room();
	stack_follow(knobs);
}

/* What a forked child has of its parent. */
static void forget_pools(void)
{
	for (int i = 0; i < POOL_COUNT; i++) {
		self.pools[i].head = 0;
		self.pools[i].in_window = 0;
	}
	self.worst = (struct worst){0};
	for (uint32_t i = 0; i < self.places; i++)
		turn_end(&self.busy[i]);
	self.sample_pages = (struct row){0};
	for (uint32_t i = 0; i < COPY_PAGES; i++)
		self.copies[i] = (struct row){0};
	self.window_pages = 0;
	self.refused = 0;
}

void stack_begin(void)
{
	const struct record_stacks *layout = log_layout();

	if (self.samples != NULL)
		forget_pools();
	for (int i = 0; i < POOL_COUNT; i++) {
		self.pools[i].slots = layout->pool[i].slots;
		self.pools[i].first = layout->pool[i].first;
		self.pools[i].spread = 1;
	}
	self.worst.first =
		layout->pool[POOL_SLOW].first + layout->pool[POOL_SLOW].slots;
	self.worst.slots = layout->pool[POOL_SLOW].worst;
	self.places = (uint32_t)record_samples(layout);
	self.samples = log_at(layout->samples_at);
}

/* --- whose stack is where --- */

/*
 * Mappings that libc made for threads' stacks, found by the page that ends
 * them, which the thread control block is near.  A word each: that page's
 * number and the pages before it.  One that finds no place in its row is a
 * stack that is not known.
 */
enum { ROWS = 2048, IN_ROW = 8, LENGTH_BITS = 19 };

static uint64_t stacks[ROWS][IN_ROW] __attribute__((aligned(64)));

static uint64_t *row_of(uint64_t end_page)
{
	return stacks[(end_page * UINT64_C(0x9e3779b97f4a7c15)) >> 53];
}

static uint64_t pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE;
}

static void add_stack(uint64_t start, uint64_t length)
{
	uint64_t end = pages(start + length);
	uint64_t word = end << LENGTH_BITS | pages(length);
	uint64_t *row = row_of(end);

	if (pages(length) >> LENGTH_BITS != 0)
		return;
	for (int i = 0; i < IN_ROW; i++) {
		uint64_t none = 0;

		if (__atomic_compare_exchange_n(&row[i], &none, word, false,
						__ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return;
	}
}

/* libc unmaps a stack as a whole.  One entry only: another thread may have been
 * given the same addresses by now, and have added its own. */
static void drop_stack(uint64_t start, uint64_t length)
{
	uint64_t end = pages(start + length);
	uint64_t word = end << LENGTH_BITS | pages(length);
	uint64_t *row = row_of(end);

	for (int i = 0; i < IN_ROW; i++) {
		uint64_t seen = word;

		if (load64(&row[i]) == word &&
		    __atomic_compare_exchange_n(&row[i], &seen, 0, false,
						__ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return;
	}
}

/* Where the mapping begins that ends at this page; 0: there is none. */
static uint64_t stack_start(uint64_t end)
{
	const uint64_t *row = row_of(end);

	for (int i = 0; i < IN_ROW; i++) {
		uint64_t word = load64(&row[i]);

		if (word >> LENGTH_BITS == end)
			return (end - (word & ((1 << LENGTH_BITS) - 1))) * PAGE;
	}
	return 0;
}

void stack_mapped(uint64_t start, uint64_t length, uint32_t protection,
		  uint32_t flags, bool libc_did)
{
	/* A program may choose to map where the main stack could grow. */
	if (start < self.main_top && start + length > self.main_low)
		self.main_low = start + length;
	if (libc_did && libc_maps_stacks(protection, flags))
		add_stack(start, length);
}

void stack_unmapped(uint64_t start, uint64_t length, uint64_t now)
{
	drop_stack(start, length);
	modules_unmapped(start, length, now);
}

static uintptr_t thread_pointer(void)
{
	uintptr_t tp;

#if defined(__x86_64__)
	__asm__("mov %%fs:0, %0" : "=r"(tp));
#else
	__asm__("mrs %0, tpidr_el0" : "=r"(tp));
#endif
	return tp;
}

/* Pages that the mapping with the thread control block has below the one with
 * that; 0: it is not known.  It lives as long as the thread.  Behind the block
 * there may be pages of thread-local data. */
static uint32_t libc_stack(uintptr_t tp)
{
	enum { DATA_PAGES = 16 };

	for (uint64_t page = tp / PAGE + 1; page <= tp / PAGE + DATA_PAGES;
	     page++) {
		uint64_t start = stack_start(page);

		if (start != 0 && start <= tp)
			return (uint32_t)((tp - start) / PAGE);
	}
	return 0;
}

/* Where the thread's own stack ends, that `sp` is on; 0: not known. */
static uintptr_t owned_end(uintptr_t sp)
{
	struct thread *t = &this_thread;
	uintptr_t tp, from;

	if (sp >= self.main_low && sp < self.main_top)
		return self.main_top;
	tp = thread_pointer();
	if (t->pages == 0)
		t->pages = libc_stack(tp) & MOST_PAGES;
	from = (tp / PAGE - t->pages) * PAGE;
	return t->pages != 0 && sp >= from && sp < tp ? tp : 0;
}

/* --- which calls --- */

/* Chooses how many calls one stands for: every << spread, and what `skip` holds
 * twice. */
static uint64_t choose_spread(struct thread *t, uint32_t every)
{
	unsigned spread =
		(unsigned)__builtin_ctz(load(&self.pools[POOL_EVERY].spread));

	while (spread > 0 && (uint64_t)every << spread > INT32_MAX)
		spread--;
	t->spread = spread & 31;
	return (uint64_t)every << spread < INT32_MAX ? (uint64_t)every << spread
						     : INT32_MAX;
}

/* Calls that this one stands for; 0: it is not picked. */
static uint32_t every_weight(struct thread *t, uint32_t every, uint64_t *random)
{
	uint32_t weight;

	/* Longer than any: it was chosen when N was another. */
	if (t->skip == 0 || t->skip >= (uint64_t)every << (t->spread + 1))
		t->skip = (uint32_t)interval_first(choose_spread(t, every),
						   random);
	if (--t->skip > 0)
		return 0;
	weight = every << t->spread;
	t->skip = (uint32_t)interval_next(choose_spread(t, every), random);
	return weight;
}

static uint32_t slow_weight(uint64_t *random)
{
	uint32_t spread = load(&self.pools[POOL_SLOW].spread);

	if (spread == 1)
		return 1;
	return interval_random(random) % spread == 0 ? spread : 0;
}

/* Begins one in place of that which began at `was`.  False: another thread has
 * done so. */
static bool begin_window(uint64_t was, uint64_t now)
{
	if (!__atomic_compare_exchange_n(&self.window, &was, now, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return false;
	for (int i = 0; i < POOL_COUNT; i++)
		store(&self.pools[i].in_window, 0);
	store(&self.window_pages, 0);
	return true;
}

static uint64_t window_ticks(void)
{
	return load64(&self.second_ticks) / WINDOWS;
}

/* How much rarer picks get that were too many so soon; a power of two.  Not
 * more than eight times at once: what came together may be a burst. */
static uint32_t rarer(uint64_t took)
{
	enum { MOST_AT_ONCE = 8 };
	uint32_t times = 2;

	while (times < MOST_AT_ONCE && took < window_ticks() / times)
		times *= 2;
	return times;
}

/* Too many: picks of the pool that has most of them get rarer. */
static void spread_out(uint64_t window, uint64_t now)
{
	struct pool *every = &self.pools[POOL_EVERY];
	struct pool *slow = &self.pools[POOL_SLOW];
	struct pool *pool = load(&every->in_window) >= load(&slow->in_window)
				    ? every
				    : slow;
	uint32_t spread =
		load(&pool->spread) * rarer(now > window ? now - window : 0);

	if (begin_window(window, now))
		store(&pool->spread,
		      spread < MOST_SPREAD ? spread : MOST_SPREAD);
}

/* Few in the windows that have passed: they get more frequent again. */
static void draw_in(uint64_t window, uint64_t now)
{
	enum { MOST_HALVINGS = 16 };
	uint64_t ticks = window_ticks();
	uint64_t passed = ticks == 0 ? 1 : (now - window) / ticks;
	bool few[POOL_COUNT];

	for (int i = 0; i < POOL_COUNT; i++)
		few[i] = load(&self.pools[i].in_window) < A_WINDOW / 4;
	if (!begin_window(window, now))
		return;
	for (int i = 0; i < POOL_COUNT; i++) {
		struct pool *pool = &self.pools[i];
		uint32_t spread =
			load(&pool->spread) >>
			(passed < MOST_HALVINGS ? passed : MOST_HALVINGS);

		if (few[i])
			store(&pool->spread, spread != 0 ? spread : 1);
	}
}

/* Is `now` that long after `since`?  It may be before: a thread that lost its
 * CPU comes with the time of its call. */
static bool has_passed(uint64_t since, uint64_t now, uint64_t ticks)
{
	return (int64_t)(now - since) >= (int64_t)ticks;
}

/* Spends one.  False: that would be too many.  Threads may do so at the same
 * time; what that miscounts does not matter. */
static bool spend(struct budget *budget, uint32_t most, uint64_t now)
{
	if (has_passed(load64(&budget->second), now,
		       load64(&self.second_ticks))) {
		store64(&budget->second, now);
		store(&budget->spent, 0);
	}
	if (load(&budget->spent) >= most)
		return false;
	store(&budget->spent, load(&budget->spent) + 1);
	return true;
}

/* Counts a copy of the pool.  False: one more would be too many. */
static bool keep_rate(struct pool *pool, uint64_t now)
{
	uint64_t window = load64(&self.window);

	if (has_passed(window, now, window_ticks()))
		draw_in(window, now);
	else if (load(&self.pools[POOL_EVERY].in_window) +
				 load(&self.pools[POOL_SLOW].in_window) >=
			 A_WINDOW ||
		 load(&self.window_pages) >= PAGES_A_WINDOW)
		spread_out(window, now);
	if (!spend(&self.budget, A_SECOND, now))
		return false;
	store(&pool->in_window, load(&pool->in_window) + 1);
	return true;
}

/* --- room --- */

static bool lose(int kind)
{
	__atomic_fetch_add(&log_stacks()->pool[kind].lost, 1, __ATOMIC_RELAXED);
	return false;
}

static uint64_t row_at(const struct row *row)
{
	const struct record_stacks *layout = log_layout();

	return row == &self.sample_pages
		       ? layout->samples_at
		       : record_copy_page(layout, 0,
					  (uint32_t)(row - self.copies));
}

static uint32_t row_pages(const struct row *row)
{
	return row == &self.sample_pages
		       ? (self.places + SAMPLES_A_PAGE - 1) / SAMPLES_A_PAGE
		       : self.places;
}

static bool is_there(const struct row *row, uint32_t page)
{
	return load64(&row->there[page / 64]) >> page % 64 & 1;
}

/* Notes that they have memory.  How many of them another thread gave it to. */
static uint32_t note_given(struct row *row, uint32_t from, uint32_t count)
{
	uint32_t twice = 0;

	for (uint32_t page = from; page < from + count; page++) {
		uint64_t bit = UINT64_C(1) << page % 64;

		if (__atomic_fetch_or(&row->there[page / 64], bit,
				      __ATOMIC_RELAXED) &
		    bit)
			twice++;
	}
	return twice;
}

/* Pages that one call gives: about as many as are in use, so that a program of
 * few samples pays for few. */
static uint32_t together(uint32_t used)
{
	if (used < FEW)
		return used < 2 ? 1 : used / 2;
	return used < TOGETHER ? used : TOGETHER;
}

/* Memory for so many pages from this one on, or this one at least.  False:
 * there is none; or a handler forked meanwhile, so that this is the child, in
 * whose log nothing was given. */
static bool give(struct row *row, uint32_t page, uint32_t count)
{
	const char *ours = self.samples;
	uint64_t at = row_at(row) + page * (uint64_t)PAGE;

	if (load(&self.refused))
		return false;
	if (count > row_pages(row) - page)
		count = row_pages(row) - page;
	if (count > 1 && !log_fill(at, count * (uint64_t)PAGE))
		count = 1;
	if (self.samples != ours)
		return false;
	if (count == 1 && !log_fill(at, PAGE)) {
		/* Once is enough: each time waits for the lock. */
		store(&self.refused, self.samples == ours);
		return false;
	}
	if (self.samples != ours)
		return false;
	log_filled_twice(note_given(row, page, count) * (uint64_t)PAGE);
	return true;
}

/*
 * Where a few pages more would come to one that has no memory, one thread gives
 * it.  Threads that take samples at the same time would all find it lacking,
 * and each would ask for the same.
 */
static void give_ahead(struct row *row, uint32_t page, uint32_t used)
{
	uint32_t count = together(used), end = page + 1 + count / 2;

	if (used < FEW || end >= row_pages(row) || is_there(row, end) ||
	    !turn_begin(&row->ahead))
		return;
	while (page < end && is_there(row, page))
		page++;
	give(row, page, count);
	turn_end(&row->ahead);
}

/* Memory for a page; `used`: of its pool, how many are in use about. */
static bool want(struct row *row, uint32_t page, uint32_t used)
{
	if (!is_there(row, page))
		return give(row, page, together(used));
	give_ahead(row, page, used);
	return true;
}

/* Places of the same pool up to this one: in its first lap those that are in
 * use. */
static uint32_t used_with(uint32_t place)
{
	uint32_t first = place >= self.worst.first ? self.worst.first
			 : place >= self.pools[POOL_SLOW].first
				 ? self.pools[POOL_SLOW].first
				 : self.pools[POOL_EVERY].first;

	return place - first + 1;
}

static bool fill_sample(uint32_t place)
{
	return want(&self.sample_pages, place / SAMPLES_A_PAGE,
		    used_with(place) / SAMPLES_A_PAGE + 1);
}

static bool is_busy(uint32_t place)
{
	return turn_is_taken(&self.busy[place]);
}

/* Makes the place this thread's.  False: another is at it still; of a pool's,
 * since half of that was filled. */
static bool claim(uint32_t place)
{
	return turn_begin(&self.busy[place]);
}

static void release(uint32_t place)
{
	turn_end(&self.busy[place]);
}

/* The sample there, which is nobody's until its seal. */
static struct record_sample *begin_sample(uint32_t place, uint64_t number)
{
	struct record_sample *sample =
		(struct record_sample *)self.samples + place;

	store(&sample->event.seq, 0);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	sample->number = number;
	return sample;
}

/* Takes a number in the pool.  NULL: it is not kept, or there is no room. */
static struct record_sample *take(int kind, uint64_t now)
{
	struct pool *pool = &self.pools[kind];
	uint64_t number;
	uint32_t place;

	if (pool->slots == 0) {
		lose(kind);
		return NULL;
	}
	number = __atomic_fetch_add(&pool->head, 1, __ATOMIC_RELAXED);
	/* Not number + 1, which may come after a later one. */
	__atomic_fetch_add(&log_stacks()->pool[kind].head, 1, __ATOMIC_RELAXED);
	if (number &
	    ((UINT64_C(1) << record_pool_thin(number + 1, pool->slots)) - 1))
		return NULL;
	place = pool->first + record_pool_slot(number, pool->slots);
	if (!keep_rate(pool, now) || !claim(place)) {
		lose(kind);
		return NULL;
	}
	if (!fill_sample(place)) {
		release(place);
		lose(kind);
		return NULL;
	}
	return begin_sample(place, number);
}

struct record_sample *stack_pick(uint64_t cost, uint64_t now, uint64_t *random,
				 uint32_t *weight)
{
	struct thread *t = &this_thread;
	uint32_t every = load(&self.every);
	bool slow = __atomic_load_n(&self.slow, __ATOMIC_ACQUIRE) &&
		    cost >= load64(&self.slow_ticks);

	*weight = 0;
	if (slow)
		*weight = slow_weight(random);
	else if (every != 0)
		*weight = every_weight(t, every, random);
	return *weight != 0 ? take(slow ? POOL_SLOW : POOL_EVERY, now) : NULL;
}

/* Of those that no thread is at, the one that took least; -1: none. */
static int least_of_worst(void)
{
	int least = -1;

	for (uint32_t i = 0; i < self.worst.slots; i++)
		if (!is_busy(self.worst.first + i) &&
		    (least < 0 || load64(&self.worst.cost[i]) <
					  load64(&self.worst.cost[least])))
			least = (int)i;
	return least;
}

/* Costs only grow, so what others write meanwhile makes it too low at worst. */
static void raise_floor(void)
{
	uint64_t floor = UINT64_MAX;

	for (uint32_t i = 0; i < self.worst.slots; i++)
		if (load64(&self.worst.cost[i]) < floor)
			floor = load64(&self.worst.cost[i]);
	store64(&self.worst.floor, floor);
}

/* The slot of one that took less than this, made this thread's; -1: none.
 * Many may come at once, when what they all waited for is over. */
static int displace(uint64_t cost)
{
	for (uint32_t tries = 0; tries < self.worst.slots; tries++) {
		int slot = least_of_worst();
		uint32_t place = self.worst.first + (uint32_t)slot;

		if (slot < 0 || load64(&self.worst.cost[slot]) >= cost)
			break;
		if (!claim(place))
			continue;
		if (load64(&self.worst.cost[slot]) < cost) {
			store64(&self.worst.cost[slot], cost);
			raise_floor();
			return slot;
		}
		release(place);
	}
	return -1;
}

struct record_sample *stack_pick_worst(uint64_t cost, uint64_t now)
{
	uint32_t place;
	int slot;

	if (cost <= load64(&self.worst.floor) ||
	    !__atomic_load_n(&self.slow, __ATOMIC_ACQUIRE) ||
	    cost < load64(&self.slow_ticks) ||
	    !spend(&self.worst.budget, A_SECOND_WORST, now))
		return NULL;
	slot = displace(cost);
	if (slot < 0)
		return NULL;
	place = self.worst.first + (uint32_t)slot;
	if (!fill_sample(place)) {
		release(place);
		lose(POOL_SLOW);
		return NULL;
	}
	return begin_sample(place, (uint64_t)slot);
}

/* --- the copy --- */

/* The registers that a function keeps for its caller, and where it is, as they
 * are in the function that this becomes part of. */
static inline __attribute__((always_inline)) void capture(uint64_t *registers)
{
	uintptr_t scratch;

#if defined(__x86_64__)
	__asm__ volatile("mov %%rbx, (%1)\n\t"
			 "mov %%rbp, 8(%1)\n\t"
			 "mov %%r12, 16(%1)\n\t"
			 "mov %%r13, 24(%1)\n\t"
			 "mov %%r14, 32(%1)\n\t"
			 "mov %%r15, 40(%1)\n\t"
			 "mov %%rsp, 48(%1)\n\t"
			 "lea 1f(%%rip), %0\n"
			 "1:\tmov %0, 56(%1)"
			 : "=&r"(scratch)
			 : "r"(registers)
			 : "memory");
#else
	__asm__ volatile("stp x19, x20, [%1]\n\t"
			 "stp x21, x22, [%1, 16]\n\t"
			 "stp x23, x24, [%1, 32]\n\t"
			 "stp x25, x26, [%1, 48]\n\t"
			 "stp x27, x28, [%1, 64]\n\t"
			 "stp x29, x30, [%1, 80]\n\t"
			 "mov %0, sp\n\t"
			 "str %0, [%1, 96]\n\t"
			 "adr %0, 1f\n"
			 "1:\tstr %0, [%1, 104]"
			 : "=&r"(scratch)
			 : "r"(registers)
			 : "memory");
#endif
}

#if defined(__x86_64__)
enum { STACK_POINTER = 6, CAPTURED = 8 };
#else
enum { STACK_POINTER = 12, CAPTURED = 14 };
#endif

/* Not a function that others replace, and no registers that the program may
 * still need. */
static void copy_words(uint64_t *to, const uint64_t *from, uint64_t count)
{
#if defined(__x86_64__)
	__asm__ volatile("rep movsq"
			 : "+D"(to), "+S"(from), "+c"(count)
			 :
			 : "memory");
#else
	for (; count != 0; count--) {
		*to++ = *from++;
		__asm__ volatile("" ::: "memory");
	}
#endif
}

/*
 * The end of the page that the wrapper's caller is in, or is known to be
 * beyond.  What the wrapper returns to lies above its other data, so as long as
 * that was not met the next word is there too.  (On other machines it lies
 * below.)
 */
static uintptr_t page_end(uintptr_t behind, uintptr_t caller)
{
	enum { LARGEST_FRAME = 2 * PAGE };
	uintptr_t at = (behind + 7) & ~(uintptr_t)7;

#if defined(__x86_64__)
	while (at - behind < LARGEST_FRAME && *(const uintptr_t *)at != caller)
		at += sizeof(uintptr_t);
	if (at - behind >= LARGEST_FRAME)
		at = behind;
#else
	(void)caller;
#endif
	return (at | (PAGE - 1)) + 1;
}

/* A part of the stack.  Not in the sample: others may write to the file. */
struct part {
	uintptr_t from;
	uint64_t bytes;
	enum record_end end;
};

static void cut(struct part *part, uint64_t most)
{
	if (part->bytes > most) {
		part->bytes = most;
		part->end = END_SIZE;
	}
	part->bytes &= ~UINT64_C(7);
}

/* What to copy, from part->from on. */
static void measure(struct part *part, const void *behind, const void *caller)
{
	uintptr_t end = owned_end((uintptr_t)behind);

	part->end = END_OWNER;
	if (end == 0) {
		end = page_end((uintptr_t)behind, (uintptr_t)caller);
		part->end = END_PAGE;
	}
	part->bytes = end - part->from;
	cut(part, self.size);
}

/* Is this copy the first in its place, and one of the rate? */
static bool is_first(uint32_t place, uint64_t number)
{
	const struct pool *pool =
		&self.pools[place < self.pools[POOL_SLOW].first ? POOL_EVERY
								: POOL_SLOW];

	return place < self.worst.first && number < pool->slots;
}

/* Memory for the copy, which is cut to what there is; false: there is none. */
static bool fill_copy(uint32_t place, uint64_t number, struct part *part)
{
	uint32_t page, wanted = (uint32_t)pages(part->bytes);

	for (page = 0; page < wanted; page++)
		if (!want(&self.copies[page], place, used_with(place))) {
			cut(part, page * (uint64_t)RECORD_COPY_PAGE);
			break;
		}
	if (is_first(place, number))
		__atomic_fetch_add(&self.window_pages, page, __ATOMIC_RELAXED);
	return page != 0;
}

/* Where a place's copy is: its first page, and from each to the next. */
struct copy {
	char *at;
	uint64_t stride;
};

static struct copy copy_of(uint32_t place)
{
	const struct record_stacks *layout = log_layout();
	uint64_t first = record_copy_page(layout, place, 0);

	return (struct copy){log_at(first),
			     record_copy_page(layout, place, 1) - first};
}

static void copy_part(struct copy to, const struct part *part)
{
	uint64_t at, bytes;

	for (at = 0; at < part->bytes; at += RECORD_COPY_PAGE) {
		bytes = part->bytes - at;
		if (bytes > RECORD_COPY_PAGE)
			bytes = RECORD_COPY_PAGE;
		copy_words((uint64_t *)to.at,
			   (const uint64_t *)(part->from + at), bytes / 8);
		to.at += to.stride;
	}
}

static void seal(struct record_sample *sample, const struct part *part)
{
	sample->from = part->from;
	sample->bytes = (uint32_t)part->bytes;
	sample->end = (uint8_t)part->end;
	sample->chain = 0;
	sample->event.check = record_event_check(&sample->event);
	__atomic_store_n(&sample->event.seq, (uint32_t)(sample->number + 1),
			 __ATOMIC_RELEASE);
}

/* A handler may fork in here, and what a child takes is its own log's. */
static bool is_ours(const struct record_sample *sample)
{
	uint64_t from = (uintptr_t)self.samples;

	return (uintptr_t)sample - from < self.places * sizeof(*sample);
}

uint32_t stack_copy(struct record_sample *sample, const void *behind,
		    const void *caller)
{
	uint32_t place =
		(uint32_t)(sample - (struct record_sample *)self.samples);
	uint64_t registers[CAPTURED];
	struct part part;
	struct copy to;
	bool filled;

	if (!is_ours(sample))
		return 0;
	capture(registers);
	part.from = registers[STACK_POINTER];
	measure(&part, behind, caller);
	filled = fill_copy(place, sample->number, &part);
	to = copy_of(place);
	if (!is_ours(sample))
		return 0;
	if (filled) {
		copy_words(sample->registers, registers, CAPTURED);
		copy_part(to, &part);
		seal(sample, &part);
	} else {
		lose(place < self.pools[POOL_EVERY].slots ? POOL_EVERY
							  : POOL_SLOW);
	}
	if (is_ours(sample))
		release(place);
	return filled ? 1 + place : 0;
}
