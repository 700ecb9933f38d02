/* SPDX-License-Identifier: MIT */
/*
 * judge: is the address-space lock a process's problem, what is, and what would
 * help.
 *
 * Figures in, sentences out; nothing is read here.  Every claim has a time and
 * its evidence, and what is estimated has a range.
 */
#ifndef MMGATE_JUDGE_H
#define MMGATE_JUDGE_H

#include "verdict.h"

/* To be given to verdict_drop(). */
struct verdict judge_process(const struct verdict_facts *facts);

#endif
