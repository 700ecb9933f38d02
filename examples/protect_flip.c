/* SPDX-License-Identifier: MIT */
/*
 * protect_flip: threads toggle the protection of their own region.
 *
 * What JIT compilers and collectors do: nothing is shared between the
 * threads, yet every flip takes the one lock of the address space.
 */
#include "common.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define REGION_BYTES ((size_t)256 * 1024)

static size_t page_bytes;

static void protect(char *region, int prot)
{
	int result;

	common_enter_call();
	result = mprotect(region, REGION_BYTES, prot);
	common_leave_call();
	if (result)
		common_fail("mprotect of %zu bytes to %d: %s", REGION_BYTES,
			    prot, strerror(errno));
}

static volatile uint64_t *word_at(char *region, size_t at)
{
	return (volatile uint64_t *)(void *)(region + at);
}

static void write_region(char *region, uint64_t value)
{
	for (size_t at = 0; at < REGION_BYTES; at += page_bytes)
		*word_at(region, at) = value + at;
}

/* Not overwritten, so that a page lost by either flip is found. */
static void increase_words(char *region)
{
	for (size_t at = 0; at < REGION_BYTES; at += page_bytes)
		*word_at(region, at) += 1;
}

static void check_region(char *region, uint64_t value)
{
	for (size_t at = 0; at < REGION_BYTES; at += page_bytes) {
		uint64_t found = *word_at(region, at);

		if (found != value + at)
			common_fail("offset %zu holds %" PRIu64 ", not %" PRIu64
				    " as written",
				    at, found, value + at);
	}
}

static char *map_region(void)
{
	char *region = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (region == MAP_FAILED)
		common_fail("mmap of %zu bytes: %s", REGION_BYTES,
			    strerror(errno));
	return region;
}

static void work(struct common_worker *worker)
{
	uint64_t value = ((uint64_t)worker->index + 1) << 40;
	char *region = map_region();

	write_region(region, value);
	while (common_more(worker)) {
		protect(region, PROT_READ);
		check_region(region, value + worker->done);
		protect(region, PROT_READ | PROT_WRITE);
		increase_words(region);
	}
	check_region(region, value + worker->done);
	if (munmap(region, REGION_BYTES))
		common_fail("munmap of %zu bytes: %s", REGION_BYTES,
			    strerror(errno));
}

/* clang-format off */
static const struct common_spec spec = {
	.name = "protect_flip",
	.about =
"Each thread maps 256 KiB; a loop makes it read-only, checks one word of\n"
"every page, makes it writable again and adds 1 to these words.\n"
"Calls: 2 mprotect a loop, and 1 mmap and 1 munmap a thread.\n",
	.letters = "",
	.usage = "",
	.options = "",
	.example = "-t 4 -d 2.5",
	.threads = 16,
	.iterations = 5000,
	.mutex = true,
};
/* clang-format on */

int main(int argc, char **argv)
{
	struct common_usage usage;

	common_start(&spec, argc, argv);
	page_bytes = common_page_size();
	printf("protect_flip: %s of %zu KiB\n\n", common_size(),
	       REGION_BYTES / 1024);
	common_run(work, &usage);
	common_print_usage(&usage);
	return common_finish(usage.ops, usage.elapsed_s);
}
