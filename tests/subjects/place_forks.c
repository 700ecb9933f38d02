/* SPDX-License-Identifier: MIT */
/*
 * place_forks CHILDREN: forks while four threads map, write, check and unmap;
 * each child does the same, in its own thread and in four new ones, and ends
 * well if all was as it should.  Prints how many did not.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, LOOPS = 20, LIVE = 8 };

static atomic_int stop;

static void fill(char **at, size_t *sizes, unsigned *seed, int i)
{
	sizes[i] = (size_t)(rand_r(seed) % 40 + 1) * 4096;
	at[i] = mmap(NULL, sizes[i], PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at[i] == MAP_FAILED)
		_exit(3);
	for (size_t k = 0; k < sizes[i]; k += 4096) {
		if (at[i][k] != 0)
			_exit(4);
		at[i][k] = (char)(i + 1);
	}
}

static void drop(char *at, size_t size, int i)
{
	for (size_t k = 0; k < size; k += 4096)
		if (at[k] != (char)(i + 1))
			_exit(5);
	if (munmap(at, size) != 0)
		_exit(3);
}

static void churn(unsigned seed, int loops)
{
	size_t sizes[LIVE];
	char *at[LIVE];

	for (int i = 0; i < LIVE; i++)
		fill(at, sizes, &seed, i);
	for (int n = 0; loops == 0 ? !atomic_load(&stop) : n < loops; n++) {
		int i = rand_r(&seed) % LIVE;

		drop(at[i], sizes[i], i);
		fill(at, sizes, &seed, i);
	}
	for (int i = 0; i < LIVE; i++)
		drop(at[i], sizes[i], i);
}

static void *without_end(void *seed)
{
	churn(*(unsigned *)seed, 0);
	return NULL;
}

static void *for_a_while(void *seed)
{
	churn(*(unsigned *)seed, LOOPS);
	return NULL;
}

static void start(pthread_t *threads, void *(*work)(void *))
{
	static unsigned seeds[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		seeds[i] = i + 1;
		if (pthread_create(&threads[i], NULL, work, &seeds[i]) != 0)
			_exit(3);
	}
}

static void finish(pthread_t *threads)
{
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static _Noreturn void child(unsigned n)
{
	pthread_t threads[THREADS];

	churn(n, LOOPS);
	start(threads, for_a_while);
	churn(n + 1, LOOPS);
	finish(threads);
	_exit(0);
}

int main(int argc, char **argv)
{
	unsigned children = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
	pthread_t threads[THREADS];
	unsigned badly = 0;
	int status;

	start(threads, without_end);
	for (unsigned i = 0; i < children; i++) {
		pid_t pid = fork();

		if (pid == 0)
			child(i);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			badly++;
	}
	atomic_store(&stop, 1);
	finish(threads);
	printf("children that ended badly: %u\n", badly);
	return 0;
}
