/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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
}

void measure_end(struct measure *measure)
{
	/* Who was impatient has asked more than once. */
	while (launch_asked() != 0)
		;
	launch_release(&measure->held);
	close(measure->empty);
}

/* In memory, and written at its end like a pipe. */
static int new_file(void)
{
	int fd = memfd_create("mmgate-output", MFD_CLOEXEC);

	if (fd == -1 || fcntl(fd, F_SETFL, O_APPEND) != 0)
		die_errno(EXIT_USAGE, "cannot keep a program's output");
	return fd;
}

static void tell_failure(const struct launch *launch, struct measure_run *run)
{
	int status = launch->status, number;

	if (launch->stopped_by != 0) {
		snprintf(run->failure, sizeof(run->failure),
			 "stopped by signal %d (%s), as if it wanted the "
			 "terminal",
			 launch->stopped_by, strsignal(launch->stopped_by));
	} else if (launch->too_long) {
		run->too_long = true;
		snprintf(run->failure, sizeof(run->failure),
			 "it still ran after %s, and was ended",
			 units_time((double)launch->limit_ns));
	} else if (WIFSIGNALED(status)) {
		number = WTERMSIG(status);
		snprintf(run->failure, sizeof(run->failure),
			 "ended by signal %d (%s)", number, strsignal(number));
	} else if (WEXITSTATUS(status) != 0) {
		snprintf(run->failure, sizeof(run->failure), "exit status %d",
			 WEXITSTATUS(status));
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
	run->tlb_shootdowns = stats_tlb_shootdowns() - shootdowns;
	take_events(measure, launch, run);
	take_usage(launch, run);
	run->wall_s = (double)launch->wall_ns / 1e9;
	tell_failure(launch, run);
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

static void fail_server(const struct launch *server, struct measure_run *run,
			const char *what)
{
	run->failure[0] = '\0';
	if (server->ended)
		tell_failure(server, run);
	if (run->failure[0] == '\0')
		snprintf(run->failure, sizeof(run->failure), "exit status 0");
	if (server->ended)
		prefix_failure(run, what);
	else
		snprintf(run->failure, sizeof(run->failure), "%s", what);
	prefix_failure(run, "the server");
}

static void run_load(struct measure *measure, struct launch *server,
		     struct measure_run *run)
{
	static char shell[] = "sh", option[] = "-c";
	char *command = xstrdup(measure->server->load);
	char *argv[] = {shell, option, command, NULL};
	const int files[] = {measure->empty, run->files[0], run->files[1]};
	struct launch load = {
		.path = "/bin/sh",
		.argv = argv,
		.variables = measure->server->variables,
		.held = &measure->held,
		.files = files,
		.beside = server,
		.limit_ns = (uint64_t)(measure->longest_s * 1e9),
	};
	int error = launch_start(&load);

	free(command);
	if (error != 0) {
		snprintf(run->failure, sizeof(run->failure),
			 "cannot start /bin/sh: %s", strerror(error));
		return;
	}
	run->asked = launch_watch(&load);
	take_events(measure, &load, run);
	run->wall_s = (double)load.wall_ns / 1e9;
	tell_failure(&load, run);
	prefix_failure(run, "the load");
}

/* SIGTERM is how we end it, and SIGKILL too. */
static void judge_end(const struct launch *server, struct measure_run *run)
{
	int status = server->status;

	if (run->failure[0] != '\0' || !WIFSIGNALED(status) ||
	    WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGKILL)
		return;
	fail_server(server, run, "when it was asked to end");
}

static void with_server(struct measure *measure, struct launch *server,
			struct measure_run *run)
{
	const char *trouble = server_wait(measure->server, server,
					  run->server_files, &run->asked);
	uint64_t shootdowns = stats_tlb_shootdowns();

	if (*trouble == '\0' && run->asked == 0)
		run_load(measure, server, run);
	if (*trouble == '\0' && server->ended && run->asked == 0)
		trouble = "ended while the load ran";
	run->tlb_shootdowns = stats_tlb_shootdowns() - shootdowns;
	if (*trouble != '\0')
		fail_server(server, run, trouble);
	launch_end(server, measure->server->end_ns);
	judge_end(server, run);
	take_events(measure, server, run);
	take_usage(server, run);
}

static void run_server(struct measure *measure, struct launch *launch,
		       struct measure_run *run)
{
	const int files[] = {measure->empty, new_file(), new_file()};
	int error;

	launch->files = files;
	run->server_files[0] = files[1];
	run->server_files[1] = files[2];
	error = launch_start(launch);
	if (error == 0)
		with_server(measure, launch, run);
	else
		snprintf(run->failure, sizeof(run->failure),
			 "cannot start %s: %s", measure->path, strerror(error));
}

void measure_run(struct measure *measure, char **variables,
		 const cpu_set_t *cpus, struct measure_run *run)
{
	const int files[] = {measure->empty, new_file(), new_file()};
	struct launch launch = {
		.path = measure->path,
		.argv = measure->argv,
		.variables = variables,
		.held = &measure->held,
		.files = files,
		.cpus = cpus,
	};

	measure->runs++;
	*run = (struct measure_run){.files = {files[1], files[2]},
				    .server_files = {-1, -1}};
	if (measure->server != NULL) {
		run_server(measure, &launch, run);
		return;
	}
	launch.limit_ns = (uint64_t)(measure->longest_s * 1e9);
	run_alone(measure, &launch, run);
}

static char *output_of(int fd)
{
	size_t size, have = 0;
	struct stat st;
	char *text;
	ssize_t n;

	if (fstat(fd, &st) != 0)
		die_errno(EXIT_FAILED, "cannot read a program's output");
	size = (size_t)st.st_size;
	text = xcalloc(size + 1, 1);
	while (have < size &&
	       (n = pread(fd, text + have, size - have, (off_t)have)) > 0)
		have += (size_t)n;
	for (size_t i = 0; i < have; i++)
		if (text[i] == '\0')
			text[i] = '\n';
	text[have] = '\0';
	return text;
}

char *measure_output(const struct measure_run *run, int which)
{
	return output_of(run->files[which]);
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

static void show_file(const char *name, int fd)
{
	char *text = output_of(fd);

	show_lines(name, text);
	free(text);
}

void measure_show(const struct measure_run *run)
{
	bool server = run->server_files[0] != -1;

	show_file(server ? "the load's stdout" : "stdout", run->files[0]);
	show_file(server ? "the load's stderr" : "stderr", run->files[1]);
	if (!server)
		return;
	show_file("the server's stdout", run->server_files[0]);
	show_file("the server's stderr", run->server_files[1]);
}

void measure_free(struct measure_run *run)
{
	for (int i = 0; i < 2; i++) {
		close(run->files[i]);
		if (run->server_files[i] != -1)
			close(run->server_files[i]);
	}
}
