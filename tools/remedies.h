/* SPDX-License-Identifier: MIT */
/*
 * remedies: what might help, by what a program does and by what takes its time.
 */
#ifndef MMGATE_REMEDIES_H
#define MMGATE_REMEDIES_H

#include "sums.h"

/* Fills in the remedies, the most promising first.
 * pre: causes and answer are found. */
void remedies_find(struct verdict *v, const struct sums *s);

#endif
