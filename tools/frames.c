/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "die.h"
#include "frames.h"
#include "symbols.h"

struct place_key {
	uint64_t pc;
	uint32_t module, flags;
};

struct place {
	struct frames_place public;
	struct place_key key;
	UT_hash_handle hh;
	struct sites_frame frames[];
};

struct name {
	UT_hash_handle hh;
	char text[];
};

struct frames {
	struct images *images;
	const struct samples_modules *modules;
	const struct jit *jit;
	struct place *places;
	struct name *names;
};

/* --- whose code --- */

static bool begins(const char *name, const char *const *with)
{
	for (; *with; with++)
		if (!strncmp(name, *with, strlen(*with)))
			return true;
	return false;
}

static enum sites_owner owner_of_module(const char *module)
{
	static const char *const libc[] = {
		"libc.so",  "libc-2",  "libpthread", "libdl.so",  "libdl-2",
		"librt.so", "librt-2", "ld-musl",    "libc.musl", NULL};
	static const char *const loader[] = {"ld-linux", "ld-2", "ld.so", NULL};
	static const char *const allocators[] = {
		"libjemalloc", "libtcmalloc", "libmimalloc", "libsnmalloc",
		"librpmalloc", "libhoard",    NULL};
	static const char *const languages[] = {"libstdc++", "libc++",
						"libgcc_s", "libsupc++", NULL};
	static const char *const kernel[] = {"[vdso]", NULL};
	static const struct {
		const char *const *names;
		enum sites_owner owner;
	} known[] = {
		{libc, OWNER_LIBC},
		{loader, OWNER_LOADER},
		{allocators, OWNER_ALLOCATOR},
		{languages, OWNER_LANGUAGE},
		{kernel, OWNER_KERNEL},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (begins(module, known[i].names))
			return known[i].owner;
	return OWNER_PROGRAM;
}

/* What is linked or inlined into the program itself. */
static enum sites_owner owner_of(const struct sites_frame *frame)
{
	static const char *const allocators[] = {
		"operator new", "operator delete", "je_",    "mi_", "tc_malloc",
		"tc_free",      "__rust_",         "__rdl_", NULL};
	static const char *const languages[] = {
		"std::",  "__gnu_cxx::", "alloc::",
		"core::", "hashbrown::", NULL};
	enum sites_owner owner = owner_of_module(frame->module);

	if (!frame->function ||
	    (owner != OWNER_PROGRAM && owner != OWNER_LANGUAGE))
		return owner;
	if (begins(frame->function, allocators))
		return OWNER_ALLOCATOR;
	return begins(frame->function, languages) ? OWNER_LANGUAGE : owner;
}

/* --- names --- */

static char *spell(const struct sites_frame *frame)
{
	if (!frame->function)
		return xasprintf("%s+0x%llx", frame->module,
				 (unsigned long long)frame->offset);
	if (!frame->source)
		return xasprintf("%s!%s", frame->module, frame->function);
	return xasprintf("%s!%s (%s:%u)", frame->module, frame->function,
			 frame->source, frame->line);
}

static const char *name_of(struct frames *f, const struct sites_frame *frame)
{
	char *text = spell(frame);
	size_t length = strlen(text);
	struct name *name;

	HASH_FIND(hh, f->names, text, length, name);
	if (!name) {
		name = xcalloc(1, sizeof(*name) + length + 1);
		memcpy(name->text, text, length);
		HASH_ADD(hh, f->names, text[0], (unsigned)length, name);
	}
	free(text);
	return name->text;
}

/* --- places --- */

static const struct samples_module *module_of(const struct frames *f,
					      const struct record_frame *record)
{
	for (size_t i = 0; i < f->modules->count; i++)
		if (f->modules->list[i].slot + 1 == record->module)
			return &f->modules->list[i];
	return NULL;
}

static struct place *place_new(size_t count)
{
	struct place *place =
		xcalloc(1, sizeof(*place) + count * sizeof(place->frames[0]));

	place->public.count = count;
	place->public.frames = place->frames;
	return place;
}

/* Code that no file is known for. */
static struct place *look_nowhere(const struct frames *f,
				  const struct record_frame *record)
{
	struct place *place = place_new(1);
	bool exact = record->flags & FRAME_EXACT;

	place->frames[0] = (struct sites_frame){
		.function = jit_name(f->jit, record->pc - !exact),
		.module = "[jit]",
		.offset = record->pc,
	};
	return place;
}

static struct place *look_in(struct frames *f,
			     const struct samples_module *module,
			     const struct record_frame *record)
{
	struct images_entry *entry = images_get(f->images, &module->identity);
	bool exact = record->flags & FRAME_EXACT;
	/* A call may be the last instruction of what it is in. */
	uint64_t at = record->pc - module->start + module->offset - !exact;
	const struct symbols_name *names;
	size_t count = symbols_at(symbols_file(entry), at, &names), i;
	struct place *place = place_new(count);

	for (i = 0; i < count; i++)
		place->frames[i] = (struct sites_frame){
			.function = names[i].function,
			.source = names[i].source,
			.line = names[i].line,
			.module = entry->module,
			.offset = at + !exact,
			.inlined = names[i].inlined,
		};
	return place;
}

static struct place *look(struct frames *f, const struct record_frame *record)
{
	const struct samples_module *module = module_of(f, record);
	struct place *place =
		module ? look_in(f, module, record) : look_nowhere(f, record);
	size_t i;

	for (i = 0; i < place->public.count; i++) {
		place->frames[i].pc = record->pc;
		place->frames[i].guessed = record->flags & FRAME_GUESSED;
		place->frames[i].owner = owner_of(&place->frames[i]);
		place->frames[i].name = name_of(f, &place->frames[i]);
	}
	return place;
}

const struct frames_place *frames_at(struct frames *f,
				     const struct record_frame *record)
{
	const struct place_key key = {record->pc, record->module,
				      record->flags};
	struct place *place;

	HASH_FIND(hh, f->places, &key, sizeof(key), place);
	if (!place) {
		place = look(f, record);
		place->key = key;
		HASH_ADD(hh, f->places, key, sizeof(key), place);
	}
	return &place->public;
}

struct frames *frames_new(struct images *images,
			  const struct samples_modules *modules,
			  const struct jit *jit)
{
	struct frames *f = xcalloc(1, sizeof(*f));

	f->images = images;
	f->modules = modules;
	f->jit = jit;
	return f;
}

void frames_free(struct frames *f)
{
	struct place *place, *next_place;
	struct name *name, *next;

	HASH_ITER(hh, f->places, place, next_place)
	{
		HASH_DEL(f->places, place);
		free(place);
	}
	HASH_ITER(hh, f->names, name, next)
	{
		HASH_DEL(f->names, name);
		free(name);
	}
	free(f);
}
