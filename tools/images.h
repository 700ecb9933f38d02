/* SPDX-License-Identifier: MIT */
/*
 * images: each file once, for all that look into it and all processes.
 */
#ifndef MMGATE_IMAGES_H
#define MMGATE_IMAGES_H

#include "image.h"

struct images;

struct images_entry {
	struct image *image; /* NULL: it could not be opened, */
	const char *why;     /* and this is what follows its name */
	const char *path;    /* as it was mapped */
	const char *module;  /* base name, cleaned for a terminal */
	/* Of those who use it, which free it. */
	struct symbols_file *symbols;
};

struct images *images_new(void);
void images_free(struct images *images,
		 void (*free_symbols)(struct symbols_file *symbols));

/* Never NULL; the same one for the same file. */
struct images_entry *images_get(struct images *images,
				const struct image_identity *identity);

#endif
