/* SPDX-License-Identifier: MIT */
/*
 * churn SECONDS CHILDREN: for so long, starts 8 threads and joins them, again
 * and again.  Each maps, protects, gives back, allocates, and checks what it
 * finds.  Meanwhile, evenly over the time, CHILDREN children are forked, one
 * after the other, and do the same.  Ends with "children: CHILDREN".
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8, LOOPS = 20, BYTES = 64 * 1024, PATIENCE_S = 20 };

static void require(int holds, const char *what)
{
	if (holds)
		return;
	perror(what);
	_exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void use_map(char value)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(at != MAP_FAILED, "mmap");
	memset(at, value, BYTES);
	require(mprotect(at, BYTES / 2, PROT_READ) == 0, "mprotect");
	require(at[1] == value, "a page that was protected changed");
	require(mprotect(at, BYTES / 2, PROT_READ | PROT_WRITE) == 0,
		"mprotect");
	require(madvise(at, BYTES / 2, MADV_DONTNEED) == 0, "madvise");
	require(at[1] == 0 && at[BYTES - 1] == value,
		"not the half that was given back changed");
	require(munmap(at, BYTES) == 0, "munmap");
}

static void use_heap(char value)
{
	char *volatile at = malloc(200000);

	require(at != NULL, "malloc");
	memset(at, value, 4096);
	require(at[4095] == value, "an allocated page changed");
	free(at);
}

static void *work(void *unused)
{
	for (int i = 0; i < LOOPS; i++) {
		use_map((char)(i + 1));
		use_heap((char)(i + 1));
	}
	return unused;
}

static void start(pthread_t *threads, int count)
{
	for (int i = 0; i < count; i++)
		require(pthread_create(&threads[i], NULL, work, NULL) == 0,
			"pthread_create");
}

static void join(const pthread_t *threads, int count)
{
	for (int i = 0; i < count; i++)
		require(pthread_join(threads[i], NULL) == 0, "pthread_join");
}

static _Noreturn void be_child(void)
{
	pthread_t thread;

	alarm(PATIENCE_S); /* a child that hangs ends, and not with 0 */
	start(&thread, 1);
	work(NULL);
	join(&thread, 1);
	_exit(0);
}

static void fork_one(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		be_child();
	require(pid > 0 && waitpid(pid, &status, 0) == pid, "fork");
	require(status == 0, "a child failed");
}

int main(int argc, char **argv)
{
	double seconds = argc == 3 ? atof(argv[1]) : 0, began = now();
	int children = argc == 3 ? atoi(argv[2]) : 0, forked = 0;
	pthread_t threads[THREADS];

	while (now() - began < seconds || forked < children) {
		start(threads, THREADS);
		if (forked < children &&
		    now() - began >= seconds * forked / children) {
			fork_one();
			forked++;
		}
		join(threads, THREADS);
	}
	printf("children: %d\n", forked);
	return 0;
}
