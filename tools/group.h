/* SPDX-License-Identifier: MIT */
/*
 * group: who is alive in a process group, as /proc shows it.
 */
#ifndef MMGATE_GROUP_H
#define MMGATE_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

enum { GROUP_NAME = 64 };

/* Is anybody?  One that has ended and waits for its parent to look is not.
 * `name` (may be NULL) gets one's name, as the kernel has it: any bytes. */
bool group_alive(pid_t group, char name[GROUP_NAME]);

#endif
