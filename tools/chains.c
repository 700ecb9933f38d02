/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "chains.h"
#include "die.h"
#include "jit.h"
#include "samples.h"
#include "unwind.h"

/* A chain that was written, under its bytes. */
struct chain {
	UT_hash_handle hh;
	uint32_t id;
	char bytes[];
};

struct work {
	const struct log *log;
	int file;
	int error;
	struct samples_modules modules;
	struct unwind *unwind;
	struct unwind_chain unwound;
	struct chain *chains;
	struct {
		uint32_t bytes, chain; /* as in struct record_sample */
	} * samples;                   /* by place */
	char *out;
	size_t size, room;
	uint64_t out_at;   /* in the file; 0: not decided */
	uint64_t *nowhere; /* addresses in no file */
	size_t nowhere_count, nowhere_room;
};

static void put(struct work *w, const void *from, size_t size, uint64_t at)
{
	if (w->error == 0 && size > 0 &&
	    pwrite(w->file, from, size, (off_t)at) != (ssize_t)size)
		w->error = errno ? errno : EIO;
}

static void append(struct work *w, const void *from, size_t size)
{
	if (w->size + size > w->room) {
		w->room = 2 * w->room + size + 4096;
		w->out = xrealloc(w->out, w->room);
	}
	memcpy(w->out + w->size, from, size);
	w->size += size;
}

/* A call may be the last instruction of what it is in. */
static void note_nowhere(struct work *w, const struct record_frame *frame)
{
	if (w->nowhere_count == w->nowhere_room) {
		w->nowhere_room = 2 * w->nowhere_room + 256;
		w->nowhere = xrealloc(w->nowhere,
				      w->nowhere_room * sizeof(*w->nowhere));
	}
	w->nowhere[w->nowhere_count++] =
		frame->pc - !(frame->flags & FRAME_EXACT);
}

/* What a sample has as `chain`. */
static uint32_t chain_id(struct work *w, const struct record_frame *frames,
			 uint32_t count, bool cut)
{
	const struct record_chain head = {count, cut};
	size_t bytes = count * sizeof(*frames);
	struct chain *c = xcalloc(1, sizeof(*c) + sizeof(head) + bytes), *found;
	uint32_t i;

	memcpy(c->bytes, &head, sizeof(head));
	memcpy(c->bytes + sizeof(head), frames, bytes);
	bytes += sizeof(head);
	HASH_FIND(hh, w->chains, c->bytes, bytes, found);
	if (found) {
		free(c);
		return found->id;
	}
	for (i = 0; i < count; i++)
		if (frames[i].module == 0)
			note_nowhere(w, &frames[i]);
	c->id = 1 + (uint32_t)(w->size / 8);
	append(w, c->bytes, bytes);
	HASH_ADD(hh, w->chains, bytes[0], (unsigned)bytes, c);
	return c->id;
}

static void unwind(void *context, const struct samples_call *call)
{
	struct work *w = context;
	struct unwind_chain *u = &w->unwound;
	uint32_t id = 0;

	if (call->frames) {
		id = chain_id(w, call->frames, call->frame_count, call->cut);
	} else if (call->copy) {
		unwind_call(w->unwind, call, u);
		if (u->count > 0)
			id = chain_id(w, u->frames, u->count, u->cut);
	}
	w->samples[call->id - 1].chain = id;
}

/* The chains go behind everything else. */
static void write_chains(struct work *w)
{
	const struct record_stacks *s = log_stacks(w->log);
	const size_t at = offsetof(struct record_header, stacks);
	struct stat st;
	uint64_t where[2], end;

	if (w->size == 0 || fstat(w->file, &st) != 0)
		return;
	if (w->out_at == 0)
		w->out_at = ((uint64_t)st.st_size + 7) & ~UINT64_C(7);
	where[0] = w->out_at;
	where[1] = w->size;
	end = where[0] + w->size;
	put(w, w->out, w->size, where[0]);
	put(w, &end, sizeof(end), offsetof(struct record_header, file_bytes));
	put(w, where, sizeof(where),
	    at + offsetof(struct record_stacks, chains_at));
	for (uint32_t i = 0; i < log_samples(w->log); i++)
		if (w->samples[i].chain != 0)
			put(w, &w->samples[i], sizeof(w->samples[i]),
			    s->samples_at + i * sizeof(struct record_sample) +
				    offsetof(struct record_sample, bytes));
}

/* Where the file system has no holes, zeros. */
static void wipe(struct work *w, uint64_t at, uint64_t end)
{
	static const char zeros[65536];

	for (; at < end && w->error == 0; at += sizeof(zeros))
		put(w, zeros,
		    end - at < sizeof(zeros) ? end - at : sizeof(zeros), at);
}

/* What lay in registers is the program's memory, too.  Holes stay holes. */
static void drop_registers(struct work *w)
{
	static const uint64_t zeros[RECORD_REGISTERS];
	uint64_t had[RECORD_REGISTERS];
	uint64_t at = log_stacks(w->log)->samples_at +
		      offsetof(struct record_sample, registers);
	uint32_t i;
	ssize_t got;

	for (i = 0; i < log_samples(w->log);
	     i++, at += sizeof(struct record_sample)) {
		got = pread(w->file, had, sizeof(had), (off_t)at);
		if (got < 0 && w->error == 0)
			w->error = errno;
		if (got > 0 && memcmp(had, zeros, (size_t)got) != 0)
			put(w, zeros, sizeof(zeros), at);
	}
}

static void drop_copies(struct work *w)
{
	const struct record_stacks *s = log_stacks(w->log);
	uint64_t bytes = log_samples(w->log) * s->copy_bytes;

	if (w->error == 0 &&
	    fallocate(w->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)s->copies_at, (off_t)bytes) != 0)
		wipe(w, s->copies_at, s->copies_at + bytes);
}

/* What cannot be replaced is erased all the same: nobody wants the program's
 * memory in a file that stays. */
static void forget_stacks(struct work *w)
{
	static const uint32_t none[2];
	int error = w->error;
	uint32_t i;

	w->error = 0;
	for (i = 0; i < log_samples(w->log); i++)
		if (w->samples[i].chain != 0)
			put(w, none, sizeof(none),
			    log_stacks(w->log)->samples_at +
				    i * sizeof(struct record_sample) +
				    offsetof(struct record_sample, bytes));
	drop_copies(w);
	drop_registers(w);
	w->error = error;
}

/* Chains in place of copies.  On a full disk the copies make room for them. */
static void replace(struct work *w)
{
	write_chains(w);
	if (w->error == ENOSPC || w->error == EDQUOT) {
		w->error = 0;
		drop_copies(w);
		write_chains(w);
	}
	drop_copies(w);
	drop_registers(w);
	if (w->error != 0)
		forget_stacks(w);
}

static void write_build_ids(struct work *w, struct images *images)
{
	uint64_t at = log_stacks(w->log)->modules_at;
	size_t i;

	for (i = 0; i < w->modules.count; i++) {
		const struct samples_module *m = &w->modules.list[i];
		uint64_t slot = at + m->slot * (uint64_t)RECORD_MODULE_BYTES;
		uint8_t id[RECORD_BUILD_ID];
		uint32_t size = 0;
		struct image *image;

		if (m->identity.build_id_bytes > 0)
			continue;
		image = images_get(images, &m->identity)->image;
		if (image)
			size = image_build_id(image, id);
		if (size == 0)
			continue;
		put(w, id, size,
		    slot + offsetof(struct record_module, build_id));
		put(w, &size, sizeof(size),
		    slot + offsetof(struct record_module, build_id_bytes));
	}
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Without them the report has addresses: nothing is lost that was asked for. */
static void keep_names(struct work *w, int directory)
{
	const struct log_process *p = log_process(w->log);
	const char *slash = strrchr(log_path(w->log), '/');
	struct jit *jit;
	size_t count = 0, i;

	if (w->nowhere_count == 0 || !slash)
		return;
	qsort(w->nowhere, w->nowhere_count, sizeof(*w->nowhere), by_address);
	for (i = 0; i < w->nowhere_count; i++)
		if (count == 0 || w->nowhere[i] != w->nowhere[count - 1])
			w->nowhere[count++] = w->nowhere[i];
	jit = jit_of_process(p->pid, p->started_unix_ns, w->nowhere, count);
	if (jit)
		jit_write(jit, directory, slash + 1);
	jit_free(jit);
}

static void drop_work(struct work *w)
{
	struct chain *c, *next;

	HASH_ITER(hh, w->chains, c, next)
	{
		HASH_DEL(w->chains, c);
		free(c);
	}
	unwind_free(w->unwind);
	samples_modules_free(&w->modules);
	free(w->samples);
	free(w->nowhere);
	free(w->out);
}

int chains_write(struct log *log, int file, int directory,
		 struct images *images)
{
	struct work *w;
	struct samples_count count;
	int error;

	if (log_samples(log) == 0)
		return 0;
	w = xcalloc(1, sizeof(*w));
	w->log = log;
	w->file = file;
	w->modules = samples_modules(log);
	w->unwind = unwind_new(images, &w->modules, log_stacks(log)->machine);
	w->samples = xcalloc(log_samples(log), sizeof(*w->samples));
	if (!samples_each(log, &count, unwind, w))
		w->error = EIO;
	if (w->error == 0)
		replace(w);
	write_build_ids(w, images);
	keep_names(w, directory);
	error = w->error;
	drop_work(w);
	free(w);
	return error;
}
