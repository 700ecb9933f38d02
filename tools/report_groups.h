/* SPDX-License-Identifier: MIT */
/*
 * report_groups: calls by thread and by size, where the events of all of them
 * are there to be counted.  Otherwise samples must do: report_sites.
 */
#ifndef MMGATE_REPORT_GROUPS_H
#define MMGATE_REPORT_GROUPS_H

#include <stdio.h>

#include "json.h"
#include "report.h"

/* Can the process be shown the way that is asked for? */
bool report_groups_has(const struct report *report,
		       const struct log_process *p);
/* pre: report_groups_has() */
void report_groups_text(const struct report *report,
			const struct log_process *p, FILE *out);
void report_groups_json(const struct report *report,
			const struct log_process *p, struct json *j);

#endif
