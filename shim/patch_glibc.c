/* SPDX-License-Identifier: MIT */
/*
 * patch_glibc: entries of libc's functions, and sites in brk and the loader.
 */
#include "patch.h"

#include "sys.h"
#include "wrap.h"

#include "poison.h"

const char patch_brk_probe[] = "brk";
const uint8_t patch_by_own = OPS_ALL & ~(1u << OP_BRK);
const uint8_t patch_loader_by_libc = 0;

static void plan_entries(const struct elf_image *libc,
			 struct patch_batch *batch, struct patch_report *report)
{
	const unsigned char *last = NULL;

	for (unsigned i = 0; i < WRAP_ENTRIES; i++) {
		const struct wrap_entry *e = &wrap_entries[i];
		struct patch_code code = {0};
		size_t size = 0;
		unsigned char *body = elf_symbol(libc, e->symbol, &size);
		const char *why;

		/* None in an old libc: nobody calls it.  A second name for one
		 * function follows the first. */
		if (body == NULL || body == last)
			continue;
		last = body;
		why = patch_entry(body, size, e->number, wrap_functions[i],
				  &code);
		if (why == patch_by_another)
			report->foreign |= (uint8_t)(1u << e->op);
		if (why != NULL) {
			patch_explain(report, LAYER_LIBC, e->symbol, why);
			continue;
		}
		patch_add(batch, &code, 1u << e->op);
		report->ops[LAYER_LIBC] |= (uint8_t)(1u << e->op);
	}
}

static void plan_brk(const struct elf_image *libc, struct patch_batch *batch,
		     struct patch_report *report)
{
	size_t size = 0;
	unsigned char *body = elf_symbol(libc, "brk", &size);
	const char *why = "there is no such function";

	if (body != NULL)
		why = patch_sites(body, body + size, __NR_brk, 1u << OP_BRK,
				  batch);
	if (why != NULL) {
		patch_explain(report, LAYER_LIBC, "brk", why);
		return;
	}
	report->ops[LAYER_LIBC] |= 1u << OP_BRK;
}

void patch_plan_libc(const struct elf_image *libc, struct patch_batch *batch,
		     struct patch_report *report)
{
	plan_entries(libc, batch, report);
	plan_brk(libc, batch, report);
}

void patch_libc_done(const struct patch_report *report)
{
	(void)report; /* the wrappers are all there is now */
}

void patch_loader(const struct patch_process *process,
		  struct patch_report *report)
{
	static const long numbers[] = {__NR_mmap, __NR_munmap, __NR_mprotect};
	struct patch_batch batch = {.layer = LAYER_LOADER};
	struct elf_image loader;
	const char *why;

	if (patch_no_sites != NULL) {
		patch_explain(report, LAYER_LOADER, NULL, patch_no_sites);
		return;
	}
	if (process->loader == NULL || !elf_read(process->loader, &loader) ||
	    loader.text == 0) {
		patch_explain(report, LAYER_LOADER, NULL, "it was not found");
		return;
	}
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		enum op op = wrap_op(numbers[i]);

		why = patch_sites((unsigned char *)loader.text,
				  (unsigned char *)loader.text_end, numbers[i],
				  1u << op, &batch);
		if (why != NULL) {
			patch_explain(report, LAYER_LOADER, op_name(op), why);
			continue;
		}
		report->ops[LAYER_LOADER] |= (uint8_t)(1u << op);
	}
	why = patch_write(&batch, process);
	if (why != NULL) {
		report->ops[LAYER_LOADER] = 0;
		patch_explain(report, LAYER_LOADER, NULL, why);
	}
}
