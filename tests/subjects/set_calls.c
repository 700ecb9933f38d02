/* SPDX-License-Identifier: MIT */
/*
 * set_calls THREADS: makes calls when it is told, a line each on stdin:
 *
 *   N     each thread makes N rounds of mmap, mprotect, madvise and munmap
 *   go    they go on until the next line
 *   fork  the child takes over, makes a round, says its number, and the parent
 *         waits for it
 *   end   ends this process
 *
 * Says "ready" at first, and "rounds: N" after each line, of all threads since
 * the start; of go twice, when they have begun ("gone") and when they have
 * stopped.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 16 * 4096, MOST_THREADS = 64 };

static atomic_ulong rounds;
static atomic_bool stop;
static atomic_int begun;
static unsigned long wanted; /* by each; 0: until the stop */
static int threads;
static pthread_t ids[MOST_THREADS];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void make_round(void)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		fail("mmap");
	at[0] = 1;
	if (mprotect(at, BYTES, PROT_READ) != 0 || at[0] != 1)
		fail("mprotect");
	if (madvise(at, BYTES, MADV_DONTNEED) != 0 || at[0] != 0)
		fail("madvise");
	if (munmap(at, BYTES) != 0)
		fail("munmap");
	atomic_fetch_add(&rounds, 1);
}

static void *work(void *unused)
{
	unsigned long left = wanted;

	atomic_fetch_add(&begun, 1);
	while (wanted == 0 ? !atomic_load(&stop) : left-- > 0)
		make_round();
	return unused;
}

static void begin(unsigned long n)
{
	wanted = n;
	atomic_store(&stop, false);
	atomic_store(&begun, 0);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, NULL) != 0)
			fail("pthread_create");
}

static void end(void)
{
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	printf("rounds: %lu\n", atomic_load(&rounds));
}

/* From the descriptor: what a child does not read is its parent's. */
static bool get_line(char *line, size_t size)
{
	size_t n = 0;

	while (n + 1 < size && read(0, line + n, 1) == 1 && line[n] != '\n')
		n++;
	line[n] = '\0';
	return n > 0;
}

static void go(void)
{
	char line[32];

	begin(0);
	while (atomic_load(&begun) < threads)
		usleep(1000);
	puts("gone");
	get_line(line, sizeof(line));
	atomic_store(&stop, true);
	end();
}

static void become_child(void)
{
	pid_t child = fork();

	if (child < 0)
		fail("fork");
	if (child == 0) {
		atomic_store(&rounds, 0);
		make_round(); /* alone */
		printf("child: %d\n", (int)getpid());
		return;
	}
	waitpid(child, NULL, 0);
	printf("rounds: %lu\n", atomic_load(&rounds));
}

int main(int argc, char **argv)
{
	char line[32];

	threads = argc == 2 ? atoi(argv[1]) : 0;
	if (threads < 1 || threads > MOST_THREADS)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (get_line(line, sizeof(line)) && strcmp(line, "end") != 0)
		if (strcmp(line, "go") == 0) {
			go();
		} else if (strcmp(line, "fork") == 0) {
			become_child();
		} else {
			begin(strtoul(line, NULL, 10));
			end();
		}
	return 0;
}
