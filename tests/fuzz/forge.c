/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/make_log.h"
#include "forge.h"
#include "stage.h"

enum { MOST_SLOTS_BITS = 9, CHANGES = 64 };

/* --- the input --- */

uint8_t forge_byte(struct forge *f)
{
	if (f->left == 0)
		return 0;
	f->left--;
	return *f->at++;
}

uint64_t forge_number(struct forge *f)
{
	uint8_t form = forge_byte(f);
	uint64_t value = forge_byte(f);
	int i;

	switch (form % 5) {
	case 0:
		return value;
	case 1:
		return UINT64_C(1) << value % 64;
	case 2:
		return (UINT64_C(1) << value % 64) - 1;
	case 3:
		return -value;
	}
	for (i = 0; i < 7; i++)
		value = value << 8 | forge_byte(f);
	return value;
}

void forge_bytes(struct forge *f, void *to, size_t max)
{
	size_t length = forge_byte(f);

	length = length < max ? length : max;
	length = length < f->left ? length : f->left;
	memcpy(to, f->at, length);
	f->at += length;
	f->left -= length;
}

static void put_number(struct forge *f, void *to, size_t size)
{
	uint64_t value = forge_number(f);

	memcpy(to, &value, size);
}

/* --- a log in the making --- */

struct work {
	struct forge *in;
	struct make_log log;
	uint32_t stripes, slots;
	bool stacks;                          /* it has room for them */
	uint64_t written[RECORD_MAX_STRIPES]; /* events, by us */
	off_t size;                           /* of the file in the end */
};

static uint32_t pick_stripe(struct work *w)
{
	return forge_byte(w->in) % w->stripes;
}

static struct record_stripe *stripe(struct work *w)
{
	return make_log_stripe(&w->log, pick_stripe(w));
}

/* A number of the header's, the magic included. */
static void change_header(struct work *w)
{
	const size_t end = offsetof(struct record_header, comm);
	uint8_t where = forge_byte(w->in);

	put_number(w->in, w->log.base + where * 4 % (end - 4),
		   where < 128 ? 4 : 8);
}

static void change_head(struct work *w)
{
	uint64_t *head = &stripe(w)->head;

	put_number(w->in, head + forge_byte(w->in) % 6, 8);
}

static void change_text(struct work *w)
{
	struct record_header *h = w->log.header;
	const struct {
		char *at;
		size_t size;
	} texts[] = {
		{h->comm, sizeof(h->comm)},
		{h->exe, sizeof(h->exe)},
		{h->settings, sizeof(h->settings)},
		{h->hooks, sizeof(h->hooks)},
		{h->coverage, sizeof(h->coverage)},
		{h->limits, sizeof(h->limits)},
	};
	uint8_t which = forge_byte(w->in);
	char *at = texts[which % 6].at;
	size_t size = texts[which % 6].size, used;

	/* To its end and without a zero, or a few bytes. */
	if (which >= 128)
		memset(at, forge_byte(w->in), size);
	used = strnlen(at, size);
	if (which & 64)
		forge_bytes(w->in, at + used, size - used);
	else
		forge_bytes(w->in, at, size);
}

static struct record_hist *pick_hist(struct work *w)
{
	struct record_stripe *s = stripe(w);
	uint8_t which = forge_byte(w->in);

	if (which % 8 == OP_COUNT)
		return &s->wake;
	return which < 128 ? &s->op[which % 8].kernel : &s->op[which % 8].wait;
}

static void change_hist(struct work *w)
{
	struct record_hist *h = pick_hist(w);
	unsigned bucket = forge_byte(w->in);

	put_number(w->in, &h->bucket[bucket * 5 % RECORD_BUCKETS], 8);
	put_number(w->in, &h->sum, 8);
	put_number(w->in, &h->max, 8);
}

static void change_op(struct work *w)
{
	struct record_op *op = &stripe(w)->op[forge_byte(w->in) % OP_COUNT];
	uint64_t *figures = &op->errors;

	put_number(w->in, figures + forge_byte(w->in) % 5, 8);
}

static void change_pair(struct work *w)
{
	struct record_header *h = w->log.header;
	struct record_pair *pairs[] = {&h->start, &h->fresh[0], &h->fresh[1],
				       &h->end};
	struct record_pair *p = pairs[forge_byte(w->in) % 4];

	p->ticks = forge_number(w->in);
	p->ns = forge_number(w->in);
	p->check = p->ticks ^ p->ns ^ RECORD_MAGIC;
}

/* --- events --- */

/* Where it is in truth; the header may lie by now. */
static struct record_event *slot(struct work *w, uint32_t ring, uint64_t n)
{
	char *rings = (char *)make_log_stripe(&w->log, w->stripes);

	return (struct record_event *)(void *)rings +
	       (uint64_t)ring * w->slots + (n & (w->slots - 1));
}

static void sign(struct record_event *e, uint64_t n)
{
	e->seq = (uint32_t)(n + 1);
	e->check = record_event_check(e);
}

static void add(struct work *w, uint32_t ring, struct record_event event)
{
	uint64_t n = w->written[ring]++;

	sign(&event, n);
	*slot(w, ring, n) = event;
	make_log_stripe(&w->log, ring)->head = w->written[ring];
}

static void take_event(struct forge *f, struct record_event *e)
{
	e->time = forge_number(f);
	e->result = (int64_t)forge_number(f);
	e->kind = forge_byte(f);
	e->op = forge_byte(f);
	e->outcome = forge_byte(f);
	e->layer = forge_byte(f);
	e->addr = e->length = e->offset = e->caller = forge_number(f);
	e->wait_low = e->kernel_low = (uint32_t)e->addr;
	e->wait_high = e->kernel_high = (uint16_t)(e->addr >> 32);
	e->arg = e->flags = e->tid = e->weight = (uint32_t)forge_number(f);
	e->fd = (int32_t)e->arg;
}

static void add_event(struct work *w)
{
	uint32_t ring = pick_stripe(w);
	struct record_event event = {0};

	take_event(w->in, &event);
	if (w->slots > 0)
		add(w, ring, event);
}

/* Many events, in an order that is nearly that of their times. */
static void add_burst(struct work *w)
{
	uint32_t ring = pick_stripe(w), count = forge_byte(w->in), i;
	uint64_t time = MAKE_LOG_START_TICKS + forge_number(w->in) % 4096;
	uint8_t mix = forge_byte(w->in);
	struct record_event event = {.kernel_low = 5, .weight = 1, .op = 1};

	for (i = 0; i < count && w->slots > 0; i++) {
		event.time = time + ((i * 10) ^ mix);
		add(w, ring, event);
	}
}

/* Some bytes of a slot, signed anew or not. */
static void change_slot(struct work *w)
{
	uint32_t ring = pick_stripe(w);
	uint8_t n = forge_byte(w->in), at = forge_byte(w->in);
	struct record_event *e;

	if (w->slots == 0)
		return;
	e = slot(w, ring, n);
	put_number(w->in, (char *)e + at * 4 % (sizeof(*e) - 4),
		   at < 64 ? 8 : 4);
	if (at & 1)
		sign(e, n);
}

/* --- code and stacks --- */

static void change_stacks(struct work *w)
{
	struct record_stacks *s = &w->log.header->stacks;
	uint8_t where = forge_byte(w->in);

	put_number(w->in, (char *)s + where * 4 % (sizeof(*s) - 4),
		   where < 128 ? 4 : 8);
}

/* A file without debug information is quick to read. */
static void put_path(struct work *w, char *to, size_t room)
{
	static const char *const known[] = {"/bin/true", "linux-vdso.so.1",
					    "/proc/self/exe (deleted)", ""};
	uint8_t which = forge_byte(w->in);

	if (which < 128)
		strcpy(to, known[which % 4]);
	else
		forge_bytes(w->in, to, room);
}

static void add_module(struct work *w)
{
	struct record_module *m;
	uint32_t i = forge_byte(w->in) % MAKE_LOG_MODULES;

	if (!w->stacks)
		return;
	m = make_log_module(&w->log, i);
	m->slots = (uint32_t)forge_number(w->in);
	m->build_id_bytes = forge_byte(w->in) % 4 * 16;
	m->time = forge_number(w->in);
	m->unmapped = forge_number(w->in);
	m->start = forge_number(w->in);
	m->length = forge_number(w->in);
	m->offset = forge_number(w->in);
	m->inode = forge_byte(w->in) % 2;
	put_path(w, (char *)(m + 1), RECORD_MODULE_BYTES - sizeof(*m));
	if (w->log.header->stacks.modules_used <= i)
		w->log.header->stacks.modules_used = i + 1;
}

/* A sample that is where its number says, or is not. */
static void add_sample(struct work *w)
{
	uint32_t i = forge_byte(w->in) % (3 * MAKE_LOG_SAMPLES);
	uint8_t registers = forge_byte(w->in);
	struct record_sample *s;

	if (!w->stacks)
		return;
	s = make_log_sample(&w->log, i);
	take_event(w->in, &s->event);
	s->number =
		registers < 128 ? i % MAKE_LOG_SAMPLES : forge_number(w->in);
	s->from = forge_number(w->in);
	s->bytes = (uint32_t)forge_number(w->in);
	s->chain = (uint32_t)forge_number(w->in);
	s->end = forge_byte(w->in) % 4;
	for (uint32_t k = 0; k < registers % (RECORD_REGISTERS + 1); k++)
		s->registers[k] = forge_number(w->in);
	sign(&s->event, s->number);
	w->log.header->stacks.pool[i >= MAKE_LOG_SAMPLES].head =
		MAKE_LOG_SAMPLES;
	forge_bytes(w->in, make_log_copy(&w->log, i, 0), RECORD_COPY_PAGE);
}

static void add_chains(struct work *w)
{
	struct record_stacks *s = &w->log.header->stacks;
	struct record_chain chain = {forge_byte(w->in) % 8, 0};
	char *to;

	if (!w->stacks)
		return;
	to = make_log_chains(&w->log);
	s->chains_at = (uint64_t)(to - w->log.base);
	s->chain_bytes = forge_byte(w->in) * UINT64_C(16);
	memcpy(to, &chain, sizeof(chain));
	forge_bytes(w->in, to + sizeof(chain), 256);
}

/* --- sizes --- */

static void change_size(struct work *w)
{
	w->size = (off_t)(forge_number(w->in) & INT64_MAX);
}

/* The layout of as many stripes and as large rings as one likes, in holes. */
static void stretch(struct work *w)
{
	struct record_header *h = w->log.header;
	struct record_stripe *s = stripe(w);
	uint8_t bits = forge_byte(w->in), more = forge_byte(w->in);

	h->ring_slots = 1u << bits % 32;
	h->stripes = w->stripes + (more < 128 ? 0 : more - 128u);
	h->rings_at = h->stripes_at +
		      (uint64_t)h->stripes * sizeof(struct record_stripe);
	h->file_bytes = h->rings_at + (uint64_t)h->stripes * h->ring_slots *
					      sizeof(struct record_event);
	w->size = (off_t)h->file_bytes;
	s->capacity = s->populated = h->ring_slots;
	s->head = forge_number(w->in);
}

/* --- all of it --- */

static void change(struct work *w)
{
	static void (*const changes[])(struct work * w) = {
		change_header, change_head, change_text, change_hist,
		change_op,     change_pair, add_event,   add_burst,
		change_slot,   change_size, stretch,     change_stacks,
		add_module,    add_sample,  add_chains,
	};

	changes[forge_byte(w->in) % (sizeof(changes) / sizeof(*changes))](w);
}

static void begin(struct work *w, const char *path)
{
	static const double rates[] = {1, 0.5, 0.31, 30};
	uint8_t shape = forge_byte(w->in), size = forge_byte(w->in);

	w->stripes = size % 16 == 15 ? RECORD_MAX_STRIPES : 1 + size % 4;
	w->slots = 1u << (size / 16 % (MOST_SLOTS_BITS + 1));
	if (shape & 64)
		w->slots = 0;
	w->stacks = shape & 128;
	w->log = w->stacks ? make_log_begin_with_stacks(path, w->stripes,
							w->slots,
							rates[shape % 4])
			   : make_log_begin(path, w->stripes, w->slots,
					    rates[shape % 4]);
	w->size = (off_t)w->log.size;
	w->log.header->fresh[0] = make_log_pair(&w->log, 50000);
	if (shape & 16)
		w->log.header->end = make_log_pair(&w->log, 100000);
	if (shape & 32)
		make_log_count(&w->log, 0, OP_MMAP, 10, 1000);
}

void forge_log(struct forge *f, const char *path)
{
	struct work w = {.in = f};
	int i;

	begin(&w, path);
	for (i = 0; i < CHANGES && f->left > 0; i++)
		change(&w);
	make_log_close(&w.log);
	/* More than the file system can is the same as nothing. */
	(void)!truncate(path, w.size);
}

static void change_info(struct forge *f, struct record_dir *info)
{
	const size_t numbers = offsetof(struct record_dir, spare2);
	uint8_t where = forge_byte(f);

	if (where < 128)
		put_number(f, (char *)info + where * 4 % (numbers - 4), 8);
	else if (where >= 240)
		forge_bytes(f, info->unlogged_why, sizeof(info->unlogged_why));
	else
		forge_bytes(f, info->command + (where & 64 ? 0 : 1800),
			    sizeof(info->command) - 1800);
}

void forge_info(struct forge *f, const char *path)
{
	struct record_dir info = {
		.magic = RECORD_MAGIC,
		.version = RECORD_VERSION,
		.started = UINT64_C(1700000000000000000),
		.finished = 1,
		.command = "subject -t 2",
	};
	uint8_t changes = forge_byte(f), i;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (changes & 64)
		memset(info.command, forge_byte(f), sizeof(info.command));
	for (i = 0; i < changes % 16; i++)
		change_info(f, &info);
	stage_check(fd != -1 && write(fd, &info, sizeof(info)) ==
					(ssize_t)sizeof(info),
		    "run.info is written");
	if (changes & 128)
		(void)!ftruncate(fd, (off_t)(forge_number(f) & 8191));
	close(fd);
}
