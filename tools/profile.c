/* SPDX-License-Identifier: MIT */
#include "profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "die.h"
#include "record.h"
#include "rundir.h"
#include "text.h"

static const char unset[] = "MMGATE_LOG", no_events[] = "MMGATE_EVENTS=off",
		  some_events[] = "MMGATE_EVENTS=every:16";

/* For the log of a large process, or those of some that are small.  Where a
 * file system is full a process leaves none, as if the library were not in. */
static bool has_room(const char *path)
{
	const uint64_t least = 32 << 20;
	struct statvfs st;

	return statvfs(path, &st) == 0 &&
	       (uint64_t)st.f_bavail * st.f_frsize >= least;
}

char *profile_directory(char why[256])
{
	const char *tmp = getenv("TMPDIR");
	const char *const parents[] = {
		"/dev/shm", tmp != NULL && *tmp == '/' ? tmp : "/tmp"};

	for (size_t i = 0; i < 2; i++) {
		char *path = xasprintf("%s/mmgate-log-XXXXXX", parents[i]);

		if (i == 0 && !has_room(parents[i])) {
			free(path);
			continue;
		}
		if (mkdtemp(path) != NULL)
			return path;
		snprintf(why, 256, "cannot make a directory in %s: %s",
			 parents[i], strerror(errno));
		free(path);
	}
	return NULL;
}

char **profile_variables(char **variables, char *log)
{
	static char events[sizeof(some_events)];
	char **copy;
	size_t n = 0;

	memcpy(events, some_events, sizeof(events));
	while (variables[n] != NULL)
		n++;
	copy = xcalloc(n + 1, sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		if (strcmp(variables[i], unset) == 0)
			copy[i] = log;
		else if (strcmp(variables[i], no_events) == 0)
			copy[i] = events;
		else
			copy[i] = variables[i];
	return copy;
}

/* --- reading it --- */

/* Sums over events, each for the calls that it stands for. */
struct shares {
	double all, libc;
	double first; /* of the threads that make most */
	/* A vote: who has a majority is the candidate when it is over. */
	uint32_t candidate;
	double votes;
};

static int take_event(void *context, const struct log_event *event)
{
	struct shares *s = context;
	double weight = event->raw.weight;

	if (event->raw.kind != EVENT_CALL)
		return 0;
	s->all += weight;
	if (event->raw.layer == CALLER_LIBC)
		s->libc += weight;
	if (s->votes <= 0)
		s->candidate = event->raw.tid;
	s->votes += event->raw.tid == s->candidate ? weight : -weight;
	return 0;
}

static int count_candidate(void *context, const struct log_event *event)
{
	struct shares *s = context;

	if (event->raw.kind == EVENT_CALL && event->raw.tid == s->candidate)
		s->first += event->raw.weight;
	return 0;
}

static void add_shares(struct shares *s, struct log *log)
{
	s->votes = 0;
	log_each_event(log, take_event, s);
	log_each_event(log, count_candidate, s);
}

static void take_shares(struct profile *p, const struct shares *s)
{
	if (s->all <= 0)
		return;
	p->libc_share = s->libc / s->all;
	p->spread = 1 - s->first / s->all;
}

struct hists {
	struct hist wait, kernel;
};

static void add_process(struct profile *p, const struct log_process *process,
			struct hists *hists)
{
	if (process->threads > p->threads)
		p->threads = process->threads;
	p->opened += process->opened;
	p->thread_ns += (double)process->thread_ns;
	for (int i = 0; i < OP_COUNT; i++) {
		const struct log_op *op = &process->op[i];

		p->op[i].count += op->count;
		p->op[i].kernel_ns += op->kernel.sum_ns;
		p->op[i].wait_ns += op->wait.sum_ns;
		p->calls += op->count;
		p->gated += op->gated;
		hist_add(&hists->wait, &op->wait);
		hist_add(&hists->kernel, &op->kernel);
	}
}

static void take_hists(struct profile *p, struct hists *hists)
{
	p->kernel_ns = hists->kernel.sum_ns;
	p->kernel_max_ns = hists->kernel.max_ns;
	p->kernel_p99_ns = hist_percentile(&hists->kernel, 0.99);
	p->wait_ns = hists->wait.sum_ns;
	p->wait_max_ns = hists->wait.max_ns;
	p->wait_p99_ns = hist_percentile(&hists->wait, 0.99);
	hist_drop(&hists->wait);
	hist_drop(&hists->kernel);
}

static size_t length_while_there(const char *exe)
{
	static const char gone[] = " (deleted)";
	size_t length = strlen(exe), end = sizeof(gone) - 1;

	if (length >= end && strcmp(exe + length - end, gone) == 0)
		length -= end;
	return length < GROUP_NAME - 1 - end ? length : GROUP_NAME - 1 - end;
}

/* Files are deleted and replaced while they run. */
static bool is_same_file(const char *exe, const char *other)
{
	size_t length = length_while_there(exe);

	return length == length_while_there(other) &&
	       strncmp(exe, other, length) == 0;
}

/* A process may have left one and then executed what leaves none. */
static bool is_of(const struct log_process *p, const struct spender *s)
{
	return p->pid == (uint32_t)s->pid &&
	       (s->exe[0] == '\0' || p->exe[0] == '\0' ||
		is_same_file(text_base_name(p->exe), s->exe));
}

static bool left_log(const struct log_dir *dir, const struct spender *s)
{
	for (size_t i = 0; i < dir->count; i++)
		if (is_of(log_process(dir->logs[i]), s))
			return true;
	return false;
}

static void take_unlogged(struct profile *p, const struct log_dir *dir,
			  const struct spenders *spenders)
{
	double most_s = 0;

	for (size_t i = 0; i < spenders->count; i++) {
		const struct spender *s = &spenders->list[i];

		if (left_log(dir, s))
			continue;
		p->unlogged_s += s->cpu_s;
		if (s->cpu_s <= most_s)
			continue;
		most_s = s->cpu_s;
		memcpy(p->unlogged_name, s->name, GROUP_NAME);
	}
}

bool profile_read(struct profile *p, const char *directory,
		  const struct spenders *spenders)
{
	char *why = NULL;
	struct log_dir *dir = log_dir_try(directory, &why);
	struct shares shares = {0};
	struct hists hists = {0};

	*p = (struct profile){.known = dir != NULL && dir->count > 0};
	free(why);
	if (dir == NULL)
		return false;
	p->processes = dir->count;
	take_unlogged(p, dir, spenders);
	for (size_t i = 0; i < dir->count; i++) {
		add_process(p, log_process(dir->logs[i]), &hists);
		add_shares(&shares, dir->logs[i]);
	}
	log_dir_close(dir);
	take_hists(p, &hists);
	take_shares(p, &shares);
	return p->known;
}

void profile_drop(char *directory)
{
	/* What a run left in a session of its own may log still. */
	if (!rundir_try_remove(directory) && !rundir_try_remove(directory))
		warn("note: cannot remove %s, which has the log of a run: %s; "
		     "remove it when nothing writes there any more",
		     directory, strerror(errno));
	free(directory);
}
