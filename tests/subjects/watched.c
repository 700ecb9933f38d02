/* SPDX-License-Identifier: MIT */
/*
 * watched HOW: a thread maps and unmaps while somebody reads in /proc what the
 * kernel knows of this process's memory, and holds its lock for that.
 *
 *   smaps, rollup  another process reads that file every 100 ms; beside rollup
 *                  four threads write to memory for the first time
 *   seldom         it does so at no equal intervals
 *   stopped        and is stopped in the middle
 *   own            a thread of this process reads smaps every 100 ms
 *   unmaps         much memory is unmapped while another process reads all
 * files
 *
 * Prints "undisturbed" when each reading held up one call, none was held up
 * otherwise, and that was at equal intervals; else "disturbed".
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	READINGS = 9,
	PERIOD_MS = 100,
	STALLS = 256,
	FAULTERS = 4,
	PAGE = 4096,
	KIB = 1024,
	MIB = 1 << 20,
	AREA = 384 * MIB,
};

/* Where something takes from and to, in ms. */
struct span {
	double from, to;
};

struct way {
	const char *name;
	const char *file; /* in /proc/PID */
	bool own, regular, stopped;
	unsigned faulters;
};

static const struct way ways[] = {
	{"smaps", "smaps", .regular = true},
	{"rollup", "smaps_rollup", .regular = true, .faulters = FAULTERS},
	{"seldom", "smaps", .regular = false},
	{"stopped", "smaps", .stopped = true},
	{"own", "smaps", .own = true, .regular = true},
	{"unmaps", NULL, .regular = false},
};

static const struct way *way;
static struct shared {
	atomic_bool go;
	struct span reading[READINGS];
} * shared; /* with the child */
static struct span *reading;
static struct span stall[STALLS];
static size_t stalls;
static atomic_bool stop;
static pid_t watched;

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "watched: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void sleep_until(double ms)
{
	struct timespec at = {
		.tv_sec = (time_t)(ms / 1e3),
		.tv_nsec =
			(long)((ms - (double)(time_t)(ms / 1e3) * 1e3) * 1e6),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
		;
}

static char *get(size_t bytes, int flags)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			flags | MAP_ANONYMOUS, -1, 0);

	check(at != MAP_FAILED, "mmap");
	return at;
}

/* --- who reads --- */

static void read_file(const char *name)
{
	static char text[64 * KIB];
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)watched, name);
	fd = open(path, O_RDONLY);
	check(fd >= 0, path);
	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
}

/* The moments of the readings, from the first on. */
static double moment(unsigned n)
{
	static const unsigned odd[] = {0,   37,  160, 205, 398,
				       460, 507, 660, 691};

	return 20 + (way->regular ? n * PERIOD_MS : odd[n]);
}

static void *read_all(void *unused)
{
	double start = now_ms();

	for (unsigned n = 0; n < READINGS; n++) {
		sleep_until(start + moment(n));
		reading[n].from = now_ms();
		read_file(way->file);
		reading[n].to = now_ms();
	}
	return unused;
}

static void read_everything(void)
{
	for (;;) {
		read_file("cmdline");
		read_file("maps");
		read_file("smaps");
	}
}

static pid_t start_reader(void)
{
	pid_t pid = fork();

	check(pid >= 0, "fork");
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!shared->go)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	if (!way->file)
		read_everything();
	read_all(NULL);
	_exit(0);
}

/* --- what is done meanwhile --- */

static void add_stall(double from, double to)
{
	if (to - from > 1 && stalls < STALLS)
		stall[stalls++] = (struct span){from, to};
}

static void map_once(void)
{
	double before = now_ms(), between;
	char *at = get(64 * KIB, MAP_PRIVATE);

	between = now_ms();
	check(munmap(at, 64 * KIB) == 0, "munmap");
	add_stall(before, between);
	add_stall(between, now_ms());
	/* So it seldom loses the CPU inside, being owed some. */
	nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static void *map_often(void *unused)
{
	while (!stop)
		map_once();
	return unused;
}

static void *fault(void *unused)
{
	char *at = get(64 * MIB, MAP_PRIVATE);

	for (size_t i = 0; !stop; i = (i + PAGE) % (64 * MIB)) {
		at[i] = 1;
		if (i % (64 * PAGE) == 0)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return unused;
}

static void unmap_much(void)
{
	for (int i = 0; i < 4; i++) {
		char *at = get(128 * MIB, MAP_PRIVATE);

		for (size_t k = 0; k < 128 * MIB; k += PAGE)
			at[k] = 1;
		check(munmap(at, 128 * MIB) == 0, "munmap");
	}
}

static void stop_now_and_then(pid_t reader)
{
	int status;

	while (waitpid(reader, &status, WNOHANG) == 0) {
		kill(reader, SIGSTOP);
		nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
		kill(reader, SIGCONT);
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	}
}

static void meanwhile(pid_t pid)
{
	pthread_t reader;

	if (way->own) {
		check(pthread_create(&reader, NULL, read_all, NULL) == 0,
		      "pthread_create");
		pthread_join(reader, NULL);
		return;
	}
	shared->go = true;
	if (way->stopped)
		stop_now_and_then(pid);
	else if (way->file)
		check(waitpid(pid, NULL, 0) == pid, "waitpid");
	if (way->file)
		return;
	unmap_much();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* --- what came of it --- */

static bool meets(const struct span *a, const struct span *b)
{
	return a->from < b->to && b->from < a->to;
}

/* One that is not short beside the longest; the verdict looks at such as are a
 * quarter of it. */
static bool counts(const struct span *span)
{
	double longest = 0;

	for (size_t i = 0; i < stalls; i++)
		if (stall[i].to - stall[i].from > longest)
			longest = stall[i].to - stall[i].from;
	return span->to - span->from > longest / 5;
}

/* Moves the stalls that count to the front. */
static size_t keep_long(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < stalls; i++)
		if (counts(&stall[i]))
			stall[kept++] = stall[i];
	return kept;
}

static bool is_undisturbed(void)
{
	if (keep_long() != READINGS)
		return false;
	for (size_t n = 0; n < READINGS; n++) {
		double late =
			stall[n].from - stall[0].from - (double)n * PERIOD_MS;

		if (!meets(&stall[n], &reading[n]) || late > 5 || late < -5)
			return false;
	}
	return true;
}

/* In small pages, which take long to read of. */
static void fill_area(void)
{
	char *at = get(AREA, MAP_PRIVATE);

	madvise(at, AREA, MADV_NOHUGEPAGE);
	memset(at, 1, AREA);
}

static void play(void)
{
	pthread_t mapper, faulters[FAULTERS];
	pid_t pid = 0;

	watched = getpid();
	shared = (void *)get(PAGE, MAP_SHARED);
	reading = shared->reading;
	/* Before there is much to copy, and somebody to hold up. */
	if (!way->own)
		pid = start_reader();
	if (way->file)
		fill_area();
	check(pthread_create(&mapper, NULL, map_often, NULL) == 0,
	      "pthread_create");
	for (size_t i = 0; i < way->faulters; i++)
		check(pthread_create(&faulters[i], NULL, fault, NULL) == 0,
		      "pthread_create");
	meanwhile(pid);
	stop = true;
	pthread_join(mapper, NULL);
	for (size_t i = 0; i < way->faulters; i++)
		pthread_join(faulters[i], NULL);
	puts(is_undisturbed() ? "undisturbed" : "disturbed");
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (argc == 2 && !strcmp(argv[1], ways[i].name))
			way = &ways[i];
	if (!way)
		return 2;
	play();
	return 0;
}
