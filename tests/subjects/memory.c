/* SPDX-License-Identifier: MIT */
/*
 * memory THREADS: that many threads, all alive at once, make one call each.
 * Prints the process's memory in KiB: "anonymous: N" and, with what its shared
 * files take, "all: N".
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST = 20000, STACK = 64 * 1024 };

static pthread_barrier_t together;

static void *work(void *unused)
{
	void *at =
		mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || munmap(at, 4096) != 0)
		abort();
	pthread_barrier_wait(&together);
	pthread_barrier_wait(&together);
	return unused;
}

static long field(const char *name)
{
	char line[256];
	long value = -1;
	FILE *f = fopen("/proc/self/status", "re");

	if (f == NULL)
		return -1;
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			value = atol(line + strlen(name));
	fclose(f);
	return value;
}

int main(int argc, char **argv)
{
	static pthread_t threads[MOST];
	int count = argc == 2 ? atoi(argv[1]) : 0;
	pthread_attr_t attr;

	if (count < 1 || count > MOST)
		return 2;
	pthread_barrier_init(&together, NULL, (unsigned)count + 1);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], &attr, work, NULL) != 0)
			return 77;
	pthread_barrier_wait(&together);
	printf("anonymous: %ld\nall: %ld\n", field("RssAnon:"),
	       field("VmRSS:"));
	pthread_barrier_wait(&together);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
