/* SPDX-License-Identifier: MIT */
#include "patch.h"

#include <errno.h>
#include <sys/mman.h>

#include "elf.h"
#include "gate.h"
#include "libc.h"
#include "own.h"
#include "sys.h"
#include "text.h"
#include "wrap.h"

#include "poison.h"

/* What was changed, to see whether it stays so. */
static struct patch_batch kept[LAYER_COUNT];

void patch_explain(struct patch_report *report, enum patch_layer layer,
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

/* The number of threads in /proc/self/stat: the 18th word behind the name. */
static unsigned stated_threads(void)
{
	char stat[512];
	long fd = sys_openat(-100, "/proc/self/stat", 02000000 /* O_CLOEXEC */,
			     0);
	long n = fd < 0 ? 0 : sys_read((int)fd, stat, sizeof(stat));
	unsigned threads = 0;
	int word = 0;

	for (long i = 0; i < n && word <= 18; i++)
		if (stat[i] == ')')
			word = 0; /* the name may have spaces, and these */
		else if (stat[i] == ' ')
			word++;
		else if (word == 18 && stat[i] >= '0' && stat[i] <= '9')
			threads = 10 * threads + (unsigned)(stat[i] - '0');
	if (fd >= 0)
		sys_close((int)fd);
	return threads;
}

/* Threads of this process, by the links of its task directory; 0: not known.
 * An emulator's own threads are in there, but its stat names none. */
static unsigned count_threads(void)
{
	struct sys_file tasks;

	if (sys_stat("/proc/self/task", &tasks) != 0)
		return 0;
	if (sys_links(&tasks) == 3)
		return 1;
	return sys_links(&tasks) > 3 ? stated_threads() : 0;
}

/* NULL when code can be changed, or why not.  libc's own flag says it without
 * a system call; an old libc has none, nor has musl. */
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

static void copy_code(const struct patch_batch *batch)
{
	for (unsigned i = 0; i < batch->count; i++)
		for (unsigned k = 0; k < batch->codes[i].length; k++)
			batch->codes[i].at[k] = batch->codes[i].bytes[k];
}

static bool is_as_written(const struct patch_code *code)
{
	for (unsigned i = 0; i < code->length; i++)
		if (code->at[i] != code->bytes[i])
			return false;
	return true;
}

static bool is_written(const struct patch_batch *batch)
{
	for (unsigned i = 0; i < batch->count; i++)
		if (!is_as_written(&batch->codes[i]))
			return false;
	return true;
}

static void find_span(const struct patch_batch *batch, uintptr_t page,
		      uintptr_t *from, uintptr_t *to)
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
	*from &= ~(page - 1);
	*to = (*to + page - 1) & ~(page - 1);
}

/* Writable and executable all the time: a page that may not become executable
 * again, as some systems have it, would kill the program. */
static long write_in_place(const struct patch_batch *batch, uintptr_t page)
{
	uintptr_t from, to;
	long error;

	find_span(batch, page, &from, &to);
	error = sys_mprotect((const void *)from, to - from,
			     PROT_READ | PROT_WRITE | PROT_EXEC);
	if (error != 0)
		return error;
	copy_code(batch);
	return sys_mprotect((const void *)from, to - from,
			    PROT_READ | PROT_EXEC);
}

/* An emulator's file may show another memory than the one we are in. */
static bool is_our_memory(long fd, const struct patch_code *code)
{
	unsigned char bytes[PATCH_BYTES];
	long n = sys_call6(__NR_pread64, fd, (long)bytes, code->length,
			   (long)code->at, 0, 0);

	if (n != (long)code->length)
		return false;
	for (unsigned i = 0; i < code->length; i++)
		if (bytes[i] != code->at[i])
			return false;
	return true;
}

static bool write_one(long fd, const struct patch_code *code)
{
	return is_our_memory(fd, code) &&
	       sys_call6(__NR_pwrite64, fd, (long)code->bytes, code->length,
			 (long)code->at, 0, 0) == (long)code->length;
}

/* As a debugger does it; the page never becomes writable. */
static bool write_through_proc(const struct patch_batch *batch)
{
	long fd = sys_openat(-100, "/proc/self/mem",
			     02 | 02000000 /* O_RDWR | O_CLOEXEC */, 0);
	bool good = true;

	if (fd < 0)
		return false;
	for (unsigned i = 0; i < batch->count && good; i++)
		good = write_one(fd, &batch->codes[i]);
	sys_close((int)fd);
	return good && is_written(batch);
}

/* Each way in turn, until one has done it. */
static bool write_somehow(const struct patch_batch *batch, uintptr_t page)
{
	switch (patch_way()) {
	case PATCH_IN_PLACE_FIRST:
		return write_in_place(batch, page) == 0 || is_written(batch) ||
		       write_through_proc(batch);
	case PATCH_PROC_FIRST:
		return write_through_proc(batch) ||
		       write_in_place(batch, page) == 0 || is_written(batch);
	default:
		return write_through_proc(batch);
	}
}

/* On a partial write through /proc what is written is right all the same. */
const char *patch_write(const struct patch_batch *batch,
			const struct patch_process *process)
{
	if (batch->count == 0)
		return NULL;
	if (!write_somehow(batch, process->page_size))
		return "this system forbids changing code";
	for (unsigned i = 0; i < batch->count; i++)
		patch_flush(&batch->codes[i]);
	if (!is_written(batch))
		return "the change did not take";
	kept[batch->layer] = *batch;
	return NULL;
}

void patch_add(struct patch_batch *batch, const struct patch_code *code,
	       uint32_t ops)
{
	for (unsigned i = 0; i < batch->count; i++)
		if (batch->codes[i].at == code->at)
			return;
	batch->ops[batch->count] = (uint8_t)ops;
	batch->codes[batch->count++] = *code;
}

/* --- libc --- */

/* Calls that fail at once, through those of libc's own functions that lead to
 * us: which ops arrive?  What another library has patched it may not be ready
 * for, or count. */
static uint32_t probe_libc(const struct elf_image *libc, uint32_t ops)
{
	typedef long function(long, long, long, long, long, long);
	/* Refused wherever it is to be: musl rounds to whole pages. */
	enum { NO_PROT = PROT_GROWSDOWN | PROT_GROWSUP };
	static const struct {
		enum op op;
		long a, b, c;
	} calls[] = {
		{OP_MMAP, 0, 0, 0},
		{OP_MUNMAP, 1, 1, 0},
		{OP_MPROTECT, 1, 1, NO_PROT},
		{OP_MADVISE, 1, 1, 0},
		{OP_MREMAP, 1, 1, 1},
		{OP_PKEY_MPROTECT, 1, 1, 0},
		{OP_BRK, 0, 0, 0},
	};

	gate_probe_begin();
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		enum op op = calls[i].op;
		const char *name = op == OP_BRK ? patch_brk_probe : op_name(op);
		function *f = (function *)elf_symbol(libc, name, NULL);

		if (f != NULL && ops >> op & 1)
			f(calls[i].a, calls[i].b, calls[i].c, 0, -1, 0);
	}
	return gate_probe_end();
}

static void patch_libc(const struct patch_process *process,
		       const struct elf_image *libc,
		       struct patch_report *report)
{
	struct patch_batch batch = {.layer = LAYER_LIBC};
	uint32_t arrived;
	const char *why;

	patch_plan_libc(libc, &batch, report);
	why = patch_write(&batch, process);
	if (why != NULL) {
		report->ops[LAYER_LIBC] = 0;
		patch_explain(report, LAYER_LIBC, NULL, why);
		return;
	}
	arrived = probe_libc(libc, report->ops[LAYER_LIBC]);
	for (unsigned op = 0; op < OP_COUNT; op++)
		if ((report->ops[LAYER_LIBC] & ~arrived) >> op & 1)
			patch_explain(report, LAYER_LIBC, op_name(op),
				      "the self-test did not see it");
	report->ops[LAYER_LIBC] &= (uint8_t)arrived;
	patch_libc_done(report);
}

/* --- what others do afterwards --- */

static void lose(struct patch_report *report, enum patch_layer layer,
		 uint32_t ops)
{
	for (unsigned op = 0; op < OP_COUNT; op++)
		if ((ops & report->ops[layer]) >> op & 1)
			patch_explain(report, layer, op_name(op),
				      "another library has patched it since");
	report->ops[layer] &= (uint8_t)~ops;
}

static void recheck_layer(struct patch_report *report, enum patch_layer layer)
{
	const struct patch_batch *b = &kept[layer];

	for (unsigned i = 0; i < b->count; i++)
		if (!is_as_written(&b->codes[i]))
			lose(report, layer, b->ops[i]);
}

bool patch_recheck(struct patch_report *report)
{
	uint8_t before[LAYER_COUNT], lost = report->lost;
	bool changed;

	for (unsigned layer = 0; layer < LAYER_COUNT; layer++)
		before[layer] = report->ops[layer];
	for (unsigned layer = 0; layer < LAYER_COUNT; layer++)
		recheck_layer(report, layer);
	report->lost |= own_lost() | wrap_taken();
	lose(report, LAYER_LIBC, report->lost & patch_by_own);
	lose(report, LAYER_LOADER,
	     patch_loader_by_libc & ~report->ops[LAYER_LIBC]);
	changed = report->lost != lost;
	for (unsigned layer = 0; layer < LAYER_COUNT; layer++)
		changed |= report->ops[layer] != before[layer];
	return changed;
}

/* Says so for each layer that was asked for, or that everybody expects. */
static void refuse_all(enum knob_hooks hooks, struct patch_report *report,
		       const char *why)
{
	int layers = hooks == HOOKS_ALL ? LAYER_COUNT : LAYER_SYSCALL;

	for (int i = 0; i < layers; i++)
		patch_explain(report, i, NULL, why);
}

void patch_apply(enum knob_hooks hooks, const struct patch_process *process,
		 struct patch_report *report)
{
	struct elf_image libc;
	const char *why = NULL;

	*report = (struct patch_report){0};
	own_keep();
	if (hooks == HOOKS_SYMBOLS)
		why = "not asked for";
	else if (!libc_find(process->headers, process->header_count,
			    process->loader, &libc))
		why = "libc was not found";
	else
		why = may_patch(process, &libc);
	if (why != NULL) {
		refuse_all(hooks, report, why);
		return;
	}
	patch_libc(process, &libc, report);
	patch_loader(process, report);
	if (hooks == HOOKS_ALL)
		patch_all(process, &libc, report);
}
