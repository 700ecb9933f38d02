/* SPDX-License-Identifier: MIT */
/*
 * congestion: many threads map, advise, write and unmap.
 *
 * A report of 2009: a mutex of the program's own around these calls made it
 * faster, because waiters slept there once instead of again and again at the
 * kernel's lock.  Each way of locking is written out here, so that a lock
 * put around the program from outside can be held against it.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AREA_BYTES ((size_t)256 * 1024)
#define LOOPS_PER_TIMING 100

/* What one thread measured, in us of one loop. */
struct timings {
	uint64_t loops;
	double sum;
	double square_sum;
	double max;
};

/* A line of its own: a thread counts its finished loops here. */
struct progress {
	alignas(COMMON_LINE_BYTES) _Atomic uint64_t loops;
};

static const char *const case_names[] = {"all", "firstpage", "both", NULL};
static const char *const mode_names[] = {"plain", "report", "each", NULL};

enum { CASE_ALL, CASE_FIRSTPAGE, CASE_BOTH };
enum { MODE_PLAIN, MODE_REPORT, MODE_EACH };

static unsigned int chosen_case = CASE_BOTH;
static unsigned int chosen_mode;
static const char *progress_path;
static bool leave_at_once;

static size_t written_bytes; /* in the case that runs */
static size_t page_bytes;
static struct timings *timings;
static struct progress *progress;

static pthread_mutex_t report_mutex = PTHREAD_MUTEX_INITIALIZER;

static void enter_section(void)
{
	if (chosen_mode == MODE_REPORT)
		pthread_mutex_lock(&report_mutex);
}

static void leave_section(void)
{
	if (chosen_mode == MODE_REPORT)
		pthread_mutex_unlock(&report_mutex);
}

static void advise(char *area, int advice)
{
	int result;

	common_enter_call();
	result = madvise(area, AREA_BYTES, advice);
	common_leave_call();
	if (result)
		common_fail("madvise with advice %d: %s", advice,
			    strerror(errno));
}

static char *map_area(void)
{
	char *area;

	common_enter_call();
	area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	common_leave_call();
	if (area == MAP_FAILED)
		common_fail("mmap of %zu bytes: %s", AREA_BYTES,
			    strerror(errno));
	return area;
}

static void unmap_area(char *area)
{
	int result;

	common_enter_call();
	result = munmap(area, AREA_BYTES);
	common_leave_call();
	if (result)
		common_fail("munmap of %zu bytes: %s", AREA_BYTES,
			    strerror(errno));
}

static void write_area(char *area, uint64_t pattern)
{
	uint64_t *words = (uint64_t *)(void *)area;

	for (size_t i = 0; i < written_bytes / sizeof(*words); i++)
		words[i] = pattern;
}

static void check_word(const char *place, uint64_t pattern)
{
	/* volatile: the compiler knows what it has just written there */
	uint64_t found = *(const volatile uint64_t *)(const void *)place;

	if (found != pattern)
		common_fail("%p holds %#" PRIx64 ", not %#" PRIx64
			    " as written",
			    (const void *)place, found, pattern);
}

/* Pages get lost whole: the first and last word of each tell. */
static void check_area(const char *area, uint64_t pattern)
{
	for (size_t at = 0; at < written_bytes; at += page_bytes) {
		check_word(area + at, pattern);
		check_word(area + at + page_bytes - sizeof(pattern), pattern);
	}
}

static void one_loop(uint64_t pattern)
{
	bool first_only = written_bytes == page_bytes;
	char *area;

	enter_section();
	area = map_area();
	advise(area, MADV_RANDOM);
	advise(area, MADV_DONTFORK);
	if (first_only)
		write_area(area, pattern);
	leave_section();
	if (!first_only)
		write_area(area, pattern);
	check_area(area, pattern);
	enter_section();
	unmap_area(area);
	leave_section();
}

static void add_timing(struct timings *sums, uint64_t ns, uint64_t loops)
{
	double us = (double)ns / 1e3 / (double)loops;

	if (!loops)
		return;
	sums->loops += loops;
	sums->sum += us * (double)loops;
	sums->square_sum += us * us * (double)loops;
	if (us > sums->max)
		sums->max = us;
}

static void count_progress(unsigned int thread)
{
	if (progress)
		atomic_fetch_add_explicit(&progress[thread].loops, 1,
					  memory_order_release);
}

static void work(struct common_worker *worker)
{
	struct timings sums = {0};
	uint64_t pattern = ((uint64_t)worker->index + 1) << 40;
	uint64_t loops = 0, since = 0;

	while (common_more(worker)) {
		if (!loops)
			since = common_now_ns();
		one_loop(pattern + worker->done);
		count_progress(worker->index);
		if (++loops < LOOPS_PER_TIMING)
			continue;
		add_timing(&sums, common_now_ns() - since, loops);
		loops = 0;
	}
	if (loops)
		add_timing(&sums, worker->end_ns - since, loops);
	timings[worker->index] = sums;
}

static struct timings add_up(unsigned int threads)
{
	struct timings all = {0};

	for (unsigned int i = 0; i < threads; i++) {
		all.loops += timings[i].loops;
		all.sum += timings[i].sum;
		all.square_sum += timings[i].square_sum;
		all.max = fmax(all.max, timings[i].max);
	}
	return all;
}

static void print_header(void)
{
	printf("congestion: %s of %zu KiB, mutex in the source: %s\n\n",
	       common_size(), AREA_BYTES / 1024, mode_names[chosen_mode]);
	/* clang-format off */
	puts(
"          elapsed   user system average      max std dev     page    vol. invol.\n"
"case            s      s      s us/loop  us/loop us/loop   faults  switch switch");
	/* clang-format on */
}

static void print_case(const char *name, const struct common_usage *usage,
		       const struct timings *all)
{
	double average = all->sum / (double)all->loops;
	double variance = all->square_sum / (double)all->loops;

	variance -= average * average;
	printf("%-9s %7.3f %6.2f %6.2f %7.1f %8.1f %7.1f", name,
	       usage->elapsed_s, usage->user_s, usage->system_s, average,
	       all->max, sqrt(fmax(variance, 0)));
	printf(" %8" PRIu64 " %7" PRIu64 " %6" PRIu64 "\n", usage->faults,
	       usage->voluntary, usage->involuntary);
	fflush(stdout);
}

static void run_case(unsigned int which, unsigned int threads,
		     struct common_usage *total)
{
	struct common_usage usage;
	struct timings all;

	if (chosen_case != which && chosen_case != CASE_BOTH)
		return;
	written_bytes = which == CASE_ALL ? AREA_BYTES : page_bytes;
	common_run(work, &usage);
	all = add_up(threads);
	print_case(case_names[which], &usage, &all);
	total->ops += usage.ops;
	total->elapsed_s += usage.elapsed_s;
}

static void open_progress(unsigned int threads)
{
	size_t bytes = threads * sizeof(*progress);
	int fd = open(progress_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
		      0600);
	int error = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)bytes);

	if (error)
		common_refuse("-p '%s': %s", progress_path, strerror(error));
	progress = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (progress == MAP_FAILED)
		common_refuse("-p '%s': cannot map it: %s", progress_path,
			      strerror(errno));
	close(fd);
}

static void take_option(int letter, const char *value)
{
	switch (letter) {
	case 'c':
		chosen_case = common_choice('c', value, case_names);
		break;
	case 'm':
		chosen_mode = common_choice('m', value, mode_names);
		break;
	case 'p':
		progress_path = value;
		break;
	case 'x':
		leave_at_once = true;
		break;
	}
}

/* clang-format off */
static const struct common_spec spec = {
	.name = "congestion",
	.about =
"Each loop maps 256 KiB of anonymous memory, advises MADV_RANDOM and\n"
"MADV_DONTFORK on it, writes all of it or its first page, checks what it\n"
"wrote and unmaps it: 1 mmap, 2 madvise, 1 munmap, and no such call outside\n"
"the loops except one mmap for -p.  100 loops are one timing (a thread's last\n"
"one may be shorter); maximum and standard deviation are those of the\n"
"timings, each divided by its loops.  The default is the size of the report\n"
"it comes from: about half a minute on 2 CPUs.\n",
	.letters = "c:m:p:x",
	.usage = "\n                  [-c CASE] [-m MUTEX] [-p FILE] [-x]",
	.options =
"               (-n and -d hold for each case; 10000 loops are 100 timings)\n"
"  -c CASE      all, firstpage, or both, one after the other (default both)\n"
"  -m MUTEX     the mutex in the source:\n"
"               plain: none (default)\n"
"               report: a pthread mutex held over mmap and both madvise (in\n"
"               firstpage over the write, too), and again over munmap\n"
"               each: a futex mutex held over each single call\n"
"  -p FILE      count finished loops in FILE, a 64-bit number for each thread\n"
"               at every 64th byte, both cases added up\n"
"  -x           end with _exit instead of returning from main\n",
	.example = "-t 4 -n 1000 -c firstpage -m report",
	.option = take_option,
	.threads = 16,
	.iterations = 10000,
};
/* clang-format on */

int main(int argc, char **argv)
{
	const struct common_options *options = common_start(&spec, argc, argv);
	struct common_usage total = {0};
	int status;

	if (chosen_mode == MODE_EACH)
		common_use_mutex();
	page_bytes = common_page_size();
	timings = calloc(options->threads, sizeof(*timings));
	if (!timings)
		common_fail("no memory for %u threads", options->threads);
	if (progress_path)
		open_progress(options->threads);
	print_header();
	run_case(CASE_ALL, options->threads, &total);
	run_case(CASE_FIRSTPAGE, options->threads, &total);
	free(timings);
	status = common_finish(total.ops, total.elapsed_s);
	if (leave_at_once)
		_exit(status);
	return status;
}
