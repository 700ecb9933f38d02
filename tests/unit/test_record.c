/* SPDX-License-Identifier: MIT */
#include "record.h"

#include "check.h"

#define END (UINT64_C(1) << (RECORD_TOP_BIT + 1))

/* Does the value lie in its bucket, and the middle of that near the value? */
static bool fits(uint64_t value)
{
	unsigned b = record_bucket(value);
	uint64_t low = record_bucket_floor(b), width;
	double middle;

	if (b >= RECORD_BUCKETS || value < low)
		return false;
	if (value >= END)
		return b == RECORD_BUCKETS - 1;
	width = record_bucket_floor(b + 1) - low;
	if (value - low >= width)
		return false;
	middle = (double)low + (double)(width - 1) / 2;
	return middle - (double)value <= (double)value / 64 &&
	       (double)value - middle <= (double)value / 64;
}

static void check_buckets(void)
{
	bool exact = true, inverse = true, rising = true, powers = true;
	bool random = true;

	for (uint64_t v = 0; v < 2 * RECORD_SUB; v++)
		exact &= record_bucket(v) == v &&
			 record_bucket_floor((unsigned)v) == v;
	check_true(exact, "small values have a bucket each");
	for (unsigned b = 0; b < RECORD_BUCKETS; b++) {
		uint64_t low = record_bucket_floor(b);

		inverse &= record_bucket(low) == b;
		if (b > 0)
			rising &= record_bucket(low - 1) == b - 1 &&
				  low > record_bucket_floor(b - 1);
	}
	check_true(inverse, "the floor of a bucket is in it");
	check_true(rising, "what is just below is in the one before");
	for (int bit = 0; bit < 64; bit++) {
		uint64_t v = UINT64_C(1) << bit;

		powers &= fits(v) && fits(v - 1) && fits(v + 1);
	}
	check_true(powers, "powers of two and their neighbours fit");
	for (int i = 0; i < 100000; i++)
		random &= fits(check_random() >> (i % 64));
	check_true(random, "random values are within 1/64 of the middle");
}

static void check_top(void)
{
	check_u64(RECORD_BUCKETS - 1, record_bucket(END - 1), "last in range");
	check_u64(RECORD_BUCKETS - 1, record_bucket(END), "first beyond");
	check_u64(RECORD_BUCKETS - 1, record_bucket(UINT64_MAX), "largest");
	check_u64(END - (END >> (RECORD_SUB_BITS + 1)),
		  record_bucket_floor(RECORD_BUCKETS - 1),
		  "floor of the last bucket");
}

/* Sets one field to something else; the check must notice. */
#define CHECK_FIELD(field)                                                     \
	do {                                                                   \
		struct record_event e = event;                                 \
                                                                               \
		for (unsigned bit = 0; bit < 8 * sizeof(e.field); bit++) {     \
			e = event;                                             \
			e.field = (__typeof__(e.field))((uint64_t)e.field ^    \
							UINT64_C(1) << bit);   \
			if (record_event_check(&e) == check)                   \
				missed++;                                      \
		}                                                              \
		check_u64(0, missed, "bits of %s that the check misses",       \
			  #field);                                             \
		missed = 0;                                                    \
	} while (0)

static void fill(void *bytes, size_t size)
{
	unsigned char *p = bytes;

	for (size_t i = 0; i < size; i++)
		p[i] = (unsigned char)check_random();
}

static void check_event(void)
{
	struct record_event event;
	uint32_t check;
	unsigned missed = 0;

	fill(&event, sizeof(event));
	check = record_event_check(&event);
	CHECK_FIELD(time);
	CHECK_FIELD(addr);
	CHECK_FIELD(length);
	CHECK_FIELD(offset);
	CHECK_FIELD(result);
	CHECK_FIELD(caller);
	CHECK_FIELD(wait_low);
	CHECK_FIELD(wait_high);
	CHECK_FIELD(kernel_low);
	CHECK_FIELD(kernel_high);
	CHECK_FIELD(arg);
	CHECK_FIELD(flags);
	CHECK_FIELD(fd);
	CHECK_FIELD(tid);
	CHECK_FIELD(weight);
	CHECK_FIELD(stack);
	CHECK_FIELD(kind);
	CHECK_FIELD(op);
	CHECK_FIELD(outcome);
	CHECK_FIELD(layer);
	event.seq++;
	event.check++;
	check_u64(check, record_event_check(&event), "seq and check are apart");
}

static void check_mixes(void)
{
	struct record_event event[2], mix;
	unsigned passed = 0;

	/* The first words of one event, the rest of another: a torn write. */
	for (int i = 0; i < 1000; i++) {
		fill(event, sizeof(event));
		for (size_t at = 8; at < offsetof(struct record_event, seq);
		     at += 8) {
			mix = event[1];
			memcpy(&mix, &event[0], at);
			passed += record_event_check(&mix) ==
				  record_event_check(&event[1]);
		}
	}
	check_u64(0, passed, "mixes of two events that pass");
}

static void check_times(void)
{
	struct record_event e = {.wait_low = 0x89abcdef,
				 .wait_high = 0x4567,
				 .kernel_low = 1,
				 .kernel_high = 0xffff};

	check_u64(UINT64_C(0x456789abcdef), record_event_wait(&e), "wait");
	check_u64(UINT64_C(0xffff00000001), record_event_kernel(&e), "kernel");
}

static void check_names(void)
{
	check_text("mmap", op_name(OP_MMAP), "name of an op");
	check_text("unknown", op_name(OP_COUNT), "name of no op");
	check_true(memcmp(&(uint64_t){RECORD_MAGIC}, "mmgate1", 8) == 0,
		   "the magic can be read");
}

/* --- pools of samples --- */

/* Are all picks that count in their slots, after `head` of them? */
static bool holds_all(const uint64_t *slot, uint64_t head, uint32_t slots)
{
	uint64_t step = UINT64_C(1) << record_pool_thin(head, slots);

	for (uint64_t n = 0; n < head; n += step)
		if (slot[record_pool_slot(n, slots)] != n)
			return false;
	return true;
}

/* Between half and all of the slots are in use once they were full. */
static bool is_filled(uint64_t head, uint32_t slots)
{
	uint64_t step = UINT64_C(1) << record_pool_thin(head, slots);
	uint64_t kept = (head + step - 1) / step;

	return kept <= slots && (head < slots || kept > slots / 2);
}

static void check_pool(uint32_t slots)
{
	uint64_t slot[64];
	bool complete = true, filled = true;

	memset(slot, 0xff, sizeof(slot));
	for (uint64_t n = 0; n < 5000; n++) {
		unsigned thin = record_pool_thin(n + 1, slots);

		if ((n & ((UINT64_C(1) << thin) - 1)) == 0)
			slot[record_pool_slot(n, slots)] = n;
		complete &= holds_all(slot, n + 1, slots);
		filled &= is_filled(n + 1, slots);
	}
	check_true(complete, "%u slots: each sample that counts is there",
		   slots);
	check_true(filled, "%u slots: as many as there is room for", slots);
}

static void check_pools(void)
{
	check_u64(0, record_pool_thin(0, 8), "nothing is dropped at first");
	check_u64(0, record_pool_thin(8, 8), "nor when all slots are full");
	check_u64(1, record_pool_thin(9, 8), "then every second one");
	check_u64(2, record_pool_thin(17, 8), "then three of four");
	for (uint32_t slots = 2; slots <= 64; slots *= 2)
		check_pool(slots);
	check_true(record_pool_slot(UINT64_C(1) << 60, 512) < 512,
		   "a slot after a very long run");
}

int main(void)
{
	check_buckets();
	check_top();
	check_event();
	check_mixes();
	check_times();
	check_names();
	check_pools();
	return check_done();
}
