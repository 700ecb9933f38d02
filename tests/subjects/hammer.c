/* SPDX-License-Identifier: MIT */
/*
 * hammer [-t THREADS] [-d SECONDS] [-l COUNT]: threads map, write, protect and
 * unmap a page, all the time.  Each stamps its own start and end, as the main
 * thread may not run for seconds.  Prints
 *
 *   thread I: N calls, longest L us       one line each
 *   late: COUNT threads, longest L us     -l: meanwhile the main thread creates
 *                                         and joins so many, one by one
 *   calls: N                              of all threads
 *   slowest_share: F                      of an equal share, 1 is fair
 *   longest_us: L                         the longest call of all
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 4096, MOST = 1024 };

struct worker {
	_Alignas(64) uint64_t calls;
	uint64_t longest_ns;
};

static struct worker workers[MOST];
static pthread_barrier_t start;
static _Atomic uint64_t end_ns; /* the first thread at work sets it */
static uint64_t duration_ns = 1000000000;

static void fail(const char *what)
{
	perror(what);
	_exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The time before the next call, and before that the call's length. */
static uint64_t count(struct worker *w, uint64_t before)
{
	uint64_t after = now_ns();

	w->calls++;
	if (after - before > w->longest_ns)
		w->longest_ns = after - before;
	return after;
}

static uint64_t one_loop(struct worker *w, uint64_t now)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		fail("mmap");
	now = count(w, now);
	*at = 1;
	now = now_ns();
	if (mprotect(at, BYTES, PROT_READ) != 0)
		fail("mprotect");
	now = count(w, now);
	if (munmap(at, BYTES) != 0)
		fail("munmap");
	return count(w, now);
}

static void *hammer(void *arg)
{
	struct worker *w = arg;
	uint64_t now, unset = 0;

	pthread_barrier_wait(&start);
	now = now_ns();
	atomic_compare_exchange_strong(&end_ns, &unset, now + duration_ns);
	do
		now = one_loop(w, now);
	while (now < atomic_load(&end_ns));
	return NULL;
}

static void *map_once(void *arg)
{
	one_loop(arg, now_ns());
	return NULL;
}

static void start_late(int wanted)
{
	struct worker late = {0};
	uint64_t before, longest = 0;
	pthread_t thread;

	for (int i = 0; i < wanted; i++) {
		before = now_ns();
		if (pthread_create(&thread, NULL, map_once, &late) != 0)
			fail("pthread_create");
		pthread_join(thread, NULL);
		if (now_ns() - before > longest)
			longest = now_ns() - before;
	}
	printf("late: %d threads, longest %llu us\n", wanted,
	       (unsigned long long)longest / 1000);
}

static void print(int threads)
{
	uint64_t all = 0, least = UINT64_MAX, longest = 0;

	for (int i = 0; i < threads; i++) {
		struct worker *w = &workers[i];

		printf("thread %d: %llu calls, longest %llu us\n", i,
		       (unsigned long long)w->calls,
		       (unsigned long long)w->longest_ns / 1000);
		all += w->calls;
		least = w->calls < least ? w->calls : least;
		longest = w->longest_ns > longest ? w->longest_ns : longest;
	}
	printf("calls: %llu\n", (unsigned long long)all);
	printf("slowest_share: %.4f\n", (double)least * threads / (double)all);
	printf("longest_us: %llu\n", (unsigned long long)longest / 1000);
}

int main(int argc, char **argv)
{
	static pthread_t ids[MOST];
	int letter, threads = 4, late = 0;

	while ((letter = getopt(argc, argv, "t:d:l:")) != -1) {
		if (letter == 't')
			threads = atoi(optarg);
		else if (letter == 'd')
			duration_ns = (uint64_t)(atof(optarg) * 1e9);
		else if (letter == 'l')
			late = atoi(optarg);
		else
			return 2;
	}
	if (threads < 1 || threads > MOST || late < 0)
		return 2;
	pthread_barrier_init(&start, NULL, (unsigned)threads + (late > 0));
	for (int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, hammer, &workers[i]) != 0)
			fail("pthread_create");
	if (late > 0) {
		pthread_barrier_wait(&start);
		start_late(late);
	}
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	print(threads);
	return 0;
}
