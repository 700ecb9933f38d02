/* SPDX-License-Identifier: MIT */
/*
 * forge: makes logs that lie, out of a fuzzer's bytes.
 *
 * A log is large, sparse and full of checks, so bytes that were a log itself
 * would hardly pass the first of them.  These bytes say what to change in a
 * sound one, a few bytes a change: any number, text or event in it, with the
 * checks that belong to them or without, and the size of the file.  Any bytes
 * are good, and what they lack is 0.
 */
#ifndef MMGATE_FUZZ_FORGE_H
#define MMGATE_FUZZ_FORGE_H

#include <stddef.h>
#include <stdint.h>

struct forge {
	const uint8_t *at;
	size_t left;
};

uint8_t forge_byte(struct forge *f);
/* Small, or near a power of two, or anything. */
uint64_t forge_number(struct forge *f);
/* Up to `max` bytes, which the input says the number of. */
void forge_bytes(struct forge *f, void *to, size_t max);

/* Writes a log, of all bytes that are left. */
void forge_log(struct forge *f, const char *path);
/* Writes the file of the whole run, of some. */
void forge_info(struct forge *f, const char *path);

#endif
