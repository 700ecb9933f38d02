/* SPDX-License-Identifier: MIT */
/*
 * spread: how values of time are spread, without keeping each.
 *
 * An average hides the rare late one, so what is asked for is the typical
 * value and the worst.  Values are in ns; spread_at() is at most 1/16 above
 * the true one, and never above the worst.  Zeroed is empty.
 */
#ifndef EXAMPLES_SPREAD_H
#define EXAMPLES_SPREAD_H

#include <stdint.h>

#define SPREAD_BUCKETS 976

struct spread {
	uint64_t count;
	uint64_t worst;
	uint64_t buckets[SPREAD_BUCKETS];
};

void spread_add(struct spread *spread, uint64_t ns);
void spread_merge(struct spread *into, const struct spread *from);

/* What the given share of all values, 0 to 1, does not exceed; 0 of none. */
uint64_t spread_at(const struct spread *spread, double share);

#endif
