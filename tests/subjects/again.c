/* SPDX-License-Identifier: MIT */
/*
 * again COUNT: while four threads map, one of them executes this program again
 * with COUNT - 1, and the last prints "executed".
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 4, BYTES = 64 * 1024, LOOPS = 50 };

static int count;

static void map_once(void)
{
	void *at = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	if (at == MAP_FAILED || munmap(at, BYTES) != 0)
		_exit(3);
}

static _Noreturn void execute(void)
{
	char name[] = "again", number[16];
	char *words[] = {name, number, NULL};

	snprintf(number, sizeof(number), "%d", count - 1);
	execv("/proc/self/exe", words);
	_exit(4);
}

static void *map_for_ever(void *unused)
{
	for (;;)
		map_once();
	return unused;
}

static void *map_and_execute(void *unused)
{
	for (int i = 0; i < LOOPS; i++)
		map_once();
	execute();
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	count = argc == 2 ? atoi(argv[1]) : 0;
	if (count == 0) {
		puts("executed");
		return 0;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL,
			       i == 0 ? map_and_execute : map_for_ever, NULL);
	for (;;)
		pause();
}
