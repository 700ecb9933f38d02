/* SPDX-License-Identifier: MIT */
/*
 * sandbox [-s] [NUMBER...]: works in 4 threads under a filter that kills at any
 * system call but the numbered ones; without numbers, under one that lets all
 * pass.  -s: makes a call that no list here has, the last thing it does.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 4, LOOPS = 500, BYTES = 16384, MOST = 100 };

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* For each number a test and, behind it, the way out. */
static void confine(char **numbers, int count)
{
	struct sock_filter code[2 + 2 * MOST] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = {1, code};

	if (count > MOST)
		exit(2);
	for (int i = 0; i < count; i++) {
		uint32_t nr = (uint32_t)strtoul(numbers[i], NULL, 10);

		code[program.len++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1);
		code[program.len++] = (struct sock_filter)BPF_STMT(
			BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(
		BPF_RET | BPF_K,
		count > 0 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		exit(77);
}

static void *work(void *unused)
{
	(void)unused;
	for (int i = 0; i < LOOPS; i++) {
		char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED)
			fail("mmap");
		at[i] = 1;
		if (madvise(at, BYTES, MADV_DONTNEED) != 0 ||
		    mprotect(at, BYTES, PROT_READ) != 0 || at[i] != 0 ||
		    munmap(at, BYTES) != 0)
			fail("madvise, mprotect or munmap");
		char *volatile block = malloc(1 << 20);

		if (block == NULL)
			fail("malloc");
		free(block);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int stray = argc > 1 && strcmp(argv[1], "-s") == 0;
	pthread_t threads[THREADS];

	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	confine(argv + 1 + stray, argc - 1 - stray);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			fail("pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	puts("all done");
	fflush(stdout);
	if (stray)
		syscall(SYS_sched_rr_get_interval, -1, NULL);
	return 0;
}
