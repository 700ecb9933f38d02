/* SPDX-License-Identifier: MIT */
/*
 * patcher: a library that patches libc's mmap, as others than us do.
 *
 * Counts the calls and hands them on.  Linked with -z initfirst and named last
 * in LD_PRELOAD it comes before us; without, after us.  By its environment:
 *
 *   PATCHER_JUMP   near, far, r11, rax: how its jump is written
 *   PATCHER_CHAIN  hands on to what it found at the entry; else it makes the
 *                  system call itself
 *   PATCHER_RAISE  raises SIGUSR1 in the call of this number, from 1
 *   PATCHER_COUNT  the count goes to this file, with the program's name added
 *
 * The program gets what libc's mmap would return.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef void *map_function(void *, size_t, int, int, int, off_t);

enum { PAGE = 4096, CODE = PROT_READ | PROT_EXEC };

static unsigned long calls, raise_at;
static map_function *next;

static long raw6(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10),
			   "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static void *raw_map(void *addr, size_t length, int prot, int flags, int fd,
		     off_t offset)
{
	long result = raw6(SYS_mmap, (long)addr, (long)length, prot, flags, fd,
			   offset);

	if (result > -4096 && result < 0) {
		errno = (int)-result;
		return MAP_FAILED;
	}
	return (void *)result;
}

static void *count_map(void *addr, size_t length, int prot, int flags, int fd,
		       off_t offset)
{
	if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) == raise_at)
		raise(SIGUSR1);
	return next(addr, length, prot, flags, fd, offset);
}

static unsigned put_address(unsigned char *to, unsigned used, uintptr_t address)
{
	memcpy(to + used, &address, sizeof(address));
	return used + (unsigned)sizeof(address);
}

/* The bytes of a jump at `at` to `target`; returns how many. */
static unsigned write_jump(unsigned char *to, const char *kind,
			   const unsigned char *at, uintptr_t target)
{
	if (strcmp(kind, "near") == 0) {
		int32_t distance = (int32_t)(target - (uintptr_t)at - 5);

		to[0] = 0xe9;
		memcpy(to + 1, &distance, sizeof(distance));
		return 5;
	}
	if (strcmp(kind, "far") == 0) {
		memcpy(to, "\xff\x25\0\0\0\0", 6);
		return put_address(to, 6, target);
	}
	memcpy(to, strcmp(kind, "r11") == 0 ? "\x49\xbb" : "\x48\xb8", 2);
	put_address(to, 2, target);
	memcpy(to + 10, strcmp(kind, "r11") == 0 ? "\x41\xff\xe3" : "\xff\xe0",
	       3);
	return strcmp(kind, "r11") == 0 ? 13 : 12;
}

/* What stands at the entry, moved elsewhere: a jump that somebody put there,
 * or libc's own first instructions, if the jump that comes there takes no more
 * than them. */
static map_function *move_entry(unsigned char *at, unsigned length)
{
	static const char own[] = "\x41\x89\xca\x41\xf7\xc1\xff\x0f\0\0";
	int32_t distance;
	unsigned char *page;

	if (*at == 0xe9) {
		memcpy(&distance, at + 1, sizeof(distance));
		return (map_function *)(at + 5 + distance);
	}
	if (length > sizeof(own) - 1 || memcmp(at, own, sizeof(own) - 1) != 0)
		return raw_map;
	page = raw_map(NULL, PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(page, own, sizeof(own) - 1);
	write_jump(page + sizeof(own) - 1, "far", NULL,
		   (uintptr_t)at + sizeof(own) - 1);
	raw6(SYS_mprotect, (long)page, PAGE, CODE, 0, 0, 0);
	return (map_function *)page;
}

static void write_code(unsigned char *at, const unsigned char *code,
		       unsigned length)
{
	long page = (long)at & -PAGE, size = 2 * PAGE;

	raw6(SYS_mprotect, page, size, CODE | PROT_WRITE, 0, 0, 0);
	memcpy(at, code, length);
	raw6(SYS_mprotect, page, size, CODE, 0, 0, 0);
}

/* Before libc's own start getenv finds nothing. */
static const char *variable(char **env, const char *name, const char *otherwise)
{
	size_t len = strlen(name);

	for (; *env != NULL; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return otherwise;
}

__attribute__((constructor)) static void patch(int argc, char **argv,
					       char **env)
{
	unsigned char *at = dlsym(RTLD_NEXT, "mmap"), code[16];
	unsigned length;

	(void)argc;
	(void)argv;
	if (memcmp(at, "\xf3\x0f\x1e\xfa", 4) == 0)
		at += 4;
	length = write_jump(code, variable(env, "PATCHER_JUMP", "near"), at,
			    (uintptr_t)count_map);
	next = variable(env, "PATCHER_CHAIN", NULL) != NULL
		       ? move_entry(at, length)
		       : raw_map;
	raise_at = strtoul(variable(env, "PATCHER_RAISE", "0"), NULL, 10);
	write_code(at, code, length);
}

__attribute__((destructor)) static void tell(void)
{
	const char *path = getenv("PATCHER_COUNT");
	char text[256];
	int fd, len;

	if (path == NULL)
		return;
	snprintf(text, sizeof(text), "%s.%s", path,
		 program_invocation_short_name);
	fd = open(text, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	len = snprintf(text, sizeof(text), "%lu\n", calls);
	if (write(fd, text, (size_t)len) != len)
		abort();
	close(fd);
}
