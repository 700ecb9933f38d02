/* SPDX-License-Identifier: MIT */
/*
 * alone: to be linked without libc, by -nostdlib.  A thread pointer of its own,
 * into the middle of its data, and system calls of its own, of the wrapped
 * kinds; then it looks whether all of its data is as it was.
 */
#include <stdint.h>

enum {
	WRITE = 1,
	ARCH_PRCTL = 158,
	EXIT_GROUP = 231,
	SET_FS = 0x1002,
	WORDS = 4096,
	LOOPS = 20
};

static uint64_t data[WORDS];

static long call(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
}

static long map(void)
{
	register long flags __asm__("r10") = 0x22; /* private, anonymous */
	register long file __asm__("r8") = -1;
	register long offset __asm__("r9") = 0;
	long result;

	__asm__ volatile("mov $9, %%eax\n\tsyscall"
			 : "=&a"(result)
			 : "D"(0L), "S"(4096L), "d"(3L), "r"(flags), "r"(file),
			   "r"(offset)
			 : "rcx", "r11", "memory");
	return result;
}

static long unmap(long at)
{
	long result;

	__asm__ volatile("mov $11, %%eax\n\tsyscall"
			 : "=&a"(result)
			 : "D"(at), "S"(4096L)
			 : "rcx", "r11", "memory");
	return result;
}

static void end(const char *line, long length, long status)
{
	call(WRITE, 1, (long)line, length);
	call(EXIT_GROUP, status, 0, 0);
}

void __attribute__((noreturn)) _start(void)
{
	for (uint64_t i = 0; i < WORDS; i++)
		((volatile uint64_t *)data)[i] = i;
	call(ARCH_PRCTL, SET_FS, (long)(data + WORDS / 2), 0);
	for (int i = 0; i < LOOPS; i++) {
		long at = map();

		if (at < 0 && at > -4096)
			end("no memory\n", 10, 3);
		*(volatile char *)at = 1;
		if (unmap(at) != 0)
			end("not unmapped\n", 13, 3);
	}
	for (uint64_t i = 0; i < WORDS; i++)
		if (((volatile uint64_t *)data)[i] != i)
			end("changed\n", 8, 1);
	end("all good\n", 9, 0);
	__builtin_unreachable();
}
