/* SPDX-License-Identifier: MIT */
/*
 * patch_aarch64: entries.
 *
 * Sites stay: the one instruction of a system call has room for a branch, but
 * not for the register that would lead back.
 */
#include "patch.h"

#include <stddef.h>

#include "poison.h"

const char patch_by_another[] = "another library has patched it";

enum {
	WORD = 4,
	FAR = 16, /* ldr x16, .+8; br x16; the address */
	NUMBER_REGISTER = 8,
};

static const uint32_t landing_pad = 0xd503245f; /* bti c */

/* Were there landing pads?  Then libc's pages are guarded, and mprotect would
 * take the guard away. */
static bool guarded;

const char *const patch_no_sites = "entry patches only on this architecture";
const char patch_no_call[] = "there is no such call";

static uint32_t word_at(const unsigned char *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

static void put_word(struct patch_code *code, uint64_t word)
{
	for (int i = 0; i < WORD; i++)
		code->bytes[code->length++] = (unsigned char)(word >> (8 * i));
}

static bool is_call(uint32_t word)
{
	return word == 0xd4000001; /* svc #0 */
}

/* mov w8|x8, #number: which?  -1: it is something else. */
static long number_in(uint32_t word)
{
	if ((word & 0x7fe0001f) != (0x52800000 | NUMBER_REGISTER))
		return -1;
	return word >> 5 & 0xffff;
}

/* The function makes this system call and no other: as often as it is
 * compiled in (mremap has two ways to it), each after a load of its number. */
static bool calls_only(const unsigned char *body, size_t size, long number)
{
	unsigned loads = 0, calls = 0;

	for (size_t i = 0; i + WORD <= size; i += WORD) {
		uint32_t word = word_at(body + i);
		long loaded = number_in(word);

		if (loaded >= 0 && loaded != number)
			return false;
		loads += loaded >= 0;
		calls += is_call(word);
		if (calls > loads)
			return false;
	}
	return calls > 0;
}

/* A branch, a trap, a literal or a built address to branch to: somebody
 * patched before us. */
static bool is_foreign(const unsigned char *at)
{
	uint32_t first = word_at(at), second = word_at(at + WORD);

	return (first & 0xfc000000) == 0x14000000 ||  /* b */
	       (first & 0xfffffc1f) == 0xd61f0000 ||  /* br */
	       (first & 0xffe0001f) == 0xd4200000 ||  /* brk */
	       (first & 0xff000000) == 0x58000000 ||  /* ldr x, literal */
	       ((first & 0xff800000) == 0xd2800000 && /* mov x; movk x */
		(second & 0xff800000) == 0xf2800000);
}

static bool put_near(struct patch_code *code, const void *to)
{
	int64_t distance =
		(const unsigned char *)to - (code->at + code->length);

	if (distance < -(1 << 27) || distance >= 1 << 27)
		return false;
	put_word(code, 0x14000000 | ((uint64_t)distance >> 2 & 0x03ffffff));
	return true;
}

/* x16 is a scratch register between functions. */
static void put_far(struct patch_code *code, const void *to)
{
	put_word(code, 0x58000050);
	put_word(code, 0xd61f0200);
	put_word(code, (uintptr_t)to);
	put_word(code, (uint64_t)(uintptr_t)to >> 32);
}

/* bti c, or what stands for it: paciasp and pacibsp, whose signature nobody
 * will look at, as the wrapper returns to the caller itself. */
static bool is_landing_pad(uint32_t word)
{
	return word == landing_pad || word == 0xd503233f || word == 0xd503237f;
}

const char *patch_entry(unsigned char *body, size_t size, long number,
			const void *to, struct patch_code *code)
{
	bool pad = size >= WORD && is_landing_pad(word_at(body));
	size_t before = pad ? WORD : 0;

	if (size < before + 2 * WORD)
		return "its code is not known";
	if (is_foreign(body + before))
		return patch_by_another;
	if (!calls_only(body, size, number))
		return "its code is not known";
	code->at = body;
	if (pad)
		put_word(code, landing_pad);
	if (!put_near(code, to)) {
		if (size < before + FAR)
			return "it is too short and too far away";
		put_far(code, to);
	}
	guarded |= pad;
	return NULL;
}

const char *patch_sites(unsigned char *from, unsigned char *to, long number,
			uint32_t ops, struct patch_batch *batch)
{
	(void)from;
	(void)to;
	(void)number;
	(void)ops;
	(void)batch;
	return patch_no_sites;
}

bool patch_is_foreign(const unsigned char *body)
{
	return is_foreign(body);
}

const char *patch_inner_site(unsigned char *from, unsigned char *to,
			     long number, struct patch_code *code)
{
	(void)from;
	(void)to;
	(void)number;
	(void)code;
	return patch_no_sites;
}

void patch_all(const struct patch_process *process,
	       const struct elf_image *libc, struct patch_report *report)
{
	(void)process;
	(void)libc;
	patch_explain(report, LAYER_SYSCALL, NULL, patch_no_sites);
	patch_explain(report, LAYER_INLINE, NULL, patch_no_sites);
}

/* /proc leaves the pages' protection as it is. */
enum patch_way patch_way(void)
{
	return guarded ? PATCH_PROC_ONLY : PATCH_PROC_FIRST;
}

static void clean_data(uintptr_t at)
{
	__asm__ volatile("dc cvau, %0" ::"r"(at) : "memory");
}

static void drop_instructions(uintptr_t at)
{
	__asm__ volatile("ic ivau, %0" ::"r"(at) : "memory");
}

/* Line by line, the data first: log2 of the words in the shortest line of
 * either cache is in ctr_el0. */
void patch_flush(const struct patch_code *code)
{
	uintptr_t from = (uintptr_t)code->at, to = from + code->length;
	uint64_t caches;
	uintptr_t data, instructions;

	__asm__("mrs %0, ctr_el0" : "=r"(caches));
	data = (uintptr_t)WORD << (caches >> 16 & 15);
	instructions = (uintptr_t)WORD << (caches & 15);
	for (uintptr_t at = from & ~(data - 1); at < to; at += data)
		clean_data(at);
	__asm__ volatile("dsb ish" ::: "memory");
	for (uintptr_t at = from & ~(instructions - 1); at < to;
	     at += instructions)
		drop_instructions(at);
	__asm__ volatile("dsb ish\n\tisb" ::: "memory");
}
