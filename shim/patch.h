/* SPDX-License-Identifier: MIT */
/*
 * patch: catches the calls that symbols do not: libc's own and the loader's.
 *
 * Two ways:
 *   entry  a function of libc that an exported wrapper can stand for begins
 *          with a jump to that wrapper; nothing of it is ever run again.
 *   site   one system call instruction, with the load of its number before it,
 *          becomes a jump to a stub, which calls the gate and jumps back; the
 *          function around it stays in force.  For the loader, which keeps an
 *          errno of its own, for brk, which libc keeps account of, and for
 *          musl, whose functions do more than the call.
 *
 * Code is changed only where every byte is what it should be, while the
 * process has one thread, and never changed back.  What cannot be changed is
 * left alone, and the reason is kept.
 */
#ifndef MMGATE_PATCH_H
#define MMGATE_PATCH_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#include "elf.h"
#include "knobs.h"

/* Where calls are caught. */
enum patch_layer {
	LAYER_LIBC,
	LAYER_LOADER,
	LAYER_SYSCALL,
	LAYER_INLINE,
	LAYER_COUNT
};

struct patch_report {
	uint8_t ops[LAYER_COUNT]; /* ops that the layer catches, a bit each */
	uint8_t foreign;          /* ops whose libc function another library had
				   * patched before us */
	uint8_t lost; /* ops whose calls by symbol another library's patch gets
		       * first, of libc's function or of the exported one */
	char reason[LAYER_COUNT][160]; /* why not, or not all; empty: all is
					* well */
};

/* What the process's start says about it. */
struct patch_process {
	const Elf64_Phdr *headers; /* AT_PHDR, AT_PHNUM */
	unsigned long header_count;
	const void *loader; /* AT_BASE */
	unsigned long page_size;
	bool under_valgrind;
};

/* Patches as `hooks` asks for.  pre: first thing in the process, once. */
void patch_apply(enum knob_hooks hooks, const struct patch_process *process,
		 struct patch_report *report);

/* Takes out of the report what another library has overwritten since, and says
 * so.  False: nothing new. */
bool patch_recheck(struct patch_report *report);

/* --- for the other patch files --- */

enum { PATCH_BYTES = 24, PATCH_SITES = 16, PATCH_MOST = 16 };

/* New bytes for a place in code. */
struct patch_code {
	unsigned char *at; /* NULL: nothing to do */
	unsigned length;
	unsigned char bytes[PATCH_BYTES];
};

/* The changes of one layer, and the ops that each catches, a bit each. */
struct patch_batch {
	struct patch_code codes[PATCH_MOST];
	uint8_t ops[PATCH_MOST];
	unsigned count;
	enum patch_layer layer;
};

/* Adds a reason; what: the function or op it is about, or NULL. */
void patch_explain(struct patch_report *report, enum patch_layer layer,
		   const char *what, const char *why);

/* Adds one; two names for one function make one change. */
void patch_add(struct patch_batch *batch, const struct patch_code *code,
	       uint32_t ops);

/* NULL, or why the code could not be changed; then none of it is.  Once for
 * each layer. */
const char *patch_write(const struct patch_batch *batch,
			const struct patch_process *process);

/* --- what a libc provides: patch_<libc>.c --- */

/* What to change in libc; sets the ops that it will catch. */
void patch_plan_libc(const struct elf_image *libc, struct patch_batch *batch,
		     struct patch_report *report);

/* The same is done, and report->ops[LAYER_LIBC] has what the self-test saw. */
void patch_libc_done(const struct patch_report *report);

/* The function whose call with 0 makes a brk that changes nothing. */
extern const char patch_brk_probe[];

/* Ops, a bit each: that libc's functions make by way of the exported ones; that
 * the loader makes by way of libc's. */
extern const uint8_t patch_by_own, patch_loader_by_libc;

/* The loader's own calls.  After libc. */
void patch_loader(const struct patch_process *process,
		  struct patch_report *report);

/* patch_entry()'s reason where a foreign jump stands. */
extern const char patch_by_another[];

/* --- what an architecture provides: patch_<architecture>.c --- */

/* How code is written.  A page that was made writable for a while loses what
 * mprotect cannot give back. */
enum patch_way { PATCH_IN_PLACE_FIRST, PATCH_PROC_FIRST, PATCH_PROC_ONLY };

/* Asked when all of a batch is planned. */
enum patch_way patch_way(void);

/* NULL, or why no site can be rewritten here. */
extern const char *const patch_no_sites;

extern const char patch_no_call[];

/* patch_entry()'s reason where a foreign jump stands. */
extern const char patch_by_another[];

/* Code that makes `number` in the function [body, body + size) go to `to`.
 * NULL, or why it cannot be done. */
const char *patch_entry(unsigned char *body, size_t size, long number,
			const void *to, struct patch_code *code);

/* Adds code that leads each site of `number` in [from, to) to the gate, for
 * these ops.  NULL, or why it cannot be done; then nothing is added. */
const char *patch_sites(unsigned char *from, unsigned char *to, long number,
			uint32_t ops, struct patch_batch *batch);

/* Does this function begin with somebody else's patch? */
bool patch_is_foreign(const unsigned char *body);

/* Code that leads the one site of `number` in the function [from, to) to the
 * gate; register moves may stand between the load of the number and the system
 * call.  NULL, or why it cannot be done; patch_no_call: the number is loaded
 * nowhere. */
const char *patch_inner_site(unsigned char *from, unsigned char *to,
			     long number, struct patch_code *code);

/* hooks=all: libc's syscall() and the program's own system calls. */
void patch_all(const struct patch_process *process,
	       const struct elf_image *libc, struct patch_report *report);

/* Makes new code visible to this CPU. */
void patch_flush(const struct patch_code *code);

/* --- on x86_64, for patch_all() --- */

/* As patch_entry(), for syscall(): its replacement gates the calls that are
 * wrapped and makes all others as it did. */
const char *patch_syscall_entry(unsigned char *body, size_t size,
				struct patch_code *code);

/* System calls of the wrapped kinds in [from, to) that have their number
 * loaded right before them; *others: calls whose number comes from elsewhere.
 */
unsigned patch_inline_count(unsigned char *from, unsigned char *to,
			    unsigned *others);

/* Code for the first such call from `from` on, by way of a jump written to the
 * PATCH_BYTES at `hop`, which must be within reach of it.  Returns where to
 * look for the next one; NULL when there is none. */
unsigned char *patch_inline(unsigned char *from, unsigned char *to,
			    unsigned char *hop, struct patch_code *code,
			    enum op *op);

#endif
