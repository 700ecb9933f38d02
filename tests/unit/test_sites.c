/* SPDX-License-Identifier: MIT */
/* Sampled calls stand for the others; times are known of all. */
#include <stdlib.h>

#include "../../tools/images.h"
#include "../../tools/sites.h"
#include "check.h"
#include "make_log.h"

enum {
	COUNT = MAKE_LOG_SAMPLES,
	WEIGHT = 100,
	QUICK = 1000,
	SLOW = 100 * QUICK,
	WAITED = 10,
	SITE = 0x1000, /* each sample's call is from a place of its own */
};

static uint64_t kernel_of(uint32_t i)
{
	return i == 0 ? SLOW : QUICK;
}

static void put(struct make_log *m, uint32_t place, uint32_t i, uint32_t weight)
{
	struct record_sample *s = make_log_sample(m, place);

	s->event.time = MAKE_LOG_START_TICKS + i;
	s->event.op = OP_MUNMAP;
	s->event.caller = SITE + i;
	s->event.outcome = OUTCOME_GATED;
	s->event.wait_low = WAITED;
	s->event.kernel_low = (uint32_t)kernel_of(i);
	s->event.weight = weight;
	s->number = place % MAKE_LOG_SAMPLES;
	s->event.check = record_event_check(&s->event);
	s->event.seq = (uint32_t)s->number + 1;
}

/* One call in WEIGHT is sampled, the first of them is slow; `calls` of each
 * such lot were made. */
static struct make_log begin(const char *path, uint32_t calls)
{
	struct make_log m = make_log_begin_with_stacks(path, 1, 1024, 1);
	uint32_t i, k;

	m.header->end = make_log_pair(&m, 5000);
	strcat(m.header->settings, "stacks=every:100\n");
	m.header->stacks.pool[POOL_EVERY].head = COUNT;
	for (i = 0; i < COUNT; i++)
		put(&m, i, i, WEIGHT);
	for (i = 0; i < COUNT; i++)
		for (k = 0; k < calls; k++)
			make_log_count(&m, 0, OP_MUNMAP, WAITED,
				       k == 0 ? kernel_of(i) : QUICK);
	return m;
}

static struct sites_sum sum_of(const char *path, uint64_t until_ns,
			       double *slow_ns)
{
	struct images *images = images_new();
	struct sites_sum sum = {0};
	char why[256] = "";
	struct log *log = log_open(path, why);
	struct sites *sites;

	check_text("", why, "the log is opened");
	if (!log)
		exit(1);
	sites = sites_open_part(log, images, 0, until_ns);
	sum = sites->all;
	*slow_ns = sites->count > 0 ? sites->list[0].sum.kernel_ns : 0;
	sites_close(sites);
	images_free(images, symbols_free);
	log_close(log);
	return sum;
}

static void test_totals(const char *path)
{
	double all = (COUNT * WEIGHT - 1) * (double)QUICK + SLOW, slow;
	struct make_log m = begin(path, WEIGHT);
	struct sites_sum sum;

	make_log_close(&m);
	sum = sum_of(path, UINT64_MAX, &slow);
	check_between(COUNT * WEIGHT, COUNT * WEIGHT, sum.count,
		      "the samples stand for all calls");
	check_between(all * 0.999, all * 1.001, sum.kernel_ns,
		      "and took as long as these");
	check_between(COUNT * WEIGHT * WAITED * 0.999,
		      COUNT * WEIGHT * WAITED * 1.001, sum.wait_ns,
		      "and waited as long");
}

/* The slow one is among the longest too, all of which are there: it stands for
 * itself alone, and does not make the others shorter. */
static void test_longest(const char *path)
{
	double all = (COUNT * WEIGHT - 1) * (double)QUICK + SLOW, slow;
	struct make_log m = begin(path, WEIGHT);
	struct sites_sum sum;

	put(&m, POOL_COUNT * MAKE_LOG_SAMPLES, 0, 1);
	m.header->stacks.pool[POOL_SLOW].head = 0;
	make_log_close(&m);
	sum = sum_of(path, UINT64_MAX, &slow);
	check_between(all * 0.999, all * 1.001, sum.kernel_ns,
		      "one of the longest does not change the whole");
	check_between(all / COUNT * 1.0, all / COUNT * 1.2, slow,
		      "nor counts for more than itself");
}

static void test_parts(const char *path)
{
	struct make_log m = begin(path, WEIGHT);
	struct sites_sum sum, half;
	double slow;

	make_log_close(&m);
	sum = sum_of(path, UINT64_MAX, &slow);
	half = sum_of(path, MAKE_LOG_START_NS + COUNT / 2, &slow);
	check_u64(COUNT / 2, half.samples, "a part has its samples only");
	check_between(sum.wait_ns * 0.499, sum.wait_ns * 0.501, half.wait_ns,
		      "and the figures that these have in the whole");

	m = begin(path, 3 * WEIGHT);
	make_log_close(&m);
	sum = sum_of(path, UINT64_MAX, &slow);
	check_between(COUNT * WEIGHT * WAITED * 0.999,
		      COUNT * WEIGHT * WAITED * 1.001, sum.wait_ns,
		      "of samples of a third of the run, only that");
}

int main(void)
{
	const char *path = make_log_path();

	test_totals(path);
	test_longest(path);
	test_parts(path);
	return check_done();
}
