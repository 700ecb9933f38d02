/* SPDX-License-Identifier: MIT */
/*
 * modules: which code is mapped where, noted in the log.
 *
 * What the loader had mapped when the process started, and each executable file
 * mapping after that.  A module that comes back to where it was (dlopen and
 * dlclose in a loop) is noted once.
 *
 * Functions may run in any thread at any time; none allocates, waits, or
 * touches errno.
 */
#ifndef MMGATE_MODULES_H
#define MMGATE_MODULES_H

#include <stdint.h>

/* Notes what is mapped by now, in the log that was just opened.  In a forked
 * child: what its parent's log says.  `headers` are the program's (AT_PHDR,
 * AT_PHNUM), `exe` its path.  pre: the process has one thread. */
void modules_begin(const void *headers, unsigned long count, const char *exe);

/* Notes an executable mapping of a file, made at `now` (ticks). */
void modules_mapped(int fd, uint64_t start, uint64_t length, uint64_t offset,
		    uint64_t now);

/* Notes that nothing is mapped there any more. */
void modules_unmapped(uint64_t start, uint64_t length, uint64_t now);

#endif
