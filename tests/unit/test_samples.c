/* SPDX-License-Identifier: MIT */
/* Copies of stacks, whose pages lie apart. */
#include <string.h>

#include "../../tools/samples.h"
#include "check.h"
#include "make_log.h"

enum { COUNT = 3, BYTES = RECORD_COPY_PAGE + 24 };

struct seen {
	uint32_t count, copies, sound;
};

/* What a byte of a sample's copy is. */
static unsigned char byte_of(uint32_t sample, uint32_t at)
{
	return (unsigned char)(at / 8 * 5 + sample * 17 +
			       at / RECORD_COPY_PAGE);
}

static void put_sample(struct make_log *m, uint32_t i, uint32_t bytes)
{
	struct record_sample *s = make_log_sample(m, i);

	s->event.time = MAKE_LOG_START_TICKS + i;
	s->event.op = OP_MUNMAP;
	s->event.weight = 1;
	s->number = i;
	s->bytes = bytes;
	s->event.check = record_event_check(&s->event);
	s->event.seq = i + 1;
	for (uint32_t at = 0; at < bytes; at++)
		make_log_copy(m, i,
			      at / RECORD_COPY_PAGE)[at % RECORD_COPY_PAGE] =
			(char)byte_of(i, at);
}

static void see(void *context, const struct samples_call *call)
{
	struct seen *seen = context;
	uint32_t at;

	seen->count++;
	if (!call->copy)
		return;
	seen->copies++;
	for (at = 0; at < call->raw->bytes; at++)
		if (call->copy[at] != byte_of(call->id - 1, at))
			return;
	seen->sound++;
}

static struct seen see_all(const char *path)
{
	struct samples_count count = {0};
	struct seen seen = {0};
	char why[256] = "";
	struct log *log = log_open(path, why);

	check_text("", why, "a log with samples is opened");
	if (!log)
		return seen;
	check_true(samples_each(log, &count, see, &seen), "they are read");
	log_close(log);
	return seen;
}

int main(void)
{
	const char *path = make_log_path();
	struct make_log m = make_log_begin_with_stacks(path, 1, 1024, 1);
	struct seen seen;

	m.header->end = make_log_pair(&m, 5000);
	m.header->stacks.pool[POOL_EVERY].head = COUNT;
	for (uint32_t i = 0; i < COUNT; i++)
		put_sample(&m, i, BYTES);
	make_log_close(&m);
	seen = see_all(path);
	check_u64(COUNT, seen.count, "all are seen");
	check_u64(COUNT, seen.copies, "with their copies");
	check_u64(COUNT, seen.sound, "whose pages follow each other");
	return check_done();
}
