/* SPDX-License-Identifier: MIT */
/*
 * report_groups: calls by thread and by size, where each call has an event.
 * Otherwise samples must do: report_sites.
 *
 * The rows add up to all calls of the process: what is in no row of its own,
 * and what is not in the log any more, has a row too.
 */
#ifndef MMGATE_REPORT_GROUPS_H
#define MMGATE_REPORT_GROUPS_H

#include <stdio.h>

#include "json.h"
#include "report.h"

/* A row. */
struct report_group {
	char *name;
	bool rest; /* it is of no one thread or size */
	/* max_ns below 0: not known. */
	struct habits_group sum;
};

struct report_groups {
	enum sites_by by;
	struct report_group *group; /* the dearest first, then the rests */
	size_t count, rests;
	struct habits_group all; /* what they add up to */
};

/* NULL: the process cannot be shown the way that is asked for.  To be given to
 * report_groups_free(). */
struct report_groups *report_groups_of(const struct report *report,
				       const struct log_process *p);
void report_groups_free(struct report_groups *g);
void report_groups_text(const struct report_groups *g, FILE *out);
void report_groups_json(const struct report_groups *g, struct json *j);

/* What a process did beyond the calls that were seen one by one; its max_ns is
 * not known. */
struct habits_group report_groups_unseen(const struct log_process *p,
					 const struct habits *seen);
/* Adds one to another. */
void report_groups_add(struct habits_group *sum, const struct habits_group *g);

#endif
