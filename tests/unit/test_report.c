/* SPDX-License-Identifier: MIT */
/* The text report of logs whose figures are as wide as they can be. */
#include <stdlib.h>
#include <unistd.h>

#include "../../tools/report.h"
#include "../../tools/images.h"
#include "../../tools/symbols.h"
#include "check.h"
#include "make_log.h"

enum { WIDTH = 120 };

static const char *path;

static char *report_of_log(void)
{
	struct log_dir *dir = log_dir_open(make_log_directory());
	const struct log_process *process = log_process(dir->logs[0]);
	struct images *images = images_new();
	struct report report = {.dir = dir,
				.processes = &process,
				.count = 1,
				.logs = dir->logs,
				.images = images,
				.window = {0, UINT64_MAX}};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	report_text(&report, out);
	fclose(out);
	images_free(images, symbols_free);
	log_dir_close(dir);
	return text;
}

static void check_width(const char *text, const char *what)
{
	unsigned lines = 0, wide = 0;
	size_t length;

	for (; *text; text += length + (text[length] == '\n')) {
		length = strcspn(text, "\n");
		wide += length > WIDTH;
		lines++;
	}
	check_u64(0, wide, "lines of more than %d columns, of %u: %s", WIDTH,
		  lines, what);
}

/* Shortest to longest, as people read them. */
static const uint64_t values[] = {
	0,          7,           999,           43100,
	9994000000, 99940000000, 3599900000000, UINT64_MAX >> 2,
	UINT64_MAX,
};
enum { VALUES = sizeof(values) / sizeof(*values) };

/* Which figures an op has, a bit each. */
enum {
	ERRORS = 1,
	BYTES = 2,
	BYPASSED = 4,
	GATED = 8,
	SHAPES = 16,
};

static void put_hist(struct record_hist *h, uint64_t value)
{
	h->bucket[record_bucket(value)] = value / 2 + 1;
	h->bucket[1] = value / 3 + 1;
	h->sum = value;
	h->max = value;
}

static void put_op(struct record_op *op, uint64_t value, unsigned shape)
{
	put_hist(&op->kernel, value);
	if (shape & ERRORS)
		op->errors = value;
	if (shape & BYTES)
		op->bytes = value;
	if (shape & BYPASSED)
		op->bypassed[BYPASS_TIMEOUT] = value;
	if (shape & GATED)
		put_hist(&op->wait, value);
}

static void make(uint64_t value, unsigned shape, double ns_per_tick)
{
	struct make_log log = make_log_begin(path, 1, 0, ns_per_tick);
	unsigned op;

	log.header->fresh[0] = make_log_pair(&log, 50000);
	for (op = 0; op < OP_COUNT; op++)
		put_op(&make_log_stripe(&log, 0)->op[op], value, shape);
	make_log_close(&log);
}

static void test_widths(void)
{
	static const double rates[] = {1, 1000};
	unsigned value, shape, rate;
	char *text, what[128];

	for (value = 0; value < VALUES; value++)
		for (shape = 0; shape < SHAPES; shape++)
			for (rate = 0; rate < 2; rate++) {
				make(values[value], shape, rates[rate]);
				text = report_of_log();
				snprintf(what, sizeof(what),
					 "values of %" PRIu64
					 ", shape %u, ticks of %g ns",
					 values[value], shape, rates[rate]);
				check_width(text, what);
				free(text);
			}
}

static void test_columns_that_say_nothing(void)
{
	char *text;

	make(1000, 0, 1);
	text = report_of_log();
	check_true(!strstr(text, "errors"), "without errors no such column");
	check_true(!strstr(text, "bytes"), "without bytes neither");
	check_true(!strstr(text, "waited"), "without a lock no waiting");
	free(text);
	make(1000, SHAPES - 1, 1);
	text = report_of_log();
	check_true(strstr(text, " errors ") && strstr(text, " bytes ") &&
			   strstr(text, "waited at the gate"),
		   "and with them there are");
	check_true(strstr(text, " op ") && strstr(text, " calls ") &&
			   strstr(text, " total ") && strstr(text, " share"),
		   "what matters stays");
	free(text);
}

/* Texts of the header are of any length. */
static void test_long_texts(void)
{
	struct make_log log = make_log_begin(path, 1, 0, 1);
	struct record_header *h = log.header;
	char *text;

	h->fresh[0] = make_log_pair(&log, 50000);
	for (size_t i = 0; i + 1 < sizeof(h->limits); i++)
		h->limits[i] = i % 12 ? 'l' : ' ';
	strcpy(h->hooks, "libc=symbols only: ");
	for (size_t i = strlen(h->hooks); i + 1 < sizeof(h->hooks); i++)
		h->hooks[i] = i % 30 ? 'h' : ' ';
	make_log_close(&log);
	text = report_of_log();
	check_width(text, "reasons without end");
	free(text);
}

int main(void)
{
	path = make_log_path();
	test_widths();
	test_columns_that_say_nothing();
	test_long_texts();
	return check_done();
}
