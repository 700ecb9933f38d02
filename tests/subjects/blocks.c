/* SPDX-License-Identifier: MIT */
/*
 * blocks N: maps and unmaps N times by symbol, and N times by malloc and free
 * inside libc; checks what it wrote.  It makes exactly 2 N calls of mmap and
 * 2 N of munmap.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 256 << 10 };

static int use(char *at, int i)
{
	memset(at, i, BYTES);
	return at[0] == (char)i && at[BYTES - 1] == (char)i;
}

static int map(int i)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at != MAP_FAILED && use(at, i) && munmap(at, BYTES) == 0;
}

static int allocate(int i)
{
	/* The compiler may not take it away. */
	char *volatile at = malloc(BYTES);
	int good = at != NULL && use(at, i);

	free(at);
	return good;
}

int main(int argc, char **argv)
{
	static char line[64];
	int n = argc > 1 ? atoi(argv[1]) : 0, good = 0, len;

	mallopt(M_MMAP_THRESHOLD, BYTES / 2);
	for (int i = 0; i < n; i++)
		good += map(i) + allocate(i);
	len = snprintf(line, sizeof(line), "blocks: %d of %d\n", good, 2 * n);
	return write(1, line, (size_t)len) == len && good == 2 * n ? 0 : 1;
}
