/* SPDX-License-Identifier: MIT */
/*
 * source: a file that may be sparse, cut short or still written to.
 *
 * What is not there reads as zeros.  It is read, never mapped: truncation by
 * somebody else would be a SIGBUS in a mapping.
 */
#ifndef MMGATE_SOURCE_H
#define MMGATE_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct source {
	int fd;
	uint64_t size;
	dev_t device;
	ino_t inode;
	uint64_t hole_from, hole_to; /* the hole that was found last */
};

/* Opens a regular file, and nothing behind a symbolic link.  NULL when it
 * could, otherwise what is wrong, to be put behind the name. */
const char *source_open(struct source *s, const char *path);
void source_close(struct source *s);

/* 0 or -errno. */
int source_read(struct source *s, void *to, size_t length, uint64_t at);

/* Bytes from `at` on that are known to be zeros, without reading them. */
uint64_t source_hole(struct source *s, uint64_t at);

#endif
