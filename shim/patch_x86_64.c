/* SPDX-License-Identifier: MIT */
/*
 * patch_x86_64: jumps, and the stubs behind rewritten sites.
 */
#include "patch.h"

#include <errno.h>

#include "sys.h"
#include "wrap.h"

#include "poison.h"

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

/* The only site of `number`, or NULL; *count says how many there are. */
static unsigned char *find_site(unsigned char *from, unsigned char *to,
				long number, int *count)
{
	unsigned char *found = NULL;

	look_through(from, to);
	*count = 0;
	for (unsigned i = 0; i < seen.count; i++) {
		unsigned char *at = seen.at[i] - LOAD_NUMBER;

		if (seen.at[i] - from >= LOAD_NUMBER && is_site(at, number)) {
			found = at;
			++*count;
		}
	}
	return *count == 1 ? found : NULL;
}

/* A jump, a trap or a push-and-return: somebody patched before us. */
static bool is_foreign(const unsigned char *at)
{
	return *at == 0xe9 || *at == 0xeb || *at == 0xcc || *at == 0x68 ||
	       is_at(at, "\xff\x25", 2) || is_at(at, "\x49\xbb", 2) ||
	       (is_at(at, "\x48\xb8", 2) && is_at(at + 10, "\xff\xe0", 2));
}

static bool put_near(struct patch_code *code, const void *to)
{
	int64_t distance = (const unsigned char *)to - (code->at + JUMP_NEAR);

	if (distance != (int32_t)distance)
		return false;
	code->length = JUMP_NEAR;
	code->bytes[0] = 0xe9;
	for (int i = 0; i < 4; i++)
		code->bytes[1 + i] =
			(unsigned char)((uint64_t)distance >> (8 * i));
	return true;
}

static void put_far(struct patch_code *code, const void *to)
{
	code->length = JUMP_FAR;
	code->bytes[0] = 0xff;
	code->bytes[1] = 0x25;
	for (int i = 2; i < 6; i++)
		code->bytes[i] = 0;
	for (int i = 0; i < 8; i++)
		code->bytes[6 + i] = (unsigned char)((uintptr_t)to >> (8 * i));
}

const char *patch_entry(unsigned char *body, size_t size, long number,
			const void *to, struct patch_code *code)
{
	unsigned char *at = body;
	int count;

	if (size >= LANDING_PAD && is_at(at, "\xf3\x0f\x1e\xfa", LANDING_PAD))
		at += LANDING_PAD; /* stays where indirect jumps land */
	if (is_foreign(at))
		return "another library has patched it";
	if (find_site(at, body + size, number, &count) == NULL)
		return "its code is not known";
	code->at = at;
	if (put_near(code, to))
		return NULL;
	if ((size_t)(body + size - at) < JUMP_FAR)
		return "it is too short and too far away";
	put_far(code, to);
	return NULL;
}

/* Makes the site whose number is loaded at `at` go to the next stub, through
 * `hop` when that is not NULL.  The system call itself stays, for code that
 * jumps to it. */
static const char *lead_to_stub(unsigned char *at, unsigned load, long number,
				const void *hop, struct patch_code *code)
{
	if (sites == PATCH_SITES)
		return "there are too many";
	code->at = at;
	if (!put_near(code, hop != NULL ? hop : patch_stubs + STUB * sites))
		return "it is too far away";
	patch_back[sites] = (uintptr_t)at + load + SYSCALL;
	site_number[sites] = number;
	sites++;
	return NULL;
}

const char *patch_site(unsigned char *from, unsigned char *to, long number,
		       struct patch_code *code)
{
	int count;
	unsigned char *at = find_site(from, to, number, &count);

	if (at == NULL)
		return count == 0 ? "its code is not known"
				  : "its code has several such calls";
	return lead_to_stub(at, LOAD_NUMBER, number, NULL, code);
}

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
		return "another library has patched it";
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
	*number = at[operand] | at[operand + 1] << 8 | at[operand + 2] << 16 |
		  (long)at[operand + 3] << 24;
	return wrap_op(*number) == OP_COUNT ? 0 : load;
}

unsigned patch_inline_count(const unsigned char *from, const unsigned char *to)
{
	unsigned count = 0;
	long number;

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
		if (lead_to_stub(from, load, number, hop, code) != NULL)
			return NULL;
		for (unsigned i = 0; i < jump.length; i++)
			hop[i] = jump.bytes[i];
		*op = wrap_op(number);
		return from + load;
	}
	return NULL;
}

void patch_flush(const struct patch_code *code)
{
	(void)code; /* the caches are coherent, and the next jump serialises */
}
