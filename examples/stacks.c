/* SPDX-License-Identifier: MIT */
/*
 * stacks: threads create short-lived threads that use their stacks.
 *
 * libc keeps the stacks of ended threads for the next ones, but only up to a
 * total (40 MiB in glibc).  These are larger than that each, so every thread
 * costs a new stack and every join unmaps one that was used.  Programs that
 * map stacks for fibers or coroutines do the same by themselves: -v own.
 */
#include "common.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define CHILDREN 8
#define TOUCHED_BYTES ((size_t)128 * 1024)
#define LIBC_STACK_BYTES ((size_t)48 * 1024 * 1024)
#define OWN_STACK_BYTES ((size_t)256 * 1024)

static const char *const variant_names[] = {"libc", "own", NULL};
enum { VARIANT_LIBC, VARIANT_OWN };

struct child {
	pthread_t thread;
	char *stack; /* of its own */
	uint64_t seed;
	uint64_t sum; /* what it found on its stack */
};

static unsigned int variant;
static size_t page_bytes;

static void *use_stack(void *argument)
{
	struct child *child = argument;
	volatile char stack[TOUCHED_BYTES];
	volatile uint64_t *word;
	uint64_t sum = 0;

	for (size_t at = 0; at < sizeof(stack); at += page_bytes) {
		word = (volatile uint64_t *)(volatile void *)(stack + at);
		*word = child->seed + at;
	}
	for (size_t at = 0; at < sizeof(stack); at += page_bytes) {
		word = (volatile uint64_t *)(volatile void *)(stack + at);
		sum += *word - at;
	}
	child->sum = sum;
	return NULL;
}

static char *map_stack(void)
{
	char *stack = mmap(NULL, OWN_STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	if (stack == MAP_FAILED)
		common_fail("mmap of a stack of %zu bytes: %s", OWN_STACK_BYTES,
			    strerror(errno));
	return stack;
}

static int set_stack(pthread_attr_t *attributes, struct child *child)
{
	if (variant == VARIANT_LIBC)
		return pthread_attr_setstacksize(attributes, LIBC_STACK_BYTES);
	child->stack = map_stack();
	return pthread_attr_setstack(attributes, child->stack, OWN_STACK_BYTES);
}

static void start_child(struct child *child, uint64_t seed)
{
	pthread_attr_t attributes;
	int error;

	child->seed = seed;
	child->sum = 0;
	pthread_attr_init(&attributes);
	error = set_stack(&attributes, child);
	if (!error)
		error = pthread_create(&child->thread, &attributes, use_stack,
				       child);
	pthread_attr_destroy(&attributes);
	if (error)
		common_fail("cannot start a thread with a stack of its own "
			    "(%s), give fewer threads with -t",
			    strerror(error));
}

static void end_child(struct child *child)
{
	uint64_t pages = TOUCHED_BYTES / page_bytes;

	pthread_join(child->thread, NULL);
	if (child->sum != child->seed * pages)
		common_fail("a stack held %#" PRIx64 " in all, not %#" PRIx64
			    " as written",
			    child->sum, child->seed * pages);
	if (variant == VARIANT_OWN && munmap(child->stack, OWN_STACK_BYTES))
		common_fail("munmap of a stack: %s", strerror(errno));
}

static void work(struct common_worker *worker)
{
	struct child children[CHILDREN];
	uint64_t seed = ((uint64_t)worker->index + 1) << 40;

	while (common_more(worker)) {
		for (unsigned int i = 0; i < CHILDREN; i++)
			start_child(&children[i], seed++);
		for (unsigned int i = 0; i < CHILDREN; i++)
			end_child(&children[i]);
	}
}

static void take_option(int letter, const char *value)
{
	variant = common_choice(letter, value, variant_names);
}

/* clang-format off */
static const struct common_spec spec = {
	.name = "stacks",
	.about =
"Each loop of a thread creates 8 threads, which write to and check 128 KiB of\n"
"their stacks and end, and joins them.\n"
"Calls: 8 mmap and 8 munmap a loop; by the program with own stacks, else\n"
"inside libc, where glibc adds 8 mprotect and 8 madvise.\n",
	.letters = "v:",
	.usage = " [-v VARIANT]",
	.options =
"  -v VARIANT   whose stacks:\n"
"               libc: of 48 MiB, more than libc keeps for later (default)\n"
"               own: of 256 KiB, mapped and unmapped by the program\n",
	.example = "-t 4 -d 2.5 -v own",
	.option = take_option,
	.threads = 8,
	.iterations = 200,
};
/* clang-format on */

int main(int argc, char **argv)
{
	struct common_usage usage;

	common_start(&spec, argc, argv);
	page_bytes = common_page_size();
	printf("stacks: %s of %d stacks, %s\n\n", common_size(), CHILDREN,
	       variant == VARIANT_OWN ? "mapped by the program"
				      : "mapped by libc");
	common_run(work, &usage);
	common_print_usage(&usage);
	return common_finish(usage.ops, usage.elapsed_s);
}
