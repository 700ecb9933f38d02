/* SPDX-License-Identifier: MIT */
/*
 * malloc_churn: threads allocate and free large blocks.
 *
 * Above the mmap threshold each malloc is an mmap and each free a munmap,
 * made inside libc.  glibc raises its threshold when such a block is freed,
 * after which these sizes would come from the heap; so it is fixed here.
 */
#include "common.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#define MIN_BYTES ((size_t)256 * 1024)
#define MAX_BYTES ((size_t)4096 * 1024)
#define LIVE_BLOCKS 4

struct block {
	/* volatile: the compiler removes a malloc whose use it can see */
	uint64_t *volatile words;
	size_t size;
	uint64_t pattern;
};

static size_t page_bytes;

static void fix_threshold(void)
{
#ifdef __GLIBC__
	if (!mallopt(M_MMAP_THRESHOLD, 128 * 1024) ||
	    !mallopt(M_TRIM_THRESHOLD, 128 * 1024))
		common_fail("mallopt refuses a threshold of 128 KiB");
#endif
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A multiple of a word, so that the last page starts at one. */
static size_t random_size(uint64_t *state)
{
	size_t spread = (MAX_BYTES - MIN_BYTES) / sizeof(uint64_t) + 1;

	return MIN_BYTES + next_random(state) % spread * sizeof(uint64_t);
}

static uint64_t *last_page(const struct block *block)
{
	return block->words + (block->size - page_bytes) / sizeof(uint64_t);
}

static void write_page(uint64_t *page, uint64_t pattern)
{
	for (size_t i = 0; i < page_bytes / sizeof(*page); i++)
		page[i] = pattern + i;
}

static void check_page(const uint64_t *page, const struct block *block)
{
	for (size_t i = 0; i < page_bytes / sizeof(*page); i++)
		if (page[i] != block->pattern + i)
			common_fail("a word in a block of %zu bytes changed "
				    "from %#" PRIx64 " to %#" PRIx64,
				    block->size, block->pattern + i, page[i]);
}

static void fill_block(struct block *block, uint64_t *state)
{
	block->size = random_size(state);
	block->pattern = next_random(state);
	block->words = malloc(block->size);
	if (!block->words)
		common_fail("malloc of %zu bytes failed, give fewer threads "
			    "with -t",
			    block->size);
	write_page(block->words, block->pattern);
	write_page(last_page(block), block->pattern);
}

static void free_block(struct block *block)
{
	if (!block->words)
		return;
	check_page(block->words, block);
	check_page(last_page(block), block);
	free(block->words);
	block->words = NULL;
}

/* A block is checked some loops after it was written, when neighbours have
 * come and gone. */
static void work(struct common_worker *worker)
{
	struct block blocks[LIVE_BLOCKS] = {0};
	uint64_t state = (worker->index + 1) * UINT64_C(0x9e3779b97f4a7c15);

	while (common_more(worker)) {
		struct block *block = &blocks[worker->done % LIVE_BLOCKS];

		free_block(block);
		fill_block(block, &state);
	}
	for (int i = 0; i < LIVE_BLOCKS; i++)
		free_block(&blocks[i]);
}

/* clang-format off */
static const struct common_spec spec = {
	.name = "malloc_churn",
	.about =
"Each loop frees the oldest of a thread's 4 blocks and allocates one of\n"
"256 KiB to 4 MiB.  First and last page are written, and checked before the\n"
"block is freed.  The mmap threshold is fixed at 128 KiB, so that each loop\n"
"is 1 mmap and 1 munmap, both inside libc.\n",
	.letters = "",
	.usage = "",
	.options = "",
	.example = "-t 4 -d 2.5",
	.threads = 16,
	.iterations = 5000,
};
/* clang-format on */

int main(int argc, char **argv)
{
	struct common_usage usage;

	common_start(&spec, argc, argv);
	page_bytes = common_page_size();
	fix_threshold();
	printf("malloc_churn: %s of %zu to %zu KiB\n\n", common_size(),
	       MIN_BYTES / 1024, MAX_BYTES / 1024);
	common_run(work, &usage);
	common_print_usage(&usage);
	return common_finish(usage.ops, usage.elapsed_s);
}
