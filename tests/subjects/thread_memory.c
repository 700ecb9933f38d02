/* SPDX-License-Identifier: MIT */
/*
 * thread_memory: starts N threads, some at a time, each of which maps and
 * unmaps a page, and prints the process's own memory in KiB: what smaps counts
 * without the pages of shared files (the log is one).
 *
 * usage: thread_memory N
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { AT_A_TIME = 100 };

static void *work(void *unused)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)unused;
	if (page == MAP_FAILED || munmap(page, 4096) != 0)
		exit(1);
	return NULL;
}

static void start_some(int count)
{
	pthread_t threads[AT_A_TIME];

	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			exit(1);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static long anonymous_kib(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	while (status != NULL && fgets(line, sizeof(line), status) != NULL)
		if (sscanf(line, "RssAnon: %ld", &kib) == 1)
			break;
	if (status != NULL)
		fclose(status);
	return kib;
}

int main(int argc, char **argv)
{
	int left = argc == 2 ? atoi(argv[1]) : 0;

	if (left < 1) {
		fprintf(stderr, "usage: thread_memory N\n");
		return 2;
	}
	for (; left > 0; left -= AT_A_TIME)
		start_some(left < AT_A_TIME ? left : AT_A_TIME);
	printf("%ld\n", anonymous_kib());
	return 0;
}
