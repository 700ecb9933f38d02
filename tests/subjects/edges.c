/* SPDX-License-Identifier: MIT */
/*
 * edges: maps and unmaps on stacks that end where other memory, or none,
 * begins.
 *
 * usage: edges WHAT COUNT
 *   top       in the first frame of a coroutine whose stack ends at a hole
 *   neighbour the same, while another thread maps and unmaps what follows
 *   signal    on an alternate stack of the least size, between two holes
 *   tiny      in a thread on the smallest stack that libc takes
 *   twin      in a thread on the upper of two stacks in one MAP_STACK mapping,
 *             which runs a coroutine on the lower one; a guard lies between
 *   below     on a coroutine's stack where the main stack may grow
 * Prints "done".
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { PAGE = 4096, STACK = 16 * PAGE };

static int count;
static ucontext_t outside;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static char *map(void *at, size_t size, int prot, int flags)
{
	void *page = mmap(at, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | flags,
			  -1, 0);

	if (page == MAP_FAILED)
		fail("mmap");
	return page;
}

/* A stack with a hole below and above it. */
static char *between_holes(size_t size)
{
	char *at = map(NULL, size + 2 * PAGE, PROT_NONE, 0);

	if (mprotect(at + PAGE, size, PROT_READ | PROT_WRITE) != 0 ||
	    munmap(at, PAGE) != 0 || munmap(at + PAGE + size, PAGE) != 0)
		fail("between_holes");
	return at + PAGE;
}

static void work(void)
{
	for (int i = 0; i < count; i++) {
		char *page = map(NULL, PAGE, PROT_READ | PROT_WRITE, 0);

		*page = 1;
		munmap(page, PAGE);
	}
}

/* On a stack of that size, whose end the first frame is next to. */
static void work_on(char *stack, size_t size)
{
	ucontext_t inside;

	if (getcontext(&inside) != 0)
		fail("getcontext");
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = size;
	inside.uc_link = &outside;
	makecontext(&inside, work, 0);
	if (swapcontext(&outside, &inside) != 0)
		fail("swapcontext");
}

static void top(void)
{
	work_on(between_holes(STACK), STACK);
}

static atomic_int stop;

static void *flip(void *next)
{
	while (!atomic_load(&stop)) {
		map(next, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED);
		munmap(next, PAGE);
	}
	return NULL;
}

/* The hole above stays ours: nobody else's mapping is there to be replaced. */
static void neighbour(void)
{
	char *at = map(NULL, STACK + 2 * PAGE, PROT_NONE, 0);
	pthread_t thread;

	if (mprotect(at, STACK, PROT_READ | PROT_WRITE) != 0)
		fail("mprotect");
	if (pthread_create(&thread, NULL, flip, at + STACK) != 0)
		fail("pthread_create");
	work_on(at, STACK);
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
}

static void handler(int number)
{
	(void)number;
	work();
}

static void on_signal(void)
{
	size_t size = ((size_t)MINSIGSTKSZ + 2 * PAGE) & ~(size_t)(PAGE - 1);
	const stack_t to = {.ss_sp = between_holes(size), .ss_size = size};
	const struct sigaction action = {.sa_handler = handler,
					 .sa_flags = SA_ONSTACK};

	if (sigaltstack(&to, NULL) != 0 ||
	    sigaction(SIGUSR1, &action, NULL) != 0 || raise(SIGUSR1) != 0)
		fail("raise");
}

static void *in_thread(void *stack)
{
	if (stack != NULL)
		work_on(stack, STACK);
	work();
	return NULL;
}

static void run_thread(pthread_attr_t *attributes, void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, attributes, in_thread, argument) != 0 ||
	    pthread_join(thread, NULL) != 0)
		fail("pthread_create");
}

static void tiny(void)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	if (pthread_attr_setstacksize(
		    &attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)) != 0)
		fail("pthread_attr_setstacksize");
	run_thread(&attributes, NULL);
}

static void twin(void)
{
	char *at =
		map(NULL, 2 * STACK + PAGE, PROT_READ | PROT_WRITE, MAP_STACK);
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	if (mprotect(at + STACK, PAGE, PROT_NONE) != 0 ||
	    pthread_attr_setstack(&attributes, at + STACK + PAGE, STACK) != 0)
		fail("twin");
	run_thread(&attributes, at);
}

static void below(void)
{
	uintptr_t here = (uintptr_t)&here & ~(uintptr_t)(PAGE - 1);

	work_on(map((void *)(here - (4 << 20)), STACK, PROT_READ | PROT_WRITE,
		    MAP_FIXED_NOREPLACE),
		STACK);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {
		{"top", top},   {"neighbour", neighbour}, {"signal", on_signal},
		{"tiny", tiny}, {"twin", twin},           {"below", below},
	};

	count = argc > 2 ? atoi(argv[2]) : 1;
	for (size_t i = 0; argc > 1 && i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i].name, argv[1]) == 0) {
			all[i].run();
			puts("done");
			return 0;
		}
	fprintf(stderr, "usage: edges WHAT COUNT\n");
	return 2;
}
