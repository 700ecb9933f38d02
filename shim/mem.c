/* SPDX-License-Identifier: MIT */
/*
 * The compiler turns copies of structs into calls of memcpy and memset.  Their
 * symbols must not be looked up in the program, where AddressSanitizer and
 * others replace them; these are hidden, so they are ours alone.
 */
#include <stddef.h>

#include "poison.h"

#define HIDDEN __attribute__((visibility("hidden")))

/* Keeps the compiler from seeing a memcpy or memset in the loop. */
#define OPAQUE() __asm__ volatile("")

HIDDEN void *memcpy(void *to, const void *from, size_t n);
HIDDEN void *memset(void *to, int c, size_t n);

void *memcpy(void *to, const void *from, size_t n)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	while (n-- > 0) {
		OPAQUE();
		*t++ = *f++;
	}
	return to;
}

void *memset(void *to, int c, size_t n)
{
	unsigned char *t = to;

	while (n-- > 0) {
		OPAQUE();
		*t++ = (unsigned char)c;
	}
	return to;
}
