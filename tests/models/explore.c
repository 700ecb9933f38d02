/* SPDX-License-Identifier: MIT */
/* A checked longjmp refuses to change stacks. */
#undef _FORTIFY_SOURCE
#include "explore.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
	STACK_BYTES = 4096,
	STACK_SPARE = 64, /* must stay untouched */
	LOCAL_BYTES = 64,
	MAX_DEPTH = 10000,
	FIRST_SEEN = 1 << 16,
	MAX_IMAGES = 1 << 20,
};

#define LEAP_NS UINT64_C(1000000000000)

/* What of a thread changes only while it runs.  Few are different, so each is
 * kept once and a state names them by number. */
struct fibre {
	char *sp; /* its stack is alive from here up */
	jmp_buf *resume;
	const char *next;        /* what it is about to do */
	const volatile void *at; /* and to which object */
	char local[LOCAL_BYTES];
};

struct image {
	struct fibre fibre;
	char stack[];
};

struct thread {
	const volatile void *asleep; /* the word it sleeps on */
	uint32_t image;
	int result; /* of its sleep */
	uint8_t status;
	uint8_t choices; /* it waits for one of so many; 0: it does not */
	uint8_t chosen;
	bool slept; /* has not run since it last fell asleep */
};

/* All of a state but the model's shared memory. */
struct world {
	struct thread thread[MODEL_THREADS];
	uint64_t now;
	int leaps, kills, jumps, forks;
	uint64_t forked;
};

static struct world world;
static struct fibre live; /* of the running thread */
static _Alignas(64) char stacks[MODEL_THREADS][STACK_BYTES];
static struct image *images[MAX_IMAGES];
static uint32_t image_count;
static const struct model *model;
static jmp_buf scheduler;
static int running;
static const char *failure;
static bool quiet;

static void *allocate(size_t count, size_t size)
{
	void *p = calloc(count, size);

	if (p == NULL) {
		perror("explore");
		exit(1);
	}
	return p;
}

/* --- hashes --- */

struct hash {
	uint64_t a, b;
};

struct table {
	struct {
		struct hash hash;
		uint32_t number;
	} * slot;
	size_t size, used;
};

static inline struct hash mix(struct hash h, uint64_t word)
{
	h.a = (h.a ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	h.a ^= h.a >> 29;
	h.b = (h.b + word) * UINT64_C(0xc2b2ae3d27d4eb4f);
	h.b ^= h.b >> 31;
	return h;
}

static struct hash hash_of(const void *data, size_t bytes, struct hash h)
{
	const char *from = data;

	for (size_t i = 0; i + 8 <= bytes; i += 8) {
		uint64_t word;

		memcpy(&word, from + i, 8);
		h = mix(h, word);
	}
	if (bytes % 8 != 0) {
		uint64_t word = 0;

		memcpy(&word, from + bytes / 8 * 8, bytes % 8);
		h = mix(h, word);
	}
	return h;
}

/* Its number when the hash is there, else `number`, which it then gets. */
static uint32_t insert(struct table *t, struct hash h, uint32_t number)
{
	size_t i = h.a & (t->size - 1);

	for (; t->slot[i].number != 0; i = (i + 1) & (t->size - 1))
		if (t->slot[i].hash.a == h.a && t->slot[i].hash.b == h.b)
			return t->slot[i].number;
	t->slot[i].hash = h;
	t->slot[i].number = number;
	t->used++;
	return number;
}

static void grow(struct table *t)
{
	struct table bigger = {.size = t->size != 0 ? t->size * 2 : FIRST_SEEN};

	if (2 * t->used < t->size)
		return;
	bigger.slot = allocate(bigger.size, sizeof(*bigger.slot));
	for (size_t i = 0; i < t->size; i++)
		if (t->slot[i].number != 0)
			insert(&bigger, t->slot[i].hash, t->slot[i].number);
	free(t->slot);
	*t = bigger;
}

static struct table seen, known_images;

/* --- fibres --- */

static inline char *stack_pointer(void)
{
	char *sp;

#if defined(__x86_64__)
	__asm__ volatile("mov %%rsp, %0" : "=r"(sp));
#else
	__asm__ volatile("mov %0, sp" : "=r"(sp));
#endif
	return sp;
}

/* Back to the scheduler, until it resumes this thread. */
static __attribute__((noinline)) void switch_out(void)
{
	jmp_buf here;

	memset(&here, 0, sizeof(here));
	live.resume = &here;
	live.sp = stack_pointer();
	if (_setjmp(here) == 0)
		_longjmp(scheduler, 1);
}

static size_t stack_bytes(const struct fibre *f, int thread)
{
	return (size_t)(stacks[thread] + STACK_BYTES - f->sp);
}

/* Keeps what the thread that just ran is now. */
static void capture(int thread)
{
	static const char spare[STACK_SPARE];
	struct hash h = {1, 2};
	size_t bytes = stack_bytes(&live, thread);
	uint32_t number;
	struct image *image;

	if (memcmp(stacks[thread], spare, STACK_SPARE) != 0) {
		fprintf(stderr, "explore: a fibre's stack is full\n");
		exit(1);
	}
	if (model->local != NULL)
		memcpy(live.local, model->local, model->local_size);
	h = hash_of(&live, sizeof(live), h);
	h = hash_of(live.sp, bytes, h);
	number = insert(&known_images, h, image_count + 1);
	world.thread[thread].image = number;
	if (number != image_count + 1)
		return;
	grow(&known_images);
	if (++image_count == MAX_IMAGES) {
		fprintf(stderr, "explore: too many states of one thread\n");
		exit(1);
	}
	image = allocate(1, sizeof(*image) + bytes);
	image->fibre = live;
	memcpy(image->stack, live.sp, bytes);
	images[number] = image;
}

/* Runs a thread to its next point.  Unused stack is wiped first, so that equal
 * states are equal bytes. */
static __attribute__((noinline)) void resume(int thread)
{
	const struct image *image = images[world.thread[thread].image];

	running = thread;
	world.thread[thread].slept = false;
	live = image->fibre;
	memset(stacks[thread], 0, (size_t)(live.sp - stacks[thread]));
	memcpy(live.sp, image->stack, stack_bytes(&live, thread));
	if (model->local != NULL)
		memcpy(model->local, live.local, model->local_size);
	if (_setjmp(scheduler) == 0)
		_longjmp(*live.resume, 1);
	capture(running);
}

static void trampoline(void)
{
	live.next = "starts";
	live.at = NULL;
	switch_out();
	model->body(running);
	world.thread[running].status = MODEL_DONE;
	for (;;)
		switch_out();
}

/* Puts a thread to the start of its body; its thread-local memory stays. */
static __attribute__((noinline)) void start(int thread)
{
	static ucontext_t context, dropped;

	running = thread;
	memset(stacks[thread], 0, STACK_BYTES);
	getcontext(&context);
	context.uc_stack.ss_sp = stacks[thread];
	context.uc_stack.ss_size = STACK_BYTES;
	context.uc_link = NULL;
	makecontext(&context, trampoline, 0);
	if (_setjmp(scheduler) == 0)
		swapcontext(&dropped, &context);
	capture(running);
}

/* --- states --- */

struct snapshot {
	struct world world;
	char shared[];
};

static size_t shared_bytes(void)
{
	size_t bytes = 0;

	for (int i = 0; model->shared[i].at != NULL; i++)
		bytes += model->shared[i].size;
	return bytes;
}

static struct snapshot *take_snapshot(void)
{
	struct snapshot *s = malloc(sizeof(*s) + shared_bytes());
	char *to;

	if (s == NULL) {
		perror("explore");
		exit(1);
	}
	s->world = world;
	to = s->shared;
	for (int i = 0; model->shared[i].at != NULL; i++) {
		memcpy(to, model->shared[i].at, model->shared[i].size);
		to += model->shared[i].size;
	}
	return s;
}

static void restore(const struct snapshot *s)
{
	const char *from = s->shared;

	world = s->world;
	for (int i = 0; model->shared[i].at != NULL; i++) {
		memcpy(model->shared[i].at, from, model->shared[i].size);
		from += model->shared[i].size;
	}
}

/* Is this state a new one? */
static bool note_state(void)
{
	struct hash h = {1, 2};
	size_t before = seen.used;

	h = hash_of(&world, sizeof(world), h);
	for (int i = 0; model->shared[i].at != NULL; i++)
		h = hash_of(model->shared[i].at, model->shared[i].size, h);
	insert(&seen, h, 1);
	if (seen.used == before)
		return false;
	grow(&seen);
	return true;
}

/* --- the schedule, for people --- */

struct trace {
	int thread;
	const char *what;
	const volatile void *at;
	bool has_value;
	uint64_t value;
	int chosen; /* -1: no choice */
};

static struct trace trace[MAX_DEPTH];
static int depth;

static const char *object_name(const volatile void *at)
{
	static char name[32];

	for (int i = 0; i < model->lock_count; i++) {
		if (at == &model->locks[i].word)
			snprintf(name, sizeof(name), "lock %d word", i);
		else
			continue;
		return name;
	}
	return at != NULL ? "state" : "";
}

static void print_trace(void)
{
	for (int i = 0; i <= depth; i++) {
		const struct trace *t = &trace[i];

		printf("#   thread %d %s %s", t->thread, t->what,
		       object_name(t->at));
		if (t->chosen >= 0)
			printf(" (choice %d)", t->chosen);
		if (t->has_value)
			printf(": %#llx", (unsigned long long)t->value);
		putchar('\n');
	}
}

static void note_value(uint64_t value)
{
	trace[depth].has_value = true;
	trace[depth].value = value;
}

/* --- depth first --- */

static void explore_state(void);

/* One edge: thread `t` goes on, and then everything that may follow. */
static void follow(int thread, const char *what)
{
	const struct thread *t = &world.thread[thread];

	trace[depth] = (struct trace){
		.thread = thread,
		.what = what != NULL ? what : images[t->image]->fibre.next,
		.at = what != NULL ? NULL : images[t->image]->fibre.at,
		.chosen = t->choices > 0 ? t->chosen : -1};
	resume(thread);
	depth++;
	explore_state();
	depth--;
}

static void bury(int thread)
{
	world.thread[thread].status = MODEL_DEAD;
	world.thread[thread].asleep = NULL;
	world.thread[thread].image = 0;
}

static bool can_fault(const struct thread *t)
{
	return t->status == MODEL_READY || t->status == MODEL_ASLEEP;
}

static void strike(int thread, enum model_fault fault)
{
	struct thread *t = &world.thread[thread];

	if (model->fault != NULL)
		model->fault(thread, fault, t->slept);
	if (fault == MODEL_KILLED) {
		bury(thread);
		return;
	}
	if (fault == MODEL_JUMPED) {
		start(thread);
		t->status = MODEL_READY;
		t->asleep = NULL;
		return;
	}
	for (int i = 0; i < model->threads; i++)
		if (i != thread && world.thread[i].status != MODEL_DONE)
			bury(i);
	world.forked = 1;
	if (t->status == MODEL_ASLEEP) {
		t->status = MODEL_READY;
		t->asleep = NULL;
		t->result = -EINTR;
	}
}

static void follow_fault(const struct snapshot *s, int thread, int *budget,
			 enum model_fault fault)
{
	static const char *const names[] = {
		[MODEL_KILLED] = "is killed",
		[MODEL_JUMPED] = "jumps away",
		[MODEL_FORKED] = "forks, here is its child",
	};

	if (*budget == 0 || !can_fault(&world.thread[thread]) ||
	    failure != NULL)
		return;
	--*budget;
	strike(thread, fault);
	trace[depth] = (struct trace){
		.thread = thread, .what = names[fault], .chosen = -1};
	depth++;
	explore_state();
	depth--;
	if (failure == NULL)
		restore(s);
}

static void follow_wake_up(const struct snapshot *s, int thread, int result,
			   const char *what)
{
	struct thread *t = &world.thread[thread];

	if (failure != NULL || t->status != MODEL_ASLEEP)
		return;
	t->status = MODEL_READY;
	t->asleep = NULL;
	t->result = result;
	follow(thread, what);
	if (failure == NULL)
		restore(s);
}

static void follow_choices(const struct snapshot *s, int thread)
{
	int choices = world.thread[thread].choices;

	for (int i = 0; i < choices && failure == NULL; i++) {
		world.thread[thread].chosen = (uint8_t)i;
		follow(thread, NULL);
		if (failure == NULL)
			restore(s);
	}
}

/* The thread that waits for a choice, or -1: nobody else runs before it has
 * it. */
static int chooser(void)
{
	for (int i = 0; i < model->threads; i++)
		if (world.thread[i].status == MODEL_READY &&
		    world.thread[i].choices > 0)
			return i;
	return -1;
}

static bool at_rest(void)
{
	bool sleepers = false;

	for (int i = 0; i < model->threads; i++) {
		if (world.thread[i].status == MODEL_READY)
			return false;
		sleepers |= world.thread[i].status == MODEL_ASLEEP;
	}
	return sleepers;
}

static void follow_all(const struct snapshot *s, bool rest)
{
	for (int i = 0; i < model->threads && failure == NULL; i++) {
		if (world.thread[i].status == MODEL_READY) {
			follow(i, NULL);
			if (failure == NULL)
				restore(s);
		}
		if (model->timeouts || rest)
			follow_wake_up(s, i, -ETIMEDOUT, "times out");
		if (model->signals && !rest)
			follow_wake_up(s, i, -EINTR, "gets a signal");
		follow_fault(s, i, &world.kills, MODEL_KILLED);
		follow_fault(s, i, &world.jumps, MODEL_JUMPED);
		follow_fault(s, i, &world.forks, MODEL_FORKED);
	}
}

static void explore_state(void)
{
	bool rest = at_rest();
	struct snapshot *s;
	int thread;

	if (rest && failure == NULL)
		model->at_rest();
	if (depth + 1 >= MAX_DEPTH)
		failure = "no end in sight";
	if (failure != NULL) {
		depth--;
		if (!quiet)
			print_trace();
		depth++;
		return;
	}
	if (!note_state())
		return;
	s = take_snapshot();
	thread = chooser();
	if (thread >= 0)
		follow_choices(s, thread);
	else
		follow_all(s, rest);
	free(s);
}

static void begin(const struct model *m)
{
	model = m;
	grow(&seen);
	grow(&known_images);
	failure = NULL;
	depth = 0;
	memset(&world, 0, sizeof(world));
	world.now = 1;
	world.leaps = m->leaps;
	world.kills = m->kills;
	world.jumps = m->jumps;
	world.forks = m->forks;
	m->reset();
	for (int i = 0; i < MODEL_THREADS; i++)
		world.thread[i].status = MODEL_DONE;
	for (int i = 0; i < m->threads; i++) {
		world.thread[i].status = MODEL_READY;
		start(i);
	}
}

static void end(void)
{
	for (uint32_t i = 1; i <= image_count; i++)
		free(images[i]);
	image_count = 0;
	free(seen.slot);
	free(known_images.slot);
	memset(&seen, 0, sizeof(seen));
	memset(&known_images, 0, sizeof(known_images));
}

bool explore(const struct model *m, bool expected, const char **report,
	     unsigned long *states)
{
	begin(m);
	quiet = expected;
	explore_state();
	*states = seen.used;
	*report = failure;
	end();
	return failure == NULL;
}

/* --- what models and the code under test call --- */

void model_fail(const char *why)
{
	if (failure == NULL)
		failure = why;
}

void model_step(const char *what, const volatile void *at)
{
	live.next = what;
	live.at = at;
	switch_out();
}

int model_choose(int choices)
{
	struct thread *t = &world.thread[running];

	if (choices < 2)
		return 0;
	t->choices = (uint8_t)choices;
	live.next = "goes on";
	live.at = NULL;
	switch_out();
	t->choices = 0;
	return t->chosen;
}

enum model_status model_status(int thread)
{
	return (enum model_status)world.thread[thread].status;
}

const volatile void *model_sleeps_on(int thread)
{
	return world.thread[thread].asleep;
}

bool model_forked(void)
{
	return world.forked != 0;
}

/* Stamps decide nothing: not a step, always 0. */
static bool is_stamp(const volatile void *at)
{
	uintptr_t p = (uintptr_t)at;

	for (int i = 0; i < model->lock_count; i++) {
		uintptr_t woken = (uintptr_t)model->locks[i].woken;

		if (p >= woken && p < woken + sizeof(model->locks[i].woken))
			return true;
	}
	return false;
}

#define DEFINE_ACCESSES(bits)                                                  \
	uint##bits##_t model_load##bits(const _Atomic uint##bits##_t *p)       \
	{                                                                      \
		uint##bits##_t value;                                          \
                                                                               \
		if (is_stamp(p))                                               \
			return 0;                                              \
		model_step("reads", p);                                        \
		value = *p;                                                    \
		note_value(value);                                             \
		return value;                                                  \
	}                                                                      \
                                                                               \
	void model_store##bits(_Atomic uint##bits##_t *p,                      \
			       uint##bits##_t value)                           \
	{                                                                      \
		if (is_stamp(p))                                               \
			return;                                                \
		model_step("writes", p);                                       \
		*p = value;                                                    \
		note_value(value);                                             \
	}                                                                      \
                                                                               \
	uint##bits##_t model_exchange##bits(_Atomic uint##bits##_t *p,         \
					    uint##bits##_t value)              \
	{                                                                      \
		uint##bits##_t old;                                            \
                                                                               \
		model_step("exchanges and gets", p);                           \
		old = *p;                                                      \
		*p = value;                                                    \
		note_value(old);                                               \
		return old;                                                    \
	}                                                                      \
                                                                               \
	bool model_swap##bits(_Atomic uint##bits##_t *p,                       \
			      uint##bits##_t *expected, uint##bits##_t value)  \
	{                                                                      \
		bool equal;                                                    \
                                                                               \
		if (is_stamp(p))                                               \
			return false;                                          \
		model_step("compares and swaps, finding", p);                  \
		note_value(*p);                                                \
		equal = *p == *expected;                                       \
		*expected = *p;                                                \
		if (equal)                                                     \
			*p = value;                                            \
		return equal;                                                  \
	}                                                                      \
                                                                               \
	uint##bits##_t model_add##bits(_Atomic uint##bits##_t *p,              \
				       uint##bits##_t value)                   \
	{                                                                      \
		uint##bits##_t old;                                            \
                                                                               \
		model_step("adds to", p);                                      \
		old = *p;                                                      \
		*p = old + value;                                              \
		note_value(old);                                               \
		return old;                                                    \
	}

DEFINE_ACCESSES(32)
DEFINE_ACCESSES(64)

long model_futex_wait(const volatile void *word, uint32_t seen_value,
		      const struct sys_timespec *timeout)
{
	struct thread *t = &world.thread[running];

	if (timeout == NULL)
		model_fail("a sleep without a limit");
	model_step("falls asleep if it still is so, on", word);
	note_value(*(const volatile uint32_t *)word);
	if (*(const volatile uint32_t *)word != seen_value)
		return -EAGAIN;
	t->status = MODEL_ASLEEP;
	t->asleep = word;
	t->slept = true;
	live.next = "wakes up on";
	live.at = word;
	switch_out();
	return t->result;
}

/* The kernel wakes in order of arrival and priority; here, any of them. */
static bool wake_one(const volatile void *word)
{
	int sleeper[MODEL_THREADS], count = 0;
	struct thread *t;

	for (int i = 0; i < model->threads; i++)
		if (world.thread[i].status == MODEL_ASLEEP &&
		    world.thread[i].asleep == word)
			sleeper[count++] = i;
	if (count == 0)
		return false;
	t = &world.thread[sleeper[model_choose(count)]];
	t->status = MODEL_READY;
	t->asleep = NULL;
	t->result = 0;
	return true;
}

long model_futex_wake(const volatile void *word, int count)
{
	int woken = 0;

	model_step("wakes sleepers on", word);
	if (count >= MODEL_THREADS) {
		for (int i = 0; i < model->threads; i++) {
			struct thread *t = &world.thread[i];

			if (t->status != MODEL_ASLEEP || t->asleep != word)
				continue;
			t->status = MODEL_READY;
			t->asleep = NULL;
			t->result = 0;
			woken++;
		}
	} else {
		while (woken < count && wake_one(word))
			woken++;
	}
	note_value((uint64_t)woken);
	return woken;
}

uint64_t model_clock(void)
{
	if (world.leaps > 0 && model_choose(2) == 1) {
		world.leaps--;
		world.now += LEAP_NS;
	}
	return world.now;
}
