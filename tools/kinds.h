/* SPDX-License-Identifier: MIT */
/*
 * kinds: calls by what they cost in the kernel, which is finer than by op.
 */
#ifndef MMGATE_KINDS_H
#define MMGATE_KINDS_H

#include <stdbool.h>

#include "record.h"

enum kind {
	KIND_MAP,          /* memory */
	KIND_MAP_STACK,    /* of a thread */
	KIND_MAP_FILE,     /* */
	KIND_MAP_POPULATE, /* MAP_POPULATE, MAP_LOCKED */
	KIND_UNMAP,
	KIND_PROTECT,
	KIND_ZAP,      /* madvise that gives pages back */
	KIND_POPULATE, /* madvise(MADV_POPULATE_*) */
	KIND_HUGE,     /* madvise about huge pages */
	KIND_ADVISE,   /* any other advice */
	KIND_REMAP,
	KIND_BRK,
	KIND_COUNT
};

enum kind kind_of(const struct record_event *e);
/* "munmap", "madvise(DONTNEED)", ... */
const char *kind_name(enum kind kind);
/* Does the kernel run it alone, whatever part of the address space it is
 * about? */
bool kind_is_exclusive(enum kind kind);

/* Lengths in powers of two of pages: 0 none, 1 up to one page, 2 up to two. */
enum { SIZE_CLASSES = 24 };
unsigned size_class(uint64_t length);
/* The largest length of a class; the last has no end. */
uint64_t size_class_bytes(unsigned class);

#endif
