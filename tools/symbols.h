/* SPDX-License-Identifier: MIT */
/*
 * symbols: the names of code: functions, inlined ones too, and source lines.
 *
 * A file is known by its path and by what shows that it still is the one that
 * was mapped (build-id, or inode and times); when it was deleted or replaced
 * nothing in it is named.  Separate debug files are found where debuggers look
 * for them.  Files are opened when they are first asked about and names are
 * cached; all strings live as long as the `symbols`.
 *
 * In a build without elfutils no code has a name; it still has its module and
 * offset.
 */
#ifndef MMGATE_SYMBOLS_H
#define MMGATE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols;

/* What was mapped. */
struct symbols_identity {
	const char *path;
	const uint8_t *build_id; /* build_id_bytes 0: not known, then by the */
	size_t build_id_bytes;   /* rest; all 0: anything of that path */
	uint64_t inode, size, mtime_ns;
};

struct symbols_file; /* one file, as it was when it was mapped */

/* One function at an address; inlined ones come before what they are in. */
struct symbols_name {
	const char *function; /* demangled; NULL: not known */
	const char *source;   /* base name; NULL: not known */
	unsigned line;        /* of the call or the instruction; 0: not known */
	bool inlined;         /* into the next one */
	bool exported;        /* by the dynamic symbol table alone: a static
			       * function in front of it may be meant */
};

struct symbols *symbols_new(void);
void symbols_free(struct symbols *symbols);

/* NULL, or what this build lacks, for people. */
const char *symbols_missing(void);

/* The file of this identity, the same one each time.  Never NULL. */
struct symbols_file *symbols_file(struct symbols *symbols,
				  const struct symbols_identity *identity);

/* The base name of its path, cleaned for a terminal. */
const char *symbols_module(const struct symbols_file *file);

/* NULL, or why it has no names: "was deleted", "was replaced", "has no
 * symbols" ... */
const char *symbols_trouble(struct symbols_file *file);

/* What is at `offset` of the file (in the executable segment that was mapped);
 * *names is the innermost.  Returns their number, at least 1; a function of
 * NULL is one that is not known. */
size_t symbols_at(struct symbols_file *file, uint64_t offset,
		  const struct symbols_name **names);

#endif
