/* SPDX-License-Identifier: MIT */
/*
 * wrap_enter: how an exported function begins and ends.
 *
 * For wrap_glibc.c and wrap_musl.c.
 */
#ifndef MMGATE_WRAP_ENTER_H
#define MMGATE_WRAP_ENTER_H

#include <errno.h>

#include "place.h"
#include "sys.h"

/* The caller is who called the function that this becomes part of. */
#define INLINE inline __attribute__((always_inline))

#define EXPORT __attribute__((visibility("default")))

/* A span for this call, entered.  Each field by its own store: an initialiser
 * would clear the gate's own too, by a slow string instruction. */
#define ENTER(op_, addr_, length_, arg_, flags_, fd_, offset_)                 \
	struct span span;                                                      \
	span.op = (op_);                                                       \
	span.caller = __builtin_return_address(0);                             \
	span.addr = (uintptr_t)(addr_);                                        \
	span.length = (length_);                                               \
	span.arg = (uint32_t)(arg_);                                           \
	span.flags = (uint32_t)(flags_);                                       \
	span.fd = (fd_);                                                       \
	span.offset = (uint64_t)(offset_);                                     \
	place_enter(&span)

/* From the kernel's convention to C's; errno is touched on failure only. */
static inline long edge(long result)
{
	if (!sys_failed(result))
		return result;
	errno = (int)-result;
	return -1;
}

#endif
