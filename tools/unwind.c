/* SPDX-License-Identifier: MIT */
#include <elf.h>
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "unwind.h"

/* In the library, and in no header. */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t ip,
				       unw_dyn_info_t *table,
				       unw_proc_info_t *out, int need_info,
				       void *context);

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
/* Numbers of the registers that a sample has, in its order. */
static const int saved[] = {UNW_X86_64_RBX, UNW_X86_64_RBP, UNW_X86_64_R12,
			    UNW_X86_64_R13, UNW_X86_64_R14, UNW_X86_64_R15,
			    UNW_X86_64_RSP, UNW_X86_64_RIP};
#else
enum { MACHINE = EM_AARCH64 };
static const int saved[] = {UNW_AARCH64_X19, UNW_AARCH64_X20, UNW_AARCH64_X21,
			    UNW_AARCH64_X22, UNW_AARCH64_X23, UNW_AARCH64_X24,
			    UNW_AARCH64_X25, UNW_AARCH64_X26, UNW_AARCH64_X27,
			    UNW_AARCH64_X28, UNW_AARCH64_X29, UNW_AARCH64_X30,
			    UNW_AARCH64_SP,  UNW_AARCH64_PC};
#endif

enum {
	SAVED = sizeof(saved) / sizeof(saved[0]),
	MOST_TRIES = 8,
	/* Above the copy: the rest of the stack, as far as anybody goes. */
	STACK_REST = 256 << 20,
};

/* Code of the process, and its file. */
struct mapping {
	const struct samples_module *module;
	struct images_entry *entry;
	bool looked; /* the fields below are set */
	bool is_image, has_frames;
	uint64_t bias; /* what is added to linked addresses */
	struct image_frames frames;
};

struct unwind {
	unw_addr_space_t space;
	uint32_t machine; /* whose process it was */
	struct images *images;
	const struct samples_modules *modules;
	struct mapping *mappings; /* one a module */
	uint64_t changed_ns;      /* what is mapped is the same until then */
	/* The call at hand. */
	const struct samples_call *call;
	uint64_t registers[UNW_REG_LAST + 1];
	bool cut;     /* something above the copy was needed */
	bool guessed; /* a frame had no unwind tables */
	const struct mapping *last;
};

const char *unwind_missing(void)
{
	return NULL;
}

/* --- files as memory --- */

static struct mapping *mapping_of(struct unwind *u,
				  const struct samples_module *module)
{
	struct mapping *m = &u->mappings[module - u->modules->list];
	uint64_t linked;

	if (m->looked)
		return m;
	m->looked = true;
	m->module = module;
	m->entry = images_get(u->images, &module->identity);
	if (m->entry->image &&
	    image_address(m->entry->image, module->offset, &linked)) {
		m->is_image = true;
		m->bias = module->start - linked;
		m->has_frames = image_frames(m->entry->image, &m->frames);
	}
	return m;
}

static const struct mapping *mapping_at(struct unwind *u, uint64_t address)
{
	uint64_t now = u->call->event.time_ns;
	const struct samples_module *module;

	if (u->last && address >= u->last->module->start &&
	    address < u->last->module->end)
		return u->last;
	module = samples_module_at(u->modules, address, now);
	if (!module)
		return NULL;
	u->last = mapping_of(u, module);
	return u->last;
}

/* A word of a file, of segments without code too. */
static bool file_word(struct unwind *u, uint64_t address, uint64_t *word)
{
	uint64_t now = u->call->event.time_ns;
	size_t i;

	if (u->last && u->last->is_image &&
	    image_word(u->last->entry->image, address - u->last->bias, word))
		return true;
	for (i = u->modules->count; i-- > 0;) {
		const struct samples_module *module = &u->modules->list[i];
		struct mapping *m;

		if (now < module->from_ns || now >= module->to_ns)
			continue;
		m = mapping_of(u, module);
		if (m->is_image &&
		    image_word(m->entry->image, address - m->bias, word))
			return true;
	}
	return false;
}

/* --- what libunwind asks for --- */

/* On this machine code addresses on the stack may be signed in their upper
 * bits. */
static uint64_t without_signature(struct unwind *u, uint64_t word)
{
	const uint64_t address = word & 0xffffffffffff;

	if (u->machine != EM_AARCH64 || address == word)
		return word;
	return mapping_at(u, address) ? address : word;
}

static int access_mem(unw_addr_space_t space, unw_word_t address,
		      unw_word_t *word, int write, void *context)
{
	struct unwind *u = context;
	const struct record_sample *s = u->call->raw;
	uint64_t value = 0, at = address - s->from;

	(void)space;
	if (write)
		return -UNW_EINVAL;
	if (s->bytes >= sizeof(value) && at <= s->bytes - sizeof(value)) {
		memcpy(&value, u->call->copy + at, sizeof(value));
		value = without_signature(u, value);
	} else if (!file_word(u, address, &value) && at >= s->bytes &&
		   at < s->bytes + (uint64_t)STACK_REST) {
		u->cut = true;
		return -UNW_EINVAL;
	}
	/* Zero for what is nowhere: an error would make libunwind invent a
	 * frame in code without tables. */
	*word = value;
	return 0;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t number,
		      unw_word_t *value, int write, void *context)
{
	struct unwind *u = context;

	(void)space;
	if (write || number < 0 || number > UNW_REG_LAST)
		return -UNW_EBADREG;
	*value = u->registers[number];
	return 0;
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t number,
			unw_fpreg_t *value, int write, void *context)
{
	(void)space;
	(void)number;
	(void)value;
	(void)write;
	(void)context;
	return -UNW_EBADREG;
}

static int find_proc_info(unw_addr_space_t space, unw_word_t ip,
			  unw_proc_info_t *out, int need_info, void *context)
{
	struct unwind *u = context;
	const struct mapping *m = mapping_at(u, ip);
	unw_dyn_info_t table = {0};
	int error;

	if (!m || !m->has_frames) {
		u->guessed = true;
		return -UNW_ENOINFO;
	}
	table.start_ip = m->module->start;
	table.end_ip = m->module->end;
	table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
	table.u.rti.segbase = m->frames.header + m->bias;
	table.u.rti.table_data = m->frames.table + m->bias;
	table.u.rti.table_len = m->frames.count * 8 / sizeof(unw_word_t);
	error = UNW_OBJ(dwarf_search_unwind_table)(space, ip, &table, out,
						   need_info, context);
	if (error)
		u->guessed = true;
	return error;
}

static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info,
			    void *context)
{
	(void)space;
	(void)info;
	(void)context;
}

static int no_dyn_info(unw_addr_space_t space, unw_word_t *list, void *context)
{
	(void)space;
	(void)list;
	(void)context;
	return -UNW_ENOINFO;
}

static int no_resume(unw_addr_space_t space, unw_cursor_t *cursor,
		     void *context)
{
	(void)space;
	(void)cursor;
	(void)context;
	return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t space, unw_word_t ip, char *name,
		   size_t size, unw_word_t *offset, void *context)
{
	(void)space;
	(void)ip;
	(void)name;
	(void)size;
	(void)offset;
	(void)context;
	return -UNW_ENOINFO;
}

/* Newer versions of the library have more members; they find zeros. */
static union {
	unw_accessors_t accessors;
	void *room[32];
} asked = {
	.accessors =
		{
			.find_proc_info = find_proc_info,
			.put_unwind_info = put_unwind_info,
			.get_dyn_info_list_addr = no_dyn_info,
			.access_mem = access_mem,
			.access_reg = access_reg,
			.access_fpreg = access_fpreg,
			.resume = no_resume,
			.get_proc_name = no_name,
		},
};

struct unwind *unwind_new(struct images *images,
			  const struct samples_modules *modules,
			  uint32_t machine)
{
	struct unwind *u = xcalloc(1, sizeof(*u));

	u->images = images;
	u->modules = modules;
	u->mappings = xcalloc(modules->count + 1, sizeof(*u->mappings));
	u->machine = machine;
	u->space = unw_create_addr_space(&asked.accessors, 0);
	if (!u->space)
		die(EXIT_FAILED, "libunwind: no memory");
	unw_set_caching_policy(u->space, UNW_CACHE_GLOBAL);
	return u;
}

void unwind_free(struct unwind *u)
{
	unw_destroy_addr_space(u->space);
	free(u->mappings);
	free(u);
}

/* --- the walk --- */

/* What libunwind remembers of addresses is good while the same files are
 * there: from the last change before `now` to the next one. */
static void forget_old(struct unwind *u, uint64_t now)
{
	uint64_t next = UINT64_MAX, last = 0;
	size_t i;

	for (i = 0; i < u->modules->count; i++) {
		const uint64_t times[] = {u->modules->list[i].from_ns,
					  u->modules->list[i].to_ns};
		for (int k = 0; k < 2; k++) {
			if (times[k] > now && times[k] < next)
				next = times[k];
			if (times[k] <= now && times[k] > last)
				last = times[k];
		}
	}
	if (next != u->changed_ns)
		unw_flush_cache(u->space, 0, 0);
	u->changed_ns = next;
	u->last = NULL;
}

static void take_call(struct unwind *u, const struct samples_call *call)
{
	size_t i;

	u->call = call;
	u->cut = u->guessed = false;
	for (i = 0; i < SAVED; i++)
		u->registers[saved[i]] = call->raw->registers[i];
	forget_old(u, call->event.time_ns);
}

static struct record_frame frame_at(struct unwind *u, uint64_t pc, bool exact,
				    bool guessed)
{
	/* A call may be the last instruction of what it is in. */
	const struct mapping *m = mapping_at(u, exact ? pc : pc - 1);

	return (struct record_frame){
		.pc = pc,
		.module = m ? m->module->slot + 1 : 0,
		.flags = (exact ? FRAME_EXACT : 0u) |
			 (guessed ? FRAME_GUESSED : 0u),
	};
}

/* A chain that ends where it has to: on the thread's own stack, or on what was
 * copied of another one.  (A signal's stack is left in the middle of a chain.)
 */
static bool ends_well(const struct unwind *u, uint64_t sp)
{
	const struct record_sample *s = u->call->raw;

	return s->end == END_OWNER || (!u->cut && sp - s->from <= s->bytes);
}

static void walk(struct unwind *u, unw_cursor_t *cursor,
		 struct unwind_chain *chain)
{
	unw_word_t pc, sp, below = 0, last = 0;
	bool exact = true, guessed = false;

	while (chain->count < UNWIND_MOST) {
		if (unw_get_reg(cursor, UNW_REG_IP, &pc) ||
		    unw_get_reg(cursor, UNW_REG_SP, &sp) || pc == 0 ||
		    sp < below)
			break;
		chain->frames[chain->count++] = frame_at(u, pc, exact, guessed);
		last = sp;
		exact = unw_is_signal_frame(cursor) > 0;
		/* What a signal interrupted may be on any stack. */
		below = exact ? 0 : sp;
		if (unw_step(cursor) <= 0)
			break;
		guessed |= u->guessed;
	}
	chain->cut = !ends_well(u, last) || chain->count == UNWIND_MOST;
}

/* The library's own frames are those in the file of the first. */
static void drop_own(struct unwind_chain *chain)
{
	uint32_t own = 0;

	while (own < chain->count &&
	       chain->frames[own].module == chain->frames[0].module)
		own++;
	chain->count -= own;
	memmove(chain->frames, chain->frames + own,
		chain->count * sizeof(chain->frames[0]));
}

/* A guess that leads nowhere is no frame. */
static void drop_lost(struct unwind_chain *chain)
{
	while (chain->count > 0 &&
	       chain->frames[chain->count - 1].module == 0 &&
	       chain->frames[chain->count - 1].flags & FRAME_GUESSED)
		chain->count--;
}

/* --- on another kind of machine --- */

static bool copied_word(struct unwind *u, uint64_t address, uint64_t *word)
{
	const struct record_sample *s = u->call->raw;
	uint64_t at = address - s->from;

	if (s->bytes < sizeof(*word) || at > s->bytes - sizeof(*word))
		return false;
	memcpy(word, u->call->copy + at, sizeof(*word));
	*word = without_signature(u, *word);
	return true;
}

/* libunwind knows this machine's registers only.  Code for aarch64 keeps frame
 * pointers, nearly all of it: x29, and with it the return address. */
static void walk_frame_pointers(struct unwind *u, struct unwind_chain *chain)
{
	enum { X29 = 10, PC = 13 };
	const uint64_t *registers = u->call->raw->registers;
	uint64_t frame = registers[X29], below = 0, pc = registers[PC];

	if (u->machine != EM_AARCH64)
		return;
	while (chain->count < UNWIND_MOST && pc != 0) {
		chain->frames[chain->count] =
			frame_at(u, pc, chain->count == 0, true);
		chain->count++;
		if (frame <= below || !copied_word(u, frame + 8, &pc))
			break;
		below = frame;
		if (!copied_word(u, frame, &frame))
			break;
	}
	chain->cut = frame != 0 && u->call->raw->end != END_OWNER;
	drop_own(chain);
	drop_lost(chain);
}

static void walk_by_libunwind(struct unwind *u, struct unwind_chain *chain)
{
	unw_cursor_t cursor;

	if (unw_init_remote(&cursor, u->space, u) == 0)
		walk(u, &cursor, chain);
	drop_own(chain);
	drop_lost(chain);
}

/* --- when the library's own frames cannot be left --- */

static bool is_better(const struct unwind_chain *a,
		      const struct unwind_chain *b)
{
	if (a->cut != b->cut)
		return !a->cut;
	return a->count > b->count;
}

/* The chain from the caller on, which returns to it from the word at `at` of
 * the copy.  Registers that the way here has changed are wrong; few functions
 * need them to be left. */
static void walk_from(struct unwind *u, uint32_t at, struct unwind_chain *chain)
{
	unw_cursor_t cursor;
	uint32_t i;

	u->cut = u->guessed = false;
	u->registers[UNW_REG_SP] = u->call->raw->from + at + sizeof(uint64_t);
	u->registers[UNW_REG_IP] = u->call->event.raw.caller;
	chain->count = 0;
	if (unw_init_remote(&cursor, u->space, u) == 0)
		walk(u, &cursor, chain);
	for (i = 0; i < chain->count; i++)
		chain->frames[i].flags |= i > 0 ? FRAME_GUESSED : 0;
	if (chain->count > 0)
		chain->frames[0].flags &= ~(uint32_t)FRAME_EXACT;
	drop_lost(chain);
}

/*
 * The library's file was replaced since, or the libc below it has no unwind
 * tables (musl's).  Where the caller goes on is known, so its frame begins
 * behind a word with that address: the one that leads farthest.
 */
static void walk_from_caller(struct unwind *u, struct unwind_chain *best)
{
	const struct record_sample *s = u->call->raw;
	struct unwind_chain *chain = xcalloc(1, sizeof(*chain));
	uint64_t word;
	uint32_t at, tries = 0;

	for (at = 0; at + sizeof(word) <= s->bytes && tries < MOST_TRIES;
	     at += sizeof(word)) {
		memcpy(&word, u->call->copy + at, sizeof(word));
		if (word != u->call->event.raw.caller)
			continue;
		walk_from(u, at, chain);
		if (tries++ == 0 || is_better(chain, best))
			memcpy(best, chain, sizeof(*best));
	}
	free(chain);
}

void unwind_call(struct unwind *u, const struct samples_call *call,
		 struct unwind_chain *chain)
{
	chain->count = 0;
	chain->cut = false;
	if (!call->copy)
		return;
	take_call(u, call);
	if (u->machine != MACHINE) {
		walk_frame_pointers(u, chain);
		return;
	}
	walk_by_libunwind(u, chain);
	if (chain->count == 0 || chain->frames[0].pc != call->event.raw.caller)
		walk_from_caller(u, chain);
}
