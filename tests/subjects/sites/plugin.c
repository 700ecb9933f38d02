/* SPDX-License-Identifier: MIT */
/* plugin: a library that places opens and unmaps memory in. */
#include <sys/mman.h>

void give_back(void *at, size_t size);

void give_back(void *at, size_t size)
{
	munmap(at, size);
	__asm__ volatile("" ::: "memory");
}
