/* SPDX-License-Identifier: MIT */
/*
 * remap: threads give pages back to the kernel and take them again.
 *
 * A report of 2007: mapping PROT_NONE over used pages and making them
 * writable again takes the address-space lock twice for writing, the page
 * faults in between take it for reading, and the threads walk in step.
 * One madvise in place of the pair was the cure it proposed.
 */
#include "common.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PAGES 128

static const char *const variant_names[] = {"remap", "dontneed", "free", NULL};
enum { VARIANT_REMAP, VARIANT_DONTNEED, VARIANT_FREE };

static unsigned int variant;
static size_t page_bytes;

static unsigned char value_of(uint64_t loop)
{
	return (unsigned char)(1 + loop % 255);
}

static void check_given_back(unsigned int thread, size_t page,
			     unsigned char found, unsigned char old)
{
	if (!found || (variant == VARIANT_FREE && found == old))
		return;
	common_fail("thread %u: page %zu holds %u after it was given back",
		    thread, page, found);
}

/* The exchange is the write, and tells in the same page fault what a fresh
 * page held: a read before the write would cost a fault of its own. */
static void use_pages(unsigned int thread, char *area, uint64_t loop)
{
	unsigned char value = value_of(loop);
	unsigned char old = loop ? value_of(loop - 1) : 0;

	for (size_t page = 0; page < PAGES; page++) {
		volatile _Atomic unsigned char *byte =
			(volatile _Atomic unsigned char *)(area +
							   page * page_bytes);

		check_given_back(thread, page,
				 atomic_exchange_explicit(byte, value,
							  memory_order_relaxed),
				 old);
		if (atomic_load_explicit(byte, memory_order_relaxed) != value)
			common_fail("thread %u: page %zu lost what was "
				    "written to it",
				    thread, page);
	}
}

static void check_pages(unsigned int thread, const char *area, uint64_t loops)
{
	for (size_t page = 0; page < PAGES; page++) {
		const volatile char *byte = area + page * page_bytes;

		check_given_back(thread, page, (unsigned char)*byte,
				 value_of(loops - 1));
	}
}

static char *map_pages(void *at, int prot, int fixed)
{
	char *area;

	common_enter_call();
	area = mmap(at, PAGES * page_bytes, prot,
		    MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
	common_leave_call();
	if (area == MAP_FAILED)
		common_fail("mmap of %d pages: %s", PAGES, strerror(errno));
	return area;
}

static void give_back_by_map(char *area)
{
	int result;

	map_pages(area, PROT_NONE, MAP_FIXED);
	common_enter_call();
	result = mprotect(area, PAGES * page_bytes, PROT_READ | PROT_WRITE);
	common_leave_call();
	if (result)
		common_fail("mprotect of %d pages: %s", PAGES, strerror(errno));
}

static void give_back_by_advice(char *area)
{
	int advice = variant == VARIANT_FREE ? MADV_FREE : MADV_DONTNEED;
	int result;

	common_enter_call();
	result = madvise(area, PAGES * page_bytes, advice);
	common_leave_call();
	if (result)
		common_fail("madvise %s: %s", variant_names[variant],
			    strerror(errno));
}

static void work(struct common_worker *worker)
{
	char *area = map_pages(NULL, PROT_READ | PROT_WRITE, 0);

	while (common_more(worker)) {
		use_pages(worker->index, area, worker->done);
		if (variant == VARIANT_REMAP)
			give_back_by_map(area);
		else
			give_back_by_advice(area);
	}
	check_pages(worker->index, area, worker->done);
	if (munmap(area, PAGES * page_bytes))
		common_fail("munmap of %d pages: %s", PAGES, strerror(errno));
}

static void take_option(int letter, const char *value)
{
	variant = common_choice(letter, value, variant_names);
}

/* clang-format off */
static const struct common_spec spec = {
	.name = "remap",
	.about =
"Each thread maps 128 pages once; a loop writes and reads one byte of each\n"
"page and gives all pages back.  The next write checks that they were empty.\n"
"Calls: 1 mmap and 1 munmap a thread, and in each loop 1 mmap and 1 mprotect\n"
"(remap) or 1 madvise (dontneed, free).\n",
	.letters = "v:",
	.usage = " [-v VARIANT]",
	.options =
"  -v VARIANT   how the pages are given back:\n"
"               remap: map PROT_NONE over them, then mprotect (default)\n"
"               dontneed, free: one madvise in place of the pair\n",
	.example = "-t 8 -d 2.5 -v dontneed",
	.option = take_option,
	.threads = 32,
	.iterations = 300,
	.mutex = true,
};
/* clang-format on */

int main(int argc, char **argv)
{
	struct common_usage usage;

	common_start(&spec, argc, argv);
	page_bytes = common_page_size();
	printf("remap: %s of %d pages, given back by %s\n\n", common_size(),
	       PAGES, variant_names[variant]);
	common_run(work, &usage);
	common_print_usage(&usage);
	return common_finish(usage.ops, usage.elapsed_s);
}
