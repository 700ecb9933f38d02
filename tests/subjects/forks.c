/* SPDX-License-Identifier: MIT */
/*
 * forks COUNT: 8 threads map and unmap without end while the main thread forks
 * COUNT children, one after the other.  Each child maps, allocates, starts a
 * thread that does the same, and ends.  Ends with "children: COUNT".
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, BYTES = 16 * 1024, PATIENCE_S = 20 };

static void map_once(void)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		_exit(3);
	*at = 1;
	if (munmap(at, BYTES) != 0)
		_exit(4);
}

static void *map_for_ever(void *unused)
{
	/* With pauses: eight threads that never sleep leave the main thread no
	 * CPU to fork on. */
	for (;;) {
		for (int i = 0; i < 4; i++)
			map_once();
		usleep(200);
	}
	return unused;
}

static void allocate(void)
{
	/* volatile, or the compiler sees that nobody needs it */
	void *volatile p = malloc(200000);

	if (p == NULL)
		_exit(5);
	memset(p, 1, 4096);
	free(p);
}

static void *in_child(void *unused)
{
	map_once();
	allocate();
	return unused;
}

static _Noreturn void child(void)
{
	pthread_t thread;

	alarm(PATIENCE_S); /* a child that hangs ends, and not with 0 */
	in_child(NULL);
	if (pthread_create(&thread, NULL, in_child, NULL) != 0)
		_exit(6);
	pthread_join(thread, NULL);
	_exit(0);
}

int main(int argc, char **argv)
{
	int count = argc == 2 ? atoi(argv[1]) : 0;
	pthread_t thread;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, map_for_ever, NULL) != 0)
			return 1;
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			child();
		if (pid == -1 || waitpid(pid, &status, 0) != pid ||
		    status != 0) {
			printf("child %d: wait status %#x\n", i,
			       pid == -1 ? 0u : (unsigned)status);
			fflush(stdout);
			_exit(1);
		}
	}
	printf("children: %d\n", count);
	fflush(stdout);
	_exit(0);
}
