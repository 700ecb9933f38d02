/* SPDX-License-Identifier: MIT */
/*
 * spenders: which processes of a run spend its CPU time, as far as looks now
 * and then can tell: what one spent after the last of them is not there.
 */
#ifndef MMGATE_SPENDERS_H
#define MMGATE_SPENDERS_H

#include <stddef.h>

#include "group.h"

struct spender {
	pid_t pid;
	double cpu_s;
	char name[GROUP_NAME];
	char exe[GROUP_NAME]; /* the file's name, " (deleted)" when it is gone;
			       * "": not known */
};

struct spenders {
	struct spender *list;
	size_t count, room;
};

/* Looks at a process, its group and what descends from them, but for those that
 * have another number for themselves (as in a container). */
void spenders_look(struct spenders *spenders, pid_t leader);

void spenders_free(struct spenders *spenders);

#endif
