/* SPDX-License-Identifier: MIT */
/* The worst calls, and who was in the gate with them. */
#include <stdlib.h>
#include <unistd.h>

#include "../../tools/worst.h"
#include "check.h"
#include "make_log.h"

static const char *path;
static struct make_log making;
static struct log *reading;

static void begin(void)
{
	making = make_log_begin(path, 2, 4096, 1);
	making.header->end = make_log_pair(&making, 100000000);
}

static void call(uint32_t tid, uint64_t at, uint32_t wait, uint32_t kernel)
{
	make_log_event(
		&making, tid % 2,
		(struct record_event){
			.time = MAKE_LOG_START_TICKS + at,
			.op = OP_MUNMAP,
			.tid = tid,
			.wait_low = wait,
			.kernel_low = kernel,
			.weight = 1,
			.outcome = wait ? OUTCOME_GATED : OUTCOME_UNGATED,
		});
}

static struct worst find(size_t most, uint64_t since, uint64_t until)
{
	const struct window window = {MAKE_LOG_START_NS + since,
				      MAKE_LOG_START_NS + until};
	const struct log_process *process;
	char why[256];

	make_log_close(&making);
	reading = log_open(path, why);
	if (!reading) {
		printf("# %s\n", why);
		exit(1);
	}
	process = log_process(reading);
	return worst_find(&process, &reading, 1, &window, most);
}

static void end(struct worst *w)
{
	worst_drop(w);
	log_close(reading);
}

static void test_order(void)
{
	struct worst w;
	unsigned i, wrong = 0;

	begin();
	/* 7 is no divisor of 1000: all lengths, in no order. */
	for (i = 0; i < 1000; i++)
		call(1 + i % 3, i * 10000, 0, 1 + i * 7 % 1000);
	w = find(100, 0, UINT64_MAX / 2);
	check_u64(100, w.count, "as many as asked for");
	for (i = 0; i < 100; i++)
		wrong += w.call[i].event.kernel_ns != 1000 - i;
	check_u64(0, wrong, "the longest, in order");
	end(&w);
	begin();
	call(1, 0, 0, 10);
	call(1, 100, 50, 10);
	call(1, 200, 0, 55);
	w = find(100, 0, UINT64_MAX / 2);
	check_u64(3, w.count, "no more than there are");
	check_u64(50, w.call[0].event.wait_ns, "waiting counts too");
	end(&w);
	begin();
	w = find(5, 0, UINT64_MAX / 2);
	check_u64(0, w.count, "none of none");
	end(&w);
}

static void test_others(void)
{
	struct worst w;

	begin();
	/* The worst: waits from 1000 to 2000, is in the kernel to 9000. */
	call(1, 1000, 1000, 7000);
	call(2, 500, 0, 1400);   /* held before it, to 1900 */
	call(3, 100, 0, 800);    /* was out by then */
	call(4, 1900, 0, 50);    /* went ahead of it */
	call(5, 3000, 6100, 10); /* waited for it, from 3000 to its end */
	call(6, 1500, 7600, 10); /* waited before and behind */
	call(7, 9000, 0, 10);    /* came when it was gone */
	call(1, 9100, 0, 10);    /* its own */
	w = find(1, 0, UINT64_MAX / 2);
	check_u64(1, w.call[0].event.raw.tid, "the worst is found");
	check_u64(2, w.call[0].before.count, "two were in the kernel before");
	check_u64(2, w.call[0].before.list[0].event.raw.tid,
		  "the longer one first");
	check_u64(900, w.call[0].before.list[0].overlap_ns,
		  "from when it came");
	check_u64(4, w.call[0].before.list[1].event.raw.tid, "and the other");
	check_u64(2, w.call[0].after.count, "two waited behind it");
	check_u64(6, w.call[0].after.list[0].event.raw.tid, "the longer first");
	check_u64(7000, w.call[0].after.list[0].overlap_ns,
		  "while it was in the kernel");
	check_u64(6000, w.call[0].after.list[1].overlap_ns, "or a part of it");
	check_between(13000, 13000, w.call[0].after.overlap_ns, "in all");
	end(&w);
}

static void test_many_others(void)
{
	struct worst w;
	unsigned i;

	begin();
	call(1, 1000, 0, 100000);
	for (i = 0; i < 500; i++)
		call(2 + i, 2000 + i * 10, 0, 10 + i);
	w = find(1, 0, UINT64_MAX / 2);
	check_u64(500, w.call[0].after.count, "all are counted");
	check_u64(WORST_OTHERS, w.call[0].after.kept, "some are kept");
	check_u64(509, w.call[0].after.list[0].overlap_ns, "the longest");
	check_u64(509 - WORST_OTHERS + 1,
		  w.call[0].after.list[WORST_OTHERS - 1].overlap_ns, "of all");
	end(&w);
}

static void test_several(void)
{
	struct worst w;

	begin();
	/* A long one over two short ones, far apart. */
	call(1, 0, 0, 50000);
	call(2, 1000, 0, 900);
	call(3, 30000, 0, 800);
	call(2, 80000, 0, 700);
	w = find(4, 0, UINT64_MAX / 2);
	check_u64(2, w.call[0].after.count, "each has its own others");
	check_u64(1, w.call[1].before.count, "though they overlap");
	check_u64(1, w.call[2].before.count, "and lie apart");
	check_u64(0, w.call[3].before.count + w.call[3].after.count,
		  "or have none");
	end(&w);
}

static void test_window(void)
{
	struct worst w;

	begin();
	call(1, 1000, 0, 9000);
	call(2, 2000, 0, 500);
	call(2, 5000, 0, 600);
	w = find(10, 1500, 3000);
	check_u64(1, w.count, "calls that began in the window");
	check_u64(500, w.call[0].event.kernel_ns, "only");
	check_u64(1, w.call[0].before.count, "others from outside are seen");
	end(&w);
}

int main(void)
{
	path = make_log_path();
	test_order();
	test_others();
	test_many_others();
	test_several();
	test_window();
	return check_done();
}
