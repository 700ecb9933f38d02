/* SPDX-License-Identifier: MIT */
/*
 * loads LOAD: calls that the program leaves to libc and the loader.
 *
 *   large    100 large blocks by malloc and free, each in a mapping of its own
 *   churn    the same in several threads
 *   blocks   small blocks that stay for a while, in several threads
 *   threads  threads come and go, some of them detached
 *   files    files that libc maps, or reads into buffers it allocates
 *   modules  a library is loaded and unloaded
 *   calls    the family by its symbols
 *   child    one call, and ten in a child that fork() makes
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 100 };

static void fail(const char *what)
{
	fprintf(stderr, "loads: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* The compiler leaves calls out whose memory nobody looks at. */
static void *touch(void *p, size_t size)
{
	if (p == NULL)
		fail("malloc");
	*(volatile char *)p = 1;
	((volatile char *)p)[size - 1] = 1;
	return p;
}

static void *churn(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++)
		free(touch(malloc(1 << 20), 1 << 20));
	return NULL;
}

static void *blocks(void *unused)
{
	enum { COUNT = 2000 };
	void *kept[COUNT];

	(void)unused;
	for (int i = 0; i < COUNT; i++)
		kept[i] = touch(malloc(100 + (size_t)i), 100);
	for (int i = 0; i < COUNT; i++)
		free(kept[i]);
	return NULL;
}

static void in_threads(void *(*function)(void *))
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, function, NULL) != 0)
			fail("pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void *nothing(void *done)
{
	if (done != NULL)
		pthread_barrier_wait(done);
	return NULL;
}

static void threads(void)
{
	static pthread_barrier_t done; /* the last may leave it after us */
	pthread_attr_t detached;
	pthread_t thread;

	for (int i = 0; i < ROUNDS / THREADS; i++)
		in_threads(nothing);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	pthread_barrier_init(&done, NULL, 2);
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&thread, &detached, nothing, &done) != 0)
			fail("pthread_create");
		pthread_barrier_wait(&done);
	}
}

static void files(void)
{
	char line[100];

	for (int i = 0; i < ROUNDS; i++) {
		FILE *file = fopen("/proc/self/status", "rm");
		char *large = malloc(1 << 18);

		if (file == NULL)
			fail("fopen");
		setvbuf(file, touch(large, 1 << 18), _IOFBF, 1 << 18);
		if (fgets(line, sizeof(line), file) == NULL)
			fail("fgets");
		fclose(file);
		free(large);
	}
}

static void modules(const char *path)
{
	for (int i = 0; i < ROUNDS / 10; i++) {
		void *module = dlopen(path, RTLD_NOW);

		if (module == NULL) {
			fprintf(stderr, "loads: %s\n", dlerror());
			exit(1);
		}
		dlclose(module);
	}
}

static void show(const char *call, int failed)
{
	printf("%s: %s\n", call, failed ? strerror(errno) : "done");
	errno = 0;
}

/* Good calls, and bad ones that libc or the kernel refuses. */
static void calls(void)
{
	enum { SIZE = 1 << 16 };
	int prot = PROT_READ | PROT_WRITE;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *p = mmap(NULL, SIZE, prot, flags, -1, 0);

	errno = 0;
	show("mmap", p == MAP_FAILED);
	show("mmap of nothing",
	     mmap(NULL, 0, prot, flags, -1, 0) == MAP_FAILED);
	show("mmap of too much",
	     mmap(NULL, SIZE_MAX / 2, prot, flags, -1, 0) == MAP_FAILED);
	show("mmap at an odd offset",
	     mmap(NULL, SIZE, prot, flags, -1, 1) == MAP_FAILED);
	show("mmap of a file that is none",
	     mmap(NULL, SIZE, prot, MAP_PRIVATE, -1, 0) == MAP_FAILED);
	show("mmap fixed",
	     mmap(p, SIZE / 2, prot, flags | MAP_FIXED, -1, 0) != p);
	show("mprotect", mprotect(p, SIZE, PROT_READ) != 0);
	show("mprotect inside a page", mprotect(p + 1, 10, PROT_READ) != 0);
	show("mprotect back", mprotect(p, SIZE, prot) != 0);
	show("madvise", madvise(p, SIZE, MADV_DONTNEED) != 0);
	show("madvise inside a page", madvise(p + 1, 10, MADV_NORMAL) != 0);
	errno = posix_madvise(p, SIZE, POSIX_MADV_WILLNEED);
	show("posix_madvise", errno != 0);
	errno = posix_madvise(p + 1, SIZE, POSIX_MADV_WILLNEED);
	show("posix_madvise inside a page", errno != 0);
	p[0] = 'x';
	errno = posix_madvise(p, SIZE, POSIX_MADV_DONTNEED);
	show("posix_madvise that loses nothing", errno != 0 || p[0] != 'x');
	p = mremap(p, SIZE, 2 * SIZE, MREMAP_MAYMOVE);
	show("mremap", p == MAP_FAILED || p[0] != 'x');
	show("mremap to too much",
	     mremap(p, SIZE, SIZE_MAX / 2, MREMAP_MAYMOVE) == MAP_FAILED);
	show("mremap to nothing", mremap(p, SIZE, 0, 0) == MAP_FAILED);
	show("munmap", munmap(p, 2 * SIZE) != 0);
	show("munmap inside a page", munmap(p + 1, SIZE) != 0);
}

static void call(int times)
{
	for (int i = 0; i < times; i++)
		if (madvise(NULL, 0, MADV_NORMAL) != 0)
			fail("madvise");
}

static void child(void)
{
	pid_t pid;

	call(1);
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		call(10);
		_exit(0);
	}
	if (waitpid(pid, NULL, 0) != pid)
		fail("waitpid");
}

int main(int argc, char **argv)
{
	const char *load = argc > 1 ? argv[1] : "";

	if (strcmp(load, "large") == 0)
		churn(NULL);
	else if (strcmp(load, "churn") == 0)
		in_threads(churn);
	else if (strcmp(load, "blocks") == 0)
		in_threads(blocks);
	else if (strcmp(load, "threads") == 0)
		threads();
	else if (strcmp(load, "files") == 0)
		files();
	else if (strcmp(load, "modules") == 0 && argc > 2)
		modules(argv[2]);
	else if (strcmp(load, "calls") == 0)
		calls();
	else if (strcmp(load, "child") == 0)
		child();
	else {
		fprintf(stderr, "usage: loads large|churn|blocks|threads|files|"
				"modules FILE|calls|child\n");
		return 2;
	}
	return 0;
}
