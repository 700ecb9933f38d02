/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "export.h"
#include "json.h"
#include "rows.h"
#include "sites.h"

struct trace {
	FILE *out;
	bool begun;         /* an event was written */
	uint64_t origin_ns; /* time 0 */
	uint32_t pid;       /* of the log at hand */
	const struct rows *rows;
	struct sites *sites; /* of it, when code is to be named; or NULL */
};

/* --- one event --- */

static struct json begin(struct trace *t)
{
	fputs(t->begun ? ",\n" : "\n", t->out);
	t->begun = true;
	return (struct json){.out = t->out, .inner = true};
}

static void json_begin(struct json *j, const char *phase, const char *name,
		       uint32_t pid, uint32_t tid)
{
	json_open(j, NULL, '{');
	json_string(j, "ph", phase);
	json_string(j, "name", name);
	json_u64(j, "pid", pid);
	json_u64(j, "tid", tid);
}

/* Microseconds, to the ns. */
static void put_us(struct json *j, const char *key, uint64_t ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 ".%03u", ns / 1000,
		 (unsigned)(ns % 1000));
	json_number(j, key, text);
}

static void put_time(struct trace *t, struct json *j, uint64_t time_ns)
{
	put_us(j, "ts", time_ns > t->origin_ns ? time_ns - t->origin_ns : 0);
}

/* --- names --- */

static void put_name(struct trace *t, const char *what, uint32_t pid,
		     uint32_t tid, const char *name)
{
	struct json j = begin(t);

	json_begin(&j, "M", what, pid, tid);
	json_open(&j, "args", '{');
	json_string(&j, "name", name);
	json_close(&j);
	json_close(&j);
}

static void put_process_name(struct trace *t, const struct log_process *p)
{
	char lock[64], *name;

	log_setting(p->settings, "lock", lock, sizeof(lock));
	name = xasprintf("%s (lock=%s)", p->image, lock);
	put_name(t, "process_name", p->pid, p->pid, name);
	free(name);
}

static void put_thread_names(struct trace *t)
{
	const struct rows_thread *thread;
	size_t i;

	for (i = 0; t->rows && i < t->rows->thread_count; i++) {
		thread = &t->rows->thread[i];
		put_name(t, "thread_name", thread->pid, thread->tid,
			 thread->name);
	}
}

/* --- calls --- */

/* Named by the frames at it; an address otherwise. */
static void put_caller(struct trace *t, struct json *j,
		       const struct log_event *e)
{
	const struct sites_frame *const *frames;

	if (!t->sites || sites_frames_at(t->sites, e->raw.caller, e->time_ns,
					 true, &frames) == 0) {
		json_hex(j, "caller", e->raw.caller);
		return;
	}
	json_string(j, "caller", frames[0]->name);
}

static void put_stack(struct trace *t, struct json *j,
		      const struct log_event *e)
{
	const struct sites_stack *stack =
		t->sites && e->raw.stack ? sites_stack_of(t->sites, e) : NULL;
	size_t i;

	if (!stack)
		return;
	json_open(j, "stack", '[');
	for (i = 0; i < stack->count; i++)
		json_string(j, NULL, stack->frames[i]->name);
	json_close(j);
}

static void put_arguments(struct trace *t, struct json *j,
			  const struct log_event *event)
{
	const struct record_event *e = &event->raw;

	json_open(j, "args", '{');
	json_hex(j, "addr", e->addr);
	json_u64(j, "length", e->length);
	if (e->op == OP_MMAP || e->op == OP_MREMAP)
		json_u64(j, "flags", e->flags);
	json_u64(j, "arg", e->arg);
	if (e->result < 0 && e->result >= -4095)
		json_i64(j, "error", -e->result);
	if (e->caller)
		put_caller(t, j, event);
	put_stack(t, j, event);
	if (e->outcome >= OUTCOME_BYPASSED)
		json_string(j, "bypassed",
			    log_bypass_name(e->outcome - OUTCOME_BYPASSED));
	if (e->weight > 1)
		json_u64(j, "weight", e->weight);
	json_close(j);
}

static void put_wait(struct trace *t, const struct log_event *e)
{
	struct json j = begin(t);
	char name[32];

	snprintf(name, sizeof(name), "wait for %s", op_name(e->raw.op));
	json_begin(&j, "X", name, t->pid, e->raw.tid);
	json_string(&j, "cat", "wait");
	put_time(t, &j, e->time_ns);
	put_us(&j, "dur", e->wait_ns);
	json_close(&j);
}

static void put_call(struct trace *t, const struct log_event *e)
{
	struct json j = begin(t);

	json_begin(&j, "X", op_name(e->raw.op), t->pid, e->raw.tid);
	json_string(&j, "cat",
		    e->raw.outcome == OUTCOME_GATED ? "hold" : "call");
	put_time(t, &j, e->time_ns + e->wait_ns);
	put_us(&j, "dur", e->kernel_ns);
	put_arguments(t, &j, e);
	json_close(&j);
}

static void put_opening(struct trace *t, const struct log_event *e)
{
	struct json j = begin(t);

	json_begin(&j, "i", "gate opened", t->pid, e->raw.tid);
	put_time(t, &j, e->time_ns);
	json_string(&j, "s", "p");
	json_close(&j);
}

static int put_event(void *context, const struct log_event *e)
{
	struct trace *t = context;

	if (e->raw.kind == EVENT_OPENED)
		put_opening(t, e);
	if (e->raw.kind == EVENT_CALL && e->wait_ns > 0)
		put_wait(t, e);
	if (e->raw.kind == EVENT_CALL)
		put_call(t, e);
	/* A full disk or a closed pipe: no use in going on. */
	return ferror(t->out);
}

/* --- over time --- */

static void put_counter(struct trace *t, uint32_t pid, const char *name,
			uint64_t time_ns, double value)
{
	struct json j = begin(t);
	char text[32];

	json_begin(&j, "C", name, pid, 0);
	put_time(t, &j, time_ns);
	json_open(&j, "args", '{');
	snprintf(text, sizeof(text), "%.3f", value);
	json_number(&j, "value", text);
	json_close(&j);
	json_close(&j);
}

static void put_row(struct trace *t, uint32_t pid, const struct rows_row *row)
{
	struct rows_op all = rows_sum(row);
	double span = (double)row->span_ns / 1e9;
	double switches = (double)row->voluntary_switches +
			  (double)row->involuntary_switches;

	if (span <= 0)
		return;
	put_counter(t, pid, "calls/s", row->from_ns, (double)all.count / span);
	put_counter(t, pid, "threads waiting at the gate", row->from_ns,
		    (double)all.wait_ns / 1e9 / span);
	put_counter(t, pid, "threads in the kernel", row->from_ns,
		    (double)all.kernel_ns / 1e9 / span);
	put_counter(t, pid, "context switches/s", row->from_ns,
		    switches / span);
	put_counter(t, pid, "page faults/s", row->from_ns,
		    ((double)row->minor_faults + (double)row->major_faults) /
			    span);
}

/* They are of all processes, and shown with the first. */
static void put_rows(struct trace *t, uint32_t pid)
{
	size_t i;

	for (i = 0; t->rows && i < t->rows->count; i++)
		put_row(t, pid, &t->rows->row[i]);
}

/* --- all --- */

static uint64_t origin_of(const struct log_dir *dir, const struct rows *rows)
{
	uint64_t origin = UINT64_MAX;
	size_t i;

	for (i = 0; i < dir->count; i++)
		if (log_process(dir->logs[i])->started_ns < origin)
			origin = log_process(dir->logs[i])->started_ns;
	if (rows && rows->row[0].from_ns < origin)
		origin = rows->row[0].from_ns;
	return origin == UINT64_MAX ? 0 : origin;
}

static bool put_log(struct trace *t, const struct export *x, struct log *log)
{
	bool whole;

	t->sites = x->names ? sites_open(log, x->images) : NULL;
	whole = log_each_event(log, put_event, t) == 0;
	if (t->sites)
		sites_close(t->sites);
	return whole;
}

int export_chrome(const struct export *x)
{
	const struct log_dir *dir = x->dir;
	FILE *out = x->out;
	struct trace t = {.out = out};
	struct rows rows;
	char why[256];
	int status = EXIT_DONE;
	size_t i;

	if (rows_read(&rows, dir->path, why))
		t.rows = &rows;
	t.origin_ns = origin_of(dir, t.rows);
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", out);
	put_thread_names(&t);
	for (i = 0; i < dir->count && !ferror(out); i++) {
		t.pid = log_process(dir->logs[i])->pid;
		put_process_name(&t, log_process(dir->logs[i]));
		if (i == 0)
			put_rows(&t, t.pid);
		if (!put_log(&t, x, dir->logs[i]))
			status = EXIT_FAILED;
	}
	fputs("\n]}\n", out);
	rows_drop(&rows);
	return status;
}
