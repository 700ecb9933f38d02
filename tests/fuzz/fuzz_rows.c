/* SPDX-License-Identifier: MIT */
/* Figures over time that may be anything, beside a log that is sound. */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../tools/cmd.h"
#include "../../tools/rows.h"
#include "../unit/make_log.h"
#include "forge.h"
#include "fuzz.h"
#include "stage.h"

enum { MOST = 24 };

static char *log_path, *rows_path;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	stage_begin();
	log_path = stage_path("77-1700000000000000000.mmgate");
	rows_path = stage_path(ROWS_NAME);
	return 0;
}

static void make_sound_log(void)
{
	struct make_log log = make_log_begin(log_path, 1, 64, 1);
	struct record_event event = {.op = OP_MUNMAP, .weight = 1, .tid = 77};
	uint32_t i;

	log.header->end = make_log_pair(&log, 100000);
	for (i = 0; i < 40; i++) {
		event.time = MAKE_LOG_START_TICKS + i * 1000;
		event.kernel_low = 100 + i;
		make_log_event(&log, 0, event);
		make_log_count(&log, 0, OP_MUNMAP, UINT64_MAX, 100 + i);
	}
	make_log_close(&log);
}

/* A row that follows the last, but for what the bytes say of it. */
static void forge_row(struct forge *f, struct rows_row *row, uint64_t from)
{
	uint64_t *words = (uint64_t *)row;
	const size_t count = sizeof(*row) / sizeof(*words) - 1;
	uint8_t changes = forge_byte(f), i;
	size_t at;

	memset(row, 0, sizeof(*row));
	row->from_ns = from;
	row->span_ns = 1000;
	row->processes = row->threads = 1;
	for (i = 0; i < changes % 16; i++) {
		at = (size_t)forge_byte(f) * 7 % count;
		words[at] = forge_number(f);
	}
	row->check = changes & 128 ? forge_number(f) : rows_check(row);
}

static void forge_header(struct forge *f, struct rows_header *h)
{
	uint64_t value;
	uint8_t at;

	*h = (struct rows_header){
		.magic = ROWS_MAGIC,
		.version = ROWS_VERSION,
		.row_bytes = sizeof(struct rows_row),
		.thread_bytes = sizeof(struct rows_thread),
		.op_count = OP_COUNT,
		.bucket_count = ROWS_BUCKETS,
		.rows = forge_byte(f) % (MOST + 1),
		.threads = forge_byte(f) % (MOST + 1),
		.cpus = 2,
	};
	forge_bytes(f, h->kernel, sizeof(h->kernel));
	at = forge_byte(f);
	if (at >= 64)
		return;
	value = forge_number(f);
	memcpy((char *)h + at % offsetof(struct rows_header, kernel) / 4 * 4,
	       &value, 4);
}

static void forge_thread(struct forge *f, struct rows_thread *t)
{
	*t = (struct rows_thread){.pid = 77, .tid = 77};
	t->tid += forge_byte(f) % 4;
	forge_bytes(f, t->name, sizeof(t->name));
}

static void forge_rows(struct forge *f)
{
	static struct {
		struct rows_header header;
		char gap[ROWS_HEADER_BYTES - sizeof(struct rows_header)];
		struct rows_thread thread[ROWS_THREADS];
		struct rows_row row[MOST];
	} file;
	int fd = open(rows_path, O_WRONLY | O_CREAT | O_TRUNC, 0600), i;

	forge_header(f, &file.header);
	for (i = 0; i < MOST; i++)
		forge_thread(f, &file.thread[i]);
	for (i = 0; i < MOST; i++)
		forge_row(f, &file.row[i],
			  MAKE_LOG_START_NS + (uint64_t)i * 1000);
	stage_check(fd != -1 && write(fd, &file, sizeof(file)) ==
					(ssize_t)sizeof(file),
		    "the rows are written");
	if (forge_byte(f) & 128)
		(void)!ftruncate(fd, (off_t)(forge_number(f) & 0x7ffff));
	close(fd);
}

static void play(const char *line, enum stage_form form)
{
	struct stage_end end = stage_run(cmd_report.run, line, form);

	stage_check(!end.died && end.status == 0, "bad rows do no harm");
	stage_check(end.complaints <= 1, "one line for them at most");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct forge f = {data, size};
	struct stage_end end;

	make_sound_log();
	forge_rows(&f);
	play("report DIR", STAGE_TEXT);
	play("report --format json DIR", STAGE_JSON);
	play("report --format html DIR", STAGE_HTML);
	play("report --until 10us --format json DIR", STAGE_JSON);
	end = stage_run(cmd_report.run, "report --diff DIR DIR", STAGE_TEXT);
	stage_check(!end.died && end.status == 0, "nor to two runs");
	end = stage_run(cmd_export.run, "export --format chrome DIR",
			STAGE_JSON);
	stage_check(!end.died && end.status == 0, "nor to a trace");
	return 0;
}
