/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "make_log.h"

/* --- where --- */

static char directory[4096];

static void remove_directory(void)
{
	char path[sizeof(directory) + NAME_MAX + 1];
	DIR *open = opendir(directory);
	struct dirent *entry;

	while (open && (entry = readdir(open))) {
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		unlink(path);
	}
	if (open)
		closedir(open);
	rmdir(directory);
}

const char *make_log_directory(void)
{
	const char *tmp = getenv("TMPDIR");

	if (*directory)
		return directory;
	snprintf(directory, sizeof(directory), "%s/mmgate-test-XXXXXX",
		 tmp ? tmp : "/tmp");
	if (!mkdtemp(directory)) {
		perror(directory);
		exit(1);
	}
	atexit(remove_directory);
	return directory;
}

const char *make_log_path(void)
{
	static char path[sizeof(directory) + 64];

	snprintf(path, sizeof(path), "%s/77-1700000000000000000.mmgate",
		 make_log_directory());
	return path;
}

/* --- the file --- */

static void *map(const char *path, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	void *at;

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0) {
		perror(path);
		exit(1);
	}
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	return at;
}

static uint64_t ring_bytes(uint32_t slots)
{
	return (uint64_t)slots * sizeof(struct record_event);
}

struct record_pair make_log_pair(const struct make_log *m, uint64_t ticks)
{
	struct record_pair pair = {.ticks = ticks};

	pair.ns = MAKE_LOG_START_NS +
		  (uint64_t)((double)(ticks - MAKE_LOG_START_TICKS) *
			     m->ns_per_tick);
	pair.check = pair.ticks ^ pair.ns ^ RECORD_MAGIC;
	return pair;
}

static void fill(struct make_log *m, uint32_t stripes, uint32_t ring_slots)
{
	struct record_header *h = m->header;

	h->version = RECORD_VERSION;
	h->header_bytes = RECORD_HEADER_BYTES;
	h->file_bytes = m->size;
	h->op_count = OP_COUNT;
	h->bucket_count = RECORD_BUCKETS;
	h->event_bytes = sizeof(struct record_event);
	h->stripe_bytes = sizeof(struct record_stripe);
	h->stripes = stripes;
	h->ring_slots = ring_slots;
	h->stripes_at = RECORD_HEADER_BYTES;
	h->rings_at = RECORD_HEADER_BYTES +
		      stripes * (uint64_t)sizeof(struct record_stripe);
	h->pid = 77;
	h->epoch = 1;
	h->clock = m->ns_per_tick == 1 ? RECORD_CLOCK_NS : RECORD_CLOCK_TSC;
	h->started = UINT64_C(1700000000000000000);
	h->start = make_log_pair(m, MAKE_LOG_START_TICKS);
	h->threads = 1;
	strcpy(h->comm, "subj");
	strcpy(h->exe, "/opt/subject");
	strcpy(h->settings, "lock=mutex\ncalls=mmap,munmap\nhooks=symbols\n"
			    "place=kernel\nmax_wait=1s\n");
	strcpy(h->hooks, "symbols=on\nlibc=off: a reason\n");
	h->magic = RECORD_MAGIC;
}

static struct make_log begin(const char *path, uint32_t stripes,
			     uint32_t ring_slots, double ns_per_tick,
			     size_t more)
{
	struct make_log m = {.ns_per_tick = ns_per_tick};
	uint32_t i;

	m.size = RECORD_HEADER_BYTES +
		 stripes * (sizeof(struct record_stripe) +
			    ring_bytes(ring_slots)) +
		 more;
	m.base = map(path, m.size);
	m.header = (void *)m.base;
	fill(&m, stripes, ring_slots);
	for (i = 0; i < stripes; i++) {
		make_log_stripe(&m, i)->capacity = ring_slots;
		make_log_stripe(&m, i)->populated = ring_slots;
	}
	return m;
}

struct make_log make_log_begin(const char *path, uint32_t stripes,
			       uint32_t ring_slots, double ns_per_tick)
{
	return begin(path, stripes, ring_slots, ns_per_tick, 0);
}

/* --- stacks --- */

enum {
	MODULES_SIZE = MAKE_LOG_MODULES * RECORD_MODULE_BYTES,
	SAMPLES = (POOL_COUNT + 1) * MAKE_LOG_SAMPLES,
	SAMPLES_SIZE = SAMPLES * (int)sizeof(struct record_sample),
	STACKS_SIZE =
		MODULES_SIZE + SAMPLES_SIZE + (SAMPLES + 1) * MAKE_LOG_COPY,
};

struct make_log make_log_begin_with_stacks(const char *path, uint32_t stripes,
					   uint32_t ring_slots,
					   double ns_per_tick)
{
	struct make_log m =
		begin(path, stripes, ring_slots, ns_per_tick, STACKS_SIZE);
	struct record_stacks *s = &m.header->stacks;

	s->module_bytes = RECORD_MODULE_BYTES;
	s->sample_bytes = sizeof(struct record_sample);
	s->machine = 62;
	s->module_slots = MAKE_LOG_MODULES;
	s->modules_at = m.size - STACKS_SIZE;
	s->samples_at = s->modules_at + MODULES_SIZE;
	s->copies_at = s->samples_at + SAMPLES_SIZE;
	s->copy_bytes = MAKE_LOG_COPY;
	for (uint32_t i = 0; i < POOL_COUNT; i++) {
		s->pool[i].slots = MAKE_LOG_SAMPLES;
		s->pool[i].first = i * MAKE_LOG_SAMPLES;
	}
	s->pool[POOL_SLOW].worst = MAKE_LOG_SAMPLES;
	return m;
}

static void *at(struct make_log *m, uint64_t offset)
{
	return m->base + (m->size - STACKS_SIZE) + offset;
}

struct record_module *make_log_module(struct make_log *m, uint32_t i)
{
	return at(m, (uint64_t)i * RECORD_MODULE_BYTES);
}

struct record_sample *make_log_sample(struct make_log *m, uint32_t i)
{
	return at(m, MODULES_SIZE + i * sizeof(struct record_sample));
}

char *make_log_copy(struct make_log *m, uint32_t i, uint32_t page)
{
	return at(m, MODULES_SIZE + SAMPLES_SIZE +
			     ((uint64_t)page * SAMPLES + i) * RECORD_COPY_PAGE);
}

char *make_log_chains(struct make_log *m)
{
	return make_log_copy(m, 0, MAKE_LOG_COPY / RECORD_COPY_PAGE);
}

struct record_stripe *make_log_stripe(struct make_log *m, uint32_t stripe)
{
	return (void *)(m->base + RECORD_HEADER_BYTES +
			stripe * sizeof(struct record_stripe));
}

struct record_event *make_log_slot(struct make_log *m, uint32_t stripe,
				   uint64_t slot)
{
	char *rings = m->base + m->header->rings_at +
		      stripe * ring_bytes(m->header->ring_slots);

	return (struct record_event *)(void *)rings + slot;
}

void make_log_value(struct record_hist *h, uint64_t ticks)
{
	h->sum += ticks;
	h->bucket[record_bucket(ticks)]++;
	if (ticks > h->max)
		h->max = ticks;
}

void make_log_count(struct make_log *m, uint32_t stripe, enum op op,
		    uint64_t waited, uint64_t kernel)
{
	struct record_op *to = &make_log_stripe(m, stripe)->op[op];

	make_log_value(&to->kernel, kernel);
	if (waited != UINT64_MAX)
		make_log_value(&to->wait, waited);
}

void make_log_event(struct make_log *m, uint32_t stripe,
		    struct record_event event)
{
	struct record_stripe *s = make_log_stripe(m, stripe);
	uint64_t n = s->head++;

	event.seq = (uint32_t)(n + 1);
	event.check = record_event_check(&event);
	*make_log_slot(m, stripe, n & (s->capacity - 1)) = event;
}

void make_log_close(struct make_log *m)
{
	munmap(m->base, m->size);
	m->base = NULL;
}
