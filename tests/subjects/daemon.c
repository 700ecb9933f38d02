/* SPDX-License-Identifier: MIT */
/*
 * daemon DATA HALF GO RESULT: becomes a daemon the old way: two forks, a
 * session, / as its directory, every descriptor closed and none opened in their
 * place.  Then it maps LOOPS times, opens the pipe HALF to say so, waits for
 * somebody to write to the pipe GO, and maps again.  DATA takes the lowest
 * descriptor before and between, where a stray write of anybody would end up;
 * so in the end RESULT says whether DATA is as it was, and which descriptors
 * are open.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 16 * 1024, LOOPS = 100, MOST_FDS = 1024 };

static int bad;

static void expect(int good)
{
	bad += !good;
}

static void map_loops(void)
{
	for (int i = 0; i < LOOPS; i++) {
		void *at = mmap(NULL, BYTES, PROT_READ,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		expect(at != MAP_FAILED && munmap(at, BYTES) == 0);
	}
}

static void detach(void)
{
	if (fork() != 0)
		_exit(0);
	setsid();
	if (fork() != 0)
		_exit(0);
	expect(chdir("/") == 0);
	for (int fd = 0; fd < MOST_FDS; fd++)
		close(fd);
}

static void wait_for(const char *pipe)
{
	char c;
	int fd = open(pipe, O_RDONLY);

	expect(fd == 1 && read(fd, &c, 1) == 1);
	close(fd);
}

/* Descriptors in use, as a number of bits. */
static unsigned open_fds(void)
{
	unsigned bits = 0;

	for (unsigned fd = 0; fd < 16; fd++)
		if (fcntl((int)fd, F_GETFD) != -1)
			bits |= 1u << fd;
	return bits;
}

int main(int argc, char **argv)
{
	struct stat before, after;
	FILE *result;

	if (argc != 5)
		return 2;
	detach();
	expect(open(argv[1], O_RDWR) == 0);
	expect(fstat(0, &before) == 0);
	map_loops();
	close(open(argv[2], O_WRONLY));
	wait_for(argv[3]);
	map_loops();
	expect(fstat(0, &after) == 0 && after.st_size == before.st_size &&
	       memcmp(&after.st_mtim, &before.st_mtim, sizeof(after.st_mtim)) ==
		       0);
	expect(open_fds() == 1);
	result = fopen(argv[4], "w");
	if (result == NULL)
		return 1;
	fprintf(result, "daemon: %s\n", bad == 0 ? "good" : "bad");
	return fclose(result) != 0;
}
