/* SPDX-License-Identifier: MIT */
/* Which code of a libc and a loader is led to the gate. */
#include "check.h"

#if defined(__x86_64__)

#include "libc.h"
#include "patch.h"
#include "wrap.h"

extern uint64_t patch_back[PATCH_SITES];

enum { MMAP = 9, MUNMAP = 11, TEXT = 1024 };

long wrap_call(long number, const uint64_t arguments[6], const void *caller)
{
	(void)arguments;
	(void)caller;
	return number;
}

bool libc_has_thread(void)
{
	return true;
}

enum op wrap_op(long number)
{
	return number == MMAP ? OP_MMAP : OP_COUNT;
}

void patch_add(struct patch_batch *batch, const struct patch_code *code,
	       uint32_t ops)
{
	batch->ops[batch->count] = (uint8_t)ops;
	batch->codes[batch->count++] = *code;
}

static unsigned char text[TEXT];

/* mov $NUMBER, %eax; syscall */
static void put_site(unsigned at, unsigned char number)
{
	const unsigned char site[] = {0xb8, number, 0, 0, 0, 0x0f, 0x05};

	memcpy(text + at, site, sizeof(site));
}

static void test_sites(void)
{
	struct patch_batch batch = {.layer = LAYER_LOADER};
	unsigned i;

	for (i = 0; i < TEXT; i++)
		text[i] = 0x90;
	put_site(100, MMAP);
	put_site(200, MUNMAP);
	put_site(300, MMAP); /* as in glibc 2.41's loader */
	check_true(!patch_sites(text, text + TEXT, MMAP, 1, &batch),
		   "two calls of one kind are both caught");
	check_u64(2, batch.count, "with two changes");
	check_true(batch.codes[0].at == text + 100 &&
			   batch.codes[1].at == text + 300,
		   "where they are");
	check_true(patch_back[0] == (uintptr_t)text + 107 &&
			   patch_back[1] == (uintptr_t)text + 307,
		   "and a stub each that goes back behind its own call");
	check_true(!patch_sites(text, text + TEXT, MUNMAP, 2, &batch) &&
			   batch.count == 3 && batch.ops[2] == 2,
		   "others are found beside them");
	check_true(patch_sites(text, text + TEXT, 28, 4, &batch) &&
			   batch.count == 3,
		   "none: it is said, and nothing is added");
	for (i = 0; i < PATCH_SITES; i++)
		put_site(400 + 10 * i, MMAP);
	/* Another end: what was looked through last is not looked at again. */
	check_true(patch_sites(text, text + TEXT - 1, MMAP, 1, &batch) &&
			   batch.count == 3,
		   "too many: it is said, and none is changed");
	check_true(!patch_sites(text, text + TEXT, MUNMAP, 2, &batch) &&
			   patch_back[3] == (uintptr_t)text + 207,
		   "nor is a stub lost to them");
}

static void test_entry(void)
{
	struct patch_code code = {0};
	unsigned i;

	for (i = 0; i < TEXT; i++)
		text[i] = 0x90;
	put_site(20, MMAP);
	put_site(60, MMAP);
	check_true(!patch_entry(text, 100, MMAP, text + 500, &code) &&
			   code.at == text && code.bytes[0] == 0xe9,
		   "a function that makes its call in two places is known");
	check_true(patch_entry(text, 100, MUNMAP, text + 500, &code) != NULL,
		   "one that makes another call is not");
}

int main(void)
{
	test_sites();
	test_entry();
	return check_done();
}

#else

int main(void)
{
	return check_done(); /* no sites are rewritten here */
}

#endif
