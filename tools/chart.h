/* SPDX-License-Identifier: MIT */
/*
 * chart: the drawings of the html report, as SVG.
 *
 * Each has a title and a description for those who cannot see it.
 */
#ifndef MMGATE_CHART_H
#define MMGATE_CHART_H

#include "report.h"

/* How long calls took: a strip for each op that has calls. */
void chart_latencies(const struct log_op *ops, FILE *out);

/* The run over time, with the worst calls marked.
 * pre: the report has rows. */
void chart_times(const struct report *report, FILE *out);

#endif
