/* SPDX-License-Identifier: MIT */
/*
 * jit: names of code that a program made itself.
 *
 * Who makes code may write a map of it for perf, /tmp/perf-PID.map: a line for
 * each function, with its address and size in hex and its name.  Code moves and
 * goes, so of several lines for an address the last one counts.  When a run
 * ends, the names that its stacks need are kept beside the log, as a file of
 * the same kind.
 *
 * Nothing in either file is believed: no link is followed, no more than the
 * last so many bytes are read, names are cleaned and cut.
 */
#ifndef MMGATE_JIT_H
#define MMGATE_JIT_H

#include <stddef.h>
#include <stdint.h>

/* What follows the name of its log. */
#define JIT_SUFFIX "-jit"

struct jit; /* names of one process's code; NULL: none */

/* Those of `count` addresses, which are sorted, by the map of a process that
 * began then: a regular file of this user's, written since.  NULL: none. */
struct jit *jit_of_process(uint32_t pid, uint64_t since_unix_ns,
			   const uint64_t *addresses, size_t count);
/* The same of any such file. */
struct jit *jit_of_map(const char *path, uint64_t since_unix_ns,
		       const uint64_t *addresses, size_t count);
/* Those that jit_write() has kept for a log. */
struct jit *jit_of_log(const char *log_path);
void jit_free(struct jit *jit);

/* The function that the address is in, or NULL. */
const char *jit_name(const struct jit *jit, uint64_t address);

/* Keeps them for the log of this name.  0, or an errno. */
int jit_write(const struct jit *jit, int directory, const char *log_name);

#endif
