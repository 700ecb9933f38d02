/* SPDX-License-Identifier: MIT */
/*
 * place_areas THREADS BLOCKS BYTES ROUNDS: each thread maps so many blocks, and
 * ROUNDS times unmaps a third of them, here and there, and maps as many again.
 * Prints how many areas of memory the process has then more than before, and
 * how many calls failed.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static int blocks, rounds;
static size_t bytes;
static pthread_barrier_t all;
static _Atomic int failed;

static char *map(void)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	failed += at == MAP_FAILED;
	return at;
}

static int is_chosen(int block, int round)
{
	uint32_t mixed = (uint32_t)(block + round * 7919 + 1) * 2654435761u;

	return (mixed >> 16) % 3 == 0;
}

static void replace_some(char **at, int round)
{
	for (int i = 0; i < blocks; i++)
		if (is_chosen(i, round) && at[i] != MAP_FAILED)
			failed += munmap(at[i], bytes) != 0;
	for (int i = 0; i < blocks; i++)
		if (is_chosen(i, round))
			at[i] = map();
}

static void *work(void *memory)
{
	char **at = memory;

	for (int i = 0; i < blocks; i++)
		at[i] = map();
	for (int i = 0; i < rounds; i++)
		replace_some(at, i);
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&all);
	return NULL;
}

static int areas(void)
{
	static char buffer[65536];
	FILE *maps = fopen("/proc/self/maps", "r");
	int c, lines = 0;

	if (maps == NULL)
		exit(3);
	setvbuf(maps, buffer, _IOFBF, sizeof(buffer));
	while ((c = getc_unlocked(maps)) != EOF)
		lines += c == '\n';
	fclose(maps);
	return lines;
}

int main(int argc, char **argv)
{
	enum { MOST = 64 };
	int threads = argc == 5 ? atoi(argv[1]) : 0, before;
	pthread_t ids[MOST];
	char **at;

	if (threads < 1 || threads > MOST)
		return 2;
	blocks = atoi(argv[2]);
	bytes = (size_t)atol(argv[3]);
	rounds = atoi(argv[4]);
	at = calloc((size_t)threads * (size_t)blocks, sizeof(*at));
	pthread_barrier_init(&all, NULL, (unsigned)threads + 1);
	before = areas();
	for (int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work,
				   at + (size_t)i * (size_t)blocks) != 0)
			return 3;
	pthread_barrier_wait(&all);
	printf("more areas: %d\n", areas() - before);
	pthread_barrier_wait(&all);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	printf("failed: %d\n", failed);
	return 0;
}
