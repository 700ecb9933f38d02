/* SPDX-License-Identifier: MIT */
/*
 * endings THREADS: maps where things end.  Threads map in the destructors of
 * their thread-specific data, in each of the rounds that POSIX allows, and end
 * with all signals blocked, having used their stack, which libc then gives
 * back; some are detached.  exit() maps in atexit handlers, in destructors and
 * in on_exit.  Prints how many did.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 16384, AT_ONCE = 8, ROUNDS = PTHREAD_DESTRUCTOR_ITERATIONS };

static atomic_int in_destructors, detached, failures;
static pthread_key_t key;

static void map_once(void)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || (*at = 1, munmap(at, BYTES)) != 0)
		atomic_fetch_add(&failures, 1);
}

static void on_thread_end(void *value)
{
	int *rounds = value;

	map_once();
	atomic_fetch_add(&in_destructors, 1);
	if (++*rounds < ROUNDS)
		pthread_setspecific(key, value);
	else
		free(value);
}

static void use_stack(void)
{
	volatile char large[256 * 1024];

	for (size_t i = 0; i < sizeof(large); i += 1024)
		large[i] = 1;
}

static void *work(void *is_detached)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	pthread_setspecific(key, calloc(1, sizeof(int)));
	use_stack();
	map_once();
	if (is_detached != NULL)
		atomic_fetch_add(&detached, 1);
	return NULL;
}

static void run_threads(int count)
{
	pthread_t threads[AT_ONCE];

	for (int i = 0; i < count; i += AT_ONCE) {
		for (int k = 0; k < AT_ONCE; k++)
			if (pthread_create(&threads[k], NULL, work,
					   k % 2 ? &detached : NULL) != 0)
				exit(1);
		for (int k = 0; k < AT_ONCE; k++)
			if (k % 2)
				pthread_detach(threads[k]);
			else
				pthread_join(threads[k], NULL);
	}
	/* Detached threads are done when they have counted themselves. */
	while (atomic_load(&in_destructors) < count * ROUNDS)
		usleep(1000);
}

static void say(const char *where)
{
	map_once();
	printf("%s: %s\n", where, failures == 0 ? "mapped" : "failed");
	fflush(stdout);
}

static void last_handler(void)
{
	say("atexit");
}

static void on_end(int status, void *unused)
{
	(void)status;
	(void)unused;
	say("on_exit");
}

__attribute__((destructor(101))) static void destruct(void)
{
	say("destructor");
}

int main(int argc, char **argv)
{
	int count = argc == 2 ? atoi(argv[1]) / AT_ONCE * AT_ONCE : AT_ONCE;

	atexit(last_handler);
	on_exit(on_end, NULL);
	pthread_key_create(&key, on_thread_end);
	run_threads(count);
	printf("destructors: %d\n", atomic_load(&in_destructors));
	return failures != 0;
}
