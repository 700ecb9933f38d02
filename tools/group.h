/* SPDX-License-Identifier: MIT */
/*
 * group: who is alive of what was started, as /proc shows it.
 */
#ifndef MMGATE_GROUP_H
#define MMGATE_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

enum { GROUP_NAME = 64 };

struct group {
	pid_t leader; /* it, its process group, and what descends from them */
	bool all;     /* and all that descends from us */
};

struct group_member {
	pid_t pid, parent, group;
	double cpu_s;          /* by clock ticks */
	char name[GROUP_NAME]; /* as the kernel has it: any bytes */
};

/* From here on a process that descends from us and loses its parent is ours, so
 * that it can be found and ended, whatever group or session it went to.  False,
 * and all as it was: we have children that others started. */
bool group_adopt(void);

/* Calls `each` with those that are alive until one is true.  One that has ended
 * and waits for its parent to look is not. */
bool group_any(struct group group,
	       bool (*each)(const struct group_member *member, void *context),
	       void *context);

/* Is anybody alive?  `name` (may be NULL) gets one's name. */
bool group_alive(struct group group, char name[GROUP_NAME]);

#endif
