/* SPDX-License-Identifier: MIT */
#include "spread.h"

#include <math.h>

/* Each power of two has as many buckets; below that each value its own. */
#define PARTS 16
#define PARTS_LOG2 4

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int power;

	if (ns < PARTS)
		return (unsigned int)ns;
	power = 63 - (unsigned int)__builtin_clzll(ns) - PARTS_LOG2;
	return (power + 1) * PARTS + (unsigned int)(ns >> power) % PARTS;
}

static uint64_t highest_in(unsigned int bucket)
{
	unsigned int power = bucket / PARTS;
	uint64_t part = bucket % PARTS;

	if (!power)
		return part;
	return ((PARTS + part + 1) << (power - 1)) - 1;
}

void spread_add(struct spread *spread, uint64_t ns)
{
	spread->count++;
	spread->buckets[bucket_of(ns)]++;
	if (ns > spread->worst)
		spread->worst = ns;
}

void spread_merge(struct spread *into, const struct spread *from)
{
	into->count += from->count;
	if (from->worst > into->worst)
		into->worst = from->worst;
	for (unsigned int i = 0; i < SPREAD_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
}

uint64_t spread_at(const struct spread *spread, double share)
{
	uint64_t wanted = (uint64_t)ceil(share * (double)spread->count);
	uint64_t below = 0;

	for (unsigned int i = 0; i < SPREAD_BUCKETS; i++) {
		below += spread->buckets[i];
		if (below && below >= wanted)
			return highest_in(i) < spread->worst ? highest_in(i)
							     : spread->worst;
	}
	return 0;
}
