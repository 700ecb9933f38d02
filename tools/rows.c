/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "rows.h"
#include "source.h"
#include "utf8.h"

_Static_assert(sizeof(struct rows_header) <= ROWS_HEADER_BYTES, "header");
_Static_assert(sizeof(struct rows_row) % 8 == 0, "row");
_Static_assert(offsetof(struct rows_row, check) + 8 == sizeof(struct rows_row),
	       "check is last");

/* --- both sides --- */

unsigned rows_bucket(double ns)
{
	const unsigned top_bit = ROWS_FLOOR_BITS + ROWS_BUCKETS / 2 - 1;
	unsigned top, bucket;
	uint64_t value;

	if (!(ns >= 1 << ROWS_FLOOR_BITS))
		return 0;
	if (ns >= ldexp(1, (int)top_bit))
		return ROWS_BUCKETS - 1;
	value = (uint64_t)ns;
	top = 63 - (unsigned)__builtin_clzll(value);
	bucket = 1 + 2 * (top - ROWS_FLOOR_BITS);
	return bucket + (value >> (top - 1) & 1);
}

double rows_bucket_floor(unsigned bucket)
{
	int octave = ((int)bucket - 1) / 2;

	if (bucket == 0)
		return 0;
	return ldexp(bucket % 2 ? 1 : 1.5, ROWS_FLOOR_BITS + octave);
}

uint64_t rows_check(const struct rows_row *row)
{
	const size_t words = offsetof(struct rows_row, check) / 8;
	const char *at = (const char *)row;
	uint64_t check = ROWS_MAGIC, word;
	size_t i;

	for (i = 0; i < words; i++) {
		memcpy(&word, at + 8 * i, 8);
		check = record_rotate(check ^ word, 7) * UINT64_C(0x9e3779b1);
	}
	return check;
}

static void join_op(struct rows_op *into, const struct rows_op *from)
{
	unsigned i;

	into->count += from->count;
	into->errors += from->errors;
	into->wait_ns += from->wait_ns;
	into->kernel_ns += from->kernel_ns;
	for (i = 0; i < ROWS_BUCKETS; i++) {
		into->wait[i] += from->wait[i];
		into->kernel[i] += from->kernel[i];
	}
}

void rows_join(struct rows_row *into, const struct rows_row *from)
{
	unsigned i;

	into->span_ns = from->from_ns + from->span_ns - into->from_ns;
	into->voluntary_switches += from->voluntary_switches;
	into->involuntary_switches += from->involuntary_switches;
	into->minor_faults += from->minor_faults;
	into->major_faults += from->major_faults;
	into->user_ns += from->user_ns;
	into->system_ns += from->system_ns;
	into->queue_ns += from->queue_ns;
	into->tlb_shootdowns += from->tlb_shootdowns;
	if (from->processes > into->processes)
		into->processes = from->processes;
	if (from->threads > into->threads)
		into->threads = from->threads;
	for (i = 0; i < OP_COUNT; i++)
		join_op(&into->op[i], &from->op[i]);
}

void rows_add_hist(uint32_t *buckets, const struct hist *h)
{
	unsigned i;

	for (i = 0; i < h->width; i++)
		if (h->bucket[i] > 0)
			buckets[rows_bucket(hist_middle(h, h->first + i))] +=
				(uint32_t)h->bucket[i];
}

/* --- the reader --- */

static bool refuse(char why[256], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static bool refuse(char why[256], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, 256, format, args);
	va_end(args);
	return false;
}

static bool is_ours(const struct rows_header *h, char why[256])
{
	if (h->magic != ROWS_MAGIC)
		return refuse(why, "is not of mmgate");
	if (h->version != ROWS_VERSION)
		return refuse(why, "is of another version of mmgate (%u)",
			      h->version);
	if (h->row_bytes != sizeof(struct rows_row) ||
	    h->thread_bytes != sizeof(struct rows_thread) ||
	    h->op_count != OP_COUNT || h->bucket_count != ROWS_BUCKETS)
		return refuse(why, "is damaged: its rows have another size");
	if (h->rows > ROWS_MAX || h->threads > ROWS_THREADS)
		return refuse(why, "is damaged: %u rows, %u threads", h->rows,
			      h->threads);
	return true;
}

/* Rows that a writer was busy with, or that lie, are left out. */
static void keep_sound(struct rows *rows)
{
	const uint64_t most = UINT64_C(1) << 62;
	uint64_t end = 0;
	struct rows_row *row;
	size_t kept = 0, i;

	for (i = 0; i < rows->count; i++) {
		row = &rows->row[i];
		if (row->check != rows_check(row) || row->from_ns < end ||
		    row->from_ns > most || row->span_ns > most)
			continue;
		end = row->from_ns + row->span_ns;
		rows->row[kept++] = *row;
	}
	rows->count = kept;
}

static int by_number(const void *a, const void *b)
{
	const struct rows_thread *s = a, *t = b;

	if (s->pid != t->pid)
		return s->pid < t->pid ? -1 : 1;
	return (s->tid > t->tid) - (s->tid < t->tid);
}

static void clean_threads(struct rows *rows)
{
	char name[sizeof(rows->thread->name)];
	size_t i;

	for (i = 0; i < rows->thread_count; i++) {
		utf8_clean(name, rows->thread[i].name, sizeof(name) - 1, 0);
		memcpy(rows->thread[i].name, name, sizeof(name));
	}
	if (rows->thread_count > 0)
		qsort(rows->thread, rows->thread_count, sizeof(*rows->thread),
		      by_number);
}

static bool read_parts(struct rows *rows, struct source *source, char why[256])
{
	struct rows_header h = {0};
	int error = 0;

	/* The header is written last: `run` was killed before its first. */
	if (source->size > 0)
		error = source_read(source, &h, sizeof(h), 0);
	if (!error && h.magic == 0)
		return false;
	if (!error && !is_ours(&h, why))
		return false;
	if (!error) {
		rows->count = h.rows;
		rows->row = xcalloc(h.rows, sizeof(*rows->row));
		error = source_read(source, rows->row,
				    h.rows * sizeof(*rows->row), ROWS_AT);
	}
	if (!error) {
		rows->missed = h.missed;
		rows->cpus = h.cpus;
		utf8_clean(rows->kernel, h.kernel, sizeof(h.kernel), 0);
		rows->thread_count = h.threads;
		rows->thread = xcalloc(h.threads, sizeof(*rows->thread));
		error = source_read(source, rows->thread,
				    h.threads * sizeof(*rows->thread),
				    ROWS_HEADER_BYTES);
	}
	if (error)
		return refuse(why, "cannot be read: %s", strerror(-error));
	return true;
}

bool rows_read(struct rows *rows, const char *directory, char why[256])
{
	char *path = xasprintf("%s/%s", directory, ROWS_NAME);
	struct source source;
	bool sound = false;

	memset(rows, 0, sizeof(*rows));
	*why = '\0';
	if (!source_open(&source, path)) {
		sound = read_parts(rows, &source, why);
		source_close(&source);
	}
	free(path);
	if (sound) {
		keep_sound(rows);
		clean_threads(rows);
	}
	if (rows->count > 0)
		return true;
	rows_drop(rows);
	return false;
}

void rows_cut(struct rows *rows, uint64_t since_ns, uint64_t until_ns)
{
	size_t kept = 0, i;

	for (i = 0; i < rows->count; i++)
		if (rows->row[i].from_ns < until_ns &&
		    rows->row[i].from_ns + rows->row[i].span_ns > since_ns)
			rows->row[kept++] = rows->row[i];
	rows->count = kept;
}

void rows_drop(struct rows *rows)
{
	free(rows->row);
	free(rows->thread);
	memset(rows, 0, sizeof(*rows));
}

struct rows_op rows_sum(const struct rows_row *row)
{
	struct rows_op all = {0};
	unsigned i;

	for (i = 0; i < OP_COUNT; i++)
		join_op(&all, &row->op[i]);
	return all;
}

double rows_percentile(const uint32_t *buckets, double p)
{
	double count = 0, rank, seen = 0;
	unsigned i;

	for (i = 0; i < ROWS_BUCKETS; i++)
		count += buckets[i];
	if (count == 0)
		return 0;
	rank = fmax(ceil(p * count), 1);
	for (i = 0; seen + buckets[i] < rank; i++)
		seen += buckets[i];
	if (i == 0)
		return 0;
	return (rows_bucket_floor(i) + rows_bucket_floor(i + 1)) / 2;
}

const char *rows_name(const struct rows *rows, uint32_t pid, uint32_t tid)
{
	const struct rows_thread key = {.pid = pid, .tid = tid};
	const struct rows_thread *found = NULL;

	if (rows->thread_count > 0)
		found = bsearch(&key, rows->thread, rows->thread_count,
				sizeof(key), by_number);
	return found && *found->name ? found->name : NULL;
}
