/* SPDX-License-Identifier: MIT */
#include "patch.h"

#include <errno.h>
#include <sys/mman.h>

#include "elf.h"
#include "gate.h"
#include "sys.h"
#include "text.h"
#include "wrap.h"

#include "poison.h"

enum { MOST_CODES = 16, PAGE = 4096 };

/* The code changes of one layer, and the ops that each catches, a bit each. */
struct batch {
	struct patch_code codes[MOST_CODES];
	uint8_t ops[MOST_CODES];
	unsigned count;
	enum patch_layer layer;
};

/* What was changed, to see whether it stays so; and how the gate's own
 * functions began, which others may take for libc's. */
static struct batch kept[LAYER_COUNT];
static unsigned char own[WRAP_ENTRIES][PATCH_BYTES];

static void explain(struct patch_report *report, enum patch_layer layer,
		    const char *what, const char *why)
{
	char *to = report->reason[layer];
	size_t size = sizeof(report->reason[layer]), used = text_len(to);
	struct text out = {.at = to + used, .room = size - used};

	if (used > 0)
		text_put(&out, "; ");
	if (what != NULL) {
		text_put(&out, what);
		text_put(&out, ": ");
	}
	text_put(&out, why);
}

/* --- may we? --- */

/* Threads of this process, by the links of its task directory; 0: no /proc. */
static unsigned count_threads(void)
{
	struct statx about;

	return sys_statx(-100, "/proc/self/task", &about) == 0 &&
			       about.stx_nlink > 2
		       ? about.stx_nlink - 2
		       : 0;
}

/* NULL when code can be changed, or why not.  libc's own flag says it without
 * a system call; an old libc has none. */
static const char *may_patch(const struct patch_process *process,
			     const struct elf_image *libc)
{
	const char *single = elf_symbol(libc, "__libc_single_threaded", NULL);
	unsigned threads;

	if (process->under_valgrind)
		return "valgrind runs a copy of the code";
	if (single != NULL && *single != 0)
		return NULL;
	threads = count_threads();
	if (threads > 1)
		return "other threads run already";
	return threads == 1 ? NULL
			    : "without /proc the threads cannot be counted";
}

/* --- changing code --- */

static void copy_code(const struct batch *batch)
{
	for (unsigned i = 0; i < batch->count; i++)
		for (unsigned k = 0; k < batch->codes[i].length; k++)
			batch->codes[i].at[k] = batch->codes[i].bytes[k];
}

static bool is_written(const struct batch *batch)
{
	for (unsigned i = 0; i < batch->count; i++)
		for (unsigned k = 0; k < batch->codes[i].length; k++)
			if (batch->codes[i].at[k] != batch->codes[i].bytes[k])
				return false;
	return true;
}

static void find_span(const struct batch *batch, uintptr_t *from, uintptr_t *to)
{
	*from = UINTPTR_MAX;
	*to = 0;
	for (unsigned i = 0; i < batch->count; i++) {
		uintptr_t at = (uintptr_t)batch->codes[i].at;

		if (at < *from)
			*from = at;
		if (at + batch->codes[i].length > *to)
			*to = at + batch->codes[i].length;
	}
	*from &= ~(uintptr_t)(SYS_PAGE_MAX - 1);
	*to = (*to + SYS_PAGE_MAX - 1) & ~(uintptr_t)(SYS_PAGE_MAX - 1);
}

/* Writable and executable all the time: a page that may not become executable
 * again, as some systems have it, would kill the program. */
static long write_in_place(const struct batch *batch)
{
	uintptr_t from, to;
	long error;

	find_span(batch, &from, &to);
	error = sys_mprotect((const void *)from, to - from,
			     PROT_READ | PROT_WRITE | PROT_EXEC);
	if (error != 0)
		return error;
	copy_code(batch);
	return sys_mprotect((const void *)from, to - from,
			    PROT_READ | PROT_EXEC);
}

/* As a debugger does it; the page never becomes writable. */
static long write_through_proc(const struct batch *batch)
{
	long fd = sys_openat(-100, "/proc/self/mem",
			     02 | 02000000 /* O_RDWR | O_CLOEXEC */, 0);
	long error = 0;

	if (fd < 0)
		return fd;
	for (unsigned i = 0; i < batch->count && error >= 0; i++)
		error = sys_call6(
			__NR_pwrite64, fd, (long)batch->codes[i].bytes,
			batch->codes[i].length, (long)batch->codes[i].at, 0, 0);
	sys_close((int)fd);
	return error < 0 ? error : 0;
}

/* NULL, or why the code could not be changed; then none of it is.  On a
 * partial write through /proc what is written is right all the same. */
static const char *write_batch(const struct batch *batch)
{
	if (batch->count == 0)
		return NULL;
	if (write_in_place(batch) != 0 && !is_written(batch) &&
	    write_through_proc(batch) != 0)
		return "this system forbids changing code";
	for (unsigned i = 0; i < batch->count; i++)
		patch_flush(&batch->codes[i]);
	if (!is_written(batch))
		return "the change did not take";
	kept[batch->layer] = *batch;
	return NULL;
}

/* Adds one; two names for one function make one change. */
static void add_code(struct batch *batch, const struct patch_code *code,
		     uint32_t ops)
{
	for (unsigned i = 0; i < batch->count; i++)
		if (batch->codes[i].at == code->at)
			return;
	batch->ops[batch->count] = (uint8_t)ops;
	batch->codes[batch->count++] = *code;
}

/* --- libc --- */

static void plan_entries(const struct elf_image *libc, struct batch *batch,
			 struct patch_report *report)
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
		why = patch_entry(body, size, e->number, e->function, &code);
		if (why != NULL) {
			explain(report, LAYER_LIBC, e->symbol, why);
			continue;
		}
		add_code(batch, &code, 1u << e->op);
		report->ops[LAYER_LIBC] |= (uint8_t)(1u << e->op);
	}
}

static void plan_brk(const struct elf_image *libc, struct batch *batch,
		     struct patch_report *report)
{
	struct patch_code code = {0};
	size_t size = 0;
	unsigned char *body = elf_symbol(libc, "brk", &size);
	const char *why =
		body == NULL ? "there is no such function"
			     : patch_site(body, body + size, __NR_brk, &code);

	if (why != NULL) {
		explain(report, LAYER_LIBC, "brk", why);
		return;
	}
	add_code(batch, &code, 1u << OP_BRK);
	report->ops[LAYER_LIBC] |= 1u << OP_BRK;
}

/* Calls that fail at once, through those of libc's own functions that lead to
 * us: which ops arrive?  What another library has patched it may not be ready
 * for, or count. */
static uint32_t probe_libc(const struct elf_image *libc, uint32_t ops)
{
	typedef long function(long, long, long, long, long, long);
	static const struct {
		enum op op;
		long a, b, c;
	} calls[] = {
		{OP_MMAP, 0, 0, 0},     {OP_MUNMAP, 1, 1, 0},
		{OP_MPROTECT, 1, 1, 0}, {OP_MADVISE, 1, 1, 0},
		{OP_MREMAP, 1, 1, 1},   {OP_PKEY_MPROTECT, 1, 1, 0},
		{OP_BRK, 0, 0, 0},
	};

	gate_probe_begin();
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		function *f = (function *)elf_symbol(libc, op_name(calls[i].op),
						     NULL);

		if (f != NULL && ops >> calls[i].op & 1)
			f(calls[i].a, calls[i].b, calls[i].c, 0, -1, 0);
	}
	return gate_probe_end();
}

static void patch_libc(const struct elf_image *libc,
		       struct patch_report *report)
{
	struct batch batch = {.layer = LAYER_LIBC};
	uint32_t arrived;
	const char *why;

	plan_entries(libc, &batch, report);
	plan_brk(libc, &batch, report);
	why = write_batch(&batch);
	if (why != NULL) {
		report->ops[LAYER_LIBC] = 0;
		explain(report, LAYER_LIBC, NULL, why);
		return;
	}
	arrived = probe_libc(libc, report->ops[LAYER_LIBC]);
	for (unsigned op = 0; op < OP_COUNT; op++)
		if ((report->ops[LAYER_LIBC] & ~arrived) >> op & 1)
			explain(report, LAYER_LIBC, op_name(op),
				"the self-test did not see it");
	report->ops[LAYER_LIBC] &= (uint8_t)arrived;
}

/* --- the loader --- */

static void patch_loader(const struct patch_process *process,
			 struct patch_report *report)
{
	static const long numbers[] = {__NR_mmap, __NR_munmap, __NR_mprotect};
	struct batch batch = {.layer = LAYER_LOADER};
	struct elf_image loader;
	const char *why;

	if (process->loader == NULL || !elf_read(process->loader, &loader) ||
	    loader.text == 0) {
		explain(report, LAYER_LOADER, NULL, "it was not found");
		return;
	}
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct patch_code code = {0};
		enum op op = wrap_op(numbers[i]);

		why = patch_site((unsigned char *)loader.text,
				 (unsigned char *)loader.text_end, numbers[i],
				 &code);
		if (why != NULL) {
			explain(report, LAYER_LOADER, op_name(op), why);
			continue;
		}
		add_code(&batch, &code, 1u << op);
		report->ops[LAYER_LOADER] |= (uint8_t)(1u << op);
	}
	why = write_batch(&batch);
	if (why != NULL) {
		report->ops[LAYER_LOADER] = 0;
		explain(report, LAYER_LOADER, NULL, why);
	}
}

/* --- hooks=all --- */

static void patch_syscall_function(const struct elf_image *libc,
				   struct patch_report *report)
{
	struct batch batch = {.layer = LAYER_SYSCALL};
	struct patch_code code = {0};
	size_t size = 0;
	unsigned char *body = elf_symbol(libc, "syscall", &size);
	const char *why = body == NULL ? "there is no such function"
				       : patch_syscall_entry(body, size, &code);

	if (why == NULL) {
		add_code(&batch, &code, OPS_ALL);
		why = write_batch(&batch);
	}
	if (why != NULL)
		explain(report, LAYER_SYSCALL, NULL, why);
	else
		report->ops[LAYER_SYSCALL] = OPS_ALL;
}

/* A page for jumps, near enough to the program's text for theirs to reach. */
static unsigned char *map_near(uintptr_t from, uintptr_t to)
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
	(void)from;
	return NULL;
}

static void plan_inline(unsigned char *from, unsigned char *to,
			unsigned char *hops, struct batch *batch,
			struct patch_report *report)
{
	while (batch->count < MOST_CODES) {
		struct patch_code code = {0};
		enum op op;

		from = patch_inline(from, to, hops + batch->count * PATCH_BYTES,
				    &code, &op);
		if (from == NULL)
			return;
		add_code(batch, &code, 1u << op);
		report->ops[LAYER_INLINE] |= (uint8_t)(1u << op);
	}
}

static void patch_program(const struct patch_process *process,
			  struct patch_report *report)
{
	struct batch batch = {.layer = LAYER_INLINE};
	uintptr_t from, to;
	unsigned char *hops;
	const char *why;
	unsigned count;

	if (!elf_program_text(process->headers, process->header_count, &from,
			      &to)) {
		explain(report, LAYER_INLINE, NULL, "its text was not found");
		return;
	}
	count = patch_inline_count((unsigned char *)from, (unsigned char *)to);
	if (count == 0) {
		explain(report, LAYER_INLINE, NULL, "the program has none");
		return;
	}
	hops = map_near(from, to);
	if (hops == NULL) {
		explain(report, LAYER_INLINE, NULL, "no room near its text");
		return;
	}
	plan_inline((unsigned char *)from, (unsigned char *)to, hops, &batch,
		    report);
	if (batch.count < count)
		explain(report, LAYER_INLINE, NULL, "there are too many");
	why = sys_mprotect(hops, PAGE, PROT_READ | PROT_EXEC) != 0
		      ? "this system forbids new code"
		      : write_batch(&batch);
	if (why != NULL) {
		report->ops[LAYER_INLINE] = 0;
		explain(report, LAYER_INLINE, NULL, why);
	}
}

/* --- what others do afterwards --- */

static bool differs(const unsigned char *at, const unsigned char *bytes,
		    unsigned length)
{
	for (unsigned i = 0; i < length; i++)
		if (at[i] != bytes[i])
			return true;
	return false;
}

static void keep_own(void)
{
	for (unsigned i = 0; i < WRAP_ENTRIES; i++)
		for (unsigned k = 0; k < PATCH_BYTES; k++)
			own[i][k] = ((const unsigned char *)wrap_entries[i]
					     .function)[k];
}

static void lose(struct patch_report *report, enum patch_layer layer,
		 uint32_t ops)
{
	for (unsigned op = 0; op < OP_COUNT; op++)
		if ((ops & report->ops[layer]) >> op & 1)
			explain(report, layer, op_name(op),
				"another library has patched it since");
	report->ops[layer] &= (uint8_t)~ops;
}

bool patch_recheck(struct patch_report *report)
{
	const struct patch_report before = *report;
	bool changed = false;

	for (unsigned layer = 0; layer < LAYER_COUNT; layer++) {
		const struct batch *b = &kept[layer];

		for (unsigned i = 0; i < b->count; i++)
			if (differs(b->codes[i].at, b->codes[i].bytes,
				    b->codes[i].length))
				lose(report, layer, b->ops[i]);
		changed |= report->ops[layer] != before.ops[layer];
	}
	for (unsigned i = 0; i < WRAP_ENTRIES; i++)
		if (differs(wrap_entries[i].function, own[i], PATCH_BYTES))
			report->lost |= (uint8_t)(1u << wrap_entries[i].op);
	/* libc's functions lead to them. */
	lose(report, LAYER_LIBC, report->lost & ~(1u << OP_BRK));
	return changed || report->lost != before.lost;
}

/* Says so for each layer that was asked for, or that everybody expects. */
static void refuse_all(enum knob_hooks hooks, struct patch_report *report,
		       const char *why)
{
	int layers = hooks == HOOKS_ALL ? LAYER_COUNT : LAYER_SYSCALL;

	for (int i = 0; i < layers; i++)
		explain(report, i, NULL, why);
}

void patch_apply(enum knob_hooks hooks, const struct patch_process *process,
		 struct patch_report *report)
{
	struct elf_image libc;
	const char *why = NULL;

	*report = (struct patch_report){0};
	keep_own();
	if (hooks == HOOKS_SYMBOLS)
		why = "not asked for";
	else if (!elf_find(process->headers, process->header_count, "libc.so.6",
			   &libc))
		why = "libc.so.6 was not found";
	else
		why = may_patch(process, &libc);
	if (why != NULL) {
		refuse_all(hooks, report, why);
		return;
	}
	patch_libc(&libc, report);
	patch_loader(process, report);
	if (hooks == HOOKS_ALL) {
		patch_syscall_function(&libc, report);
		patch_program(process, report);
	}
}
