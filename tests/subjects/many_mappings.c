/* SPDX-License-Identifier: MIT */
/*
 * many_mappings: maps until the kernel allows no more (vm.max_map_count), tries
 * what needs another mapping, then gives all back.  Prints what failed, and on
 * stderr how many there were.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 3 * 4096, MOST = 300000 };

static char *maps[MOST];

static void *map(int i, size_t bytes)
{
	/* Neighbours differ, so they do not become one. */
	return mmap(NULL, bytes, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void say(const char *what, int error)
{
	printf("%s: %s\n", what, strerror(error));
}

static void *nothing(void *arg)
{
	return arg;
}

static void try_child(void)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(map(0, 1 << 20) == MAP_FAILED ? errno : 0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		say("fork", errno);
	else
		say("mmap in a child", WEXITSTATUS(status));
}

int main(void)
{
	pthread_t thread;
	int count = 0;

	setvbuf(stdout, NULL, _IOFBF, 0);
	while (count < MOST && (maps[count] = map(count, BYTES)) != MAP_FAILED)
		count++;
	if (count == MOST)
		return 77;
	say("mmap", errno);
	say("mprotect in the middle",
	    mprotect(maps[0] + 4096, 4096, PROT_NONE) != 0 ? errno : 0);
	say("munmap in the middle",
	    munmap(maps[0] + 4096, 4096) != 0 ? errno : 0);
	say("madvise in the middle",
	    madvise(maps[0] + 4096, 4096, MADV_DONTDUMP) != 0 ? errno : 0);
	say("madvise", madvise(maps[0], BYTES, MADV_DONTNEED) != 0 ? errno : 0);
	say("pthread_create", pthread_create(&thread, NULL, nothing, NULL));
	try_child();
	fprintf(stderr, "%d mappings\n", count);
	while (count-- > 0)
		if (munmap(maps[count], BYTES) != 0)
			say("munmap", errno);
	say("pthread_create", pthread_create(&thread, NULL, nothing, NULL));
	return 0;
}
