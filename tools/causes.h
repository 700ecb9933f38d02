/* SPDX-License-Identifier: MIT */
/*
 * causes: what takes the time of a process's calls, the lock among others.
 */
#ifndef MMGATE_CAUSES_H
#define MMGATE_CAUSES_H

#include "sums.h"

/* Fills in the causes, the worst first. */
void causes_find(struct verdict *v, const struct sums *s);
/* The one of that kind, or NULL. */
struct verdict_item *causes_get(struct verdict *v, enum verdict_cause id);
void causes_put_first(struct verdict *v, struct verdict_item *cause);

#endif
