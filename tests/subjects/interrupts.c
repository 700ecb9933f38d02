/* SPDX-License-Identifier: MIT */
/*
 * interrupts COUNT: each of some threads makes all the wrapped calls, one after
 * the other, and is interrupted a thousand times a second of its own timer's
 * and, as a profiler does it, by SIGPROF; the handlers make all the wrapped
 * calls too, in the middle of those.  Results and errno are checked everywhere.
 * Ends when every thread was interrupted COUNT times within a call.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { THREADS = 4, PAGE = 4096, BYTES = 8 * PAGE, MARK = 4711 };

static int wanted;
static atomic_int failures;
static __thread volatile sig_atomic_t in_call, interrupts;

static void expect(int good)
{
	if (!good)
		atomic_fetch_add(&failures, 1);
}

/* Succeeded, and left errno alone. */
static void fine(int good)
{
	expect(good && errno == MARK);
}

/* Failed with this error. */
static void refused(int failed, int error)
{
	expect(failed && errno == error);
	errno = MARK;
}

static void call_all(void)
{
	int error = errno;
	char *at, *to;

	errno = MARK;
	at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fine(at != MAP_FAILED);
	at[PAGE] = 42;
	refused(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			MAP_FAILED,
		EINVAL);
	fine(mprotect(at, PAGE, PROT_READ) == 0);
	refused(mprotect(at + 1, PAGE, PROT_READ) == -1, EINVAL);
	fine(madvise(at + 2 * PAGE, PAGE, MADV_DONTNEED) == 0);
	refused(madvise(at, PAGE, 12345) == -1, EINVAL);
	fine(posix_madvise(at, PAGE, POSIX_MADV_WILLNEED) == 0);
	fine(posix_madvise(at, PAGE, 12345) == EINVAL);
	fine(pkey_mprotect(at, PAGE, PROT_READ | PROT_WRITE, -1) == 0);
	refused(mremap(at + 1, PAGE, PAGE, 0) == MAP_FAILED, EINVAL);
	to = mremap(at, BYTES, 2 * BYTES, MREMAP_MAYMOVE);
	fine(to != MAP_FAILED && to[PAGE] == 42);
	refused(munmap(to + 1, PAGE) == -1, EINVAL);
	fine(munmap(to, 2 * BYTES) == 0);
	errno = error;
}

static void on_signal(int number)
{
	(void)number;
	if (in_call)
		interrupts++;
	call_all();
}

static void start_timer(void)
{
	struct sigevent to_me = {.sigev_notify = SIGEV_THREAD_ID,
				 .sigev_signo = SIGRTMIN};
	const struct itimerspec each_ms = {{0, 1000000}, {0, 1000000}};
	timer_t timer;

	to_me.sigev_notify_thread_id = (int)syscall(SYS_gettid);
	expect(timer_create(CLOCK_MONOTONIC, &to_me, &timer) == 0);
	expect(timer_settime(timer, 0, &each_ms, NULL) == 0);
}

static void *work(void *unused)
{
	sigset_t set;

	start_timer();
	while (interrupts < wanted) {
		in_call = 1;
		call_all();
		in_call = 0;
	}
	/* No handler after the thread's last look at its count. */
	sigfillset(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return unused;
}

int main(int argc, char **argv)
{
	const struct itimerval each_ms = {{0, 1000}, {0, 1000}};
	struct sigaction action = {.sa_handler = on_signal,
				   .sa_flags = SA_RESTART};
	pthread_t threads[THREADS];

	wanted = argc == 2 ? atoi(argv[1]) : 100;
	sigaction(SIGRTMIN, &action, NULL);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &each_ms, NULL);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL);
	printf("interrupts: %d or more in each of %d threads\n", wanted,
	       THREADS);
	if (failures)
		printf("failures: %d\n", atomic_load(&failures));
	return failures != 0;
}
