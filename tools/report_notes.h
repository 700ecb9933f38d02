/* SPDX-License-Identifier: MIT */
/*
 * report_notes: what limits the figures of a process, a line each.
 */
#ifndef MMGATE_REPORT_NOTES_H
#define MMGATE_REPORT_NOTES_H

#include <stdio.h>

#include "report.h"

/* Waits, bypasses, events that are gone, limits. */
void report_notes(const struct log_process *p, FILE *out);
/* Calls that nothing catches. */
void report_gaps(const struct log_process *p, FILE *out);

#endif
