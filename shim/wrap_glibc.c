/* SPDX-License-Identifier: MIT */
/*
 * wrap_glibc: every function that the library exports, where libc is glibc.
 *
 * Each is the whole function: there is no "real" one behind it, only the
 * system call.  Where libc does more than the call, so does its wrapper.
 */
#include <stdarg.h>
#include <sys/mman.h>

#include "sys.h"
#include "wrap.h"
#include "wrap_enter.h"

#include "poison.h"

EXPORT void *mmap(void *addr, size_t length, int prot, int flags, int fd,
		  off_t offset)
{
	ENTER(OP_MMAP, addr, length, prot, flags, fd, offset);
	return (void *)edge(gate_leave(
		&span, sys_mmap(addr, length, prot, flags, fd, offset)));
}

/* off_t has 64 bits on every architecture that sys.h knows. */
EXPORT void *mmap64(void *addr, size_t length, int prot, int flags, int fd,
		    off_t offset) __attribute__((alias("mmap")));

EXPORT int munmap(void *addr, size_t length)
{
	ENTER(OP_MUNMAP, addr, length, 0, 0, 0, 0);
	return (int)edge(gate_leave(&span, sys_munmap(addr, length)));
}

EXPORT int mprotect(void *addr, size_t length, int prot)
{
	ENTER(OP_MPROTECT, addr, length, prot, 0, 0, 0);
	return (int)edge(gate_leave(&span, sys_mprotect(addr, length, prot)));
}

EXPORT int madvise(void *addr, size_t length, int advice)
{
	ENTER(OP_MADVISE, addr, length, advice, 0, 0, 0);
	return (int)edge(gate_leave(&span, sys_madvise(addr, length, advice)));
}

/* Returns the error and leaves errno.  POSIX_MADV_DONTNEED must not lose data,
 * which Linux's advice of that number does, so libc makes no call for it. */
EXPORT int posix_madvise(void *addr, size_t length, int advice)
{
	if (advice == POSIX_MADV_DONTNEED)
		return 0;
	ENTER(OP_MADVISE, addr, length, advice, 0, 0, 0);
	return (int)-gate_leave(&span, sys_madvise(addr, length, advice));
}

EXPORT void *mremap(void *addr, size_t old_length, size_t new_length, int flags,
		    ...)
{
	void *new_addr = NULL;
	va_list rest;

	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {
		va_start(rest, flags);
		new_addr = va_arg(rest, void *);
		va_end(rest);
	}
	/* Some versions of libc pass no address with DONTUNMAP alone, so its
	 * callers may give none: a value that cannot be one is not passed on.
	 */
	if (!(flags & MREMAP_FIXED) && (uintptr_t)new_addr & 4095)
		new_addr = NULL;
	ENTER(OP_MREMAP, addr, old_length, new_length, flags,
	      (int32_t)((uint64_t)new_length >> 32), (uintptr_t)new_addr);
	return (void *)edge(
		gate_leave(&span, sys_mremap(addr, old_length, new_length,
					     flags, new_addr)));
}

/* Without a key it is mprotect, on kernels without keys too. */
EXPORT int pkey_mprotect(void *addr, size_t length, int prot, int key)
{
	if (key == -1)
		return mprotect(addr, length, prot);
	ENTER(OP_PKEY_MPROTECT, addr, length, prot, 0, key, 0);
	return (int)edge(
		gate_leave(&span, sys_pkey_mprotect(addr, length, prot, key)));
}

/* --- for hooks that enter at libc's own functions --- */

/* A name that no other library's symbol can take the place of. */
#define OP_SYMBOL(symbol, NAME)                                                \
	extern __typeof__(symbol) wrap_##symbol __attribute__((                \
		alias(#symbol), visibility("hidden"), nothrow, leaf));
#include "ops.def"

const void *const wrap_functions[WRAP_ENTRIES] = {
#define OP_SYMBOL(symbol, NAME) wrap_##symbol,
#include "ops.def"
};

const void *wrap_caller(const void *site)
{
	return site;
}
