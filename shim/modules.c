/* SPDX-License-Identifier: MIT */
#include "modules.h"

#include <stdbool.h>
#include <stddef.h>

#include "elf.h"
#include "log.h"
#include "record.h"
#include "sys.h"
#include "text.h"
#include "turn.h"

#include "poison.h"

enum {
	SLOT = RECORD_MODULE_BYTES,
	PAGE = 4096,
	MOST = 1024, /* modules that are watched */
	PATH_ROOM = 4096,
};

/* What was noted, to look it up: the log is for others to read. */
struct module {
	uint64_t start, end;
	uint64_t device, inode, modified, offset;
	uint32_t slot;
	uint32_t gone;
};

static struct {
	char *area; /* of the log; NULL: it has none */
	uint32_t slots;
	uint32_t used;
	uint32_t filled;   /* slots that have memory */
	uint32_t count;    /* modules in the table */
	uint64_t from, to; /* what those that came later span */
	struct turn path;  /* who has note_file()'s buffer */
	struct module table[MOST];
} self;

static uint32_t load(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static struct record_module *record_at(uint32_t slot)
{
	return (void *)(self.area + slot * (size_t)SLOT);
}

/* Memory for slots up to `end`.  Several threads may be at it. */
static bool fill(uint32_t end)
{
	uint32_t was = load(&self.filled), target;
	uint64_t bytes;

	if (end <= was)
		return true;
	target = (end + PAGE / SLOT - 1) & ~(uint32_t)(PAGE / SLOT - 1);
	bytes = (target - was) * (uint64_t)SLOT;
	if (!log_fill(log_layout()->modules_at + was * (uint64_t)SLOT, bytes))
		return false;
	if (!__atomic_compare_exchange_n(&self.filled, &was, target, false,
					 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		log_filled_twice(bytes);
	return true;
}

/* Takes `slots` of them; UINT32_MAX: there is no room. */
static uint32_t take(uint32_t slots)
{
	uint32_t at = __atomic_fetch_add(&self.used, slots, __ATOMIC_RELAXED);

	if (at + slots <= self.slots && fill(at + slots)) {
		__atomic_fetch_add(&log_stacks()->modules_used, slots,
				   __ATOMIC_RELAXED);
		return at;
	}
	__atomic_fetch_sub(&self.used, slots, __ATOMIC_RELAXED);
	__atomic_fetch_add(&log_stacks()->modules_lost, 1, __ATOMIC_RELAXED);
	return UINT32_MAX;
}

static uint32_t slots_for(size_t path)
{
	return (uint32_t)((sizeof(struct record_module) + path + SLOT) / SLOT);
}

/* Into the table, for modules that may go again. */
static void watch(const struct record_module *m, uint32_t slot)
{
	uint32_t i = __atomic_fetch_add(&self.count, 1, __ATOMIC_RELAXED);
	struct module *t;

	if (i >= MOST) {
		__atomic_fetch_sub(&self.count, 1, __ATOMIC_RELAXED);
		return;
	}
	t = &self.table[i];
	t->end = m->start + m->length;
	t->device = m->device;
	t->inode = m->inode;
	t->modified = m->modified;
	t->offset = m->offset;
	t->slot = slot;
	t->gone = 0;
	__atomic_store_n(&t->start, m->start, __ATOMIC_RELEASE);
	if (self.from == 0 || t->start < self.from)
		self.from = t->start;
	if (t->end > self.to)
		self.to = t->end;
}

static void note(const struct record_module *m, const char *path)
{
	size_t length = text_len(path);
	uint32_t slots = slots_for(length), slot = take(slots);
	struct record_module *to;
	char *end;

	if (slot == UINT32_MAX)
		return;
	to = record_at(slot);
	*to = *m;
	end = (char *)(to + 1);
	for (size_t i = 0; i < length; i++)
		end[i] = path[i];
	end[length] = '\0';
	__atomic_store_n(&to->slots, slots, __ATOMIC_RELEASE);
	watch(m, slot);
}

/* --- at the start --- */

static const char *program;

static void note_code(const struct elf_code *code)
{
	struct record_module m = {
		.start = code->start,
		.length = code->length,
		.offset = code->offset,
	};

	if (code->build_id_bytes <= RECORD_BUILD_ID) {
		m.build_id_bytes = code->build_id_bytes;
		for (uint32_t i = 0; i < m.build_id_bytes; i++)
			m.build_id[i] = code->build_id[i];
	}
	note(&m, code->path != NULL ? code->path : program);
}

/* The child has what its parent had, and its parent's log is still mapped. */
static void inherit(const char *area, uint32_t used)
{
	const uint64_t *from = (const void *)area;
	uint64_t *to = (void *)self.area;

	if (used > self.slots || !fill(used)) {
		self.used = self.count = 0;
		return;
	}
	for (size_t i = 0; i < used * (size_t)SLOT / 8; i++)
		to[i] = from[i];
	log_stacks()->modules_used = used;
}

void modules_begin(const void *headers, unsigned long count, const char *exe)
{
	const struct record_stacks *layout = log_layout();
	const char *parent = self.area;

	self.area =
		layout->module_slots == 0 ? NULL : log_at(layout->modules_at);
	self.slots = layout->module_slots;
	self.filled = 0;
	turn_end(&self.path);
	if (self.area == NULL) {
		self.used = self.count = 0;
		return;
	}
	if (parent != NULL) {
		inherit(parent, self.used);
		return;
	}
	program = exe;
	elf_each_code(headers, count, note_code);
	self.from = self.to = 0;
}

/* --- later --- */

/* It was there before. */
static bool came_back(const struct record_module *m)
{
	uint32_t count = load(&self.count);

	for (uint32_t i = 0; i < count && i < MOST; i++) {
		struct module *t = &self.table[i];

		if (t->start != m->start || t->end != m->start + m->length ||
		    t->inode != m->inode || t->device != m->device ||
		    t->modified != m->modified || t->offset != m->offset)
			continue;
		__atomic_store_n(&record_at(t->slot)->unmapped, 0,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&t->gone, 0, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

/* The path of an open file, in a buffer that only one thread at a time has:
 * stacks may be too small for it. */
static void note_file(const struct record_module *m, int fd)
{
	static char path[PATH_ROOM];
	char name[32];
	struct text out = text_over(name, sizeof(name));
	long n = 0;

	if (!turn_begin(&self.path)) {
		note(m, "");
		return;
	}
	text_put(&out, "/proc/self/fd/");
	text_put_u64(&out, (uint64_t)fd);
	n = sys_readlink(name, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	note(m, path);
	turn_end(&self.path);
}

void modules_mapped(int fd, uint64_t start, uint64_t length, uint64_t offset,
		    uint64_t now)
{
	struct record_module m = {
		.start = start,
		.length = length,
		.offset = offset,
		.time = now,
	};
	struct sys_file file;

	if (sys_fstat(fd, &file) != 0)
		return;
	log_mapped(&file);
	if (self.area == NULL)
		return;
	m.device = file.device;
	m.inode = file.inode;
	m.bytes = sys_bytes(&file);
	m.modified = sys_modified(&file);
	if (!came_back(&m))
		note_file(&m, fd);
}

void modules_unmapped(uint64_t start, uint64_t length, uint64_t now)
{
	uint32_t count = load(&self.count);

	if (start >= self.to || start + length <= self.from)
		return;
	for (uint32_t i = 0; i < count && i < MOST; i++) {
		struct module *t = &self.table[i];
		/* 0: not filled in yet. */
		uint64_t from = __atomic_load_n(&t->start, __ATOMIC_ACQUIRE);

		if (from == 0 || from >= start + length || t->end <= start ||
		    load(&t->gone))
			continue;
		__atomic_store_n(&t->gone, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&record_at(t->slot)->unmapped, now,
				 __ATOMIC_RELAXED);
	}
}
