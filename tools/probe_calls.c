/* SPDX-License-Identifier: MIT */
#include "probe_calls.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/lib-names.h>
#endif

#include "die.h"

#define BIT(op) (1u << (op))
#define EVERY_OP ((1u << OP_COUNT) - 1)

/* An address that a call is told by: no page begins there, so that the kernel
 * refuses it, and nobody else asks for it. */
static unsigned long mark(enum probe_layer layer)
{
	return 0x10001ul * (layer + 1);
}

static void *marked(enum probe_layer layer)
{
	return (void *)mark(layer);
}

/* --- by symbol --- */

static void call_symbols(void)
{
	void *at = marked(PROBE_SYMBOL);

	(void)!mmap(at, 0, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(at, 1);
	mprotect(at, 1, PROT_NONE);
	madvise(at, 1, MADV_NORMAL);
	(void)!mremap(at, 1, 1, 0);
	pkey_mprotect(at, 1, PROT_NONE, 0);
}

/* --- by libc itself --- */

/* The compiler may not take any of it away. */
static void *volatile kept[4];

enum { BIG = 256 << 10, SMALL = 64 << 10 };

/* mmap, mremap, munmap */
static void use_large_blocks(void)
{
	mallopt(M_MMAP_THRESHOLD, BIG / 2);
	kept[0] = malloc(BIG);
	kept[0] = realloc(kept[0], 4 * BIG);
	free(kept[0]);
}

/* brk, madvise: the block in the middle is given back where it lies. */
static void use_heap(void)
{
	(void)!sbrk(SMALL);
	for (int i = 0; i < 3; i++)
		kept[i] = malloc(SMALL);
	free(kept[1]);
	malloc_trim(0);
	free(kept[0]);
	free(kept[2]);
}

static void *use_memory(void *unused)
{
	kept[3] = malloc(SMALL);
	free(kept[3]);
	return unused;
}

/* mprotect: its stack, or its heap */
static void use_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, use_memory, NULL) == 0)
		pthread_join(thread, NULL);
}

/* libc makes none of its own accord: its function has to do, found where no
 * library stands before it. */
static void call_pkey_mprotect(void)
{
#ifdef __GLIBC__
	void *libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
	int (*call)(void *, size_t, int, int) = NULL;

	if (libc != NULL)
		*(void **)&call = dlsym(libc, "pkey_mprotect");
	if (call != NULL)
		call(marked(PROBE_LIBC), 1, PROT_NONE, 0);
#endif
}

static void call_through_libc(void)
{
	use_large_blocks();
	use_heap();
	use_thread();
	call_pkey_mprotect();
}

/* --- by the loader --- */

/* Part of every libc's package, small, and needed by nobody. */
static void call_through_loader(void)
{
	static const char *const names[] = {"libutil.so.1", "libanl.so.1",
					    "librt.so.1", "libm.so.6"};
	void *library = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD) != NULL)
			continue; /* loading it again maps nothing */
		library = dlopen(names[i], RTLD_NOW);
		if (library != NULL)
			break;
	}
	if (library == NULL)
		warn("self-test: no library of libc's can be loaded: %s",
		     dlerror());
	else
		dlclose(library);
}

/* --- by the program's own means --- */

static void call_syscalls(void)
{
	unsigned long at = mark(PROBE_SYSCALL);

	syscall(SYS_mmap, at, 0, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	syscall(SYS_munmap, at, 1);
	syscall(SYS_mprotect, at, 1, PROT_NONE);
	syscall(SYS_madvise, at, 1, MADV_NORMAL);
	syscall(SYS_mremap, at, 1, 1, 0, 0);
	syscall(SYS_brk, at);
	syscall(SYS_pkey_mprotect, at, 1, PROT_NONE, 0);
}

#ifdef __x86_64__

/* The number is loaded right before: what the library looks for. */
#define INLINE_CALL(number, length)                                            \
	do {                                                                   \
		long result;                                                   \
		register long r10 __asm__("r10") =                             \
			MAP_PRIVATE | MAP_ANONYMOUS;                           \
		register long r8 __asm__("r8") = -1;                           \
		register long r9 __asm__("r9") = 0;                            \
                                                                               \
		__asm__ volatile("movl %1, %%eax\n\tsyscall"                   \
				 : "=a"(result)                                \
				 : "i"(number), "D"(mark(PROBE_INLINE)),       \
				   "S"(length), "d"(0), "r"(r10), "r"(r8),     \
				   "r"(r9)                                     \
				 : "rcx", "r11", "memory");                    \
		(void)result;                                                  \
	} while (0)

static void call_inline(void)
{
	INLINE_CALL(SYS_mmap, 0L);
	INLINE_CALL(SYS_munmap, 1L);
	INLINE_CALL(SYS_mprotect, 1L);
	INLINE_CALL(SYS_madvise, 1L);
	INLINE_CALL(SYS_mremap, 1L);
	INLINE_CALL(SYS_brk, 0L);
	INLINE_CALL(SYS_pkey_mprotect, 1L);
}

#define INLINE_OPS EVERY_OP

#else

static void call_inline(void)
{
}

#define INLINE_OPS 0u

#endif

/* --- all --- */

static const struct {
	uint32_t ops;
	void (*call)(void);
} layers[PROBE_LAYERS] = {
	[PROBE_SYMBOL] = {EVERY_OP & ~BIT(OP_BRK), call_symbols},
	[PROBE_LIBC] = {EVERY_OP, call_through_libc},
	[PROBE_LOADER] = {BIT(OP_MMAP) | BIT(OP_MUNMAP) | BIT(OP_MPROTECT),
			  call_through_loader},
	[PROBE_SYSCALL] = {EVERY_OP, call_syscalls},
	[PROBE_INLINE] = {INLINE_OPS, call_inline},
};

uint32_t probe_ops(enum probe_layer layer)
{
	return layers[layer].ops;
}

void probe_calls(void)
{
	for (int i = 0; i < PROBE_LAYERS; i++)
		layers[i].call();
}

enum probe_layer probe_layer_of(const struct record_event *event)
{
	for (int i = 0; i < PROBE_LAYERS; i++)
		if (event->addr == mark(i))
			return i;
	if (event->layer == CALLER_LIBC)
		return PROBE_LIBC;
	if (event->layer == CALLER_LOADER)
		return PROBE_LOADER;
	return PROBE_LAYERS;
}
