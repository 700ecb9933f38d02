/* SPDX-License-Identifier: MIT */
/*
 * image: an ELF file that code was mapped from, as memory.
 *
 * Only a file that still is the one that was mapped is opened: by its build-id,
 * else by inode, size and time of its last change.  What is in it is not
 * believed: every place is checked before it is read.
 */
#ifndef MMGATE_IMAGE_H
#define MMGATE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What was mapped. */
struct image_identity {
	const char *path;
	const uint8_t *build_id;
	size_t build_id_bytes; /* 0: not known */
	/* For a file without one; all 0: any file of that path will do. */
	uint64_t inode, bytes, modified_ns;
};

struct image;

/* NULL: `why` is what follows the name ("was replaced by another file", ...).
 * The vDSO is this process's own, if it is the same. */
struct image *image_open(const struct image_identity *identity,
			 const char **why);
void image_close(struct image *image);

/* Its build-id, at most 32 bytes of it; 0: it has none. */
uint32_t image_build_id(const struct image *image, uint8_t id[32]);

/* The address that the byte at `offset` of the file is linked to, in a segment
 * of code; false: there is none. */
bool image_address(const struct image *image, uint64_t offset,
		   uint64_t *address);

/* The word that is at a linked address before anything is stored there; false:
 * nothing is. */
bool image_word(const struct image *image, uint64_t address, uint64_t *word);

/* Where .eh_frame_hdr and its sorted table of `count` pairs of 32-bit offsets
 * are; false: it has none. */
struct image_frames {
	uint64_t header, table, count;
};
bool image_frames(const struct image *image, struct image_frames *frames);

#endif
