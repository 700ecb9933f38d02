/* SPDX-License-Identifier: MIT */
/*
 * fork_handler: a handler forks in the middle of whatever it interrupts, the
 * child maps in it, goes on with what was interrupted, and ends well.
 *
 * usage: fork_handler CHILDREN
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t is_child, forked;

static void map_and_unmap(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED || munmap(page, 4096) != 0)
		abort();
}

static void on_alarm(int number)
{
	(void)number;
	if (is_child)
		return;
	if (fork() == 0) {
		is_child = 1;
		map_and_unmap();
	} else {
		forked++;
	}
}

int main(int argc, char **argv)
{
	const struct itimerval often = {{0, 300}, {0, 300}}, never = {0};
	int wanted = argc == 2 ? atoi(argv[1]) : 0, bad = 0, status;
	struct sigaction action = {.sa_handler = on_alarm,
				   .sa_flags = SA_RESTART};

	if (wanted < 1) {
		fprintf(stderr, "usage: fork_handler CHILDREN\n");
		return 2;
	}
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	while (forked < wanted) {
		for (int i = 0; i < 20; i++)
			map_and_unmap();
		if (is_child)
			_exit(0);
		while (waitpid(-1, &status, WNOHANG) > 0)
			bad += status != 0;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	if (is_child)
		_exit(0);
	while (wait(&status) > 0)
		bad += status != 0;
	printf("children that ended badly: %d\n", bad);
	return bad != 0;
}
