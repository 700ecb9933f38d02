/* SPDX-License-Identifier: MIT */
/*
 * place_churn THREADS: so many short threads, some at a time, whose stacks are
 * of many sizes; each maps small blocks and large ones in an order of its own,
 * writes to them, finds what it wrote and unmaps them, the last by another
 * thread.  Prints how many there were, and how many areas of memory the process
 * has more than after the first of them.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { AT_ONCE = 20, BLOCKS = 6, STACKS = 97 };

static const size_t sizes[BLOCKS] = {4096, 131072, 8192, 20480, 2 << 20, 65536};

static char *map(size_t size, int value)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || at[0] != 0 || at[size - 1] != 0)
		exit(3);
	at[0] = at[size - 1] = (char)value;
	return at;
}

static void unmap(char *at, size_t size, int value)
{
	if (at[0] != (char)value || at[size - 1] != (char)value)
		exit(4);
	if (munmap(at, size) != 0)
		exit(3);
}

static void *work(void *number)
{
	unsigned n = (unsigned)(uintptr_t)number;
	char *at[BLOCKS];

	for (unsigned i = 0; i < BLOCKS; i++)
		at[i] = map(sizes[(i + n) % BLOCKS], (int)(n + i + 1) | 1);
	for (unsigned i = 1; i < BLOCKS; i++)
		unmap(at[i], sizes[(i + n) % BLOCKS], (int)(n + i + 1) | 1);
	return at[0];
}

static int areas(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	int c, lines = 0;

	while (maps != NULL && (c = fgetc(maps)) != EOF)
		lines += c == '\n';
	if (maps != NULL)
		fclose(maps);
	return lines;
}

static void run_some(unsigned from)
{
	pthread_t threads[AT_ONCE];
	pthread_attr_t how;
	void *left;

	pthread_attr_init(&how);
	for (unsigned i = 0; i < AT_ONCE; i++) {
		pthread_attr_setstacksize(&how, 65536 + (from / AT_ONCE + i) %
								STACKS * 4096);
		if (pthread_create(&threads[i], &how, work,
				   (void *)(uintptr_t)(from + i)) != 0)
			exit(3);
	}
	for (unsigned i = 0; i < AT_ONCE; i++) {
		pthread_join(threads[i], &left);
		unmap(left, sizes[(from + i) % BLOCKS],
		      (int)(from + i + 1) | 1);
	}
	pthread_attr_destroy(&how);
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
	int before;

	run_some(0);
	before = areas();
	for (unsigned i = AT_ONCE; i < count; i += AT_ONCE)
		run_some(i);
	printf("threads: %u\nmore areas: %d\n", count, areas() - before);
	return 0;
}
