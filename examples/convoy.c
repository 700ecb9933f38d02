/* SPDX-License-Identifier: MIT */
/*
 * convoy: very many tasks, each with short calls and little work between.
 *
 * A report of 2008: a lock that was handed to the longest waiter, although
 * that one did not run yet, made a benchmark of 2000 tasks 67 % slower: the
 * lock belonged to sleepers, and CPUs idled beside work that was ready.  The
 * cure was to wake one, but to let any running task take the lock.  Both ways
 * are written out here, as the mutex in the source.
 */
#include "common.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PASSES 4

static const char *const mode_names[] = {"plain", "each", "handoff", NULL};
enum { MODE_PLAIN, MODE_EACH, MODE_HANDOFF };

/* A task that waits for the lock to become its own. */
struct waiter {
	alignas(COMMON_LINE_BYTES) sem_t turn;
	struct waiter *next;
};

static unsigned int chosen_mode;
static size_t page_bytes;
static struct waiter *waiters; /* of each thread */

/* held stays true when the lock is handed over. */
static struct {
	pthread_mutex_t guard;
	bool held;
	struct waiter *first;
	struct waiter **end;
} handoff = {PTHREAD_MUTEX_INITIALIZER, false, NULL, &handoff.first};

static void enter_handoff(struct waiter *self)
{
	bool wait;

	pthread_mutex_lock(&handoff.guard);
	wait = handoff.held;
	handoff.held = true;
	if (wait) {
		self->next = NULL;
		*handoff.end = self;
		handoff.end = &self->next;
	}
	pthread_mutex_unlock(&handoff.guard);
	while (wait && sem_wait(&self->turn))
		;
}

static void leave_handoff(void)
{
	struct waiter *next;

	pthread_mutex_lock(&handoff.guard);
	next = handoff.first;
	if (next) {
		handoff.first = next->next;
		if (!handoff.first)
			handoff.end = &handoff.first;
	} else {
		handoff.held = false;
	}
	pthread_mutex_unlock(&handoff.guard);
	if (next)
		sem_post(&next->turn);
}

static void enter_call(unsigned int thread)
{
	if (chosen_mode == MODE_HANDOFF)
		enter_handoff(&waiters[thread]);
	else
		common_enter_call();
}

static void leave_call(void)
{
	if (chosen_mode == MODE_HANDOFF)
		leave_handoff();
	else
		common_leave_call();
}

static char *map_page(unsigned int thread)
{
	char *page;

	enter_call(thread);
	page = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	leave_call();
	if (page == MAP_FAILED)
		common_fail("mmap of a page: %s, give fewer threads with -t",
			    strerror(errno));
	return page;
}

static void protect_page(unsigned int thread, char *page, int prot)
{
	int result;

	enter_call(thread);
	result = mprotect(page, page_bytes, prot);
	leave_call();
	if (result)
		common_fail("mprotect of a page to %d: %s", prot,
			    strerror(errno));
}

static void unmap_page(unsigned int thread, char *page)
{
	int result;

	enter_call(thread);
	result = munmap(page, page_bytes);
	leave_call();
	if (result)
		common_fail("munmap of a page: %s", strerror(errno));
}

static void increase_words(char *page)
{
	volatile uint64_t *words = (volatile uint64_t *)(void *)page;

	for (size_t i = 0; i < page_bytes / sizeof(*words); i++)
		words[i] += 1;
}

static void check_words(const char *page, uint64_t value)
{
	const volatile uint64_t *words =
		(const volatile uint64_t *)(const void *)page;

	for (size_t i = 0; i < page_bytes / sizeof(*words); i++)
		if (words[i] != value)
			common_fail("word %zu holds %" PRIu64 ", not %" PRIu64,
				    i, words[i], value);
}

/* Loops 0, 2, .. check and read only, loops 1, 3, .. write. */
static void one_job(unsigned int thread, char *page, uint64_t loop)
{
	bool writes = loop % 2;

	protect_page(thread, page, writes ? PROT_READ | PROT_WRITE : PROT_READ);
	for (int pass = 0; pass < PASSES; pass++) {
		if (writes)
			increase_words(page);
		else
			check_words(page, loop / 2 * PASSES);
	}
}

static void work(struct common_worker *worker)
{
	char *page = map_page(worker->index);

	while (common_more(worker))
		one_job(worker->index, page, worker->done);
	check_words(page, worker->done / 2 * PASSES);
	unmap_page(worker->index, page);
}

static unsigned int usable_cpus(void)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		return 1;
	return (unsigned int)CPU_COUNT(&cpus);
}

static void print_idle(const struct common_usage *usage)
{
	unsigned int cpus = usable_cpus();
	double used = usage->user_s + usage->system_s;
	double idle = 1 - used / (usage->elapsed_s * cpus);

	printf("\n%.0f jobs a minute; %.0f %% of the time of %u CPUs unused\n",
	       (double)usage->ops / usage->elapsed_s * 60,
	       idle > 0 ? idle * 100 : 0, cpus);
}

static void make_waiters(unsigned int threads)
{
	waiters = aligned_alloc(COMMON_LINE_BYTES, threads * sizeof(*waiters));
	if (!waiters)
		common_fail("no memory for %u threads", threads);
	for (unsigned int i = 0; i < threads; i++)
		sem_init(&waiters[i].turn, 0, 0);
}

static void take_option(int letter, const char *value)
{
	chosen_mode = common_choice(letter, value, mode_names);
	if (chosen_mode == MODE_EACH)
		common_use_mutex();
}

/* clang-format off */
static const struct common_spec spec = {
	.name = "convoy",
	.about =
"Each thread maps a page; a job makes it read-only and checks all of it, the\n"
"next job makes it writable again and adds to each word of it.\n"
"Calls: 1 mprotect a loop, and 1 mmap and 1 munmap a thread.\n",
	.letters = "m:",
	.usage = " [-m MUTEX]",
	.options =
"  -m MUTEX     the mutex in the source, held over each single call:\n"
"               plain: none (default)\n"
"               each: a futex mutex; who runs may take it before who waits\n"
"               handoff: handed to the longest waiter, before that one runs\n",
	.example = "-t 500 -d 2.5 -m handoff",
	.option = take_option,
	.threads = 2000,
	.iterations = 100,
};
/* clang-format on */

int main(int argc, char **argv)
{
	const struct common_options *options = common_start(&spec, argc, argv);
	struct common_usage usage;

	page_bytes = common_page_size();
	make_waiters(options->threads);
	printf("convoy: %s, mutex in the source: %s\n\n", common_size(),
	       mode_names[chosen_mode]);
	common_run(work, &usage);
	common_print_usage(&usage);
	print_idle(&usage);
	free(waiters);
	putchar('\n');
	return common_finish(usage.ops, usage.elapsed_s);
}
