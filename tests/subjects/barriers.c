/* SPDX-License-Identifier: MIT */
/*
 * barriers FAULTS: the write barriers of a garbage collector.  A heap is made
 * read-only again and again; threads write to it, and a SIGSEGV handler on an
 * alternate stack makes the page that they hit writable, while other threads
 * map and unmap.  Ends when the handler ran FAULTS times; at least a thousand
 * times a second is what the heap's owner aims at.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { WRITERS = 2, MAPPERS = 2, PAGE = 4096, PAGES = 64, STACK = 16384 };

static atomic_long faults, wanted, failures;
static char *heap;

static void expect(int good)
{
	if (!good)
		atomic_fetch_add(&failures, 1);
}

static int more(void)
{
	return atomic_load(&faults) < atomic_load(&wanted);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1);
	int error = errno;

	(void)context;
	if (at < (uintptr_t)heap || at >= (uintptr_t)heap + PAGES * PAGE) {
		signal(number, SIG_DFL); /* a true one: die of it */
		return;
	}
	expect(mprotect((void *)at, PAGE, PROT_READ | PROT_WRITE) == 0);
	atomic_fetch_add(&faults, 1);
	errno = error;
}

static void *write_heap(void *arg)
{
	stack_t stack = {.ss_sp = malloc(STACK), .ss_size = STACK};
	volatile char *own = heap + (intptr_t)arg * PAGE;

	expect(stack.ss_sp != NULL && sigaltstack(&stack, NULL) == 0);
	errno = 4711;
	for (char c = 0; more(); c++)
		for (int i = 0; i < PAGES; i += WRITERS) {
			own[i * PAGE] = c;
			expect(own[i * PAGE] == c);
		}
	expect(errno == 4711);
	return NULL;
}

static void *map(void *unused)
{
	errno = 4711;
	while (more()) {
		char *at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		expect(at != MAP_FAILED);
		*at = 1;
		expect(munmap(at, 4 * PAGE) == 0 && errno == 4711);
	}
	return unused;
}

int main(int argc, char **argv)
{
	const struct timespec pause = {0, 1000000};
	struct sigaction action = {.sa_sigaction = on_fault,
				   .sa_flags = SA_SIGINFO | SA_ONSTACK};
	pthread_t threads[WRITERS + MAPPERS];

	wanted = argc == 2 ? atol(argv[1]) : 1000;
	heap = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	sigaction(SIGSEGV, &action, NULL);
	for (intptr_t i = 0; i < WRITERS + MAPPERS; i++)
		if (pthread_create(&threads[i], NULL,
				   i < WRITERS ? write_heap : map,
				   (void *)i) != 0)
			return 1;
	while (more()) {
		nanosleep(&pause, NULL);
		expect(mprotect(heap, PAGES * PAGE, PROT_READ) == 0);
	}
	/* A writer may stand before its last fault. */
	for (int i = 0; i < WRITERS + MAPPERS; i++)
		pthread_join(threads[i], NULL);
	printf("faults: %ld or more\n", atomic_load(&wanted));
	if (failures)
		printf("failures: %ld\n", atomic_load(&failures));
	return failures != 0;
}
