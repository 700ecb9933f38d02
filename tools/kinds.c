/* SPDX-License-Identifier: MIT */
#include <sys/mman.h>

#include "kinds.h"

enum {
	PAGE_BITS = 12,
	/* Newer than some libcs. */
	ADVISE_FREE = 8,
	ADVISE_REMOVE = 9,
	ADVISE_HUGEPAGE = 14,
	ADVISE_NOHUGEPAGE = 15,
	ADVISE_COLD = 20,
	ADVISE_PAGEOUT = 21,
	ADVISE_POPULATE_READ = 22,
	ADVISE_POPULATE_WRITE = 23,
	ADVISE_DONTNEED_LOCKED = 24,
	ADVISE_COLLAPSE = 25,
};

static enum kind kind_of_map(const struct record_event *e)
{
	if (e->flags & (MAP_POPULATE | MAP_LOCKED))
		return KIND_MAP_POPULATE;
	if (!(e->flags & MAP_ANONYMOUS))
		return KIND_MAP_FILE;
	return e->flags & MAP_STACK ? KIND_MAP_STACK : KIND_MAP;
}

static enum kind kind_of_advice(uint32_t advice)
{
	switch (advice) {
	case MADV_DONTNEED:
	case ADVISE_FREE:
	case ADVISE_REMOVE:
	case ADVISE_PAGEOUT:
	case ADVISE_DONTNEED_LOCKED:
		return KIND_ZAP;
	case ADVISE_POPULATE_READ:
	case ADVISE_POPULATE_WRITE:
		return KIND_POPULATE;
	case ADVISE_HUGEPAGE:
	case ADVISE_NOHUGEPAGE:
	case ADVISE_COLLAPSE:
		return KIND_HUGE;
	default:
		return KIND_ADVISE;
	}
}

enum kind kind_of(const struct record_event *e)
{
	switch (e->op) {
	case OP_MMAP:
		return kind_of_map(e);
	case OP_MUNMAP:
		return KIND_UNMAP;
	case OP_MADVISE:
		return kind_of_advice(e->arg);
	case OP_MREMAP:
		return KIND_REMAP;
	case OP_BRK:
		return KIND_BRK;
	default:
		return KIND_PROTECT;
	}
}

const char *kind_name(enum kind kind)
{
	static const char *const names[KIND_COUNT] = {
		[KIND_MAP] = "mmap",
		[KIND_MAP_STACK] = "mmap of thread stacks",
		[KIND_MAP_FILE] = "mmap of files",
		[KIND_MAP_POPULATE] = "mmap with MAP_POPULATE or MAP_LOCKED",
		[KIND_UNMAP] = "munmap",
		[KIND_PROTECT] = "mprotect",
		[KIND_ZAP] = "madvise(DONTNEED)",
		[KIND_POPULATE] = "madvise(POPULATE)",
		[KIND_HUGE] = "madvise(HUGEPAGE, COLLAPSE)",
		[KIND_ADVISE] = "madvise",
		[KIND_REMAP] = "mremap",
		[KIND_BRK] = "brk",
	};

	return names[kind];
}

bool kind_is_exclusive(enum kind kind)
{
	return kind != KIND_ZAP && kind != KIND_POPULATE;
}

unsigned size_class(uint64_t length)
{
	uint64_t pages = length >> PAGE_BITS;
	unsigned class;

	if (length == 0)
		return 0;
	if (length & ((1u << PAGE_BITS) - 1))
		pages++;
	class = pages < 2 ? 1 : 65 - (unsigned)__builtin_clzll(pages - 1);
	return class < SIZE_CLASSES ? class : SIZE_CLASSES - 1;
}

uint64_t size_class_bytes(unsigned class)
{
	return class == 0 ? 0 : UINT64_C(1) << (PAGE_BITS + class - 1);
}
