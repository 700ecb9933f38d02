/* SPDX-License-Identifier: MIT */
/*
 * alike KIND: looks like a program that suffers from the address-space lock,
 * and does not.  Prints "done", or "not here" when the kernel cannot do it.
 *
 *   one       one thread unmaps and nobody else is there
 *   zap       one thread gives back pages, four others only count
 *   touch     four threads touch one large area for the first time
 *   protect   one thread protects and unprotects pages that are in use
 *   collapse  one thread collapses pages into huge ones, others allocate
 *   above     four threads unmap, and sleep much longer around it
 *   huge      one thread unmaps much used memory, over and over
 *   populate  four threads map and fill 64 MiB each
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 4, PAGE = 4096, MIB = 1 << 20, COLLAPSE = 25 };

static atomic_bool stop;
static int absent;
static char *area;

static void *get(size_t bytes, int flags)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (at == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return at;
}

static void touch(char *at, size_t from, size_t step, size_t bytes)
{
	for (size_t i = from; i < bytes; i += step)
		at[i] = 1;
}

/* --- what threads do --- */

static void *count(void *unused)
{
	volatile unsigned long n = 0;

	(void)unused;
	while (!stop)
		n++;
	return NULL;
}

static void *touch_part(void *number)
{
	size_t page = (size_t)number * PAGE;

	/* And uses it: so long that one call which loses its CPU is little. */
	for (size_t at = page; at < 64 * MIB; at += THREADS * PAGE)
		for (int i = 0; i < 50; i++)
			memset(area + at, i, PAGE);
	return NULL;
}

static void *allocate(void *unused)
{
	(void)unused;
	while (!stop) {
		char *at = get(MIB, 0);

		touch(at, 0, PAGE, MIB);
		munmap(at, MIB);
	}
	return NULL;
}

static void *unmap_and_sleep(void *unused)
{
	(void)unused;
	for (int i = 0; i < 20; i++) {
		munmap(get(PAGE, 0), PAGE);
		usleep(20000);
	}
	return NULL;
}

static void *populate(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3; i++)
		munmap(get(64 * MIB, MAP_POPULATE), 64 * MIB);
	return NULL;
}

/* --- what the main thread does meanwhile --- */

static void nothing(void)
{
}

static void unmap(void)
{
	for (int i = 0; i < 2000; i++) {
		char *at = get(MIB, 0);

		at[0] = 1;
		munmap(at, MIB);
	}
}

static void zap(void)
{
	char *at = get(16 * PAGE, 0);

	for (int i = 0; i < 5000; i++) {
		touch(at, 0, PAGE, 16 * PAGE);
		madvise(at, 16 * PAGE, MADV_DONTNEED);
	}
}

static void protect(void)
{
	char *at = get(16 * MIB, 0);

	touch(at, 0, PAGE, 16 * MIB);
	for (int i = 0; i < 100; i++)
		mprotect(at, 16 * MIB, PROT_READ | (i % 2 ? PROT_WRITE : 0));
}

static void collapse(void)
{
	for (int i = 0; i < 20 && !absent; i++) {
		char *at = get(8 * MIB, 0);

		touch(at, 0, PAGE, 8 * MIB);
		absent = madvise(at, 8 * MIB, COLLAPSE) != 0;
		munmap(at, 8 * MIB);
	}
}

static void unmap_huge(void)
{
	for (int i = 0; i < 4; i++) {
		char *at = get(128 * MIB, 0);

		touch(at, 0, PAGE, 128 * MIB);
		munmap(at, 128 * MIB);
	}
}

static const struct kind {
	const char *name;
	void *(*thread)(void *number);
	void (*meanwhile)(void);
} kinds[] = {
	{"one", NULL, unmap},
	{"zap", count, zap},
	{"touch", touch_part, nothing},
	{"protect", NULL, protect},
	{"collapse", allocate, collapse},
	{"above", unmap_and_sleep, nothing},
	{"huge", allocate, unmap_huge},
	{"populate", populate, nothing},
};

static void play(const struct kind *kind)
{
	pthread_t threads[THREADS];
	size_t i;

	area = get(64 * MIB, 0);
	for (i = 0; i < THREADS && kind->thread; i++)
		pthread_create(&threads[i], NULL, kind->thread, (void *)i);
	kind->meanwhile();
	stop = 1;
	for (i = 0; i < THREADS && kind->thread; i++)
		pthread_join(threads[i], NULL);
	puts(absent ? "not here" : "done");
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (argc == 2 && !strcmp(argv[1], kinds[i].name)) {
			play(&kinds[i]);
			return 0;
		}
	return 2;
}
