/* SPDX-License-Identifier: MIT */
/*
 * priorities fifo|nice: threads of different priority make calls on one CPU.
 *
 *   fifo  an ordinary thread maps all the time; a real-time thread wakes at
 *         any instant, perhaps while the other one is in the middle of a call,
 *         lets a second real-time thread spin, so that the ordinary one cannot
 *         go on, and then makes a call.  The spinning ends with that call, or
 *         after 3 s.  Ends after the first call that took 20 ms, or 500.
 *   nice  threads with nice values from -10 to 19 make as many calls each.
 *
 * Prints "done" and "longest_ms: N", of the real-time thread or of that with
 * the lowest nice value.  77: this user may not.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 65536, MAY_NOT = 77, CALLS = 2000 };

#define SPIN_NS UINT64_C(3000000000)

static atomic_int served, done;
static uint64_t longest_ns;
static sem_t spin;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void map_once(void)
{
	char *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || (*at = 1, munmap(at, BYTES)) != 0)
		_exit(1);
}

static uint64_t map_timed(void)
{
	uint64_t before = now_ns(), took;

	map_once();
	took = now_ns() - before;
	if (took > longest_ns)
		longest_ns = took;
	return took;
}

static void *map(void *unused)
{
	while (!atomic_load(&done))
		map_once();
	return unused;
}

static void *hog(void *unused)
{
	uint64_t until;

	for (;;) {
		sem_wait(&spin);
		if (atomic_load(&done))
			return unused;
		until = now_ns() + SPIN_NS;
		while (!atomic_load(&served) && now_ns() < until)
			;
	}
}

static void *urgent(void *unused)
{
	uint64_t took = 0;

	for (unsigned i = 0; i < 500 && took < 20000000; i++) {
		/* Odd times, so as not to meet the other in step. */
		nanosleep(&(struct timespec){0, 500000 + i * 7919}, NULL);
		atomic_store(&served, 0);
		sem_post(&spin);
		took = map_timed();
		atomic_store(&served, 1);
	}
	atomic_store(&done, 1);
	sem_post(&spin);
	return unused;
}

static pthread_t start(void *(*body)(void *), void *arg, int priority)
{
	struct sched_param param = {.sched_priority = priority};
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	if (priority != 0) {
		pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
		pthread_attr_setschedparam(&attr, &param);
	}
	if (pthread_create(&thread, &attr, body, arg) != 0)
		_exit(MAY_NOT);
	return thread;
}

static void run_fifo(void)
{
	pthread_t threads[3];

	sem_init(&spin, 0, 0);
	threads[0] = start(map, NULL, 0);
	threads[1] = start(hog, NULL, 10);
	threads[2] = start(urgent, NULL, 20);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static void *map_nicely(void *arg)
{
	const int *nice_value = arg;

	if (setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), *nice_value) !=
	    0)
		_exit(MAY_NOT);
	for (int i = 0; i < CALLS; i++)
		if (*nice_value < 0)
			map_timed();
		else
			map_once();
	return NULL;
}

static void run_nice(void)
{
	static int values[] = {-10, 0, 0, 10, 19, 19};
	enum { COUNT = sizeof(values) / sizeof(values[0]) };
	pthread_t threads[COUNT];

	for (int i = 0; i < COUNT; i++)
		threads[i] = start(map_nicely, &values[i], 0);
	for (int i = 0; i < COUNT; i++)
		pthread_join(threads[i], NULL);
}

static void stay_on_one_cpu(void)
{
	cpu_set_t all, one;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(all), &all) != 0)
		_exit(MAY_NOT);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0)
		_exit(MAY_NOT);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	stay_on_one_cpu();
	if (strcmp(argv[1], "fifo") == 0)
		run_fifo();
	else
		run_nice();
	printf("done\nlongest_ms: %llu\n",
	       (unsigned long long)longest_ns / 1000000);
	return 0;
}
