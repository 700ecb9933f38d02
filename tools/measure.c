/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "clocks.h"
#include "die.h"
#include "stats.h"
#include "units.h"
#include "utf8.h"

enum { LINES_SHOWN = 20, BYTES_SHOWN = 8192 };

void measure_begin(struct measure *measure, const char *path, char **argv)
{
	*measure = (struct measure){.path = path, .argv = argv};
	measure->empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (measure->empty == -1)
		die_errno(EXIT_USAGE, "cannot open /dev/null");
	launch_hold(&measure->held);
	measure->adopts = group_adopt();
}

void measure_end(struct measure *measure)
{
	/* Who was impatient has asked more than once. */
	while (launch_asked() != 0)
		;
	launch_release(&measure->held);
	close(measure->empty);
}

double measure_limit_s(const struct measure *m)
{
	const double least_s = 60, times = 20;

	if (m->longest_s != 0 && m->timeout_s != 0)
		return fmin(m->longest_s, m->timeout_s);
	if (m->longest_s != 0 || m->timeout_s != 0)
		return m->longest_s + m->timeout_s;
	return m->slowest_s > 0 ? fmax(least_s, times * m->slowest_s) : 0;
}

static uint64_t limit_ns(const struct measure *m)
{
	return (uint64_t)(measure_limit_s(m) * 1e9);
}

static void open_output(struct capture output[2])
{
	for (int i = 0; i < 2; i++)
		if (!capture_open(&output[i]))
			die_errno(EXIT_USAGE, "cannot keep a program's output");
}

static void finish_output(struct capture output[2])
{
	capture_finish(&output[0]);
	capture_finish(&output[1]);
}

static void tell_status(int status, struct measure_run *run)
{
	int number;

	if (WIFSIGNALED(status)) {
		number = WTERMSIG(status);
		snprintf(run->failure, sizeof(run->failure),
			 "ended by signal %d (%s)", number, strsignal(number));
	} else if (WEXITSTATUS(status) != 0) {
		snprintf(run->failure, sizeof(run->failure), "exit status %d",
			 WEXITSTATUS(status));
	}
}

static const char *limit_hint(const struct measure *m)
{
	return m->longest_s != 0 && m->longest_s == measure_limit_s(m)
		       ? m->longest_hint
		       : "--timeout T";
}

static void tell_failure(const struct measure *measure,
			 const struct launch *launch, struct measure_run *run)
{
	if (launch_overflowed(launch)) {
		snprintf(run->failure, sizeof(run->failure),
			 "it wrote more than the %d MiB that are kept in "
			 "memory, and was ended: send its output elsewhere "
			 "(sh -c '... >/dev/null')",
			 CAPTURE_MOST >> 20);
	} else if (launch->stopped_by != 0) {
		snprintf(run->failure, sizeof(run->failure),
			 "stopped by signal %d (%s), as if it wanted the "
			 "terminal",
			 launch->stopped_by, strsignal(launch->stopped_by));
	} else if (launch->too_long) {
		run->too_long = true;
		snprintf(run->failure, sizeof(run->failure),
			 "it still ran after %s, and was ended (%s)",
			 units_time((double)launch->limit_ns),
			 limit_hint(measure));
	} else {
		tell_status(launch->status, run);
	}
}

static void take_usage(const struct launch *launch, struct measure_run *run)
{
	struct record_dir info = {0};

	stats_take_usage(&info, &launch->usage);
	run->cpu_s = (double)(info.user_ns + info.system_ns) / 1e9;
	run->voluntary = info.voluntary_switches;
	run->involuntary = info.involuntary_switches;
	run->faults = info.minor_faults + info.major_faults;
	run->peak_rss_bytes = info.peak_rss_bytes;
}

/* What does not end up in the run's figures. */
static void take_events(struct measure *measure, const struct launch *launch,
			struct measure_run *run)
{
	run->paused |= launch->paused;
	measure->paused_s += (double)launch->paused_ns / 1e9;
	if (launch->left && measure->left_behind++ == 0)
		memcpy(measure->left_name, launch->left_name, GROUP_NAME);
	measure->killed += launch->late;
}

/* --- who spends the time --- */

/* Also while a load runs beside it. */
struct looking {
	struct spenders *spenders;
	const struct launch *launch;
};

static uint64_t look_at_spenders(void *context)
{
	const uint64_t step_ns = 20000000, share = 20; /* of a CPU: 5 % */
	const struct looking *looking = context;
	uint64_t from = clocks_now(), spent;

	if (!looking->launch->ended)
		spenders_look(looking->spenders, looking->launch->pid);
	spent = clocks_now() - from;
	return share * spent > step_ns ? share * spent : step_ns;
}

static void look_at(struct launch *launch, struct looking *looking)
{
	if (looking->spenders == NULL)
		return;
	launch->tick = look_at_spenders;
	launch->tick_context = looking;
}

/* --- a program that ends by itself --- */

static void run_alone(struct measure *measure, struct launch *launch,
		      struct measure_run *run)
{
	uint64_t shootdowns = stats_tlb_shootdowns();
	int error = launch_start(launch);

	if (error != 0) {
		snprintf(run->failure, sizeof(run->failure),
			 "cannot start %s: %s", measure->path, strerror(error));
		return;
	}
	run->asked = launch_watch(launch);
	finish_output(run->output);
	run->tlb_shootdowns = stats_tlb_shootdowns() - shootdowns;
	take_events(measure, launch, run);
	take_usage(launch, run);
	run->wall_s = (double)launch->wall_ns / 1e9;
	tell_failure(measure, launch, run);
}

/* --- a server and its load --- */

static void prefix_failure(struct measure_run *run, const char *who)
{
	char line[MEASURE_LINE];

	if (run->failure[0] == '\0')
		return;
	snprintf(line, sizeof(line), "%s: %.*s", who, MEASURE_LINE - 32,
		 run->failure);
	memcpy(run->failure, line, sizeof(line));
}

static void fail_server(const struct measure *measure,
			const struct launch *server, struct measure_run *run,
			const char *what)
{
	run->failure[0] = '\0';
	if (server->ended || server->stopped_by != 0 ||
	    launch_overflowed(server)) {
		tell_failure(measure, server, run);
		if (run->failure[0] == '\0')
			snprintf(run->failure, sizeof(run->failure),
				 "exit status 0");
		prefix_failure(run, what);
	} else {
		snprintf(run->failure, sizeof(run->failure), "%s", what);
	}
	prefix_failure(run, "the server");
}

static void run_load(struct measure *measure, struct launch *server,
		     struct measure_run *run)
{
	struct looking looking = {measure->spenders, server};
	static char shell[] = "sh", option[] = "-c";
	char *command = xstrdup(measure->server->load);
	char *argv[] = {shell, option, command, NULL};
	struct launch load = {
		.path = "/bin/sh",
		.argv = argv,
		.variables = measure->server->variables,
		.held = &measure->held,
		.input = measure->empty,
		.output = run->output,
		.beside = server,
		.limit_ns = limit_ns(measure),
	};
	int error;

	look_at(&load, &looking);
	error = launch_start(&load);
	free(command);
	if (error != 0) {
		snprintf(run->failure, sizeof(run->failure),
			 "cannot start /bin/sh: %s", strerror(error));
		return;
	}
	run->asked = launch_watch(&load);
	finish_output(run->output);
	take_events(measure, &load, run);
	run->wall_s = (double)load.wall_ns / 1e9;
	tell_failure(measure, &load, run);
	prefix_failure(run, "the load");
}

/* What is wrong with it when the load is over, or "".  One that its load ends
 * is ending then: whether it has ended already would be chance. */
static const char *look_again(struct launch *server)
{
	const uint64_t last_ns = 50000000;
	bool ended = launch_look(server, last_ns);

	if (server->stopped_by != 0 || launch_overflowed(server))
		return "while the load ran";
	return ended ? "ended while the load ran" : "";
}

/* SIGTERM is how we end it, SIGKILL too, and so a shell says of the first. */
static bool ended_as_asked(int status)
{
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGTERM ||
		       WTERMSIG(status) == SIGKILL;
	return WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 128 + SIGTERM;
}

/* Some always end with a status of their own: what counts is a new one. */
static void judge_end(struct measure *measure, const struct launch *server,
		      struct measure_run *run)
{
	int status = server->status;

	if (run->failure[0] != '\0' || run->asked != 0 || server->late)
		return;
	if (!measure->server_ended)
		measure->server_status = status;
	if (WIFSIGNALED(status) && !ended_as_asked(status))
		fail_server(measure, server, run, "when it was asked to end");
	else if (!ended_as_asked(status) && status != measure->server_status)
		fail_server(measure, server, run,
			    "when it was asked to end, not as in the first "
			    "run");
	measure->server_ended = true;
}

static void with_server(struct measure *measure, struct launch *server,
			struct measure_run *run)
{
	const char *trouble = server_wait(measure->server, server, &run->asked);
	uint64_t shootdowns = stats_tlb_shootdowns();

	if (*trouble == '\0' && run->asked == 0) {
		run_load(measure, server, run);
		if (run->asked == 0)
			trouble = look_again(server);
	}
	run->tlb_shootdowns = stats_tlb_shootdowns() - shootdowns;
	if (*trouble != '\0')
		fail_server(measure, server, run, trouble);
	launch_end(server, measure->server->end_ns);
	finish_output(run->server_output);
	judge_end(measure, server, run);
	take_events(measure, server, run);
	take_usage(server, run);
}

static void run_server(struct measure *measure, struct launch *launch,
		       struct measure_run *run)
{
	int error;

	run->has_server = true;
	open_output(run->server_output);
	launch->output = run->server_output;
	error = launch_start(launch);
	if (error == 0)
		with_server(measure, launch, run);
	else
		snprintf(run->failure, sizeof(run->failure),
			 "cannot start %s: %s", measure->path, strerror(error));
	finish_output(run->server_output);
}

/* A program begins as a copy of us, and what we have in use then counts as its
 * peak. */
static void give_memory_back(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

void measure_run(struct measure *measure, char **variables,
		 const cpu_set_t *cpus, struct measure_run *run)
{
	struct launch launch = {
		.path = measure->path,
		.argv = measure->argv,
		.variables = variables,
		.held = &measure->held,
		.input = measure->empty,
		.output = run->output,
		.cpus = cpus,
		.adopts = measure->adopts,
	};
	struct looking looking = {measure->spenders, &launch};

	look_at(&launch, &looking);
	give_memory_back();
	measure->runs++;
	*run = (struct measure_run){0};
	open_output(run->output);
	if (measure->server != NULL) {
		run_server(measure, &launch, run);
	} else {
		launch.limit_ns = limit_ns(measure);
		run_alone(measure, &launch, run);
	}
	finish_output(run->output);
	if (run->failure[0] == '\0' && run->asked == 0 && !run->paused)
		measure->slowest_s = fmax(measure->slowest_s, run->wall_s);
}

char *measure_output(const struct measure_run *run, int which)
{
	return xstrdup(capture_text(&run->output[which]));
}

/* Where the last lines begin. */
static const char *tail(const char *text)
{
	const char *end = text + strlen(text), *at = end;
	int lines = 0;

	while (at > text && end - at < BYTES_SHOWN) {
		if (at[-1] == '\n' && at != end && ++lines == LINES_SHOWN)
			break;
		at--;
	}
	return at;
}

static void show_lines(const char *name, const char *text)
{
	const char *from = tail(text);
	char *line = xstrdup(from), *at = line, *next;

	if (*text == '\0')
		fprintf(stderr, "%s: empty\n", name);
	else
		fprintf(stderr, "%s%s:\n", name,
			from != text ? ", its end" : "");
	for (; at != NULL && *at != '\0'; at = next) {
		char clean[BYTES_SHOWN + 1];

		next = strchr(at, '\n');
		if (next != NULL)
			*next++ = '\0';
		utf8_clean(clean, at, sizeof(clean) - 1, '\t');
		fprintf(stderr, "  | %s\n", clean);
	}
	free(line);
}

void measure_show(const struct measure_run *run)
{
	const struct capture *out = run->output, *server = run->server_output;

	show_lines(run->has_server ? "the load's stdout" : "stdout",
		   capture_text(&out[0]));
	show_lines(run->has_server ? "the load's stderr" : "stderr",
		   capture_text(&out[1]));
	if (!run->has_server)
		return;
	show_lines("the server's stdout", capture_text(&server[0]));
	show_lines("the server's stderr", capture_text(&server[1]));
}

void measure_free(struct measure_run *run)
{
	for (int i = 0; i < 2; i++) {
		capture_free(&run->output[i]);
		if (run->has_server)
			capture_free(&run->server_output[i]);
	}
}
