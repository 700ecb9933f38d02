/* SPDX-License-Identifier: MIT */
#include "spenders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "die.h"
#include "text.h"

/* One that may not be looked at is as if it had. */
static bool has_own_number(pid_t pid)
{
	struct stat its, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat(path, &its) != 0 || stat("/proc/self/ns/pid", &ours) != 0 ||
	       its.st_ino != ours.st_ino;
}

static struct spender *find(struct spenders *s, pid_t pid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->list[i].pid == pid)
			return &s->list[i];
	if (s->count == s->room) {
		s->room = s->room == 0 ? 16 : 2 * s->room;
		s->list = xrealloc(s->list, s->room * sizeof(*s->list));
	}
	s->list[s->count] = (struct spender){.pid = pid};
	return &s->list[s->count++];
}

static void take_exe(struct spender *spender)
{
	char path[64], target[1024];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)spender->pid);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	snprintf(spender->exe, sizeof(spender->exe), "%s",
		 text_base_name(target));
}

static bool take(const struct group_member *member, void *context)
{
	struct spender *spender;

	if (member->cpu_s <= 0 || has_own_number(member->pid))
		return false;
	spender = find(context, member->pid);
	spender->cpu_s = member->cpu_s;
	memcpy(spender->name, member->name, GROUP_NAME);
	take_exe(spender);
	return false;
}

void spenders_look(struct spenders *s, pid_t leader)
{
	group_any((struct group){.leader = leader}, take, s);
}

void spenders_free(struct spenders *s)
{
	free(s->list);
	*s = (struct spenders){0};
}
