/* SPDX-License-Identifier: MIT */
/*
 * mapper [-t THREADS] [-n LOOPS] [-p] [-k|-x|-e PROGRAM]: each thread maps
 * 64 KiB, fills it, makes it read-only, adds it up and unmaps it, LOOPS times,
 * in two halves.  Each loop is one mmap, one mprotect and one munmap.  What it
 * prints depends on the arguments only.
 *
 *   -p  after the first half: print "half" and wait for a line on stdin
 *   -k, -x, -e  end by SIGKILL, by _exit(7), or by running PROGRAM
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 64 * 1024, MOST = 20000 };

static unsigned loops = 100;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t one_loop(uint64_t seed)
{
	uint64_t *words = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t sum = 0;

	if (words == MAP_FAILED)
		fail("mmap");
	for (size_t i = 0; i < BYTES / sizeof(*words); i++)
		words[i] = seed + i;
	if (mprotect(words, BYTES, PROT_READ) != 0)
		fail("mprotect");
	for (size_t i = 0; i < BYTES / sizeof(*words); i++)
		sum += words[i];
	if (munmap(words, BYTES) != 0)
		fail("munmap");
	return sum;
}

static void *half(void *arg)
{
	uint64_t *sum = arg;

	for (unsigned i = 0; i < loops / 2; i++)
		*sum += one_loop(*sum + i);
	return NULL;
}

static void run_half(pthread_t *threads, uint64_t *sums, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, half, &sums[i]) != 0)
			fail("pthread_create");
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static void wait_for_line(void)
{
	char c;

	puts("half");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
		;
}

static int end(int how, char *program)
{
	char *const words[] = {program, NULL};

	fflush(stdout);
	switch (how) {
	case 'k':
		kill(getpid(), SIGKILL);
		return 1;
	case 'x':
		_exit(7);
	case 'e':
		execvp(program, words);
		fail(program);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static pthread_t threads[MOST];
	static uint64_t sums[MOST];
	unsigned count = 1;
	uint64_t total = 0;
	int letter, how = 0, pause_half = 0;
	char *program = NULL;

	while ((letter = getopt(argc, argv, "t:n:pkxe:")) != -1) {
		if (letter == 't')
			count = (unsigned)atoi(optarg);
		else if (letter == 'n')
			loops = (unsigned)atoi(optarg);
		else if (letter == 'p')
			pause_half = 1;
		else
			how = letter;
		if (letter == 'e')
			program = optarg;
	}
	if (how == '?' || count > MOST)
		return 2;
	run_half(threads, sums, count);
	if (pause_half)
		wait_for_line();
	run_half(threads, sums, count);
	for (unsigned i = 0; i < count; i++)
		total += sums[i];
	printf("sum: %llx\n", (unsigned long long)total);
	return end(how, program);
}
