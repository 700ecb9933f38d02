/* SPDX-License-Identifier: MIT */
/* What threads do with their mappings, by the order of their calls. */
#include <sys/mman.h>

#include "../../tools/habits.h"
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
	return check_done();
}
