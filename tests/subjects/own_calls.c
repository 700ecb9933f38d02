/* SPDX-License-Identifier: MIT */
/*
 * own_calls: system calls of the wrapped kinds that no function of libc makes:
 * 100 by syscall(), 100 by an instruction of its own, which keeps locals below
 * the stack pointer across it.  Also what a replacement of syscall() must leave
 * alone: other calls, errors, SYS_vfork, and six arguments.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int good, const char *what)
{
	if (good)
		return;
	printf("own_calls: %s\n", what);
	exit(1);
}

/* A leaf with locals in the red zone, if the compiler likes. */
static __attribute__((noinline)) uint64_t inline_call(char *page, uint64_t seed)
{
	volatile uint64_t a = seed, b = seed * 3, c = seed * 5, d = seed * 7;
	long result = 0;

#if defined(__x86_64__)
	__asm__ volatile("mov $28, %%eax\n\tsyscall"
			 : "=a"(result)
			 : "D"(page), "S"(4096L), "d"((long)MADV_NORMAL)
			 : "rcx", "r11", "memory");
#else
	result = madvise(page, 4096, MADV_NORMAL);
#endif
	return (uint64_t)result + a + b + c + d;
}

/* The child shares the stack, where the parent's return address lies: it may
 * not call anything before it ends. */
static __attribute__((noinline)) void try_vfork(void)
{
	int status;
	pid_t pid = (pid_t)syscall(SYS_vfork);

#if defined(__x86_64__)
	if (pid == 0)
		__asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(7L));
#else
	if (pid == 0)
		_exit(7);
#endif
	check(pid > 0, "vfork");
	check(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7,
	      "vfork's child");
}

int main(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *other;

	check(page != MAP_FAILED, "mmap");
	for (uint64_t i = 0; i < 100; i++) {
		check(syscall(SYS_madvise, page, 4096, MADV_NORMAL) == 0,
		      "madvise by syscall()");
		check(inline_call(page, i) == 16 * i, "inline madvise");
	}
	errno = 0;
	check(syscall(SYS_madvise, page + 1, 4096, 0) == -1 && errno == EINVAL,
	      "a failing madvise");
	errno = 0;
	check(syscall(SYS_close, -1) == -1 && errno == EBADF, "close");
	other = (void *)syscall(SYS_mmap, NULL, 4096, PROT_READ,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(other != MAP_FAILED, "mmap by syscall()");
	check((pid_t)syscall(SYS_getpid) == getpid(), "getpid");
	try_vfork();
	puts("all good");
	return 0;
}
