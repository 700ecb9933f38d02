/* SPDX-License-Identifier: MIT */
/*
 * spawn_cost: what the library adds to a program's start and end.
 *
 * Starts PROGRAM without the library, with it (all hooks and a lock), and with
 * it and a log, in turn, and prints the three medians of the time from
 * posix_spawn() to the wait's return, in microseconds, and the medians of the
 * differences to the first.
 *
 * usage: spawn_cost ROUNDS LIBRARY LOG_DIRECTORY PROGRAM
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

enum { KINDS = 3, MOST_ROUNDS = 10000 };

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double time_one(char *program, char **env)
{
	char *argv[] = {program, NULL};
	double start = now_us();
	pid_t pid;
	int status;

	if (posix_spawn(&pid, program, NULL, NULL, argv, env) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0) {
		fprintf(stderr, "spawn_cost: %s failed\n", program);
		exit(1);
	}
	return now_us() - start;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), compare);
	return values[count / 2];
}

int main(int argc, char **argv)
{
	static double took[KINDS][MOST_ROUNDS], added[KINDS][MOST_ROUNDS];
	static char preload[4096], log[4096], lock[] = "MMGATE_LOCK=mutex";
	char *bare[] = {NULL}, *with[] = {preload, lock, NULL};
	char *logged[] = {preload, lock, log, NULL};
	char **envs[KINDS] = {bare, with, logged};
	int rounds = argc == 5 ? atoi(argv[1]) : 0;

	if (rounds < 1 || rounds > MOST_ROUNDS) {
		fprintf(stderr, "usage: spawn_cost ROUNDS LIBRARY "
				"LOG_DIRECTORY PROGRAM\n");
		return 2;
	}
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", argv[2]);
	snprintf(log, sizeof(log), "MMGATE_LOG=%s", argv[3]);
	for (int i = 0; i < rounds; i++)
		for (int kind = 0; kind < KINDS; kind++) {
			took[kind][i] = time_one(argv[4], envs[kind]);
			added[kind][i] = took[kind][i] - took[0][i];
		}
	printf("bare %.0f library %.0f logged %.0f added %.0f %.0f\n",
	       median(took[0], rounds), median(took[1], rounds),
	       median(took[2], rounds), median(added[1], rounds),
	       median(added[2], rounds));
	return 0;
}
