/* SPDX-License-Identifier: MIT */
/*
 * machine: who else used the CPUs meanwhile.
 *
 * From the kernel's own books of the whole machine, so in a container its
 * neighbours' work is seen too.
 */
#ifndef MMGATE_MACHINE_H
#define MMGATE_MACHINE_H

#include <stdbool.h>

/* CPU seconds since the start; all zero where the kernel does not say. */
struct machine {
	double all, busy, stolen;
	double ours; /* this process's, and of those that it waited for */
};

void machine_look(struct machine *machine);

/* The "cpu" line of /proc/stat, in ticks. */
bool machine_parse(const char *line, struct machine *machine);

/* Adds what happened between two looks. */
void machine_add(struct machine *sum, const struct machine *from,
		 const struct machine *to);

/* Parts of all CPU time: of other programs, and what the hypervisor gave to
 * somebody else.  0 when there was less than a second of it. */
double machine_others(const struct machine *sum);
double machine_stolen(const struct machine *sum);

#endif
