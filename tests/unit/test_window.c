/* SPDX-License-Identifier: MIT */
/* A stretch of a run, by its events. */
#include <stdlib.h>

#include "../../tools/window.h"
#include "check.h"
#include "make_log.h"

enum { THREADS = 6000, SLOTS = 16384 };

/* Threads take turns, so that none is seen twice in a row. */
static void make(const char *path)
{
	struct make_log m = make_log_begin(path, 1, SLOTS, 1);
	struct record_event e = {.op = OP_MUNMAP, .length = 4096, .weight = 1};

	for (uint32_t i = 0; i < 2 * THREADS; i++) {
		e.tid = 1 + i % THREADS;
		e.time = MAKE_LOG_START_TICKS + i;
		e.kernel_low = 10;
		make_log_event(&m, 0, e);
		make_log_count(&m, 0, OP_MUNMAP, UINT64_MAX, 10);
	}
	m.header->threads = THREADS;
	m.header->end =
		make_log_pair(&m, MAKE_LOG_START_TICKS + 2 * THREADS + 10);
	make_log_close(&m);
}

int main(void)
{
	const struct window all = {0, UINT64_MAX};
	/* From the second call of the first thread on, half of them. */
	const struct window part = {MAKE_LOG_START_NS + THREADS,
				    MAKE_LOG_START_NS + THREADS + THREADS / 2};
	const char *path = make_log_path();
	struct log_process *p;
	unsigned lacks;
	char why[256];
	struct log *log;

	make(path);
	log = log_open(path, why);
	if (!log) {
		printf("# %s\n", why);
		return 1;
	}
	p = window_process(log, &all, &lacks);
	check_u64(THREADS, p->threads, "each thread counts once");
	check_u64(0, lacks, "nothing is missing");
	window_process_free(p);
	p = window_process(log, &part, &lacks);
	check_u64(THREADS / 2, p->threads, "those that called in the window");
	check_u64(THREADS / 2, p->op[OP_MUNMAP].count, "with their calls");
	window_process_free(p);
	log_close(log);
	return check_done();
}
