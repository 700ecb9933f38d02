/* SPDX-License-Identifier: MIT */
/*
 * report_sites: the parts of a report that come from sampled stacks.
 */
#ifndef MMGATE_REPORT_SITES_H
#define MMGATE_REPORT_SITES_H

#include <stdio.h>

#include "json.h"
#include "report.h"

/* The sites of a process, to be given back: those of a study are shared. */
struct sites *report_sites_get(const struct report *report,
			       const struct log_process *p);
void report_sites_put(const struct report *report, struct sites *sites);

/* What so many of them come to, but for threads and kinds. */
struct sites_sum report_sites_sum(const struct sites_row *rows, size_t count);

/* Members of the process's object: sites, stacks, and groups if asked for. */
void report_sites_json(const struct report *report, const struct log_process *p,
		       struct json *j);

/* A table of the worst sites, or of what is asked for. */
void report_sites_text(const struct report *report, const struct log_process *p,
		       FILE *out);

#endif
