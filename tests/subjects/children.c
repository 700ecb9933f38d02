/* SPDX-License-Identifier: MIT */
/*
 * children KIND COUNT: threads map and unmap without end while COUNT children
 * are started, one after the other, in the way that KIND names.  Each makes
 * one mremap (nobody else does) and ends.
 *
 *   fork, _Fork, rawclone, rawclone3  with memory of their own
 *   double                            a child's child
 *   handler                           forked in a signal handler
 *   vfork, clonevm, clonevfork        with their parent's memory; clonevm runs
 *                                     beside it
 * Ends with "KIND: COUNT".
 */
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, BYTES = 16 * 1024, PATIENCE_S = 20, STACK = 64 * 1024 };

static char *map(void)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		_exit(3);
	*at = 1;
	return at;
}

static void unmap(char *at, size_t bytes)
{
	if (munmap(at, bytes) != 0)
		_exit(4);
}

static void *map_for_ever(void *unused)
{
	for (;;) {
		for (int i = 0; i < 4; i++)
			unmap(map(), BYTES);
		usleep(200); /* leaves the others a CPU */
	}
	return unused;
}

/* Nothing but calls of the kernel's: libc knows nothing of raw children. */
static int child(void *unused)
{
	char *at = map();

	(void)unused;
	at = mremap(at, BYTES, BYTES / 2, 0);
	if (at == MAP_FAILED || *at != 1)
		_exit(5);
	unmap(at, BYTES / 2);
	_exit(0);
}

static pid_t raw_clone3(void)
{
	struct clone_args args = {.exit_signal = SIGCHLD};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void expect_good(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	if (pid > 0 && status == 0)
		return;
	printf("child %d: wait status %#x\n", (int)pid, (unsigned)status);
	fflush(stdout);
	_exit(1);
}

static _Noreturn void fork_again(void)
{
	pid_t pid = fork();

	if (pid == 0)
		child(NULL);
	expect_good(pid);
	_exit(0);
}

static volatile pid_t forked;

static void on_signal(int number)
{
	(void)number;
	forked = _Fork();
	if (forked == 0)
		child(NULL);
}

static pid_t fork_in_handler(void)
{
	signal(SIGUSR1, on_signal);
	pthread_kill(pthread_self(), SIGUSR1);
	return forked;
}

static pid_t start_clone(int flags)
{
	static char stack[STACK] __attribute__((aligned(16)));

	return clone(child, stack + sizeof(stack), flags | SIGCHLD, NULL);
}

/* It shares this thread's thread-local data too: both map at the same time. */
static void run_beside(void)
{
	pid_t pid = start_clone(CLONE_VM);
	int status = -1;

	while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0)
		unmap(map(), BYTES);
	if (status != 0)
		_exit(6);
}

static __attribute__((noinline)) pid_t start_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		child(NULL);
	return pid;
}

static pid_t start_own(const char *kind)
{
	if (strcmp(kind, "_Fork") == 0)
		return _Fork();
	if (strcmp(kind, "rawclone") == 0)
		return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (strcmp(kind, "rawclone3") == 0)
		return raw_clone3();
	return fork();
}

static void start_one(const char *kind)
{
	pid_t pid;

	if (strcmp(kind, "clonevm") == 0) {
		run_beside();
		return;
	}
	if (strcmp(kind, "clonevfork") == 0)
		pid = start_clone(CLONE_VM | CLONE_VFORK);
	else if (strcmp(kind, "vfork") == 0)
		pid = start_vfork();
	else if (strcmp(kind, "handler") == 0)
		pid = fork_in_handler();
	else
		pid = start_own(kind);
	if (pid == 0 && strcmp(kind, "double") == 0)
		fork_again();
	if (pid == 0)
		child(NULL);
	expect_good(pid);
}

int main(int argc, char **argv)
{
	int count = argc == 3 ? atoi(argv[2]) : 0;
	pthread_t thread;

	alarm(PATIENCE_S);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, map_for_ever, NULL) != 0)
			return 1;
	for (int i = 0; i < count; i++)
		start_one(argv[1]);
	printf("%s: %d\n", argv[1], count);
	fflush(stdout);
	_exit(0);
}
