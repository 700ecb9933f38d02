/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "busy.h"
#include "cmd.h"
#include "die.h"
#include "export.h"
#include "json.h"
#include "knobs.h"
#include "log.h"
#include "opts.h"
#include "output.h"
#include "sites.h"

/* --- an event as columns --- */

enum field {
	FIELD_LENGTH = 1,
	FIELD_ARG = 2,
	FIELD_FLAGS = 4,
	FIELD_FD = 8,
	FIELD_OFFSET = 16,
	FIELD_MAPS = 32, /* the result is an address */
};

/* What the kernel call has; every one has an address. */
static const unsigned char fields[OP_COUNT] = {
	[OP_MMAP] = FIELD_LENGTH | FIELD_ARG | FIELD_FLAGS | FIELD_FD |
		    FIELD_OFFSET | FIELD_MAPS,
	[OP_MUNMAP] = FIELD_LENGTH,
	[OP_MPROTECT] = FIELD_LENGTH | FIELD_ARG,
	[OP_MADVISE] = FIELD_LENGTH | FIELD_ARG,
	[OP_MREMAP] = FIELD_LENGTH | FIELD_ARG | FIELD_FLAGS | FIELD_OFFSET |
		      FIELD_MAPS,
	[OP_BRK] = FIELD_MAPS,
	/* fd is the key. */
	[OP_PKEY_MPROTECT] = FIELD_LENGTH | FIELD_ARG | FIELD_FD,
};

/* An event as its columns show it. */
struct row {
	const struct log_event *event;
	uint32_t pid;
	unsigned fields;
	uint64_t arg;
	bool offset_is_address;
	int error;
	bool gated;
	struct sites *sites;
	bool names; /* instead of addresses of code */
};

static struct row row_of(const struct log_event *event, struct sites *sites,
			 bool names)
{
	const struct record_event *e = &event->raw;
	struct row row = {
		.event = event,
		.pid = sites->process->pid,
		.sites = sites,
		.names = names,
		.fields = fields[e->op],
		.arg = e->arg,
		.error = e->result < 0 && e->result >= -4095 ? (int)-e->result
							     : 0,
		.gated = e->outcome == OUTCOME_GATED,
	};

	if (e->op == OP_MREMAP) {
		row.arg |= (uint64_t)(uint32_t)e->fd << 32;
		row.offset_is_address = true;
		if (!(e->flags & MREMAP_FIXED))
			row.fields &= ~(unsigned)FIELD_OFFSET;
	}
	return row;
}

/* --- code: addresses, or names --- */

static char *caller_name(const struct row *row)
{
	const struct sites_frame *const *frames;

	if (sites_frames_at(row->sites, row->event->raw.caller,
			    row->event->time_ns, true, &frames) == 0)
		return xasprintf("0x%llx",
				 (unsigned long long)row->event->raw.caller);
	return xstrdup(frames[0]->name);
}

/* --- csv: printf would take most of the time --- */

static const char csv_head[] =
	"time_ns,pid,tid,op,addr,length,arg,flags,fd,offset,result,error,"
	"wait_ns,kernel_ns,caller,stack\n";

/* A line being written; its longest is far below the size. */
struct line {
	char *at;
	char text[512];
};

static void put_comma(struct line *line)
{
	*line->at++ = ',';
}

static void put_u64(struct line *line, uint64_t value)
{
	char digits[20];
	int n = 0;

	do
		digits[n++] = (char)('0' + value % 10);
	while (value /= 10);
	while (n > 0)
		*line->at++ = digits[--n];
}

static void put_i64(struct line *line, int64_t value)
{
	if (value < 0)
		*line->at++ = '-';
	put_u64(line, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

static void put_hex(struct line *line, uint64_t value)
{
	int shift = value ? (63 - __builtin_clzll(value)) / 4 * 4 : 0;

	*line->at++ = '0';
	*line->at++ = 'x';
	for (; shift >= 0; shift -= 4)
		*line->at++ = "0123456789abcdef"[value >> shift & 15];
}

static void put_word(struct line *line, const char *word)
{
	line->at = stpcpy(line->at, word);
}

static void put_arguments(struct line *line, const struct row *row)
{
	const struct record_event *e = &row->event->raw;

	put_hex(line, e->addr);
	put_comma(line);
	if (row->fields & FIELD_LENGTH)
		put_u64(line, e->length);
	put_comma(line);
	if (row->fields & FIELD_ARG)
		put_u64(line, row->arg);
	put_comma(line);
	if (row->fields & FIELD_FLAGS)
		put_u64(line, e->flags);
	put_comma(line);
	if (row->fields & FIELD_FD)
		put_i64(line, e->fd);
	put_comma(line);
	if (row->fields & FIELD_OFFSET) {
		if (row->offset_is_address)
			put_hex(line, e->offset);
		else
			put_u64(line, e->offset);
	}
}

static void put_result(struct line *line, const struct row *row)
{
	const struct record_event *e = &row->event->raw;

	if (row->error)
		put_word(line, "-1");
	else if (row->fields & FIELD_MAPS)
		put_hex(line, (uint64_t)e->result);
	else
		put_i64(line, e->result);
	put_comma(line);
	put_u64(line, (unsigned)row->error);
}

static void put_times(struct line *line, const struct row *row)
{
	if (row->gated)
		put_u64(line, row->event->wait_ns);
	put_comma(line);
	put_u64(line, row->event->kernel_ns);
}

/* Inside quotes, if there are any. */
static void put_quoted(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text == ';' ? ':' : *text, out);
	}
}

/* The addresses, or names, from the caller on; quoted where csv asks for it. */
static void put_stack(const struct row *row, FILE *out)
{
	const struct sites_stack *stack =
		row->event->raw.stack ? sites_stack_of(row->sites, row->event)
				      : NULL;
	const char *between = "";
	size_t i;

	for (i = 0; stack && i < stack->count; i++) {
		if (!row->names && stack->frames[i]->inlined)
			continue;
		fputs(between, out);
		if (row->names)
			put_quoted(stack->frames[i]->name, out);
		else
			fprintf(out, "0x%llx",
				(unsigned long long)stack->frames[i]->pc);
		between = ";";
	}
}

static void csv_code(const struct row *row, FILE *out)
{
	char *name;

	if (row->names && row->event->raw.caller) {
		name = caller_name(row);
		fputc('"', out);
		put_quoted(name, out);
		fputc('"', out);
		free(name);
	}
	fputs(row->names ? ",\"" : ",", out);
	put_stack(row, out);
	fputs(row->names ? "\"\n" : "\n", out);
}

static void csv_row(const struct row *row, FILE *out)
{
	const struct record_event *e = &row->event->raw;
	struct line line;

	if (e->kind != EVENT_CALL)
		return;
	line.at = line.text;
	put_u64(&line, row->event->time_ns);
	put_comma(&line);
	put_u64(&line, row->pid);
	put_comma(&line);
	put_u64(&line, e->tid);
	put_comma(&line);
	put_word(&line, op_name(e->op));
	put_comma(&line);
	put_arguments(&line, row);
	put_comma(&line);
	put_result(&line, row);
	put_comma(&line);
	put_times(&line, row);
	put_comma(&line);
	if (e->caller && !row->names)
		put_hex(&line, e->caller);
	if (!row->names && !e->stack)
		put_word(&line, ",\n");
	fwrite(line.text, 1, (size_t)(line.at - line.text), out);
	if (row->names || e->stack)
		csv_code(row, out);
}

/* --- jsonl --- */

static void json_arguments(struct json *j, const struct row *row)
{
	const struct record_event *e = &row->event->raw;

	json_hex(j, "addr", e->addr);
	if (row->fields & FIELD_LENGTH)
		json_u64(j, "length", e->length);
	if (row->fields & FIELD_ARG)
		json_u64(j, "arg", row->arg);
	if (row->fields & FIELD_FLAGS)
		json_u64(j, "flags", e->flags);
	if (row->fields & FIELD_FD)
		json_i64(j, "fd", e->fd);
	if (row->fields & FIELD_OFFSET) {
		if (row->offset_is_address)
			json_hex(j, "offset", e->offset);
		else
			json_u64(j, "offset", e->offset);
	}
}

static void json_result(struct json *j, const struct row *row)
{
	const struct record_event *e = &row->event->raw;

	if (row->error)
		json_i64(j, "result", -1);
	else if (row->fields & FIELD_MAPS)
		json_hex(j, "result", (uint64_t)e->result);
	else
		json_i64(j, "result", e->result);
	json_i64(j, "error", row->error);
}

static void json_outcome(struct json *j, const struct record_event *e)
{
	if (e->outcome == OUTCOME_UNGATED)
		return;
	if (e->outcome == OUTCOME_GATED)
		json_bool(j, "gated", true);
	else
		json_string(j, "bypassed",
			    log_bypass_name(e->outcome - OUTCOME_BYPASSED));
}

static void json_stack(struct json *j, const struct row *row)
{
	const struct sites_stack *stack =
		sites_stack_of(row->sites, row->event);
	size_t i;

	if (!stack)
		return;
	json_bool(j, "stack_cut", stack->cut);
	json_open(j, "stack", '[');
	for (i = 0; i < stack->count; i++)
		if (row->names)
			json_string(j, NULL, stack->frames[i]->name);
		else if (!stack->frames[i]->inlined)
			json_hex(j, NULL, stack->frames[i]->pc);
	json_close(j);
}

static void json_code(struct json *j, const struct row *row)
{
	char *name;

	if (row->event->raw.caller && row->names) {
		name = caller_name(row);
		json_string(j, "caller", name);
		free(name);
	} else if (row->event->raw.caller) {
		json_hex(j, "caller", row->event->raw.caller);
	}
	if (row->event->raw.stack)
		json_stack(j, row);
}

static void json_call(struct json *j, const struct row *row)
{
	const struct record_event *e = &row->event->raw;

	json_arguments(j, row);
	json_result(j, row);
	json_outcome(j, e);
	if (row->gated)
		json_u64(j, "wait_ns", row->event->wait_ns);
	json_u64(j, "kernel_ns", row->event->kernel_ns);
	json_code(j, row);
	json_u64(j, "weight", e->weight);
}

/* What is no call. */
static void json_other(struct json *j, const struct row *row)
{
	const struct record_event *e = &row->event->raw;

	if (e->kind == EVENT_OPENED) {
		json_string(j, "event", "gate opened");
		json_u64(j, "wait_ns", row->event->wait_ns);
		return;
	}
	json_string(j, "event", "lock changed");
	json_string(j, "op", op_name(e->op));
	json_string(j, "from", knobs_lock_name(e->flags));
	json_string(j, "to", knobs_lock_name(e->arg));
}

static void jsonl_row(const struct row *row, FILE *out)
{
	const struct record_event *e = &row->event->raw;
	struct json j = json_line(out);

	json_open(&j, NULL, '{');
	json_u64(&j, "time_ns", row->event->time_ns);
	json_u64(&j, "pid", row->pid);
	json_u64(&j, "tid", e->tid);
	if (e->kind == EVENT_CALL) {
		json_string(&j, "op", op_name(e->op));
		json_call(&j, row);
	} else {
		json_other(&j, row);
	}
	json_close(&j);
}

/* --- the command --- */

/* Without either of the two it is known and refused until it is built. */
struct format {
	const char *name;
	const char *head;
	void (*row)(const struct row *row, FILE *out);
	/* What is written once, if it is no row for each event. */
	int (*all)(const struct export *x);
};

static const struct format formats[] = {
	{"csv", csv_head, csv_row, NULL},
	{"jsonl", "", jsonl_row, NULL},
	{"folded", NULL, NULL, export_folded},
	{"chrome", NULL, NULL, export_chrome},
	{"prometheus", NULL, NULL, export_prometheus},
	{NULL, NULL, NULL, NULL},
};

struct exporting {
	struct export to;
	const struct format *format;
	const char *output;
	struct sites *sites; /* of the process at hand */
};

enum { OPT_FORMAT = 256, OPT_NAMES };

static const struct option longs[] = {
	{"format", required_argument, NULL, OPT_FORMAT},
	{"names", no_argument, NULL, OPT_NAMES},
	{NULL, 0, NULL, 0},
};

static const struct format *find_format(const char *name)
{
	const struct format *f;

	for (f = formats; f->name; f++)
		if (!strcmp(f->name, name))
			break;
	if (!f->name)
		die(EXIT_USAGE,
		    "export: --format %s: accepted are csv, jsonl, folded, "
		    "chrome and prometheus",
		    name);
	if (!f->row && !f->all)
		die(EXIT_USAGE, "export: --format %s: not in this version",
		    name);
	return f;
}

static const char *parse(struct exporting *x, int argc, char **argv)
{
	int option;

	while ((option = opts_next(argc, argv, ":o:", longs)) != -1)
		if (option == OPT_FORMAT)
			x->format = find_format(optarg);
		else if (option == 'o')
			x->output = optarg;
		else
			x->to.names = true;
	if (!x->format)
		die(EXIT_USAGE,
		    "export: --format is needed: csv, jsonl, folded, chrome or "
		    "prometheus");
	if (x->to.names && x->format->all == export_prometheus)
		die(EXIT_USAGE, "export: --names: prometheus has no code to "
				"name");
	if (x->to.names && symbols_missing())
		die(EXIT_USAGE, "export: --names: this mmgate was %s",
		    symbols_missing());
	return output_directory(argc, argv);
}

static int write_event(void *context, const struct log_event *event)
{
	const struct exporting *x = context;
	struct row row = row_of(event, x->sites, x->to.names);

	x->format->row(&row, x->to.out);
	/* A full disk or a closed pipe: no use in going on. */
	return ferror(x->to.out);
}

static int write_log(struct exporting *x, struct log *log)
{
	int status = EXIT_DONE;

	x->sites = sites_open(log, x->to.images);
	if (log_each_event(log, write_event, x))
		status = EXIT_FAILED;
	sites_close(x->sites);
	return status;
}

static int write_logs(struct exporting *x, const struct log_dir *dir)
{
	int status = EXIT_DONE;
	size_t i;

	fputs(x->format->head, x->to.out);
	for (i = 0; i < dir->count && !ferror(x->to.out); i++)
		if (write_log(x, dir->logs[i]) != EXIT_DONE)
			status = EXIT_FAILED;
	return status;
}

/* What is strange was said already. */
static void say_gap(const struct log_dir *dir)
{
	char *gap = dir->has_info ? log_dir_gap(dir) : NULL;

	if (gap)
		warn("note: %s", gap);
	free(gap);
}

static int run(int argc, char **argv)
{
	struct exporting x = {0};
	struct log_dir *dir = log_dir_open(parse(&x, argc, argv));
	int status;

	x.to.dir = dir;
	say_gap(dir);
	x.to.out = output_open(x.output);
	x.to.images = images_new();
	/* Not between lines that go to the same terminal. */
	if (isatty(fileno(x.to.out)) != 1)
		busy_begin(busy_events(dir));
	status = x.format->all ? x.format->all(&x.to) : write_logs(&x, dir);
	if (dir->broken > 0)
		status = EXIT_FAILED;
	busy_end();
	images_free(x.to.images, symbols_free);
	output_close(x.to.out, x.output);
	log_dir_close(dir);
	return status;
}

const struct command cmd_export = {
	.name = "export",
	.summary = "gives single calls to other programs",
	.synopsis = "export [DIR] --format csv|jsonl|folded|chrome|prometheus "
		    "[--names] [-o FILE]",
	.help = "Writes what is in DIR (default " OUTPUT_DIRECTORY "). csv "
		"and jsonl have one call a line,\n"
		"oldest first in each process, the processes one after the "
		"other by start.\n"
		"\n"
		"  --format csv    columns time_ns,pid,tid,op,addr,length,arg,"
		"flags,fd,offset,result,\n"
		"                  error,wait_ns,kernel_ns,caller,stack; what "
		"a call does not have\n"
		"                  is empty, as wait_ns of calls that did not "
		"get the lock (those too\n"
		"                  that gave up waiting for it)\n"
		"  --format jsonl  the same names in an object a line; also "
		"weight (calls that the\n"
		"                  event stands for), gated or bypassed, and "
		"each opening of the gate\n"
		"                  and each change of an op's lock\n"
		"  --format folded the sampled stacks, one a line, as flame "
		"graph tools read them: the\n"
		"                  frames outermost first, the call, and the "
		"nanoseconds of waiting and\n"
		"                  in the kernel that it stands for\n"
		"  --format chrome for Perfetto and chrome://tracing: waits "
		"and system calls as slices\n"
		"                  of their threads, figures over time as "
		"counters\n"
		"  --format prometheus\n"
		"                  text format 0.0.4, as the node exporter's "
		"text-file collector reads\n"
		"                  it: figures by image name and op, times in "
		"seconds\n"
		"  --names         functions instead of addresses in caller "
		"and stack, which chrome\n"
		"                  has then too\n"
		"  -o FILE         write to FILE, not to standard output\n"
		"\n"
		"time_ns is CLOCK_MONOTONIC at entry.  arg is the protection "
		"or advice, of mremap the\n"
		"new length; offset is mremap's new address, and fd is "
		"pkey_mprotect's key.  A failed\n"
		"call has result -1 and the number in error.\n"
		"\n"
		"Example: the ten calls that took longest\n"
		"  mmgate export --format csv | sort -t, -k14,14nr | head\n",
	.run = run,
};
