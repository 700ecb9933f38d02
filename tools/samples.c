/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "merge.h"
#include "samples.h"
#include "source.h"

enum {
	WHY_BYTES = 256,
	SLOT = RECORD_MODULE_BYTES,
	MOST_CHAINS = 64 << 20, /* bytes */
};

static void complain(const struct log *log, const char *why)
{
	warn("%s: %s", log_path(log), why);
}

/* --- modules --- */

/* The words of an array of slots, in memory. */
struct slots {
	char *bytes;
	uint32_t count;
};

static bool read_slots(const struct log *log, struct slots *slots)
{
	const struct record_stacks *s = log_stacks(log);
	char why[WHY_BYTES] = "";
	struct source source;
	int error = 0;

	slots->count = s->module_slots;
	if (s->modules_used < slots->count)
		slots->count = (uint32_t)s->modules_used;
	slots->bytes = xcalloc(slots->count + 1, SLOT);
	if (log_reopen(log, &source, why)) {
		error = source_read(&source, slots->bytes,
				    (size_t)slots->count * SLOT, s->modules_at);
		source_close(&source);
	}
	if (error)
		complain(log, strerror(-error));
	else if (*why)
		complain(log, why);
	return !error && !*why;
}

static char *path_of(const char *at, uint32_t slots)
{
	size_t room = (size_t)slots * SLOT - sizeof(struct record_module);
	size_t length = strnlen(at, room);
	char *path = xcalloc(length + 1, 1);

	memcpy(path, at, length);
	return path;
}

static void take_module(const struct log *log, const char *at,
			const struct record_module *m, uint32_t slot,
			struct samples_module *to)
{
	uint8_t *id = xcalloc(RECORD_BUILD_ID, 1);

	memcpy(id, m->build_id, RECORD_BUILD_ID);
	*to = (struct samples_module){
		.start = m->start,
		.end = m->start + m->length,
		.offset = m->offset,
		.from_ns = m->time ? log_time_ns(log, m->time) : 0,
		.to_ns = m->unmapped ? log_time_ns(log, m->unmapped)
				     : UINT64_MAX,
		.slot = slot,
		.identity.path = path_of(at + sizeof(*m), m->slots),
		.identity.build_id = id,
		.identity.build_id_bytes = m->build_id_bytes,
		.identity.inode = m->inode,
		.identity.bytes = m->bytes,
		.identity.modified_ns = m->modified,
	};
	if (to->identity.build_id_bytes > RECORD_BUILD_ID)
		to->identity.build_id_bytes = 0;
	if (to->end < to->start)
		to->end = to->start;
}

static int by_time(const void *a, const void *b)
{
	const struct samples_module *x = a, *y = b;

	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* A slot that a writer did not come to fill is passed over, alone. */
struct samples_modules samples_modules(const struct log *log)
{
	struct samples_modules all = {.lost = log_stacks(log)->modules_lost};
	struct slots slots = {0};
	struct record_module m;
	uint32_t i, taken;

	if (log_stacks(log)->module_slots == 0 || !read_slots(log, &slots)) {
		free(slots.bytes);
		return all;
	}
	all.list = xcalloc(slots.count + 1, sizeof(*all.list));
	for (i = 0; i < slots.count; i += taken) {
		memcpy(&m, slots.bytes + (size_t)i * SLOT, sizeof(m));
		taken = m.slots <= slots.count - i ? m.slots : 0;
		if (taken > 0)
			take_module(log, slots.bytes + (size_t)i * SLOT, &m, i,
				    &all.list[all.count++]);
		else
			taken = 1;
	}
	free(slots.bytes);
	qsort(all.list, all.count, sizeof(*all.list), by_time);
	return all;
}

void samples_modules_free(struct samples_modules *modules)
{
	size_t i;

	for (i = 0; i < modules->count; i++) {
		free((void *)(uintptr_t)modules->list[i].identity.path);
		free((void *)(uintptr_t)modules->list[i].identity.build_id);
	}
	free(modules->list);
	*modules = (struct samples_modules){0};
}

const struct samples_module *
samples_module_at(const struct samples_modules *modules, uint64_t address,
		  uint64_t time_ns)
{
	size_t i;

	/* The latest one that was there is right. */
	for (i = modules->count; i-- > 0;) {
		const struct samples_module *m = &modules->list[i];

		if (address >= m->start && address < m->end &&
		    time_ns >= m->from_ns && time_ns < m->to_ns)
			return m;
	}
	return NULL;
}

/* --- samples --- */

struct reader {
	struct log *log;
	struct source source;
	const struct record_stacks *stacks;
	struct samples_count *count;
	void (*each)(void *context, const struct samples_call *call);
	void *context;
	struct record_sample *samples;
	const struct record_sample **order;
	unsigned char *copy;
	char *chains; /* chain_bytes of them */
	uint64_t chain_bytes;
	int error;
};

/* Places side by side that are filled by one rule. */
struct part {
	const struct record_pool *pool;
	uint32_t first, slots;
	unsigned thin;
	bool slow;
	bool worst; /* the longest ones, not the pool's own */
};

static bool is_of_pool(const struct record_sample *s, uint32_t slot,
		       const struct part *part)
{
	const struct record_pool *pool = part->pool;

	return s->number < pool->head &&
	       (s->number & ((UINT64_C(1) << part->thin) - 1)) == 0 &&
	       record_pool_thin(s->number + 1, pool->slots) <= part->thin &&
	       record_pool_slot(s->number, pool->slots) == slot;
}

static bool counts(const struct record_sample *s, uint32_t slot,
		   const struct part *part)
{
	if (!merge_is_whole(&s->event, s->number) ||
	    s->event.kind != EVENT_CALL)
		return false;
	return part->worst ? s->number == slot : is_of_pool(s, slot, part);
}

/* Its frames lie in the chains, whole. */
static void find_chain(const struct reader *r, struct samples_call *call)
{
	uint64_t at = (call->raw->chain - UINT64_C(1)) * 8;
	struct record_chain chain;

	if (call->raw->chain == 0 || r->chain_bytes < sizeof(chain) ||
	    at > r->chain_bytes - sizeof(chain))
		return;
	memcpy(&chain, r->chains + at, sizeof(chain));
	at += sizeof(chain);
	if (chain.frames > (r->chain_bytes - at) / sizeof(struct record_frame))
		return;
	call->frames = (const void *)(r->chains + at);
	call->frame_count = chain.frames;
	call->cut = chain.cut != 0;
}

static int read_pages(struct reader *r, uint32_t place, uint32_t bytes)
{
	uint32_t at, part;
	int error = 0;

	for (at = 0; at < bytes && !error; at += part) {
		part = bytes - at < RECORD_COPY_PAGE ? bytes - at
						     : RECORD_COPY_PAGE;
		error = source_read(&r->source, r->copy + at, part,
				    record_copy_page(r->stacks, place,
						     at / RECORD_COPY_PAGE));
	}
	return error;
}

/* The copy, if it was not written to again meanwhile. */
static bool read_copy(struct reader *r, uint32_t place,
		      const struct record_sample *s)
{
	struct record_sample again;

	if (s->bytes == 0 || s->bytes > r->stacks->copy_bytes)
		return false;
	r->error = read_pages(r, place, s->bytes);
	if (!r->error)
		r->error = source_read(&r->source, &again, sizeof(again),
				       r->stacks->samples_at +
					       place * sizeof(again));
	return !r->error && !memcmp(&again, s, sizeof(again));
}

static double weigh(const struct record_sample *s, const struct part *part)
{
	return part->worst ? 1
			   : (double)s->event.weight *
				     (double)(UINT64_C(1) << part->thin);
}

static void give(struct reader *r, const struct part *part, uint32_t slot,
		 const struct record_sample *s)
{
	uint32_t place = part->first + slot;
	struct samples_call call = {
		.raw = s,
		.id = 1 + place,
		.slow = part->slow,
		.worst = part->worst,
		.weight = weigh(s, part),
		.event = log_convert(r->log, &s->event),
	};

	find_chain(r, &call);
	if (!call.frames && read_copy(r, place, s))
		call.copy = r->copy;
	r->count->kept++;
	r->each(r->context, &call);
}

static int by_call(const void *a, const void *b)
{
	const struct record_sample *x = *(const struct record_sample *const *)a;
	const struct record_sample *y = *(const struct record_sample *const *)b;

	return (x->event.time > y->event.time) -
	       (x->event.time < y->event.time);
}

static void read_part(struct reader *r, const struct part *part)
{
	uint32_t count = 0, i;

	if (r->error)
		return;
	r->error = source_read(
		&r->source, r->samples, part->slots * sizeof(*r->samples),
		r->stacks->samples_at + part->first * sizeof(*r->samples));
	for (i = 0; i < part->slots && !r->error; i++)
		if (counts(&r->samples[i], i, part))
			r->order[count++] = &r->samples[i];
	qsort(r->order, count, sizeof(*r->order), by_call);
	for (i = 0; i < count && !r->error; i++)
		give(r, part, (uint32_t)(r->order[i] - r->samples),
		     r->order[i]);
}

static void read_pool(struct reader *r, int kind)
{
	const struct record_pool *pool = &r->stacks->pool[kind];
	struct part part = {
		.pool = pool,
		.first = pool->first,
		.slots = pool->slots,
		.thin = pool->slots ? record_pool_thin(pool->head, pool->slots)
				    : 0,
		.slow = kind == POOL_SLOW,
	};

	r->count->picked += pool->head;
	r->count->lost += pool->lost;
	if (part.thin <= 62)
		read_part(r, &part);
	part.first += pool->slots;
	part.slots = pool->worst;
	part.worst = true;
	read_part(r, &part);
}

/* What is claimed may be more than there is in the file: it reads as zeros. */
static void read_chains(struct reader *r)
{
	uint64_t at = r->stacks->chains_at, bytes = r->stacks->chain_bytes;

	if (bytes == 0 || at >= r->source.size)
		return;
	if (bytes > r->source.size - at)
		bytes = r->source.size - at;
	if (bytes > MOST_CHAINS || source_hole(&r->source, at) >= bytes)
		return;
	r->chains = xcalloc(1, bytes);
	r->chain_bytes = bytes;
	r->error = source_read(&r->source, r->chains, bytes, at);
}

/* The heads as they are now. */
static void read_all(struct reader *r, struct record_stacks *now)
{
	uint32_t most = log_samples(r->log);
	int i;

	*now = *r->stacks;
	for (i = 0; i < POOL_COUNT && !r->error; i++)
		r->error = source_read(
			&r->source, &now->pool[i].head, 2 * sizeof(uint64_t),
			offsetof(struct record_header, stacks) +
				offsetof(struct record_stacks, pool) +
				(size_t)i * sizeof(struct record_pool));
	r->stacks = now;
	r->samples = xcalloc(most, sizeof(*r->samples));
	r->order = xcalloc(most, sizeof(const struct record_sample *));
	r->copy = xcalloc(1, LOG_MOST_COPIED);
	if (!r->error)
		read_chains(r);
	for (i = 0; i < POOL_COUNT; i++)
		read_pool(r, i);
	free(r->samples);
	free(r->order);
	free(r->copy);
	free(r->chains);
}

bool samples_each(struct log *log, struct samples_count *count,
		  void (*each)(void *context, const struct samples_call *call),
		  void *context)
{
	struct reader r = {
		.log = log,
		.stacks = log_stacks(log),
		.count = count,
		.each = each,
		.context = context,
	};
	char why[WHY_BYTES] = "";
	struct record_stacks now;

	*count = (struct samples_count){0};
	if (log_samples(log) == 0)
		return true;
	if (log_reopen(log, &r.source, why)) {
		read_all(&r, &now);
		source_close(&r.source);
	}
	if (r.error)
		complain(log, strerror(-r.error));
	else if (*why)
		complain(log, why);
	return !r.error && !*why;
}
