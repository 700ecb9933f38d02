/* SPDX-License-Identifier: MIT */
/*
 * place_given: a thread makes one mmap of each kind whose place somebody has
 * chosen, or that is not for others to choose, each of a length of its own;
 * prints them, as strace would.  The last is an ordinary one.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MAP_32BIT
#define MAP_32BIT 0
#endif

enum { PLAIN = MAP_PRIVATE | MAP_ANONYMOUS, RW = PROT_READ | PROT_WRITE };

static char *room; /* free addresses */

static void call(uintptr_t addr, size_t length, int prot, int flags, int fd)
{
	char *at = mmap((void *)addr, length, prot, flags, fd, 0);

	if (addr == 0)
		printf("mmap(NULL, %zu,\n", length);
	else
		printf("mmap(%#lx, %zu,\n", addr, length);
	if (at != MAP_FAILED)
		munmap(at, length);
}

static void *work(void *file)
{
	uintptr_t at = (uintptr_t)room;

	call(at, 0x11000, RW, PLAIN, -1);
	call(at + 0x123, 0x12000, RW, PLAIN, -1);
	call(1, 0x13000, RW, PLAIN, -1);
	call((uintptr_t)-4096, 0x14000, RW, PLAIN, -1);
	call(at, 0x15000, RW, PLAIN | MAP_FIXED, -1);
	call(at, 0x16000, RW, PLAIN | MAP_FIXED_NOREPLACE, -1);
	call(0, 0x17000, RW, PLAIN | MAP_32BIT, -1);
	call(0, 0x18000, RW, PLAIN | MAP_STACK, -1);
	call(0, 0x19000, RW, PLAIN | MAP_GROWSDOWN, -1);
	call(0, 0x1a000, RW, PLAIN | MAP_HUGETLB, -1);
	call(0, 0x1b000, RW, MAP_SHARED | MAP_ANONYMOUS, -1);
	call(0, 0x1c000, PROT_READ, MAP_PRIVATE, fileno(file));
	call(0, 0x1d000, PROT_READ, MAP_SHARED, fileno(file));
	call(0, 0x1e000, RW | PROT_EXEC, PLAIN, -1);
	call(0, 0, RW, PLAIN, -1);
	call(0, SIZE_MAX, RW, PLAIN, -1);
	call(0, (size_t)1 << 32, RW, PLAIN | MAP_NORESERVE, -1);
	call(0, (size_t)1 << 26, PROT_NONE, PLAIN | MAP_NORESERVE, -1);
	return mmap(NULL, 0x1f000, RW, PLAIN, -1, 0);
}

int main(void)
{
	FILE *file = fopen("/proc/self/exe", "r");
	pthread_t thread;
	void *last;

	room = mmap(NULL, 1 << 20, PROT_NONE, PLAIN, -1, 0);
	munmap(room, 1 << 20);
	if (file == NULL || pthread_create(&thread, NULL, work, file) != 0)
		return 3;
	pthread_join(thread, &last);
	return last == MAP_FAILED;
}
