/* SPDX-License-Identifier: MIT */
/*
 * patch_all: what hooks=all patches beside libc and the loader.
 */
#include "patch.h"

#include <sys/mman.h>

#include "sys.h"

#include "poison.h"

enum { PAGE = 4096 };

static void patch_syscall_function(const struct patch_process *process,
				   const struct elf_image *libc,
				   struct patch_report *report)
{
	struct patch_batch batch = {.layer = LAYER_SYSCALL};
	struct patch_code code = {0};
	size_t size = 0;
	unsigned char *body = elf_symbol(libc, "syscall", &size);
	const char *why = body == NULL ? "there is no such function"
				       : patch_syscall_entry(body, size, &code);

	if (why == NULL) {
		patch_add(&batch, &code, OPS_ALL);
		why = patch_write(&batch, process);
	}
	if (why != NULL)
		patch_explain(report, LAYER_SYSCALL, NULL, why);
	else
		report->ops[LAYER_SYSCALL] = OPS_ALL;
}

/* A page for jumps, near enough to the program's text for theirs to reach. */
static unsigned char *map_near(uintptr_t to)
{
	enum { STEP = 16 << 20, TRIES = 64, NO_REPLACE = 0x100000 };

	for (uintptr_t i = 1; i <= TRIES; i++) {
		uintptr_t at = (to + i * STEP) & ~(uintptr_t)(PAGE - 1);
		long page = sys_mmap(
			(const void *)at, PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | NO_REPLACE, -1, 0);

		if (page == (long)at)
			return (unsigned char *)page;
		if (!sys_failed(page)) /* a kernel without NO_REPLACE */
			sys_munmap((const void *)page, PAGE);
	}
	return NULL;
}

static void plan_inline(unsigned char *from, unsigned char *to,
			unsigned char *hops, struct patch_batch *batch,
			struct patch_report *report)
{
	while (batch->count < PATCH_MOST) {
		struct patch_code code = {0};
		enum op op;

		from = patch_inline(from, to, hops + batch->count * PATCH_BYTES,
				    &code, &op);
		if (from == NULL)
			return;
		patch_add(batch, &code, 1u << op);
		report->ops[LAYER_INLINE] |= (uint8_t)(1u << op);
	}
}

static void patch_program(const struct patch_process *process,
			  struct patch_report *report)
{
	struct patch_batch batch = {.layer = LAYER_INLINE};
	uintptr_t from, to;
	unsigned char *hops;
	const char *why;
	unsigned count, others;

	if (!elf_program_text(process->headers, process->header_count, &from,
			      &to)) {
		patch_explain(report, LAYER_INLINE, NULL,
			      "its text was not found");
		return;
	}
	/* As a Go program without C: its thread pointer is its own, too. */
	if (!elf_program_needs(process->headers, process->header_count)) {
		patch_explain(report, LAYER_INLINE, NULL,
			      "the program does not use libc");
		return;
	}
	count = patch_inline_count((unsigned char *)from, (unsigned char *)to,
				   &others);
	if (others > 0)
		patch_explain(report, LAYER_INLINE, NULL,
			      "some have no number right before them");
	if (count == 0 && others == 0)
		patch_explain(report, LAYER_INLINE, NULL,
			      "the program has none");
	if (count == 0)
		return;
	hops = map_near(to);
	if (hops == NULL) {
		patch_explain(report, LAYER_INLINE, NULL,
			      "no room near its text");
		return;
	}
	plan_inline((unsigned char *)from, (unsigned char *)to, hops, &batch,
		    report);
	if (batch.count < count)
		patch_explain(report, LAYER_INLINE, NULL, "there are too many");
	why = sys_mprotect(hops, PAGE, PROT_READ | PROT_EXEC) != 0
		      ? "this system forbids new code"
		      : patch_write(&batch, process);
	if (why != NULL) {
		report->ops[LAYER_INLINE] = 0;
		patch_explain(report, LAYER_INLINE, NULL, why);
	}
}

void patch_all(const struct patch_process *process,
	       const struct elf_image *libc, struct patch_report *report)
{
	patch_syscall_function(process, libc, report);
	patch_program(process, report);
}
