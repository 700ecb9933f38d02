/* SPDX-License-Identifier: MIT */
/* What threads do with their mappings, by the order of their calls. */
#include <sys/mman.h>

#include "../../tools/habits.h"
#include "../../tools/tids.h"
#include "check.h"

enum { ADDRESS = 0x10000, BYTES = 4096 };

static struct log_event call(enum op op, uint32_t tid, uint64_t from,
			     uint64_t to)
{
	return (struct log_event){
		.raw = {.op = (uint8_t)op,
			.tid = tid,
			.addr = op == OP_MUNMAP ? ADDRESS : 0,
			.result = op == OP_MMAP ? ADDRESS : 0,
			.length = BYTES,
			.arg = PROT_READ | PROT_WRITE,
			.flags = MAP_PRIVATE | MAP_ANONYMOUS,
			.fd = -1,
			.weight = 1},
		.time_ns = from,
		.kernel_ns = to - from,
	};
}

static struct habits *habits_of(const struct log_event *events, size_t count)
{
	struct habits *h = habits_new();

	for (size_t i = 0; i < count; i++)
		habits_add(h, &events[i], 0);
	return h;
}

/* Of each of so many threads two calls. */
static void test_threads(size_t count, size_t with_row)
{
	struct habits *h = habits_new();
	uint64_t calls = 0, wrong = 0;

	for (size_t i = 0; i < 2 * count; i++) {
		struct log_event e =
			call(OP_MPROTECT, (uint32_t)(i % count) + 1, 10 * i,
			     10 * i + 5);

		habits_add(h, &e, 0);
	}
	habits_end(h);
	for (size_t i = 0; i < h->threads; i++) {
		calls += h->thread[i].sum.count;
		wrong += h->thread[i].tid != i + 1 ||
			 h->thread[i].sum.count != 2;
	}
	check_u64(with_row, h->threads, "of %zu threads have a row", count);
	check_u64(0, wrong, "each has its own calls");
	check_u64(2 * count, calls + h->other_threads.count,
		  "and with the others all are there");
	check_between(10.0 * (double)(count - with_row),
		      10.0 * (double)(count - with_row),
		      h->other_threads.kernel_ns, "with their time");
	habits_free(h);
}

static void test_bytes(void)
{
	struct log_event e = call(OP_MPROTECT, 1, 0, 5);
	struct habits *h = habits_new();

	habits_add(h, &e, 0);
	e.raw.result = -12;
	habits_add(h, &e, 0);
	check_u64(2, h->thread[0].sum.count, "a failed call counts");
	check_between(BYTES, BYTES, h->thread[0].sum.bytes,
		      "and its bytes do not, as in the totals");
	habits_free(h);
}

int main(void)
{
	const struct log_event own[] = {
		call(OP_MMAP, 1, 0, 10),
		/* Gets the address that the next call has in hand. */
		call(OP_MMAP, 2, 15, 40),
		call(OP_MUNMAP, 1, 20, 30),
		call(OP_MUNMAP, 2, 50, 60),
	};
	const struct log_event handed[] = {
		call(OP_MMAP, 1, 0, 10),
		call(OP_MUNMAP, 2, 20, 30),
	};
	struct habits *h = habits_of(own, 4);

	check_u64(0, h->crossed.count, "no thread unmapped another's");
	check_u64(1, h->pairs.count, "one its own, as far as can be told");
	habits_free(h);
	h = habits_of(handed, 2);
	check_u64(1, h->crossed.count, "one unmapped another's");
	habits_free(h);
	test_threads(20000, 20000);
	test_threads(TIDS_MOST + 1000, TIDS_MOST);
	test_bytes();
	return check_done();
}
