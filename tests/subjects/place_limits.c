/* SPDX-License-Identifier: MIT */
/*
 * place_limits areas THREADS [warm]: threads map pages side by side that
 * differ, so that each is an area of its own, until the kernel allows no more;
 * prints the number, unmaps them, and says whether a mapping is to be had
 * again.
 *
 * place_limits bytes THREADS MIB [data] [warm]: limits its address space, or
 * its data, to what it has and MIB more, then threads in turn map blocks of 1
 * MiB until there is no more; prints the number and the error.  warm: each has
 * mapped a block before.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST = 200000, PAGE = 4096, BLOCK = 1 << 20 };

static char *mapped[MOST];
static int count, error;
static size_t block_size;
static int warm;
static pthread_barrier_t ready;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static __thread int own; /* pages of this thread */

static void map_one(void)
{
	int prot = block_size == PAGE && own++ % 2 ? PROT_NONE
						   : PROT_READ | PROT_WRITE;
	char *at = mmap(NULL, block_size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	if (at == MAP_FAILED)
		error = errno;
	else
		mapped[count++] = at;
}

static void *fill(void *unused)
{
	if (warm) {
		pthread_mutex_lock(&turn);
		map_one();
		pthread_mutex_unlock(&turn);
	}
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&ready);
	while (error == 0 && count < MOST) {
		pthread_mutex_lock(&turn);
		map_one();
		pthread_mutex_unlock(&turn);
	}
	return unused;
}

/* Bytes by a line of /proc/self/status. */
static size_t status_of(const char *name)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	size_t kib = 0;

	while (status != NULL && fgets(line, sizeof(line), status) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			kib = strtoul(line + strlen(name), NULL, 10);
	if (status != NULL)
		fclose(status);
	return kib * 1024;
}

static void limit(size_t more, int data)
{
	size_t now = status_of(data ? "VmData:" : "VmSize:");
	rlim_t most = now + more + BLOCK / 2;
	struct rlimit to = {most, most};

	if (setrlimit(data ? RLIMIT_DATA : RLIMIT_AS, &to) != 0)
		exit(3);
}

/* All threads are there when the limit comes. */
static void run(int threads, size_t more, int data)
{
	pthread_t ids[64];

	pthread_barrier_init(&ready, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, fill, NULL) != 0)
			exit(3);
	pthread_barrier_wait(&ready);
	if (more != 0)
		limit(more, data);
	pthread_barrier_wait(&ready);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
}

static int has_word(char **words, const char *word)
{
	for (; *words != NULL; words++)
		if (strcmp(*words, word) == 0)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 0, bytes;

	if (threads < 1 || threads > 64)
		return 2;
	bytes = has_word(argv, "bytes");
	block_size = bytes ? BLOCK : PAGE;
	warm = has_word(argv, "warm");
	run(threads, bytes ? (size_t)atoi(argv[3]) << 20 : 0,
	    has_word(argv, "data"));
	printf("mapped: %d\nerror: %s\n", count, strerror(error));
	for (int i = 0; i < count; i++)
		if (munmap(mapped[i], block_size) != 0)
			return 4;
	block_size = PAGE;
	error = 0;
	map_one();
	printf("again: %s\n", error == 0 ? "yes" : strerror(error));
	return 0;
}
