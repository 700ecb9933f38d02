/* SPDX-License-Identifier: MIT */
/*
 * report_worst: the part of a report about the worst calls.
 */
#ifndef MMGATE_REPORT_WORST_H
#define MMGATE_REPORT_WORST_H

#include <stdio.h>

#include "json.h"
#include "report.h"

/* Nothing when the report has none. */
void report_worst_text(const struct report *report, FILE *out);
void report_worst_json(const struct report *report, struct json *j);

#endif
