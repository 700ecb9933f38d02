/* SPDX-License-Identifier: MIT */
/*
 * patch_musl: sites in libc's functions.
 *
 * The functions stay in force, as they do more than the call.  For munmap only
 * the function of that name is searched: musl ends a detached thread by an
 * munmap of the stack that it stands on, which must not come to code in C.
 */
#include "patch.h"

#include "sys.h"
#include "wrap.h"

#include "poison.h"

/* How far from a function the others of its file are looked for. */
enum { BEFORE = 16384, BEHIND = 8192 };

const char patch_brk_probe[] = "sbrk"; /* brk() always fails */
const uint8_t patch_by_own = 0;
const uint8_t patch_loader_by_libc =
	1u << OP_MMAP | 1u << OP_MUNMAP | 1u << OP_MPROTECT;

/* Why the loader's own mprotect stays as it is, or NULL. */
static const char *why_not_loader;

/* What the wrappers may go on to, once it leads to the gate. */
static void *functions[WRAP_ENTRIES];

static void plan_functions(const struct elf_image *libc,
			   struct patch_batch *batch,
			   struct patch_report *report)
{
	for (unsigned i = 0; i < WRAP_ENTRIES; i++) {
		const struct wrap_entry *e = &wrap_entries[i];
		struct patch_code code = {0};
		size_t size = 0;
		unsigned char *body = elf_symbol(libc, e->symbol, &size);
		const char *why;

		if (body == NULL || i == WRAP_ENTRY_mmap64)
			continue; /* mmap by another name */
		why = patch_is_foreign(body)
			      ? patch_by_another
			      : patch_inner_site(body, body + size, e->number,
						 &code);
		if (why != NULL) {
			patch_explain(report, LAYER_LIBC, e->symbol, why);
			continue;
		}
		patch_add(batch, &code, 1u << e->op);
		functions[i] = body;
		report->ops[LAYER_LIBC] |= (uint8_t)(1u << e->op);
	}
}

static const char *plan_site(unsigned char *from, unsigned char *to,
			     long number, struct patch_batch *batch)
{
	struct patch_code code = {0};
	const char *why = patch_inner_site(from, to, number, &code);

	if (why == NULL)
		patch_add(batch, &code, 1u << wrap_op(number));
	return why;
}

/* A call in a function without a name, from the same file as `symbol`. */
static const char *plan_near(const struct elf_image *libc, const char *symbol,
			     long number, struct patch_batch *batch)
{
	uintptr_t at = (uintptr_t)elf_symbol(libc, symbol, NULL);
	uintptr_t from = at - BEFORE, to = at + BEHIND;

	if (at == 0)
		return "there is no such function";
	if (from < libc->text)
		from = libc->text;
	if (to > libc->text_end)
		to = libc->text_end;
	return plan_site((unsigned char *)from, (unsigned char *)to, number,
			 batch);
}

/* sbrk only asks; malloc moves the end, for its own records. */
static void plan_brk(const struct elf_image *libc, struct patch_batch *batch,
		     struct patch_report *report)
{
	size_t size = 0;
	unsigned char *sbrk = elf_symbol(libc, "sbrk", &size);
	const char *why = "there is no such function";

	if (sbrk != NULL)
		why = plan_site(sbrk, sbrk + size, __NR_brk, batch);
	if (why == NULL)
		why = plan_near(libc, "malloc", __NR_brk, batch);
	if (why != NULL)
		patch_explain(report, LAYER_LIBC, "brk", why);
	else
		report->ops[LAYER_LIBC] |= 1u << OP_BRK;
}

void patch_plan_libc(const struct elf_image *libc, struct patch_batch *batch,
		     struct patch_report *report)
{
	if (patch_no_sites != NULL) {
		patch_explain(report, LAYER_LIBC, NULL, patch_no_sites);
		return;
	}
	plan_functions(libc, batch, report);
	plan_brk(libc, batch, report);
	why_not_loader = plan_near(libc, "dlopen", __NR_mprotect, batch);
	if (report->ops[LAYER_LIBC] >> OP_MUNMAP & 1)
		patch_explain(report, LAYER_LIBC, "munmap",
			      "not that of a detached thread's own stack");
}

void patch_libc_done(const struct patch_report *report)
{
	for (unsigned i = 0; i < WRAP_ENTRIES; i++)
		if (functions[i] != NULL &&
		    report->ops[LAYER_LIBC] >> wrap_entries[i].op & 1)
			wrap_go_on(i, functions[i]);
}

/* The loader is the same image, and calls the same functions.  Newer ones make
 * one call to mprotect themselves; older ones have no such call. */
void patch_loader(const struct patch_process *process,
		  struct patch_report *report)
{
	const unsigned mprotect = 1u << OP_MPROTECT;

	(void)process;
	report->ops[LAYER_LOADER] =
		report->ops[LAYER_LIBC] & patch_loader_by_libc;
	if (report->ops[LAYER_LOADER] & mprotect && why_not_loader != NULL &&
	    why_not_loader != patch_no_call) {
		report->ops[LAYER_LOADER] &= (uint8_t)~mprotect;
		patch_explain(report, LAYER_LOADER, "mprotect", why_not_loader);
	}
	if (report->ops[LAYER_LOADER] == 0)
		patch_explain(report, LAYER_LOADER, NULL, "it is libc");
}
