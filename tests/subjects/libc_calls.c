/* SPDX-License-Identifier: MIT */
/*
 * libc_calls: makes libc and the loader make the calls that no symbol shows.
 *
 * usage: libc_calls LOAD
 *   churn   4 threads allocate and free 1 MiB, above the mmap threshold
 *   arenas  16 threads let their arenas grow and shrink
 *   threads creates and joins 64 threads, 5 times
 *   files   opens, maps ("rm"), reads and closes this program, 300 times
 *   modules opens and closes a library, 100 times
 *   second  opens libc a second time, in a namespace of its own, and calls the
 *           mmap of that one (which nothing can catch)
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void check(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "libc_calls: %s failed\n", what);
	exit(1);
}

static void *allocate_large(void *unused)
{
	(void)unused;
	for (int i = 0; i < 250; i++) {
		char *volatile block = malloc(1 << 20);

		check(block != NULL, "malloc");
		block[i] = 1;
		free(block);
	}
	return NULL;
}

static void *grow_and_shrink(void *unused)
{
	enum { BLOCKS = 400, SIZE = 32 << 10 };
	static __thread char *volatile blocks[BLOCKS];

	(void)unused;
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < BLOCKS; i++) {
			blocks[i] = malloc(SIZE);
			check(blocks[i] != NULL, "malloc");
			blocks[i][0] = blocks[i][SIZE - 1] = 1;
		}
		for (int i = BLOCKS; i-- > 0;)
			free(blocks[i]);
	}
	return NULL;
}

static void *touch_stack(void *unused)
{
	volatile char deep[16 << 10];

	deep[0] = deep[sizeof(deep) - 1] = 1;
	return unused;
}

static void run_threads(int count, void *(*work)(void *))
{
	pthread_t threads[64];

	for (int i = 0; i < count; i++)
		check(pthread_create(&threads[i], NULL, work, NULL) == 0,
		      "pthread_create");
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static void churn(void)
{
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	run_threads(4, allocate_large);
}

static void arenas(void)
{
	mallopt(M_MMAP_THRESHOLD, 4 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 10);
	mallopt(M_ARENA_MAX, 16);
	run_threads(16, grow_and_shrink);
}

static void threads(void)
{
	for (int i = 0; i < 5; i++)
		run_threads(64, touch_stack);
}

static void files(void)
{
	char line[64];

	for (int i = 0; i < 300; i++) {
		FILE *file = fopen("/proc/self/exe", "rm");

		check(file != NULL && fread(line, 1, sizeof(line), file) > 0,
		      "reading /proc/self/exe");
		fclose(file);
	}
}

static void modules(void)
{
	for (int i = 0; i < 100; i++) {
		void *module = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);

		check(module != NULL, "dlopen");
		dlclose(module);
	}
}

static void second(void)
{
	void *libc = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
	void *(*map)(void *, size_t, int, int, int, long);

	check(libc != NULL, "dlmopen");
	*(void **)&map = dlsym(libc, "mmap");
	check(map != NULL, "dlsym");
	for (int i = 0; i < 100; i++)
		check(map(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0) != MAP_FAILED,
		      "mmap");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} loads[] = {
		{"churn", churn}, {"arenas", arenas},   {"threads", threads},
		{"files", files}, {"modules", modules}, {"second", second},
	};

	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		if (argc == 2 && strcmp(argv[1], loads[i].name) == 0) {
			loads[i].run();
			return 0;
		}
	fprintf(stderr, "usage: libc_calls LOAD\n");
	return 2;
}
