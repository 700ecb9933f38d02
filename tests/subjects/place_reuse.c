/* SPDX-License-Identifier: MIT */
/*
 * place_reuse: says of blocks that a thread maps, and that are unmapped again,
 * whether its next block of that size has the same address, although another
 * thread maps one of that size in between.
 *
 *   own      it unmaps the block itself
 *   others'  another thread unmaps it
 *   middle   the block lies between two that stay
 *   twice    two blocks are unmapped, and one of both sizes is mapped
 *   cut      half of a block is unmapped, and mapped again
 *   shrunk   the same by mremap
 *   moved    mremap moved it away
 *   large    a block of 4 MiB
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { SIZE = 64 << 10, LARGE = 4 << 20 };

static pthread_barrier_t turn;
static size_t other_maps;
static char *other_unmaps;

static char *map(size_t size)
{
	char *block = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED)
		exit(3);
	block[0] = 1;
	return block;
}

static void unmap(char *block, size_t size)
{
	if (munmap(block, size) != 0)
		exit(3);
}

/* The other thread takes a turn: unmaps a block, if told to, and maps one. */
static void *serve(void *unused)
{
	for (;;) {
		pthread_barrier_wait(&turn);
		if (other_maps == 0)
			return unused;
		if (other_unmaps != NULL)
			unmap(other_unmaps, other_maps);
		map(other_maps);
		pthread_barrier_wait(&turn);
	}
}

static void other(char *block, size_t size)
{
	other_unmaps = block;
	other_maps = size;
	pthread_barrier_wait(&turn);
	if (size != 0)
		pthread_barrier_wait(&turn);
}

static void say(const char *what, int same)
{
	printf("%s: %s\n", what, same ? "same" : "differs");
}

static void plain(const char *what, size_t size)
{
	char *block = map(size);

	unmap(block, size);
	other(NULL, size);
	say(what, map(size) == block);
}

static void by_other(void)
{
	char *block = map(SIZE);

	other(block, SIZE);
	say("others'", map(SIZE) == block);
}

static void between(void)
{
	char *before = map(SIZE), *block = map(SIZE), *behind = map(SIZE);

	unmap(block, SIZE);
	other(NULL, SIZE);
	say("middle", map(SIZE) == block && before != behind);
}

static void twice(void)
{
	char *a = map(SIZE), *b = map(SIZE), *both;

	map(SIZE);
	unmap(a, SIZE);
	unmap(b, SIZE);
	other(NULL, 2 * SIZE);
	both = map(2 * SIZE);
	say("twice", both == (a < b ? a : b));
}

static void cut(void)
{
	char *block = map(2 * SIZE);

	map(SIZE);
	unmap(block + SIZE, SIZE);
	other(NULL, SIZE);
	say("cut", map(SIZE) == block + SIZE);
}

static void shrunk(void)
{
	char *block = map(3 * SIZE);

	map(SIZE);
	if (mremap(block, 3 * SIZE, SIZE, 0) != block)
		exit(3);
	other(NULL, 2 * SIZE);
	say("shrunk", map(2 * SIZE) == block + SIZE);
}

static void moved(void)
{
	char *block = map(5 * SIZE), *target;

	map(SIZE);
	target = map(5 * SIZE);
	if (mremap(block, 5 * SIZE, 5 * SIZE, MREMAP_MAYMOVE | MREMAP_FIXED,
		   target) != target)
		exit(3);
	other(NULL, 5 * SIZE);
	say("moved", map(5 * SIZE) == block);
}

static void *work(void *unused)
{
	plain("own", SIZE);
	by_other();
	between();
	twice();
	cut();
	shrunk();
	moved();
	plain("large", LARGE);
	other(NULL, 0);
	return unused;
}

int main(void)
{
	pthread_t worker, server;

	pthread_barrier_init(&turn, NULL, 2);
	if (pthread_create(&worker, NULL, work, NULL) != 0 ||
	    pthread_create(&server, NULL, serve, NULL) != 0)
		return 3;
	pthread_join(worker, NULL);
	pthread_join(server, NULL);
	return 0;
}
