/* SPDX-License-Identifier: MIT */
/*
 * purge: an allocator gives memory back in bursts, beside small allocations.
 *
 * Allocators collect spans that are free and, now and then, return the whole
 * lot to the kernel, one madvise a span.  The pages are needed again soon;
 * each CPU that runs a thread of the program is interrupted for each call.
 */
#include "common.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define SPANS 16
#define SPAN_BYTES ((size_t)256 * 1024)
#define HEAP_BYTES (SPANS * SPAN_BYTES)
#define SMALL_BLOCKS 64
#define SMALL_BYTES 1024

static const char *const variant_names[] = {"dontneed", "free", NULL};
enum { VARIANT_DONTNEED, VARIANT_FREE };

/* A block from malloc that outlives some bursts. */
struct small {
	/* volatile: the compiler removes a malloc whose use it can see */
	unsigned char *volatile bytes;
	size_t size;
	unsigned char value;
};

static unsigned int variant;
static size_t burst_bytes = HEAP_BYTES;
static size_t page_bytes;

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void free_small(struct small *block)
{
	if (!block->bytes)
		return;
	if (block->bytes[0] != block->value ||
	    block->bytes[block->size - 1] != block->value)
		common_fail("a block of %zu bytes changed", block->size);
	free(block->bytes);
	block->bytes = NULL;
}

static void allocate_small(struct small *block, uint64_t random)
{
	free_small(block);
	block->size = 1 + random % SMALL_BYTES;
	block->value = (unsigned char)(random >> 32);
	block->bytes = malloc(block->size);
	if (!block->bytes)
		common_fail("malloc of %zu bytes failed", block->size);
	memset(block->bytes, block->value, block->size);
}

static uint64_t value_of(const struct common_worker *worker, uint64_t loop)
{
	return ((uint64_t)(worker->index + 1) << 40) + loop;
}

/* A span that was given back holds nothing, or with free what it held. */
static void use_span(const struct common_worker *worker, char *span)
{
	volatile uint64_t *word = (volatile uint64_t *)(void *)span;
	uint64_t found = *word;
	bool kept = variant == VARIANT_FREE && worker->done &&
		    found == value_of(worker, worker->done - 1);

	if (found && !kept)
		common_fail("a span holds %#" PRIx64 " after it was given back",
			    found);
	*word = value_of(worker, worker->done);
}

static void check_span(const struct common_worker *worker, char *span)
{
	uint64_t found = *(volatile uint64_t *)(void *)span;

	if (found != value_of(worker, worker->done))
		common_fail("a span holds %#" PRIx64 ", not %#" PRIx64
			    " as written",
			    found, value_of(worker, worker->done));
}

static void give_back(char *span)
{
	int advice = variant == VARIANT_FREE ? MADV_FREE : MADV_DONTNEED;
	int result;

	common_enter_call();
	result = madvise(span, SPAN_BYTES, advice);
	common_leave_call();
	if (result)
		common_fail("madvise %s: %s", variant_names[variant],
			    strerror(errno));
}

static char *map_heap(void)
{
	char *heap;

	common_enter_call();
	heap = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	common_leave_call();
	if (heap == MAP_FAILED)
		common_fail("mmap of %zu bytes: %s", HEAP_BYTES,
			    strerror(errno));
	return heap;
}

static void unmap_heap(char *heap)
{
	int result;

	common_enter_call();
	result = munmap(heap, HEAP_BYTES);
	common_leave_call();
	if (result)
		common_fail("munmap of %zu bytes: %s", HEAP_BYTES,
			    strerror(errno));
}

static void use_spans(const struct common_worker *worker, char *spans,
		      size_t bytes, struct small *blocks, uint64_t *state)
{
	for (size_t at = 0; at < bytes; at += SPAN_BYTES) {
		uint64_t random = next_random(state);

		use_span(worker, spans + at);
		allocate_small(&blocks[random % SMALL_BLOCKS], random);
	}
}

static void purge_spans(const struct common_worker *worker, char *spans,
			size_t bytes)
{
	for (size_t at = 0; at < bytes; at += SPAN_BYTES) {
		check_span(worker, spans + at);
		give_back(spans + at);
	}
}

static void work(struct common_worker *worker)
{
	struct small blocks[SMALL_BLOCKS] = {0};
	uint64_t state = (worker->index + 1) * UINT64_C(0x9e3779b97f4a7c15);
	char *heap = map_heap();

	while (common_more(worker)) {
		for (size_t at = 0; at < HEAP_BYTES; at += burst_bytes) {
			size_t bytes = burst_bytes < HEAP_BYTES - at
					       ? burst_bytes
					       : HEAP_BYTES - at;

			use_spans(worker, heap + at, bytes, blocks, &state);
			purge_spans(worker, heap + at, bytes);
		}
	}
	for (int i = 0; i < SMALL_BLOCKS; i++)
		free_small(&blocks[i]);
	unmap_heap(heap);
}

static void take_option(int letter, const char *value)
{
	if (letter == 'b')
		burst_bytes =
			common_number(letter, value, 1, SPANS) * SPAN_BYTES;
	else
		variant = common_choice(letter, value, variant_names);
}

/* clang-format off */
static const struct common_spec spec = {
	.name = "purge",
	.about =
"Each thread maps a heap of 16 spans of 256 KiB.  A loop writes to each span,\n"
"allocates a small block with malloc and frees an older one for each, and then\n"
"gives all spans back in a burst.  The next write checks that it worked.\n"
"Calls: 16 madvise a loop, 1 mmap and 1 munmap a thread; malloc's own are few.\n",
	.letters = "b:v:",
	.usage = "\n             [-b SPANS] [-v VARIANT]",
	.options =
"  -b SPANS     of a burst: 1 to 16 (default 16); a loop has more with fewer\n"
"  -v VARIANT   dontneed, free: the advice (default dontneed)\n",
	.example = "-t 4 -d 2.5",
	.option = take_option,
	.threads = 4,
	.iterations = 5000,
	.mutex = true,
};
/* clang-format on */

int main(int argc, char **argv)
{
	struct common_usage usage;

	common_start(&spec, argc, argv);
	page_bytes = common_page_size();
	/* one touched page a span, not the huge page around several */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	printf("purge: %s of %d spans, given back %zu at once by %s\n\n",
	       common_size(), SPANS, burst_bytes / SPAN_BYTES,
	       variant_names[variant]);
	common_run(work, &usage);
	common_print_usage(&usage);
	return common_finish(usage.ops, usage.elapsed_s);
}
