/* SPDX-License-Identifier: MIT */
/*
 * wrap: every function that the library exports.
 *
 * Each is the whole function: there is no "real" one behind it, only the
 * system call.  Where libc does more than the call, so does its wrapper.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "gate.h"
#include "sys.h"
#include "wrap.h"

#include "poison.h"

#define EXPORT __attribute__((visibility("default")))

/* A span for this call, entered.  Each field by its own store: an initialiser
 * would clear the gate's own too, by a slow string instruction. */
#define ENTER(op_, addr_, length_, arg_, flags_, fd_, offset_)                 \
	struct gate_span span;                                                 \
	span.op = (op_);                                                       \
	span.caller = __builtin_return_address(0);                             \
	span.addr = (uintptr_t)(addr_);                                        \
	span.length = (length_);                                               \
	span.arg = (uint32_t)(arg_);                                           \
	span.flags = (uint32_t)(flags_);                                       \
	span.fd = (fd_);                                                       \
	span.offset = (uint64_t)(offset_);                                     \
	gate_enter(&span)

/* From the kernel's convention to C's; errno is touched on failure only. */
static long edge(long result)
{
	if (!sys_failed(result))
		return result;
	errno = (int)-result;
	return -1;
}

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

/* --- by the number of the system call --- */

enum op wrap_op(long number)
{
	switch (number) {
	case __NR_mmap:
		return OP_MMAP;
	case __NR_munmap:
		return OP_MUNMAP;
	case __NR_mprotect:
		return OP_MPROTECT;
	case __NR_madvise:
		return OP_MADVISE;
	case __NR_mremap:
		return OP_MREMAP;
	case __NR_brk:
		return OP_BRK;
	case __NR_pkey_mprotect:
		return OP_PKEY_MPROTECT;
	default:
		return OP_COUNT;
	}
}

/* How the record sees a brk: it fails by not moving. */
static long brk_outcome(uint64_t wanted, long end)
{
	return wanted != 0 && (uint64_t)end != wanted ? -ENOMEM : end;
}

long wrap_call(long number, const uint64_t a[6], const void *caller)
{
	struct gate_span span = {.op = wrap_op(number),
				 .caller = caller,
				 .addr = a[0],
				 .length = number == __NR_brk ? 0 : a[1]};
	long result;

	switch (span.op) {
	case OP_MMAP:
		span.arg = (uint32_t)a[2];
		span.flags = (uint32_t)a[3];
		span.fd = (int32_t)a[4];
		span.offset = a[5];
		break;
	case OP_MREMAP:
		span.arg = (uint32_t)a[2];
		span.fd = (int32_t)(a[2] >> 32);
		span.flags = (uint32_t)a[3];
		span.offset = a[4];
		break;
	case OP_PKEY_MPROTECT:
		span.fd = (int32_t)a[3];
		span.arg = (uint32_t)a[2];
		break;
	case OP_MPROTECT:
	case OP_MADVISE:
		span.arg = (uint32_t)a[2];
		break;
	default:
		break;
	}
	gate_enter(&span);
	result = sys_call6(number, (long)a[0], (long)a[1], (long)a[2],
			   (long)a[3], (long)a[4], (long)a[5]);
	gate_leave(&span,
		   span.op == OP_BRK ? brk_outcome(a[0], result) : result);
	return result;
}

/* --- for hooks that enter at libc's own functions --- */

enum {
	NUMBER_MMAP = __NR_mmap,
	NUMBER_MUNMAP = __NR_munmap,
	NUMBER_MPROTECT = __NR_mprotect,
	NUMBER_MADVISE = __NR_madvise,
	NUMBER_MREMAP = __NR_mremap,
	NUMBER_PKEY_MPROTECT = __NR_pkey_mprotect,
};

/* A name that no other library's symbol can take the place of. */
#define OP_SYMBOL(symbol, NAME)                                                \
	extern __typeof__(symbol) wrap_##symbol __attribute__((                \
		alias(#symbol), visibility("hidden"), nothrow, leaf));
#include "ops.def"

const struct wrap_entry wrap_entries[WRAP_ENTRIES] = {
#define OP_SYMBOL(symbol, NAME)                                                \
	{#symbol, OP_##NAME, NUMBER_##NAME, wrap_##symbol},
#include "ops.def"
};
