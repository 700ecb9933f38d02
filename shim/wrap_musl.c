/* SPDX-License-Identifier: MIT */
/*
 * wrap_musl: every function that the library exports, where libc is musl.
 *
 * musl's functions do more than the call: they wait until no other thread is
 * about to touch memory that this one may unmap (__vm_wait), round, check and
 * rename errors.  So once the call inside libc's function leads to the gate,
 * the wrapper hands over to that function, and the call is counted there.
 *
 * Until then, and when only symbols are hooked, a wrapper does what libc's
 * function does, but for the wait, which has no name to call it by: a program
 * that unmaps shared memory which holds a process-shared barrier or a robust
 * mutex, while another thread is still on its way out of it, wants
 * hooks=libc.
 */
#include <stdarg.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "sys.h"
#include "wrap.h"
#include "wrap_enter.h"

#include "poison.h"

#undef mmap64

enum { UNIT = 4096 }; /* of offsets */

/* libc's functions, NULL: the wrapper makes the call. */
static void *beneath[WRAP_ENTRIES];

/* The program's own call on its way through libc's function: where that goes
 * back to, and the frame that it is in.  A jump out of a handler may leave them
 * behind. */
static __thread const void *outer_caller;
static __thread uintptr_t outer_frame;

enum { LIBC_FRAMES = 4096 }; /* what libc has between us and its call */

void wrap_go_on(unsigned entry, void *function)
{
	beneath[entry] = function;
}

const void *wrap_caller(const void *site)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return outer_caller != NULL && outer_frame - here < LIBC_FRAMES
		       ? outer_caller
		       : site;
}

/* Calls libc's function of this name and returns its result, if it is to be
 * gone on to. */
#define GO_ON(symbol, ...)                                                     \
	do {                                                                   \
		__typeof__(&symbol) function_;                                 \
		__typeof__(function_(__VA_ARGS__)) result_;                    \
                                                                               \
		if (beneath[WRAP_ENTRY_##symbol] == NULL)                      \
			break;                                                 \
		function_ =                                                    \
			(__typeof__(function_))beneath[WRAP_ENTRY_##symbol];   \
		outer_caller = __builtin_return_address(0);                    \
		outer_frame = (uintptr_t)__builtin_frame_address(0);           \
		result_ = function_(__VA_ARGS__);                              \
		outer_caller = NULL;                                           \
		return result_;                                                \
	} while (0)

static uintptr_t page_size(void)
{
	return SYS_PAGE_MAX == 4096 ? 4096 : getauxval(AT_PAGESZ);
}

/* The kernel names one error otherwise than POSIX does. */
static long renamed(long result, const void *addr, int flags)
{
	if (result == -EPERM && addr == NULL && flags & MAP_ANONYMOUS &&
	    !(flags & MAP_FIXED))
		return -ENOMEM;
	return result;
}

EXPORT void *mmap(void *addr, size_t length, int prot, int flags, int fd,
		  off_t offset)
{
	long result;

	GO_ON(mmap, addr, length, prot, flags, fd, offset);
	if (offset & (UNIT - 1))
		return (void *)edge(-EINVAL);
	if (length >= PTRDIFF_MAX)
		return (void *)edge(-ENOMEM);
	ENTER(OP_MMAP, addr, length, prot, flags, fd, offset);
	result = sys_mmap((void *)span.hint, length, prot, flags, fd, offset);
	place_leave(&span, result);
	return (void *)edge(renamed(result, addr, flags));
}

extern __typeof__(mmap) mmap64;

EXPORT void *mmap64(void *addr, size_t length, int prot, int flags, int fd,
		    off_t offset) __attribute__((alias("mmap")));

EXPORT int munmap(void *addr, size_t length)
{
	GO_ON(munmap, addr, length);
	ENTER(OP_MUNMAP, addr, length, 0, 0, 0, 0);
	return (int)edge(place_leave(&span, sys_munmap(addr, length)));
}

/* Whole pages, as libc makes them. */
EXPORT int mprotect(void *addr, size_t length, int prot)
{
	uintptr_t mask = page_size() - 1;
	uintptr_t from = (uintptr_t)addr & ~mask;
	size_t size = (((uintptr_t)addr + length + mask) & ~mask) - from;

	GO_ON(mprotect, addr, length, prot);
	ENTER(OP_MPROTECT, from, size, prot, 0, 0, 0);
	return (int)edge(place_leave(
		&span, sys_mprotect((const void *)from, size, prot)));
}

EXPORT int madvise(void *addr, size_t length, int advice)
{
	GO_ON(madvise, addr, length, advice);
	ENTER(OP_MADVISE, addr, length, advice, 0, 0, 0);
	return (int)edge(place_leave(&span, sys_madvise(addr, length, advice)));
}

/* Returns the error and leaves errno.  POSIX_MADV_DONTNEED must not lose data,
 * which Linux's advice of that number does, so libc makes no call for it. */
EXPORT int posix_madvise(void *addr, size_t length, int advice)
{
	if (advice == POSIX_MADV_DONTNEED)
		return 0;
	GO_ON(posix_madvise, addr, length, advice);
	ENTER(OP_MADVISE, addr, length, advice, 0, 0, 0);
	return (int)-place_leave(&span, sys_madvise(addr, length, advice));
}

EXPORT void *mremap(void *addr, size_t old_length, size_t new_length, int flags,
		    ...)
{
	void *new_addr = NULL;
	va_list rest;

	if (flags & MREMAP_FIXED) {
		va_start(rest, flags);
		new_addr = va_arg(rest, void *);
		va_end(rest);
	}
	GO_ON(mremap, addr, old_length, new_length, flags, new_addr);
	if (new_length >= PTRDIFF_MAX)
		return (void *)edge(-ENOMEM);
	ENTER(OP_MREMAP, addr, old_length, new_length, flags,
	      (int32_t)((uint64_t)new_length >> 32), (uintptr_t)new_addr);
	return (void *)edge(
		place_leave(&span, sys_mremap(addr, old_length, new_length,
					      flags, new_addr)));
}

/* Not in every musl, nor in its headers. */
int pkey_mprotect(void *addr, size_t length, int prot, int key);

/* Without a key it is mprotect, on kernels without keys too. */
EXPORT int pkey_mprotect(void *addr, size_t length, int prot, int key)
{
	if (key == -1)
		return mprotect(addr, length, prot);
	ENTER(OP_PKEY_MPROTECT, addr, length, prot, 0, key, 0);
	return (int)edge(
		place_leave(&span, sys_pkey_mprotect(addr, length, prot, key)));
}

/* A name that no other library's symbol can take the place of. */
#define OP_SYMBOL(symbol, NAME)                                                \
	extern __typeof__(symbol) wrap_##symbol __attribute__((                \
		alias(#symbol), visibility("hidden"), nothrow, leaf));
#include "ops.def"

const void *const wrap_functions[WRAP_ENTRIES] = {
#define OP_SYMBOL(symbol, NAME) wrap_##symbol,
#include "ops.def"
};

const void *const wrap_exports[WRAP_ENTRIES] = {
#define OP_SYMBOL(symbol, NAME) wrap_##symbol,
#include "ops.def"
};

/* Calls go on to libc's functions anyway, where its sites lead to the gate. */
void wrap_watch(const struct elf_image *libc, uint8_t taken)
{
	(void)libc;
	(void)taken;
}

uint8_t wrap_taken(void)
{
	return 0;
}
