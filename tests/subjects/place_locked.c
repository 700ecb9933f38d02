/* SPDX-License-Identifier: MIT */
/*
 * place_locked THREADS: locks all memory that it has and will have, then so
 * many threads map, check, write, and unmap.  Prints how many there were.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { MOST = 64, LOOPS = 50, SIZE = 128 << 10 };

static void *work(void *unused)
{
	for (int i = 0; i < LOOPS; i++) {
		char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED || at[0] != 0)
			exit(3);
		at[0] = 1;
		if (munmap(at, SIZE) != 0)
			exit(3);
	}
	return unused;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 2;
	pthread_t threads[MOST];
	pthread_attr_t how;

	if (count > MOST || mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
		return 3;
	pthread_attr_init(&how);
	pthread_attr_setstacksize(&how, 65536);
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], &how, work, NULL) != 0)
			return 3;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("threads: %d\n", count);
	return 0;
}
