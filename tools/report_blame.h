/* SPDX-License-Identifier: MIT */
/*
 * report_blame: who waited for whom.
 *
 * At the gate it is known: who held the lock while another waited for it.  In
 * the kernel it is an estimate: which call was the first of those inside when
 * another came in and took longer than calls do that find none.
 */
#ifndef MMGATE_REPORT_BLAME_H
#define MMGATE_REPORT_BLAME_H

#include <stdio.h>

#include "json.h"
#include "report.h"

/* For the process of a study; nothing when nobody waited.  In json NULL is a
 * process that was not looked into. */
void report_blame_text(const struct study *study, FILE *out);
void report_blame_json(const struct study *study, struct json *j);
void report_blame_html(const struct study *study, FILE *out);

#endif
