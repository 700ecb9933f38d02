/* SPDX-License-Identifier: MIT */
/* Makes the same calls from two places of one function. */
#include <sys/mman.h>

enum { LENGTH = 65536 };

static void *map(void)
{
	return mmap(0, LENGTH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Not the last thing that it does: that would be main's call. */
__attribute__((noinline)) static int twice(void)
{
	return munmap(map(), LENGTH) + munmap(map(), LENGTH);
}

int main(void)
{
	int i, failed = 0;

	for (i = 0; i < 5; i++)
		failed += twice();
	return failed != 0;
}
