/* SPDX-License-Identifier: MIT */
/*
 * patch_x86_64: jumps, and the stubs behind rewritten sites.
 */
#include "patch.h"

#include <errno.h>

#include "libc.h"
#include "sys.h"
#include "wrap.h"

#include "poison.h"

const char patch_by_another[] = "another library has patched it";

enum {
	JUMP_NEAR = 5,   /* e9 rel32 */
	JUMP_FAR = 14,   /* ff 25 00000000, then the address */
	LOAD_NUMBER = 5, /* b8 imm32 */
	SYSCALL = 2,     /* 0f 05 */
	SITE = LOAD_NUMBER + SYSCALL,
	LOAD_LONG = 7,   /* 48 c7 c0 imm32 */
	LANDING_PAD = 4, /* f3 0f 1e fa */
	STUB = 32,
};

const char *const patch_no_sites;
const char patch_no_call[] = "there is no such call";

/* Where each stub goes back to, and the call it makes. */
__attribute__((visibility("hidden"))) uint64_t patch_back[PATCH_SITES];
static long site_number[PATCH_SITES];
static unsigned sites;

/*
 * Stands for libc's syscall().  Frameless: SYS_vfork returns here twice, on
 * one stack, and SYS_clone on another one.  The family goes on to C, whose
 * arguments lie where this function's do.
 */
/* clang-format off */
__asm__(
"	.text\n"
"	.p2align 4\n"
"	.globl patch_syscall\n"
"	.hidden patch_syscall\n"
"	.type patch_syscall, @function\n"
"patch_syscall:\n"
"	.cfi_startproc\n"
"	lea	-9(%rdi), %rax\n"	/* mmap, mprotect, munmap, brk */
"	cmp	$3, %rax\n"
"	jbe	patch_syscall_call\n"
"	cmp	$25, %rdi\n"		/* mremap */
"	je	patch_syscall_call\n"
"	cmp	$28, %rdi\n"		/* madvise */
"	je	patch_syscall_call\n"
"	cmp	$329, %rdi\n"		/* pkey_mprotect */
"	je	patch_syscall_call\n"
"	mov	%rdi, %rax\n"
"	mov	%rsi, %rdi\n"
"	mov	%rdx, %rsi\n"
"	mov	%rcx, %rdx\n"
"	mov	%r8, %r10\n"
"	mov	%r9, %r8\n"
"	mov	8(%rsp), %r9\n"
"	syscall\n"
"	cmp	$-4095, %rax\n"
"	jae	1f\n"
"	ret\n"
"1:	mov	%rax, %rdi\n"
"	jmp	patch_syscall_failed\n"
"	.cfi_endproc\n"
"	.size patch_syscall, . - patch_syscall\n"
);
/* clang-format on */

__attribute__((visibility("hidden"), used)) long
patch_syscall_call(long number, long a, long b, long c, long d, long e, long f);
__attribute__((visibility("hidden"), used)) long
patch_syscall_failed(long result);

long patch_syscall_failed(long result)
{
	errno = (int)-result;
	return -1;
}

long patch_syscall_call(long number, long a, long b, long c, long d, long e,
			long f)
{
	const uint64_t arguments[6] = {a, b, c, d, e, f};
	long result = wrap_call(number, arguments, __builtin_return_address(0));

	return sys_failed(result) ? patch_syscall_failed(result) : result;
}

/* The registers of a system call, as the stub pushes them. */
struct site_frame {
	uint64_t rbp, index, r9, r8, r10, rdx, rsi, rdi, back;
};

/*
 * A stub takes the place of `mov $NR, %eax; syscall`, so it must leave all
 * registers but rax, rcx and r11 alone, and the 128 bytes below the stack
 * pointer too, where a compiler may keep locals.  The call frame information
 * makes it look like a function that the site called.
 */
/* clang-format off */
__asm__(
"	.text\n"
"	.p2align 5\n"
"	.globl patch_stubs\n"
"	.hidden patch_stubs\n"
"patch_stubs:\n"
"	.cfi_startproc\n"
"	.cfi_def_cfa rsp, 0\n"
"	.set patch_index, 0\n"
"	.rept 16\n" /* PATCH_SITES of STUB bytes */
"	.p2align 5\n"
"	.cfi_undefined rip\n"
"	mov	patch_back + 8 * patch_index(%rip), %r11\n"
"	.cfi_register rip, r11\n"
"	mov	$patch_index, %ecx\n"
"	jmp	patch_stub\n"
"	.set patch_index, patch_index + 1\n"
"	.endr\n"
"	.cfi_endproc\n"
"	.type patch_stubs, @function\n"
"	.size patch_stubs, . - patch_stubs\n"
"\n"
"	.p2align 4\n"
"	.type patch_stub, @function\n"
"patch_stub:\n"
"	.cfi_startproc\n"
"	.cfi_def_cfa rsp, 0\n"
"	.cfi_register rip, r11\n"
"	lea	-128(%rsp), %rsp\n"
"	.cfi_def_cfa_offset 128\n"
"	push	%r11\n"
"	.cfi_def_cfa_offset 136\n"
"	.cfi_offset rip, -136\n"
"	push	%rdi\n"
"	push	%rsi\n"
"	push	%rdx\n"
"	push	%r10\n"
"	push	%r8\n"
"	push	%r9\n"
"	push	%rcx\n"
"	.cfi_def_cfa_offset 192\n"
"	push	%rbp\n"
"	.cfi_def_cfa_offset 200\n"
"	.cfi_offset rbp, -200\n"
"	mov	%rsp, %rbp\n"
"	.cfi_def_cfa_register rbp\n"
"	mov	%rsp, %rdi\n"
"	and	$-16, %rsp\n"
"	call	patch_site_call\n"
"	mov	%rbp, %rsp\n"
"	.cfi_def_cfa_register rsp\n"
"	pop	%rbp\n"
"	.cfi_restore rbp\n"
"	.cfi_def_cfa_offset 192\n"
"	pop	%rcx\n"
"	pop	%r9\n"
"	pop	%r8\n"
"	pop	%r10\n"
"	pop	%rdx\n"
"	pop	%rsi\n"
"	pop	%rdi\n"
"	.cfi_def_cfa_offset 136\n"
"	pop	%r11\n"
"	.cfi_def_cfa_offset 128\n"
"	.cfi_register rip, r11\n"
"	lea	128(%rsp), %rsp\n"
"	.cfi_def_cfa_offset 0\n"
"	jmp	*%r11\n"
"	.cfi_endproc\n"
"	.size patch_stub, . - patch_stub\n"
);
/* clang-format on */

extern const unsigned char patch_stubs[] __attribute__((visibility("hidden")));

__attribute__((visibility("hidden"), used)) long
patch_site_call(const struct site_frame *f);

long patch_site_call(const struct site_frame *f)
{
	const uint64_t arguments[6] = {f->rdi, f->rsi, f->rdx,
				       f->r10, f->r8,  f->r9};

	if (!libc_has_thread())
		return sys_call6(site_number[f->index], (long)f->rdi,
				 (long)f->rsi, (long)f->rdx, (long)f->r10,
				 (long)f->r8, (long)f->r9);
	return wrap_call(site_number[f->index], arguments,
			 (const void *)f->back);
}

extern const unsigned char patch_syscall[]
	__attribute__((visibility("hidden")));

static bool is_at(const unsigned char *at, const char *bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (at[i] != (unsigned char)bytes[i])
			return false;
	return true;
}

static bool is_site(const unsigned char *at, long number)
{
	const char load[LOAD_NUMBER] = {(char)0xb8, (char)number,
					(char)(number >> 8), 0, 0};

	return is_at(at, load, LOAD_NUMBER) &&
	       is_at(at + LOAD_NUMBER, "\x0f\x05", SYSCALL);
}

/* High bits where the eight bytes at `at` may be `byte`: none is missed. */
static inline uint64_t where(const unsigned char *at, uint64_t byte)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t word, zero;

	__builtin_memcpy(&word, at, 8);
	zero = word ^ ones * byte;
	return (zero - ones) & ~zero & ones * 0x80;
}

/* Where the next system call instruction begins at or after `at`, or `to`.
 * Eight places at a time: the loader's text has 150 KiB, and every program's
 * start pays. */
static unsigned char *next_syscall(unsigned char *at, unsigned char *to)
{
	for (; to - at > 8; at += 8) {
		if ((where(at, 0x0f) & where(at + 1, 0x05)) == 0)
			continue;
		for (int i = 0; i < 8; i++)
			if (is_at(at + i, "\x0f\x05", SYSCALL))
				return at + i;
	}
	for (; to - at >= SYSCALL; at++)
		if (is_at(at, "\x0f\x05", SYSCALL))
			return at;
	return to;
}

/*
 * The system calls of the code that was looked at last.  The loader's is asked
 * about several numbers, and looking through it is most of what patching costs.
 */
static struct {
	const unsigned char *from, *to;
	unsigned char *at[256];
	unsigned count;
} seen;

static void look_through(unsigned char *from, unsigned char *to)
{
	unsigned char *at = from;

	if (seen.from == from && seen.to == to)
		return;
	seen.from = from;
	seen.to = to;
	seen.count = 0;
	while ((at = next_syscall(at, to)) < to &&
	       seen.count < sizeof(seen.at) / sizeof(seen.at[0])) {
		seen.at[seen.count++] = at;
		at += SYSCALL;
	}
}

/* Finds the sites of `number`, PATCH_SITES at most, and returns how many there
 * are; one more than that: there may be any number. */
static unsigned find_sites(unsigned char *from, unsigned char *to, long number,
			   unsigned char *found[PATCH_SITES])
{
	unsigned count = 0;

	look_through(from, to);
	for (unsigned i = 0; i < seen.count; i++) {
		unsigned char *at = seen.at[i] - LOAD_NUMBER;

		if (seen.at[i] - from < LOAD_NUMBER || !is_site(at, number))
			continue;
		if (count == PATCH_SITES)
			return count + 1;
		found[count++] = at;
	}
	return seen.count < sizeof(seen.at) / sizeof(seen.at[0])
		       ? count
		       : PATCH_SITES + 1;
}

/* A jump, a trap or a push-and-return: somebody patched before us. */
static bool is_foreign(const unsigned char *at)
{
	return *at == 0xe9 || *at == 0xeb || *at == 0xcc || *at == 0x68 ||
	       is_at(at, "\xff\x25", 2) || is_at(at, "\x49\xbb", 2) ||
	       (is_at(at, "\x48\xb8", 2) && is_at(at + 10, "\xff\xe0", 2));
}

static void put_byte(struct patch_code *code, uint64_t byte)
{
	code->bytes[code->length++] = (unsigned char)byte;
}

static bool put_near(struct patch_code *code, const void *to)
{
	int64_t distance = (const unsigned char *)to -
			   (code->at + code->length + JUMP_NEAR);

	if (distance != (int32_t)distance)
		return false;
	put_byte(code, 0xe9);
	for (int i = 0; i < 4; i++)
		put_byte(code, (uint64_t)distance >> (8 * i));
	return true;
}

static void put_far(struct patch_code *code, const void *to)
{
	put_byte(code, 0xff);
	put_byte(code, 0x25);
	for (int i = 0; i < 4; i++)
		put_byte(code, 0);
	for (int i = 0; i < 8; i++)
		put_byte(code, (uintptr_t)to >> (8 * i));
}

const char *patch_entry(unsigned char *body, size_t size, long number,
			const void *to, struct patch_code *code)
{
	unsigned char *at = body, *found[PATCH_SITES];

	if (size >= LANDING_PAD && is_at(at, "\xf3\x0f\x1e\xfa", LANDING_PAD))
		at += LANDING_PAD; /* stays where indirect jumps land */
	if (is_foreign(at))
		return patch_by_another;
	/* One more where it tries low addresses for code first. */
	if (find_sites(at, body + size, number, found) == 0)
		return "its code is not known";
	code->at = at;
	if (put_near(code, to))
		return NULL;
	if ((size_t)(body + size - at) < JUMP_FAR)
		return "it is too short and too far away";
	put_far(code, to);
	return NULL;
}

/* Makes the site `code` go to the next stub, through `hop` when that is not
 * NULL, and from there to behind its system call.  The call itself stays, for
 * code that jumps to it. */
static const char *lead_to_stub(struct patch_code *code,
				const unsigned char *syscall_at, long number,
				const void *hop)
{
	if (sites == PATCH_SITES)
		return "there are too many";
	if (!put_near(code, hop != NULL ? hop : patch_stubs + STUB * sites))
		return "it is too far away";
	patch_back[sites] = (uintptr_t)syscall_at + SYSCALL;
	site_number[sites] = number;
	sites++;
	return NULL;
}

const char *patch_sites(unsigned char *from, unsigned char *to, long number,
			uint32_t ops, struct patch_batch *batch)
{
	const unsigned had_sites = sites, had_codes = batch->count;
	unsigned char *found[PATCH_SITES];
	unsigned count = find_sites(from, to, number, found);
	const char *why = NULL;

	if (count == 0)
		return "its code is not known";
	if (count > PATCH_SITES || batch->count + count > PATCH_MOST)
		return "its code has too many such calls";
	for (unsigned i = 0; i < count && why == NULL; i++) {
		struct patch_code code = {.at = found[i]};

		why = lead_to_stub(&code, found[i] + LOAD_NUMBER, number, NULL);
		patch_add(batch, &code, ops);
	}
	if (why != NULL) {
		sites = had_sites;
		batch->count = had_codes;
	}
	return why;
}

/* --- sites with moves in them --- */

/* Is register `field` of a ModRM byte, with the bit of REX that extends it,
 * rax? */
static bool is_rax(unsigned field, unsigned extension)
{
	return (field & 7) == 0 && !extension;
}

/* mov, movsxd, add, or, and, sub, xor between two registers. */
static bool moves_registers(unsigned char code)
{
	static const unsigned char known[] = {0x89, 0x8b, 0x63, 0x01, 0x03,
					      0x09, 0x0b, 0x21, 0x23, 0x29,
					      0x2b, 0x31, 0x33};

	for (unsigned i = 0; i < sizeof(known); i++)
		if (code == known[i])
			return true;
	return false;
}

/* Bytes behind the first of an instruction that has a number for a register
 * that is not rax: its ModRM byte and the number; 0: it is something else. */
static unsigned number_length(unsigned char code, unsigned modrm)
{
	switch (code) {
	case 0x83: /* add, or, and, sub, xor; the others go by flags */
		return 0x73 >> (modrm >> 3 & 7) & 1 ? 2 : 0;
	case 0x81:
		return 0x73 >> (modrm >> 3 & 7) & 1 ? 5 : 0;
	case 0xc7: /* mov */
		return (modrm >> 3 & 7) == 0 ? 5 : 0;
	default:
		return 0;
	}
}

/*
 * Bytes of the instruction at `at`, if it works on registers alone, none of
 * them rax: it then does the same with another value in rax, and at another
 * place.  0: it is something else.
 */
static unsigned move_length(const unsigned char *at, const unsigned char *to)
{
	unsigned rex = (*at & 0xf0) == 0x40 ? *at : 0;
	unsigned before = rex != 0, modrm, rest;
	unsigned char code;

	if (to - at < 3)
		return 0;
	code = at[before];
	modrm = at[before + 1];
	/* mov of a number, its register in the instruction's first byte */
	if ((code & 0xf8) == 0xb8 && !is_rax(code, rex & 1) && !(rex & 8))
		return before + 5;
	if (modrm >> 6 != 3 || is_rax(modrm, rex & 1))
		return 0;
	if (moves_registers(code))
		return is_rax(modrm >> 3, rex & 4) ? 0 : before + 2;
	rest = number_length(code, modrm);
	return rest != 0 ? before + 1 + rest : 0;
}

static bool loads_number(const unsigned char *at, const unsigned char *to,
			 long number)
{
	const char load[LOAD_NUMBER] = {(char)0xb8, (char)number,
					(char)(number >> 8), 0, 0};

	return to - at >= SITE && is_at(at, load, LOAD_NUMBER);
}

/* The system call of the site whose number is loaded at `at`; NULL: it is
 * none. */
static unsigned char *site_end(unsigned char *at, const unsigned char *to,
			       long number)
{
	unsigned length = LOAD_NUMBER;

	if (!loads_number(at, to, number))
		return NULL;
	for (at += length; length != 0 && to - at >= SYSCALL; at += length) {
		if (is_at(at, "\x0f\x05", SYSCALL))
			return at;
		length = move_length(at, to);
	}
	return NULL;
}

static int32_t number_at(const unsigned char *at)
{
	return (int32_t)(at[0] | at[1] << 8 | at[2] << 16 |
			 (uint32_t)at[3] << 24);
}

/* Could any bytes of the function jump into (from, to)?  Yes, too, when they
 * only look like it. */
static bool is_jumped_into(const unsigned char *body, const unsigned char *end,
			   const unsigned char *from, const unsigned char *to)
{
	for (; end - body >= 2; body++) {
		const unsigned char *target = NULL;

		if (body[0] == 0xeb || (body[0] & 0xf0) == 0x70)
			target = body + 2 + (signed char)body[1];
		else if (body[0] == 0xe9 && end - body >= JUMP_NEAR)
			target = body + JUMP_NEAR + number_at(body + 1);
		else if (body[0] == 0x0f && (body[1] & 0xf0) == 0x80 &&
			 end - body >= JUMP_NEAR + 1)
			target = body + JUMP_NEAR + 1 + number_at(body + 2);
		if (target != NULL && target > from && target < to)
			return true;
	}
	return false;
}

/* The moves keep their order and come first; the number is loaded last, by
 * the stub. */
static const char *keep_moves(unsigned char *at, const unsigned char *call,
			      long number, struct patch_code *code)
{
	const unsigned char *move = at + LOAD_NUMBER;

	if (call - move > PATCH_BYTES - JUMP_NEAR)
		return "its code is not known";
	code->at = at;
	while (move < call)
		put_byte(code, *move++);
	return lead_to_stub(code, call, number, NULL);
}

bool patch_is_foreign(const unsigned char *body)
{
	return is_foreign(is_at(body, "\xf3\x0f\x1e\xfa", LANDING_PAD)
				  ? body + LANDING_PAD
				  : body);
}

const char *patch_inner_site(unsigned char *from, unsigned char *to,
			     long number, struct patch_code *code)
{
	unsigned char *found = NULL, *call = NULL;
	bool is_loaded = false;

	for (unsigned char *at = from; at < to; at++) {
		unsigned char *end = site_end(at, to, number);

		is_loaded |= loads_number(at, to, number);
		if (end == NULL)
			continue;
		if (found != NULL)
			return "its code has several such calls";
		found = at;
		call = end;
	}
	if (!is_loaded)
		return patch_no_call;
	if (found == NULL || is_jumped_into(from, to, found, call))
		return "its code is not known";
	return keep_moves(found, call, number, code);
}

/* --- hooks=all --- */

const char *patch_syscall_entry(unsigned char *body, size_t size,
				struct patch_code *code)
{
	static const char known[] = "\x48\x89\xf8\x48\x89\xf7\x48\x89\xd6"
				    "\x48\x89\xca\x4d\x89\xc2\x4d\x89\xc8"
				    "\x4c\x8b\x4c\x24\x08\x0f\x05";
	unsigned char *at = body;

	if (size >= LANDING_PAD && is_at(at, "\xf3\x0f\x1e\xfa", LANDING_PAD))
		at += LANDING_PAD;
	if (is_foreign(at))
		return patch_by_another;
	if ((size_t)(body + size - at) < sizeof(known) - 1 ||
	    !is_at(at, known, sizeof(known) - 1))
		return "its code is not known";
	code->at = at;
	if (!put_near(code, patch_syscall))
		put_far(code, patch_syscall);
	return NULL;
}

/* Bytes of `mov $NR, %eax` or `mov $NR, %rax` before a system call at `at`; 0:
 * there is none. */
static unsigned load_before(const unsigned char *at, const unsigned char *to,
			    long *number)
{
	unsigned load = 0, operand = 0;

	if (to - at >= SITE && at[0] == 0xb8 &&
	    is_at(at + LOAD_NUMBER, "\x0f\x05", SYSCALL)) {
		load = LOAD_NUMBER;
		operand = 1;
	} else if (to - at >= LOAD_LONG + SYSCALL &&
		   is_at(at, "\x48\xc7\xc0", 3) &&
		   is_at(at + LOAD_LONG, "\x0f\x05", SYSCALL)) {
		load = LOAD_LONG;
		operand = 3;
	}
	if (load == 0)
		return 0;
	*number = (uint32_t)number_at(at + operand);
	return wrap_op(*number) == OP_COUNT ? 0 : load;
}

/* Is some number, of any call, loaded right before the call at `at`? */
static bool is_loaded_before(const unsigned char *from, const unsigned char *at)
{
	return (at - from >= LOAD_NUMBER && at[-LOAD_NUMBER] == 0xb8) ||
	       (at - from >= LOAD_LONG &&
		is_at(at - LOAD_LONG, "\x48\xc7\xc0", 3));
}

unsigned patch_inline_count(unsigned char *from, unsigned char *to,
			    unsigned *others)
{
	unsigned char *at = from;
	unsigned count = 0;
	long number;

	*others = 0;
	while ((at = next_syscall(at, to)) < to) {
		if (!is_loaded_before(from, at))
			++*others;
		at += SYSCALL;
	}
	for (; from < to; from++)
		count += load_before(from, to, &number) != 0;
	return count;
}

unsigned char *patch_inline(unsigned char *from, unsigned char *to,
			    unsigned char *hop, struct patch_code *code,
			    enum op *op)
{
	struct patch_code jump = {.at = hop};
	long number;

	for (; from < to; from++) {
		unsigned load = load_before(from, to, &number);

		if (load == 0)
			continue;
		put_far(&jump, patch_stubs + STUB * sites);
		code->at = from;
		if (lead_to_stub(code, from + load, number, hop) != NULL)
			return NULL;
		for (unsigned i = 0; i < jump.length; i++)
			hop[i] = jump.bytes[i];
		*op = wrap_op(number);
		return from + load;
	}
	return NULL;
}

enum patch_way patch_way(void)
{
	return PATCH_IN_PLACE_FIRST; /* the quickest */
}

void patch_flush(const struct patch_code *code)
{
	(void)code; /* the caches are coherent, and the next jump serialises */
}
