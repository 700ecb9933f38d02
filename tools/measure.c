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
	run->wall_s = (double)launch->wall_ns / 1e9;
	run->cpu_s = (double)(info.user_ns + info.system_ns) / 1e9;
	run->voluntary = info.voluntary_switches;
	run->involuntary = info.involuntary_switches;
	run->faults = info.minor_faults + info.major_faults;
	run->peak_rss_bytes = info.peak_rss_bytes;
	run->paused = launch->paused;
}

void measure_run(const struct measure *measure, char **variables,
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
	int error = launch_start(&launch);

	*run = (struct measure_run){.files = {files[1], files[2]}};
	if (error != 0) {
		snprintf(run->failure, sizeof(run->failure),
			 "cannot start %s: %s", measure->path, strerror(error));
		return;
	}
	run->asked = launch_watch(&launch);
	take_usage(&launch, run);
	tell_failure(&launch, run);
}

char *measure_output(const struct measure_run *run, int which)
{
	int fd = run->files[which];
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
	static const char *const names[] = {"stdout", "stderr"};

	for (int i = 0; i < 2; i++) {
		char *text = measure_output(run, i);

		show_lines(names[i], text);
		free(text);
	}
}

void measure_free(struct measure_run *run)
{
	close(run->files[0]);
	close(run->files[1]);
}
