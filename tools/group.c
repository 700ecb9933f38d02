/* SPDX-License-Identifier: MIT */
#include "group.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "die.h"

enum { PATH = 300, LINE = 1024 };

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ||
	       errno != ECHILD;
}

bool group_adopt(void)
{
	return !has_children() && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

/* --- all processes --- */

struct process {
	struct group_member self;
	bool alive, in;
};

struct table {
	struct process *processes; /* by number */
	size_t count, room;
};

static bool read_stat(const char *pid, char line[LINE])
{
	char path[PATH];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	n = fread(line, 1, LINE - 1, f);
	line[n] = '\0';
	fclose(f);
	return n > 0;
}

/* "PID (NAME) STATE PARENT GROUP ... USER SYSTEM ... THREADS ...": a name may
 * have anything in it, and a process whose first thread has ended lives on in
 * the others. */
static bool read_process(const char *pid, struct process *p)
{
	char line[LINE], *from, *to, state;
	unsigned long user, system;
	long threads;

	if (!read_stat(pid, line))
		return false;
	from = strchr(line, '(');
	to = strrchr(line, ')');
	if (from == NULL || to == NULL ||
	    sscanf(to + 1,
		   " %c %d %d %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu %*s %*s "
		   "%*s %*s %ld",
		   &state, &p->self.parent, &p->self.group, &user, &system,
		   &threads) != 6)
		return false;
	p->self.cpu_s = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
	p->self.pid = (pid_t)strtol(pid, NULL, 10);
	p->alive = strchr("ZXx", state) == NULL || threads > 1;
	snprintf(p->self.name, GROUP_NAME, "%.*s", (int)(to - from - 1),
		 from + 1);
	return true;
}

static void add(struct table *t, const struct process *p)
{
	if (t->count == t->room) {
		t->room = t->room == 0 ? 256 : 2 * t->room;
		t->processes =
			xrealloc(t->processes, t->room * sizeof(*t->processes));
	}
	t->processes[t->count++] = *p;
}

static int by_pid(const void *a, const void *b)
{
	const struct process *p = a, *q = b;

	return (p->self.pid > q->self.pid) - (p->self.pid < q->self.pid);
}

static void read_table(struct table *t)
{
	const struct dirent *entry;
	DIR *dir = opendir("/proc");

	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL) {
		struct process p = {0};

		if (isdigit((unsigned char)entry->d_name[0]) &&
		    read_process(entry->d_name, &p))
			add(t, &p);
	}
	closedir(dir);
	if (t->count > 0)
		qsort(t->processes, t->count, sizeof(*t->processes), by_pid);
}

static bool has_parent_in(const struct table *t, const struct process *p)
{
	struct process key = {.self.pid = p->self.parent}, *parent;

	parent = bsearch(&key, t->processes, t->count, sizeof(key), by_pid);
	return parent != NULL && parent->in;
}

static bool belongs(const struct table *t, const struct group *group,
		    const struct process *p)
{
	return p->self.pid == group->leader || p->self.group == group->leader ||
	       (group->all && p->self.parent == getpid()) ||
	       has_parent_in(t, p);
}

/* A child may come before its parent. */
static void mark(struct table *t, const struct group *group)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < t->count; i++) {
			struct process *p = &t->processes[i];

			if (p->in || !belongs(t, group, p))
				continue;
			p->in = more = true;
		}
	}
}

bool group_any(struct group group,
	       bool (*each)(const struct group_member *member, void *context),
	       void *context)
{
	struct table t = {0};
	bool found = false;

	read_table(&t);
	mark(&t, &group);
	for (size_t i = 0; i < t.count && !found; i++)
		found = t.processes[i].in && t.processes[i].alive &&
			each(&t.processes[i].self, context);
	free(t.processes);
	return found;
}

static bool take_name(const struct group_member *member, void *name)
{
	if (name != NULL)
		memcpy(name, member->name, GROUP_NAME);
	return true;
}

bool group_alive(struct group group, char name[GROUP_NAME])
{
	bool empty = kill(-group.leader, 0) != 0 && errno == ESRCH;

	if (empty && !(group.all && has_children()))
		return false;
	return group_any(group, take_name, name);
}
