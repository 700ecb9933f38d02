/* SPDX-License-Identifier: MIT */
/*
 * symbols: the names of code: functions, inlined ones too, and source lines.
 *
 * Separate debug files are found where debuggers look for them, on this machine
 * (no server is asked).  What was deleted or replaced has no names.  Strings
 * live as long as their file.
 *
 * In a build without elfutils no code has a name; it still has its module and
 * offset.
 */
#ifndef MMGATE_SYMBOLS_H
#define MMGATE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images.h"

struct symbols_file; /* one file, as it was when it was mapped */

/* One function at an address; inlined ones come before what they are in. */
struct symbols_name {
	const char *function; /* demangled; NULL: not known */
	const char *source;   /* base name; NULL: not known */
	unsigned line;        /* of the call or the instruction; 0: not known */
	bool inlined;         /* into the next one */
};

/* NULL, or what this build lacks, for people. */
const char *symbols_missing(void);

/* The names in an entry's file, which is opened for them when first asked.
 * Never NULL; images_free() with symbols_free() frees it. */
struct symbols_file *symbols_file(struct images_entry *entry);
void symbols_free(struct symbols_file *file);

/* NULL, or why it has no names: "was deleted", "was replaced", "has no
 * symbols" ... */
const char *symbols_trouble(struct symbols_file *file);

/* What is at `offset` of the file (in the executable segment that was mapped);
 * *names is the innermost.  Returns their number, at least 1; a function of
 * NULL is one that is not known. */
size_t symbols_at(struct symbols_file *file, uint64_t offset,
		  const struct symbols_name **names);

#endif
