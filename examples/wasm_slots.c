/* SPDX-License-Identifier: MIT */
/*
 * wasm_slots: short-lived instances in slots of reserved address space.
 *
 * WebAssembly hosts reserve some GiB for each instance's memory, so that no
 * access needs a check, make a little of it usable, grow it on demand, and
 * reset the slot for the next instance.  The instances share nothing, yet
 * each grow takes the lock of the one address space they all live in.
 */
#include "common.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define SLOTS 4
#define SLOT_BYTES ((size_t)UINT64_C(4294967296))
#define GROW_BYTES ((size_t)64 * 1024)
#define GROWS 4

static const char *const variant_names[] = {"madvise", "remap", "fresh", NULL};
enum { VARIANT_MADVISE, VARIANT_REMAP, VARIANT_FRESH };

static unsigned int variant;
static size_t page_bytes;

static char *reserve(void *at, size_t bytes, int fixed)
{
	char *slot;

	common_enter_call();
	slot = mmap(at, bytes, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
	common_leave_call();
	if (slot == MAP_FAILED)
		common_fail("mmap of %zu bytes without access: %s, give fewer "
			    "threads with -t",
			    bytes, strerror(errno));
	return slot;
}

static void release(char *slot)
{
	int result;

	common_enter_call();
	result = munmap(slot, SLOT_BYTES);
	common_leave_call();
	if (result)
		common_fail("munmap of a slot: %s", strerror(errno));
}

static void protect(char *memory, size_t bytes, int prot)
{
	int result;

	common_enter_call();
	result = mprotect(memory, bytes, prot);
	common_leave_call();
	if (result)
		common_fail("mprotect of %zu bytes to %d: %s", bytes, prot,
			    strerror(errno));
}

static void forget(char *memory, size_t bytes)
{
	int result;

	common_enter_call();
	result = madvise(memory, bytes, MADV_DONTNEED);
	common_leave_call();
	if (result)
		common_fail("madvise of %zu bytes: %s", bytes, strerror(errno));
}

static volatile uint64_t *word_at(char *memory, size_t at)
{
	return (volatile uint64_t *)(void *)(memory + at);
}

/* An instance must find nothing of the one before it. */
static void use_memory(char *memory, size_t from, size_t to, uint64_t value)
{
	for (size_t at = from; at < to; at += page_bytes) {
		volatile uint64_t *word = word_at(memory, at);

		if (*word)
			common_fail("fresh memory holds %#" PRIx64, *word);
		*word = value + at;
	}
}

static void check_memory(char *memory, size_t bytes, uint64_t value)
{
	for (size_t at = 0; at < bytes; at += page_bytes) {
		uint64_t found = *word_at(memory, at);

		if (found != value + at)
			common_fail("memory holds %#" PRIx64 ", not %#" PRIx64
				    " as written",
				    found, value + at);
	}
}

static void run_instance(char *memory, uint64_t value)
{
	size_t used = 0;

	for (int grow = 0; grow < GROWS; grow++) {
		protect(memory + used, GROW_BYTES, PROT_READ | PROT_WRITE);
		use_memory(memory, used, used + GROW_BYTES, value);
		used += GROW_BYTES;
	}
	check_memory(memory, used, value);
}

static void reset(char *memory)
{
	size_t used = GROWS * GROW_BYTES;

	if (variant == VARIANT_REMAP) {
		reserve(memory, used, MAP_FIXED);
		return;
	}
	forget(memory, used);
	protect(memory, used, PROT_NONE);
}

static void use_fresh_slot(uint64_t value)
{
	char *slot = reserve(NULL, SLOT_BYTES, 0);

	run_instance(slot, value);
	release(slot);
}

static void work(struct common_worker *worker)
{
	uint64_t value = ((uint64_t)worker->index + 1) << 40;
	char *slots[SLOTS];
	int count = variant == VARIANT_FRESH ? 0 : SLOTS;

	for (int i = 0; i < count; i++)
		slots[i] = reserve(NULL, SLOT_BYTES, 0);
	while (common_more(worker)) {
		value += SLOT_BYTES;
		if (!count) {
			use_fresh_slot(value);
			continue;
		}
		run_instance(slots[worker->done % SLOTS], value);
		reset(slots[worker->done % SLOTS]);
	}
	for (int i = 0; i < count; i++)
		release(slots[i]);
}

static void take_option(int letter, const char *value)
{
	variant = common_choice(letter, value, variant_names);
}

/* clang-format off */
static const struct common_spec spec = {
	.name = "wasm_slots",
	.about =
"Each thread reserves 4 slots of 4 GiB without access and runs one instance a\n"
"loop, in each slot in turn: it makes 64 KiB usable and writes to each page of\n"
"them, 4 times, checks all of it, and resets the slot.\n"
"Calls: 4 mprotect a loop to grow, and to reset 1 madvise and 1 mprotect\n"
"(madvise), 1 mmap (remap), or 1 mmap and 1 munmap (fresh); 4 mmap and 4\n"
"munmap a thread, except with fresh.\n",
	.letters = "v:",
	.usage = " [-v VARIANT]",
	.options =
"  -v VARIANT   how a slot is reset:\n"
"               madvise: its pages are given back and protected (default)\n"
"               remap: memory without access is mapped over its pages\n"
"               fresh: it is unmapped, and each instance reserves anew\n",
	.example = "-t 4 -d 2.5 -v remap",
	.option = take_option,
	.threads = 8,
	.iterations = 2000,
	.mutex = true,
};
/* clang-format on */

int main(int argc, char **argv)
{
	struct common_usage usage;

	common_start(&spec, argc, argv);
	page_bytes = common_page_size();
	printf("wasm_slots: %s of an instance of %zu KiB, reset by %s\n\n",
	       common_size(), GROWS * GROW_BYTES / 1024,
	       variant_names[variant]);
	common_run(work, &usage);
	common_print_usage(&usage);
	return common_finish(usage.ops, usage.elapsed_s);
}
