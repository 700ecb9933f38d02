/* SPDX-License-Identifier: MIT */
/*
 * stops MODE COUNT: threads map and unmap, and are stopped in the middle of it.
 *
 *   collect  COUNT times, all are stopped by a signal, as a garbage collector
 *            does it: the handler waits.  The collector then maps itself, and
 *            lets them go on.
 *   jump     COUNT times, one is stopped so in the middle of a call; the others
 *            run into whatever that call holds, get a signal, and jump out of
 *            its handler to their next call.
 *   alone    COUNT times, the only thread jumps out of a call that a timer
 *            interrupted, and then makes 3,000 pairs of calls.
 *   advise   the same, and advises between the two.
 *   cancel   COUNT times, threads that may be cancelled at any instant are.
 *
 * Prints "MODE: COUNT" and "longest_ms: N", the longest that the main thread
 * took for one call of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, BYTES = 16384 };

static atomic_int stopped, done, failures, cleaned;
static _Atomic unsigned rounds; /* of those who were stopped and let go */
static uint64_t longest_ns;
static pthread_t threads[THREADS];
static __thread volatile sig_atomic_t in_call;
static bool advises; /* between map and unmap, which some locks share */
static __thread sigjmp_buf back;

static void expect(int good)
{
	if (!good)
		atomic_fetch_add(&failures, 1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void map_once(void)
{
	void *volatile at;

	in_call = 1;
	at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	in_call = 0;
	expect(at != MAP_FAILED);
	*(volatile char *)at = 1;
	in_call = 1;
	if (advises)
		expect(madvise(at, BYTES, MADV_DONTNEED) == 0);
	expect(munmap(at, BYTES) == 0);
	in_call = 0;
}

static void map_timed(void)
{
	uint64_t before = now_ns(), took;

	map_once();
	took = now_ns() - before;
	if (took > longest_ns)
		longest_ns = took;
}

static void pause_briefly(void)
{
	nanosleep(&(struct timespec){0, 200000}, NULL);
}

static void *map_until_done(void *unused)
{
	sigsetjmp(back, 1);
	in_call = 0;
	while (!atomic_load(&done))
		map_once();
	return unused;
}

/* --- stopping: SIGUSR1 stops, SIGUSR2 lets go or makes jump --- */

static void on_stop(int number)
{
	unsigned round = atomic_load(&rounds);
	int error = errno;
	sigset_t all_but_go;

	(void)number;
	sigfillset(&all_but_go);
	sigdelset(&all_but_go, SIGUSR2);
	atomic_fetch_add(&stopped, 1);
	while (atomic_load(&rounds) == round)
		sigsuspend(&all_but_go);
	errno = error;
}

static void on_stop_in_call(int number)
{
	if (in_call)
		on_stop(number);
	else
		atomic_store(&stopped, -1); /* try again */
}

static void on_go(int number)
{
	(void)number;
}

static void on_jump(int number)
{
	(void)number;
	if (in_call && !pthread_equal(pthread_self(), threads[0]))
		siglongjmp(back, 1);
}

static void handle(int number, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler};

	/* SIGUSR2 arrives in sigsuspend only. */
	sigaddset(&action.sa_mask, SIGUSR2);
	sigaction(number, &action, NULL);
}

static void start_threads(void *(*body)(void *))
{
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, body, NULL) != 0)
			exit(1);
}

static void join_threads(void)
{
	atomic_store(&done, 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void collect(int count)
{
	handle(SIGUSR1, on_stop);
	handle(SIGUSR2, on_go);
	start_threads(map_until_done);
	for (int i = 0; i < count; i++) {
		atomic_store(&stopped, 0);
		for (int k = 0; k < THREADS; k++)
			pthread_kill(threads[k], SIGUSR1);
		while (atomic_load(&stopped) != THREADS)
			pause_briefly();
		for (int k = 0; k < 10; k++)
			map_timed();
		atomic_fetch_add(&rounds, 1);
		for (int k = 0; k < THREADS; k++)
			pthread_kill(threads[k], SIGUSR2);
	}
	join_threads();
}

/* Stops the first thread in the middle of a call. */
static void stop_first(void)
{
	int seen = -1;

	while (seen != 1) {
		atomic_store(&stopped, 0);
		pthread_kill(threads[0], SIGUSR1);
		while ((seen = atomic_load(&stopped)) == 0)
			pause_briefly();
	}
}

static void jump(int count)
{
	handle(SIGUSR1, on_stop_in_call);
	handle(SIGUSR2, on_jump);
	start_threads(map_until_done);
	for (int i = 0; i < count; i++) {
		stop_first();
		/* Whoever is not stuck yet is so after a while. */
		for (int k = 1; k < THREADS; k++) {
			pause_briefly();
			pthread_kill(threads[k], SIGUSR2);
		}
		pause_briefly();
		atomic_fetch_add(&rounds, 1);
		in_call = 0; /* the main thread's, for the handler there */
		pthread_kill(threads[0], SIGUSR2);
		map_timed();
	}
	join_threads();
}

/* --- a thread alone --- */

static volatile sig_atomic_t wants_jump;

static void on_timer(int number)
{
	(void)number;
	if (in_call && wants_jump) {
		wants_jump = 0;
		siglongjmp(back, 1);
	}
}

static void alone(int count)
{
	const struct itimerval each_ms = {{0, 1000}, {0, 1000}};

	handle(SIGALRM, on_timer);
	setitimer(ITIMER_REAL, &each_ms, NULL);
	for (volatile int i = 0; i < count; i++) {
		wants_jump = 1;
		if (sigsetjmp(back, 1) == 0)
			for (;;)
				map_once();
		for (int k = 0; k < 3000; k++)
			map_once();
	}
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
}

/* --- cancellation --- */

static void on_cancel(void *unused)
{
	(void)unused;
	atomic_fetch_add(&cleaned, 1);
}

static void *map_until_cancelled(void *ready)
{
	int old;

	pthread_cleanup_push(on_cancel, NULL);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	sem_post(ready);
	for (;;)
		map_once();
	pthread_cleanup_pop(1);
	return NULL;
}

static void cancel(int count)
{
	sem_t ready;
	pthread_t thread;
	void *result;

	sem_init(&ready, 0, 0);
	start_threads(map_until_done);
	for (int i = 0; i < count; i++) {
		if (pthread_create(&thread, NULL, map_until_cancelled,
				   &ready) != 0)
			exit(1);
		while (sem_wait(&ready) != 0)
			;
		pause_briefly();
		expect(pthread_cancel(thread) == 0);
		expect(pthread_join(thread, &result) == 0 &&
		       result == PTHREAD_CANCELED);
		map_timed();
	}
	expect(atomic_load(&cleaned) == count);
	join_threads();
}

int main(int argc, char **argv)
{
	int count = argc == 3 ? atoi(argv[2]) : 0;

	if (count <= 0)
		return 2;
	if (strcmp(argv[1], "collect") == 0)
		collect(count);
	else if (strcmp(argv[1], "jump") == 0)
		jump(count);
	else if (strcmp(argv[1], "alone") == 0)
		alone(count);
	else if (strcmp(argv[1], "advise") == 0)
		advises = true, alone(count);
	else if (strcmp(argv[1], "cancel") == 0)
		cancel(count);
	else
		return 2;
	printf("%s: %d\n", argv[1], count);
	if (failures)
		printf("failures: %d\n", atomic_load(&failures));
	printf("longest_ms: %llu\n", (unsigned long long)longest_ns / 1000000);
	return failures != 0;
}
