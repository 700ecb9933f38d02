/* SPDX-License-Identifier: MIT */
/*
 * place_arenas THREADS [COMMON]: each thread maps blocks of several sizes, in
 * step with the others, writes to them and keeps them; then it is counted in
 * /proc/self/maps how many areas of memory hold blocks of more than one
 * thread.  COMMON: so many blocks more are mapped by the main thread at the
 * same time.  Prints also whether each block that is a multiple of 2 MiB
 * begins on a boundary of 2 MiB.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BLOCKS = 24, LARGE = 2 << 20, MOST_THREADS = 300 };

static const size_t sizes[] = {65536, 4096,         20480,      2 * LARGE,
			       69632, LARGE + 4096, 300 * 1024, LARGE};

static uintptr_t blocks[MOST_THREADS + 1][BLOCKS];
static pthread_barrier_t step;
static int threads;

static size_t size_of(int block)
{
	return sizes[(size_t)block % (sizeof(sizes) / sizeof(sizes[0]))];
}

static void map_blocks(int thread, int in_step)
{
	for (int i = 0; i < BLOCKS; i++) {
		char *block = mmap(NULL, size_of(i), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (block == MAP_FAILED)
			exit(3);
		block[0] = block[size_of(i) - 1] = 1;
		blocks[thread][i] = (uintptr_t)block;
		if (in_step)
			pthread_barrier_wait(&step);
	}
}

static void *work(void *number)
{
	map_blocks((int)(intptr_t)number, 1);
	pthread_barrier_wait(&step);
	return NULL;
}

static void *map_and_unmap(void *unused)
{
	void *block = mmap(NULL, size_of(0), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED || munmap(block, size_of(0)) != 0)
		exit(3);
	return unused;
}

/* While one thread looks for where the arenas may be, others' blocks go where
 * the kernel puts them: let it be found before they begin. */
static void map_first(void)
{
	pthread_t id;

	if (pthread_create(&id, NULL, map_and_unmap, NULL) != 0 ||
	    pthread_join(id, NULL) != 0)
		exit(3);
}

static int touches(int thread, uintptr_t from, uintptr_t to)
{
	for (int i = 0; i < BLOCKS; i++)
		if (blocks[thread][i] >= from && blocks[thread][i] < to)
			return 1;
	return 0;
}

static int count_shared(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	uintptr_t from, to;
	char line[1024];
	int shared = 0;

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		int owners = 0;

		if (sscanf(line, "%lx-%lx", &from, &to) != 2)
			exit(3);
		for (int i = 0; i <= threads; i++)
			owners += touches(i, from, to);
		shared += owners > 1;
	}
	return maps != NULL ? shared : -1;
}

static int count_unaligned(void)
{
	int unaligned = 0;

	for (int t = 0; t < threads; t++)
		for (int i = 0; i < BLOCKS; i++)
			unaligned += size_of(i) % LARGE == 0 &&
				     blocks[t][i] % LARGE != 0;
	return unaligned;
}

int main(int argc, char **argv)
{
	pthread_t ids[MOST_THREADS];

	threads = argc > 1 ? atoi(argv[1]) : 2;
	if (threads < 1 || threads > MOST_THREADS)
		return 2;
	pthread_barrier_init(&step, NULL, (unsigned)threads);
	map_first();
	for (int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, (void *)(intptr_t)i) !=
		    0)
			return 3;
	if (argc > 2)
		map_blocks(threads, 0);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	printf("shared: %d\nunaligned: %d\n", count_shared(),
	       count_unaligned());
	return 0;
}
