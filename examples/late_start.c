/* SPDX-License-Identifier: MIT */
/*
 * late_start: a program creates threads while others are at work already.
 *
 * A new thread needs a stack, which is mapped and protected under the same
 * lock that the threads at work take for mapping and for page faults.  A
 * program that starts its threads one by one, each busy at once, pays for
 * that; holding them back until all are there was QEMU's cure.
 */
#include "common.h"
#include "spread.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define AREA_BYTES ((size_t)256 * 1024)
/* More than libc keeps for later, so that each thread needs a new one. */
#define STACK_BYTES ((size_t)48 * 1024 * 1024)
#define LISTED 32

/* A new thread, seen from both sides. */
struct late {
	uint64_t asked_ns;
	uint64_t returned_ns;
	uint64_t runs_ns;
};

static size_t page_bytes;
static struct late listed[LISTED];
static uint64_t listed_count;
static struct spread returned, ran;

static char *map_area(void)
{
	char *area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		common_fail("mmap of %zu bytes: %s", AREA_BYTES,
			    strerror(errno));
	return area;
}

static void write_area(char *area, uint64_t value)
{
	for (size_t at = 0; at < AREA_BYTES; at += page_bytes)
		*(volatile uint64_t *)(void *)(area + at) = value + at;
}

static void check_area(char *area, uint64_t value)
{
	for (size_t at = 0; at < AREA_BYTES; at += page_bytes) {
		uint64_t found = *(volatile uint64_t *)(void *)(area + at);

		if (found != value + at)
			common_fail("offset %zu holds %#" PRIx64
				    ", not %#" PRIx64 " as written",
				    at, found, value + at);
	}
}

static void hammer(struct common_worker *worker)
{
	uint64_t value = ((uint64_t)worker->index + 1) << 40;

	while (common_more(worker)) {
		char *area = map_area();

		write_area(area, value + worker->done);
		check_area(area, value + worker->done);
		if (munmap(area, AREA_BYTES))
			common_fail("munmap of %zu bytes: %s", AREA_BYTES,
				    strerror(errno));
	}
}

static void *start_late(void *argument)
{
	struct late *late = argument;

	late->runs_ns = common_now_ns();
	return late;
}

static void create_late(const pthread_attr_t *attributes, struct late *late)
{
	pthread_t thread;
	void *result;
	int error;

	late->asked_ns = common_now_ns();
	error = pthread_create(&thread, attributes, start_late, late);
	late->returned_ns = common_now_ns();
	if (error)
		common_fail("cannot start a late thread (%s), give fewer "
			    "threads with -t",
			    strerror(error));
	pthread_join(thread, &result);
	if (result != late)
		common_fail("a late thread returned %p, not %p", result,
			    (void *)late);
}

static void create_threads(struct common_worker *worker)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	if (pthread_attr_setstacksize(&attributes, STACK_BYTES))
		common_fail("a stack of %zu bytes is refused", STACK_BYTES);
	while (common_more(worker)) {
		struct late late;

		create_late(&attributes, &late);
		spread_add(&returned, late.returned_ns - late.asked_ns);
		spread_add(&ran, late.runs_ns - late.asked_ns);
		if (listed_count < LISTED)
			listed[listed_count++] = late;
	}
	pthread_attr_destroy(&attributes);
}

static void print_listed(uint64_t count)
{
	printf("\n%-22s %12s %12s %12s\n", "creation", "at ms", "returned us",
	       "runs us");
	for (uint64_t i = 0; i < listed_count; i++) {
		const struct late *late = &listed[i];

		printf("%-22" PRIu64 " %12.3f %12.1f %12.1f\n", i + 1,
		       (double)(late->asked_ns - listed[0].asked_ns) / 1e6,
		       (double)(late->returned_ns - late->asked_ns) / 1e3,
		       (double)(late->runs_ns - late->asked_ns) / 1e3);
	}
	if (count > listed_count)
		printf("and %" PRIu64 " more\n", count - listed_count);
}

static void print_spread(const char *what, const struct spread *spread)
{
	printf("%-22s %12.1f %12.1f %12.1f\n", what,
	       (double)spread_at(spread, 0.5) / 1e3,
	       (double)spread_at(spread, 0.99) / 1e3,
	       (double)spread->worst / 1e3);
}

static void print_header(const struct common_options *options)
{
	printf("late_start: %u thread%s at work, others created beside ",
	       options->threads, options->threads == 1 ? "" : "s");
	if (options->duration_ns)
		printf("for %g seconds\n\n",
		       (double)options->duration_ns / 1e9);
	else
		printf("%" PRIu64 " times\n\n", options->iterations);
}

/* clang-format off */
static const struct common_spec spec = {
	.name = "late_start",
	.about =
"The threads map 256 KiB, write to each page, check and unmap it, again and\n"
"again.  Beside them main creates and joins threads, one a loop: -n and -d are\n"
"main's, and so are the operations counted.  It lists how long each of the\n"
"first 32 took until pthread_create returned, and until the thread ran.\n"
"Calls: 1 mmap and 1 munmap a loop of the threads; inside libc for each thread\n"
"that main creates, with glibc 1 mmap, 1 mprotect, 1 madvise and 1 munmap.\n",
	.letters = "",
	.usage = "",
	.options = "",
	.example = "-t 4 -n 20",
	.threads = 4,
	.iterations = 1000,
};
/* clang-format on */

int main(int argc, char **argv)
{
	const struct common_options *options = common_start(&spec, argc, argv);
	struct common_usage usage;

	page_bytes = common_page_size();
	print_header(options);
	common_run_beside(hammer, create_threads, &usage);
	common_print_usage(&usage);
	print_listed(usage.ops);
	printf("\n%-22s %12s %12s %12s\n", "us", "typical", "99 %", "worst");
	print_spread("until it returned", &returned);
	print_spread("until it ran", &ran);
	printf("\nloops of the threads at work: %" PRIu64 "\n\n", usage.beside);
	return common_finish(usage.ops, usage.elapsed_s);
}
