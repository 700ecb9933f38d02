/* SPDX-License-Identifier: MIT */
/*
 * wrap_glibc: every function that the library exports, where libc is glibc.
 *
 * A wrapper is the whole function: there is no "real" one behind it, only the
 * system call.  Where libc does more than the call, so does its wrapper.  The
 * exported names below go on to them.
 */
#include <sys/mman.h>

#include "elf.h"
#include "hot.h"
#include "sys.h"
#include "wrap.h"
#include "wrap_enter.h"

#include "poison.h"

static INLINE void *wrap_mmap(void *addr, size_t length, int prot, int flags,
			      int fd, off_t offset)
{
	ENTER(OP_MMAP, addr, length, prot, flags, fd, offset);
	return (void *)edge(
		place_leave(&span, sys_mmap((void *)span.hint, length, prot,
					    flags, fd, offset)));
}

static INLINE int wrap_munmap(void *addr, size_t length)
{
	ENTER(OP_MUNMAP, addr, length, 0, 0, 0, 0);
	return (int)edge(place_leave(&span, sys_munmap(addr, length)));
}

static INLINE int wrap_mprotect(void *addr, size_t length, int prot)
{
	ENTER(OP_MPROTECT, addr, length, prot, 0, 0, 0);
	return (int)edge(place_leave(&span, sys_mprotect(addr, length, prot)));
}

static INLINE int wrap_madvise(void *addr, size_t length, int advice)
{
	ENTER(OP_MADVISE, addr, length, advice, 0, 0, 0);
	return (int)edge(place_leave(&span, sys_madvise(addr, length, advice)));
}

/* Returns the error and leaves errno.  POSIX_MADV_DONTNEED must not lose data,
 * which Linux's advice of that number does, so libc makes no call for it. */
static INLINE int wrap_posix_madvise(void *addr, size_t length, int advice)
{
	if (advice == POSIX_MADV_DONTNEED)
		return 0;
	ENTER(OP_MADVISE, addr, length, advice, 0, 0, 0);
	return (int)-place_leave(&span, sys_madvise(addr, length, advice));
}

/* new_addr: what a caller passed in the optional argument, or chance. */
static INLINE void *wrap_mremap(void *addr, size_t old_length,
				size_t new_length, int flags, void *new_addr)
{
	if (!(flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)))
		new_addr = NULL;
	/* Some versions of libc pass no address with DONTUNMAP alone, so its
	 * callers may give none: a value that cannot be one is not passed on.
	 */
	if (!(flags & MREMAP_FIXED) && (uintptr_t)new_addr & 4095)
		new_addr = NULL;
	ENTER(OP_MREMAP, addr, old_length, new_length, flags,
	      (int32_t)((uint64_t)new_length >> 32), (uintptr_t)new_addr);
	return (void *)edge(
		place_leave(&span, sys_mremap(addr, old_length, new_length,
					      flags, new_addr)));
}

/* Without a key it is mprotect, on kernels without keys too. */
static INLINE int wrap_pkey_mprotect(void *addr, size_t length, int prot,
				     int key)
{
	if (key == -1)
		return wrap_mprotect(addr, length, prot);
	ENTER(OP_PKEY_MPROTECT, addr, length, prot, 0, key, 0);
	return (int)edge(
		place_leave(&span, sys_pkey_mprotect(addr, length, prot, key)));
}

/* --- the ways in --- */

/*
 * Two ways lead to a wrapper: its exported name, for the program, and the jump
 * at libc's function, for libc itself.  Another library that wants to see calls
 * may have patched either: it found one of the two as "mmap".  Then it gets the
 * calls of the other way too, as it would without us; one that keeps registered
 * memory in a cache must not miss an unmap.  What it hands on comes back by
 * the code that it replaced, or goes to the kernel.
 */
static struct {
	const uint64_t *libc, *exported; /* the functions; NULL: not known */
	uint64_t libc_begins, exported_begins; /* while nobody patched them */
} watched[WRAP_ENTRIES];

/* Where the thread's stack was when it handed a call to a patch of an exported
 * name, which may hand it on to libc's function, in half of a word: static TLS
 * is scarce.  0: it is not on such a way. */
static __thread uint32_t handing;

/* Not wrap_entries, which only builds that patch have. */
static const struct {
	const char *symbol;
	uint8_t op;
} known[WRAP_ENTRIES] = {
#define OP_SYMBOL(symbol, NAME) {#symbol, OP_##NAME},
#include "ops.def"
};

static inline bool is_patched(const uint64_t *function, uint64_t begins)
{
	return function != NULL &&
	       __atomic_load_n(function, __ATOMIC_RELAXED) != begins;
}

static inline bool is_taken(unsigned i)
{
	return __builtin_expect(
		is_patched(watched[i].libc, watched[i].libc_begins), 0);
}

static inline bool is_export_taken(unsigned i)
{
	return __builtin_expect(
		is_patched(watched[i].exported, watched[i].exported_begins), 0);
}

/* Hands a call over, from here on.  False: this is one that comes back from
 * there.  Then it stands deeper in the stack; after a jump out of the patch the
 * next call from a place as shallow clears that up, and those from deeper ones
 * pass by the patch until then.  A handler's call on another stack that lies
 * higher is taken for such a one: what it interrupted is handed over twice. */
static COLD bool begin_handing(void)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	uint32_t here = (uint32_t)(frame >> 4) | 1;

	if (handing != 0 && (int32_t)(here - handing) < 0)
		return false;
	handing = here;
	return true;
}

/*
 * The two ways.  The exported one has another name in C, as the header's says
 * less (mremap) or is of another type.
 */
#define WAYS(type, symbol, wrapper, parameters, arguments)                     \
	EXPORT type export_##symbol parameters __asm__(#symbol);               \
	type export_##symbol parameters                                        \
	{                                                                      \
		if (is_taken(WRAP_ENTRY_##symbol))                             \
			return ((type(*) parameters)(                          \
					uintptr_t)watched[WRAP_ENTRY_##symbol] \
					.libc)arguments;                       \
		return wrapper arguments;                                      \
	}                                                                      \
                                                                               \
	/* The same, whatever others export by the name. */                    \
	extern __typeof__(export_##symbol) own_##symbol                        \
		__attribute__((alias(#symbol), visibility("hidden")));         \
                                                                               \
	static type entry_##symbol parameters                                  \
	{                                                                      \
		type result;                                                   \
                                                                               \
		if (!is_export_taken(WRAP_ENTRY_##symbol) || !begin_handing()) \
			return wrapper arguments;                              \
		result = own_##symbol arguments;                               \
		handing = 0;                                                   \
		return result;                                                 \
	}

/* off_t has 64 bits on every architecture that sys.h knows. */
WAYS(void *, mmap, wrap_mmap,
     (void *addr, size_t length, int prot, int flags, int fd, off_t offset),
     (addr, length, prot, flags, fd, offset))
WAYS(void *, mmap64, wrap_mmap,
     (void *addr, size_t length, int prot, int flags, int fd, off_t offset),
     (addr, length, prot, flags, fd, offset))
WAYS(int, munmap, wrap_munmap, (void *addr, size_t length), (addr, length))
WAYS(int, mprotect, wrap_mprotect, (void *addr, size_t length, int prot),
     (addr, length, prot))
WAYS(int, madvise, wrap_madvise, (void *addr, size_t length, int advice),
     (addr, length, advice))
WAYS(int, posix_madvise, wrap_posix_madvise,
     (void *addr, size_t length, int advice), (addr, length, advice))
WAYS(void *, mremap, wrap_mremap,
     (void *addr, size_t old_length, size_t new_length, int flags,
      void *new_addr),
     (addr, old_length, new_length, flags, new_addr))
WAYS(int, pkey_mprotect, wrap_pkey_mprotect,
     (void *addr, size_t length, int prot, int key), (addr, length, prot, key))

/* Their beginnings are compared as one word, so they must lie in one. */
static const uint64_t *watchable(const void *function)
{
	return (uintptr_t)function % 8 == 0 ? function : NULL;
}

void wrap_watch(const struct elf_image *libc, uint8_t taken)
{
	for (unsigned i = 0; i < WRAP_ENTRIES; i++) {
		const uint64_t *function =
			watchable(elf_symbol(libc, known[i].symbol, NULL));

		watched[i].exported = watchable(wrap_exports[i]);
		if (watched[i].exported != NULL)
			watched[i].exported_begins = *watched[i].exported;
		if (function == NULL)
			continue;
		watched[i].libc_begins =
			taken >> known[i].op & 1 ? ~*function : *function;
		watched[i].libc = function;
	}
}

uint8_t wrap_taken(void)
{
	unsigned taken = 0;

	for (unsigned i = 0; i < WRAP_ENTRIES; i++)
		if (is_taken(i))
			taken |= 1u << known[i].op;
	return (uint8_t)taken;
}

const void *const wrap_functions[WRAP_ENTRIES] = {
#define OP_SYMBOL(symbol, NAME) entry_##symbol,
#include "ops.def"
};

const void *const wrap_exports[WRAP_ENTRIES] = {
#define OP_SYMBOL(symbol, NAME) own_##symbol,
#include "ops.def"
};

const void *wrap_caller(const void *site)
{
	return site;
}
