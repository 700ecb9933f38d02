/* SPDX-License-Identifier: MIT */
/*
 * handlers MODE: threads map and unmap while a timer interrupts them 1,000
 * times a second, until enough interrupts came in the middle of a call.  What
 * the handler does is the mode:
 *
 *   protect  toggles the protection of a page
 *   jump     leaves by siglongjmp
 *   fork     forks a child that maps
 *   vfork    (no handler) the main thread starts children by vfork that map
 *
 * Ends with "interrupted: N", N being the same in every run of a mode.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, BYTES = 64 * 1024 };

static atomic_int interrupted, wanted, failures;
static char *page;
static const char *mode;

static __thread volatile sig_atomic_t in_call;
static __thread sigjmp_buf back;

static void expect(int good)
{
	if (!good)
		atomic_fetch_add(&failures, 1);
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
	expect(munmap(at, BYTES) == 0);
	in_call = 0;
}

static _Noreturn void child(void)
{
	void *at = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	_exit(at == MAP_FAILED || munmap(at, BYTES) != 0);
}

static void reap(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	expect(pid > 0 && status == 0);
}

static void protect(void)
{
	expect(mprotect(page, 4096, PROT_READ) == 0);
	expect(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
}

static void fork_once(void)
{
	pid_t pid = _Fork();

	if (pid == 0)
		child();
	reap(pid);
}

static void on_timer(int number)
{
	int error = errno;

	(void)number;
	if (in_call && atomic_load(&interrupted) < atomic_load(&wanted)) {
		atomic_fetch_add(&interrupted, 1);
		if (*mode == 'p')
			protect();
		else if (*mode == 'f')
			fork_once();
		else
			siglongjmp(back, 1);
	}
	errno = error;
}

static void mask_timer(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(how, &set, NULL);
}

static void *work(void *unused)
{
	mask_timer(SIG_UNBLOCK);
	while (atomic_load(&interrupted) < atomic_load(&wanted)) {
		if (sigsetjmp(back, 1) != 0)
			in_call = 0;
		map_once();
	}
	return unused;
}

static void start_timer(void)
{
	const struct itimerval each_ms = {{0, 1000}, {0, 1000}};
	struct sigaction action = {.sa_handler = on_timer,
				   .sa_flags = SA_RESTART};

	sigaction(SIGALRM, &action, NULL);
	mask_timer(SIG_BLOCK); /* in the main thread: the others get it */
	setitimer(ITIMER_REAL, &each_ms, NULL);
}

static __attribute__((noinline)) void vfork_once(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		child();
	reap(pid);
	atomic_fetch_add(&interrupted, 1);
}

static void start_by_vfork(void)
{
	while (atomic_load(&interrupted) < atomic_load(&wanted))
		vfork_once();
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc != 2)
		return 2;
	mode = argv[1];
	wanted = *mode == 'j' ? 20 : 200;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (*mode != 'v')
		start_timer();
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			return 1;
	if (*mode == 'v')
		start_by_vfork();
	for (int i = 0; i < THREADS; i++)
		while (pthread_join(threads[i], NULL) == EINTR)
			;
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	printf("interrupted: %d\n", atomic_load(&interrupted));
	if (failures)
		printf("failures: %d\n", atomic_load(&failures));
	return failures != 0;
}
