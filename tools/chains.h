/* SPDX-License-Identifier: MIT */
/*
 * chains: what a finished log keeps of its stacks.
 *
 * The copies are the program's memory.  They are unwound, the log gets the
 * addresses, each chain once, and the copies are taken out of it.  Files that
 * were known by their times get their build-id, by which they are known for
 * longer.
 */
#ifndef MMGATE_CHAINS_H
#define MMGATE_CHAINS_H

#include "images.h"
#include "log.h"

/* Names of code that the program made itself (jit.h) are kept in `directory`.
 * pre: `file` is the log's file, open for writing, and nobody else writes to
 * it.  0, or an errno: then some copies may still be there. */
int chains_write(struct log *log, int file, int directory,
		 struct images *images);

#endif
