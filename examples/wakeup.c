/* SPDX-License-Identifier: MIT */
/*
 * wakeup: threads sleep until a known instant and see how late they run.
 *
 * A report of 2005: on a newer kernel the worst delay grew tenfold while the
 * typical one stayed the same, which no average shows.  So the worst is kept
 * with its time and its thread.  Woken threads map a page each, so that the
 * wait for the address space shows beside the wait for a CPU.
 */
#include "common.h"
#include "spread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#define PAUSE_NS 100000
#define NS_PER_S 1000000000
#define LOG_LINES 32
#define MAX_THRESHOLD_US 1000000000

/* One wake-up, by its due time since the start. */
struct wakeup {
	uint64_t at_ns;
	uint64_t delay_ns;
	unsigned int thread;
};

/* What one thread saw. */
struct watch {
	struct spread runs;
	struct spread mapped;
	struct wakeup worst;
};

static uint64_t threshold_ns = UINT64_C(1000000);
static uint64_t origin_ns;
static size_t page_bytes;
static struct watch *watches;

static struct wakeup late[LOG_LINES];
static _Atomic uint64_t late_count; /* those without a line, too */

static void sleep_until(uint64_t ns)
{
	struct timespec due = {
		.tv_sec = (time_t)(ns / NS_PER_S),
		.tv_nsec = (long)(ns % NS_PER_S),
	};
	int error;

	do
		error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due,
					NULL);
	while (error == EINTR);
	if (error)
		common_fail("cannot sleep: %s", strerror(error));
}

static void note_late(const struct wakeup *wakeup)
{
	uint64_t line;

	if (wakeup->delay_ns <= threshold_ns)
		return;
	line = atomic_fetch_add(&late_count, 1);
	if (line < LOG_LINES)
		late[line] = *wakeup;
}

static void note(struct watch *watch, unsigned int thread, uint64_t due,
		 uint64_t delay)
{
	struct wakeup wakeup = {due - origin_ns, delay, thread};

	spread_add(&watch->runs, delay);
	if (delay >= watch->worst.delay_ns)
		watch->worst = wakeup;
	note_late(&wakeup);
}

static char *map_page(void)
{
	char *page;

	common_enter_call();
	page = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	common_leave_call();
	if (page == MAP_FAILED)
		common_fail("mmap of a page: %s", strerror(errno));
	return page;
}

static void unmap_page(char *page)
{
	int result;

	common_enter_call();
	result = munmap(page, page_bytes);
	common_leave_call();
	if (result)
		common_fail("munmap of a page: %s", strerror(errno));
}

static void write_page(char *page, uint64_t value)
{
	volatile uint64_t *word = (volatile uint64_t *)(void *)page;

	if (*word)
		common_fail("a fresh page holds %#" PRIx64, *word);
	*word = value;
	if (*word != value)
		common_fail("a page holds %#" PRIx64 ", not %#" PRIx64
			    " as written",
			    *word, value);
}

static void work(struct common_worker *worker)
{
	struct watch *watch = &watches[worker->index];
	uint64_t value = ((uint64_t)worker->index + 1) << 40;

	/* else the kernel delays each wake-up by up to 50 us to save some */
	prctl(PR_SET_TIMERSLACK, 1);
	while (common_more(worker)) {
		uint64_t due = common_now_ns() + PAUSE_NS;
		uint64_t runs;
		char *page;

		sleep_until(due);
		runs = common_now_ns();
		note(watch, worker->index, due, runs - due);
		page = map_page();
		write_page(page, value + worker->done);
		spread_add(&watch->mapped, common_now_ns() - runs);
		unmap_page(page);
	}
}

static void print_spread(const char *what, const struct spread *spread)
{
	printf("%-22s %9.1f %9.1f %9.1f %9.1f", what,
	       (double)spread_at(spread, 0.5) / 1e3,
	       (double)spread_at(spread, 0.99) / 1e3,
	       (double)spread_at(spread, 0.999) / 1e3,
	       (double)spread->worst / 1e3);
}

static int earlier(const void *left, const void *right)
{
	const struct wakeup *a = left, *b = right;

	return (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

static void print_late(void)
{
	size_t lines = late_count < LOG_LINES ? late_count : LOG_LINES;

	printf("\nlater than %.0f us: %" PRIu64 "\n",
	       (double)threshold_ns / 1e3, late_count);
	qsort(late, lines, sizeof(*late), earlier);
	for (size_t i = 0; i < lines; i++)
		printf("%12.6f s  %9.1f us  thread %u\n",
		       (double)late[i].at_ns / NS_PER_S,
		       (double)late[i].delay_ns / 1e3, late[i].thread);
	if (late_count > lines)
		printf("and %" PRIu64 " that came when the log was full\n",
		       late_count - lines);
}

static void print_delays(unsigned int threads)
{
	static struct watch all;

	for (unsigned int i = 0; i < threads; i++) {
		spread_merge(&all.runs, &watches[i].runs);
		spread_merge(&all.mapped, &watches[i].mapped);
		if (watches[i].worst.delay_ns >= all.worst.delay_ns)
			all.worst = watches[i].worst;
	}
	printf("\n%-22s %9s %9s %9s %9s\n", "delay in us", "typical", "99 %",
	       "99.9 %", "worst");
	print_spread("woken until it runs", &all.runs);
	printf("  at %.6f s, thread %u\n", (double)all.worst.at_ns / NS_PER_S,
	       all.worst.thread);
	print_spread("runs until it mapped", &all.mapped);
	putchar('\n');
	print_late();
}

static void take_option(int letter, const char *value)
{
	threshold_ns = common_number(letter, value, 0, MAX_THRESHOLD_US) * 1000;
}

/* clang-format off */
static const struct common_spec spec = {
	.name = "wakeup",
	.about =
"Each thread sleeps until an instant 100 us ahead, notes how late it runs\n"
"again, maps a page, writes and checks it, notes how long that took, and\n"
"unmaps the page: 1 mmap and 1 munmap a loop.  Delays above a threshold are\n"
"logged with their time, the first 32 of them.\n",
	.letters = "w:",
	.usage = " [-w US]",
	.options =
"  -w US        log what is later than this (default 1000)\n",
	.example = "-t 4 -d 2.5 -w 500",
	.option = take_option,
	.threads = 4,
	.iterations = 5000,
	.mutex = true,
};
/* clang-format on */

int main(int argc, char **argv)
{
	const struct common_options *options = common_start(&spec, argc, argv);
	struct common_usage usage;

	page_bytes = common_page_size();
	watches = calloc(options->threads, sizeof(*watches));
	if (!watches)
		common_fail("no memory for %u threads", options->threads);
	printf("wakeup: %s, woken %d us after the last loop\n\n", common_size(),
	       PAUSE_NS / 1000);
	origin_ns = common_now_ns();
	common_run(work, &usage);
	common_print_usage(&usage);
	print_delays(options->threads);
	putchar('\n');
	free(watches);
	return common_finish(usage.ops, usage.elapsed_s);
}
