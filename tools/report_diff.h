/* SPDX-License-Identifier: MIT */
/*
 * report_diff: two runs beside each other.
 *
 * Runs are seldom of the same length, so figures are by second of each run's
 * own time; sites are matched by their names.
 */
#ifndef MMGATE_REPORT_DIFF_H
#define MMGATE_REPORT_DIFF_H

#include <stdio.h>

#include "report.h"

void report_diff_text(const struct report *a, const struct report *b,
		      FILE *out);
void report_diff_json(const struct report *a, const struct report *b,
		      FILE *out);

#endif
