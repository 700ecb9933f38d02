/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "export.h"

/* Figures of all processes with one image name: a label of each process would
 * make new series with each start. */
struct program {
	const char *name;
	uint64_t processes, running, threads;
	uint64_t opened, overwritten, lost, unrecorded;
	double thread_ns;
	struct log_op op[OP_COUNT];
	struct hist wake;
};

struct programs {
	struct program *program;
	size_t count;
	FILE *out;
};

/* --- sums --- */

static struct program *program_of(struct programs *programs, const char *name)
{
	size_t i;

	for (i = 0; i < programs->count; i++)
		if (!strcmp(programs->program[i].name, name))
			return &programs->program[i];
	programs->program =
		xrealloc(programs->program,
			 (programs->count + 1) * sizeof(*programs->program));
	programs->program[programs->count] = (struct program){.name = name};
	return &programs->program[programs->count++];
}

static void add_process(struct program *image, const struct log_process *p)
{
	unsigned i;

	image->processes++;
	image->running += log_process_runs(p);
	image->threads += p->threads;
	image->opened += p->opened;
	image->overwritten += p->events_overwritten;
	image->lost += p->events_lost;
	image->unrecorded += p->unrecorded;
	image->thread_ns += (double)p->thread_ns;
	for (i = 0; i < OP_COUNT; i++)
		log_op_add(&image->op[i], &p->op[i]);
	hist_add(&image->wake, &p->wake);
}

static void drop_programs(struct programs *programs)
{
	size_t i, k;

	for (i = 0; i < programs->count; i++) {
		for (k = 0; k < OP_COUNT; k++)
			log_op_drop(&programs->program[i].op[k]);
		hist_drop(&programs->program[i].wake);
	}
	free(programs->program);
}

/* --- lines --- */

static void put_head(FILE *out, const char *name, const char *type,
		     const char *help)
{
	fprintf(out, "# HELP mmgate_%s %s\n# TYPE mmgate_%s %s\n", name, help,
		name, type);
}

static void put_value(FILE *out, const char *value)
{
	for (; *value; value++)
		if (*value == '\\' || *value == '"')
			fprintf(out, "\\%c", *value);
		else if (*value == '\n')
			fputs("\\n", out);
		else
			fputc(*value, out);
}

/* `mmgate_NAME{image="..."`: more labels may follow. */
static void begin_sample(FILE *out, const char *name, const char *suffix,
			 const struct program *image)
{
	fprintf(out, "mmgate_%s%s{image=\"", name, suffix);
	put_value(out, image->name);
	fputc('"', out);
}

static void put_label(FILE *out, const char *label, const char *value)
{
	fprintf(out, ",%s=\"", label);
	put_value(out, value);
	fputc('"', out);
}

static void end_count(FILE *out, uint64_t value)
{
	fprintf(out, "} %" PRIu64 "\n", value);
}

static void end_seconds(FILE *out, double ns)
{
	fprintf(out, "} %.9f\n", ns / 1e9);
}

/* --- figures of an image --- */

static const struct {
	const char *name, *type, *help;
	size_t offset;
} plain[] = {
	{"processes", "gauge", "Processes whose logs were read.",
	 offsetof(struct program, processes)},
	{"processes_running", "gauge", "Processes that still run.",
	 offsetof(struct program, running)},
	{"threads_total", "counter", "Threads that made calls.",
	 offsetof(struct program, threads)},
	{"gate_opened_total", "counter",
	 "Times the gate opened as a wait reached MMGATE_MAX_WAIT.",
	 offsetof(struct program, opened)},
	{"events_overwritten_total", "counter",
	 "Events that newer ones have overwritten.",
	 offsetof(struct program, overwritten)},
	{"events_lost_total", "counter", "Events that had no room.",
	 offsetof(struct program, lost)},
	{"unrecorded_calls_total", "counter",
	 "Calls that are in no figure, as the log had no room.",
	 offsetof(struct program, unrecorded)},
};

static void put_plain(const struct programs *programs, size_t row)
{
	const char *image;
	uint64_t value;
	size_t i;

	put_head(programs->out, plain[row].name, plain[row].type,
		 plain[row].help);
	for (i = 0; i < programs->count; i++) {
		image = (const char *)&programs->program[i];
		memcpy(&value, image + plain[row].offset, sizeof(value));
		begin_sample(programs->out, plain[row].name, "",
			     &programs->program[i]);
		end_count(programs->out, value);
	}
}

static void put_thread_time(const struct programs *programs)
{
	size_t i;

	put_head(programs->out, "thread_seconds_total", "counter",
		 "Time that threads lived, from their first call on.");
	for (i = 0; i < programs->count; i++) {
		begin_sample(programs->out, "thread_seconds_total", "",
			     &programs->program[i]);
		end_seconds(programs->out, programs->program[i].thread_ns);
	}
}

/* --- figures by op --- */

static const struct {
	const char *name, *help;
	size_t offset;
} by_op[] = {
	{"calls_total", "Calls, failed ones too.",
	 offsetof(struct log_op, count)},
	{"call_errors_total", "Calls that failed.",
	 offsetof(struct log_op, errors)},
	{"call_bytes_total", "Lengths of the calls that succeeded.",
	 offsetof(struct log_op, bytes)},
	{"calls_gated_total", "Calls that took the lock at the gate.",
	 offsetof(struct log_op, gated)},
};

/* Calls `each` for every op of every image that has calls. */
static void each_op(const struct programs *programs,
		    void (*each)(FILE *out, const struct program *image,
				 unsigned op, size_t row),
		    size_t row)
{
	size_t i;
	unsigned op;

	for (i = 0; i < programs->count; i++)
		for (op = 0; op < OP_COUNT; op++)
			if (programs->program[i].op[op].count > 0)
				each(programs->out, &programs->program[i], op,
				     row);
}

static void put_op_count(FILE *out, const struct program *image, unsigned op,
			 size_t row)
{
	const char *figures = (const char *)&image->op[op];
	uint64_t value;

	memcpy(&value, figures + by_op[row].offset, sizeof(value));
	begin_sample(out, by_op[row].name, "", image);
	put_label(out, "op", op_name(op));
	end_count(out, value);
}

static void put_op_bypassed(FILE *out, const struct program *image, unsigned op,
			    size_t row)
{
	unsigned i;

	(void)row;
	for (i = 0; i < BYPASS_COUNT; i++) {
		begin_sample(out, "calls_bypassed_total", "", image);
		put_label(out, "op", op_name(op));
		put_label(out, "reason", log_bypass_name(i));
		end_count(out, image->op[op].bypassed[i]);
	}
}

/* --- histograms --- */

static const char *const limits[] = {
	"1e-06", "4e-06", "1.6e-05", "6.4e-05", "0.000256", "0.001",
	"0.004", "0.016", "0.064",   "0.256",   "1",        "4",
};

/* Values up to a limit, within the width of a bucket. */
static uint64_t count_up_to(const struct hist *h, double ns)
{
	uint64_t count = 0;
	unsigned i;

	for (i = 0; i < h->width && hist_middle(h, h->first + i) <= ns; i++)
		count += h->bucket[i];
	return count;
}

static void begin_bucket(FILE *out, const char *name, const char *suffix,
			 const struct program *image, const char *op)
{
	begin_sample(out, name, suffix, image);
	if (op)
		put_label(out, "op", op);
}

static void put_hist(FILE *out, const char *name, const struct program *image,
		     const char *op, const struct hist *h)
{
	size_t i;

	for (i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		begin_bucket(out, name, "_bucket", image, op);
		put_label(out, "le", limits[i]);
		end_count(out, count_up_to(h, strtod(limits[i], NULL) * 1e9));
	}
	begin_bucket(out, name, "_bucket", image, op);
	put_label(out, "le", "+Inf");
	end_count(out, h->count);
	begin_bucket(out, name, "_sum", image, op);
	end_seconds(out, h->sum_ns);
	begin_bucket(out, name, "_count", image, op);
	end_count(out, h->count);
}

static void put_wait(FILE *out, const struct program *image, unsigned op,
		     size_t row)
{
	(void)row;
	if (image->op[op].gated > 0)
		put_hist(out, "wait_seconds", image, op_name(op),
			 &image->op[op].wait);
}

static void put_kernel(FILE *out, const struct program *image, unsigned op,
		       size_t row)
{
	(void)row;
	put_hist(out, "kernel_seconds", image, op_name(op),
		 &image->op[op].kernel);
}

static bool any(const struct programs *programs,
		bool (*has)(const struct program *))
{
	size_t i;

	for (i = 0; i < programs->count; i++)
		if (has(&programs->program[i]))
			return true;
	return false;
}

static bool has_calls(const struct program *image)
{
	unsigned op;

	for (op = 0; op < OP_COUNT; op++)
		if (image->op[op].count > 0)
			return true;
	return false;
}

static bool has_gated(const struct program *image)
{
	unsigned op;

	for (op = 0; op < OP_COUNT; op++)
		if (image->op[op].gated > 0)
			return true;
	return false;
}

static bool has_wakes(const struct program *image)
{
	return image->wake.count > 0;
}

static void put_hists(const struct programs *programs)
{
	size_t i;

	if (any(programs, has_gated)) {
		put_head(programs->out, "wait_seconds", "histogram",
			 "Time that calls waited for the lock at the gate.");
		each_op(programs, put_wait, 0);
	}
	put_head(programs->out, "kernel_seconds", "histogram",
		 "Time inside the system call.");
	each_op(programs, put_kernel, 0);
	if (!any(programs, has_wakes))
		return;
	put_head(programs->out, "wake_seconds", "histogram",
		 "Time from the wake-up of a waiter that slept until it ran.");
	for (i = 0; i < programs->count; i++)
		if (has_wakes(&programs->program[i]))
			put_hist(programs->out, "wake_seconds",
				 &programs->program[i], NULL,
				 &programs->program[i].wake);
}

static void put_by_op(const struct programs *programs)
{
	size_t i;

	for (i = 0; i < sizeof(by_op) / sizeof(*by_op); i++) {
		put_head(programs->out, by_op[i].name, "counter",
			 by_op[i].help);
		each_op(programs, put_op_count, i);
	}
	put_head(programs->out, "calls_bypassed_total", "counter",
		 "Calls that wanted the lock and went without it.");
	each_op(programs, put_op_bypassed, 0);
	put_hists(programs);
}

int export_prometheus(const struct export *x)
{
	struct programs programs = {.out = x->out};
	const struct log_process *p;
	size_t i;

	for (i = 0; i < x->dir->count; i++) {
		p = log_process(x->dir->logs[i]);
		add_process(program_of(&programs, p->image), p);
	}
	for (i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		put_plain(&programs, i);
	put_thread_time(&programs);
	if (any(&programs, has_calls))
		put_by_op(&programs);
	drop_programs(&programs);
	return EXIT_DONE;
}
