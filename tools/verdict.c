/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "verdict.h"

int verdict_by_ns(const void *a, const void *b)
{
	double x = ((const struct verdict_item *)a)->ns;
	double y = ((const struct verdict_item *)b)->ns;

	return (x < y) - (x > y);
}

void verdict_drop(struct verdict *v)
{
	size_t i;

	for (i = 0; i < v->causes; i++)
		free(v->cause[i].text);
	for (i = 0; i < v->remedies; i++)
		free(v->remedy[i].text);
	free(v->headline);
	memset(v, 0, sizeof(*v));
}

const char *verdict_answer_name(enum verdict_answer answer)
{
	static const char *const names[] = {
		[VERDICT_YES] = "yes",         [VERDICT_INDIRECT] = "indirect",
		[VERDICT_PARTLY] = "partly",   [VERDICT_NO] = "no",
		[VERDICT_UNKNOWN] = "unknown",
	};

	return names[answer];
}

const char *verdict_cause_name(int cause)
{
	static const char *const names[CAUSE_COUNT] = {
		[CAUSE_LOCK] = "lock",
		[CAUSE_GATE] = "gate",
		[CAUSE_ALONE] = "one thread",
		[CAUSE_ABOVE] = "above",
		[CAUSE_HUGE] = "huge unmaps",
		[CAUSE_POPULATE] = "populate",
		[CAUSE_THP] = "huge pages",
		[CAUSE_SHOOTDOWN] = "shoot-downs",
		[CAUSE_READER] = "outside reader",
		[CAUSE_FAULTS] = "page faults",
		[CAUSE_CPUS] = "cpus",
		[CAUSE_STALLS] = "stalls",
		[CAUSE_WORK] = "work",
	};

	return names[cause];
}

const char *verdict_remedy_name(int remedy)
{
	static const char *const names[REMEDY_COUNT] = {
		[REMEDY_REUSE] = "reuse",     [REMEDY_MALLOC] = "malloc",
		[REMEDY_DECAY] = "decay",     [REMEDY_STACKS] = "stacks",
		[REMEDY_BATCH] = "batch",     [REMEDY_READ] = "read",
		[REMEDY_SPLIT] = "split",     [REMEDY_POPULATE] = "populate",
		[REMEDY_THP] = "huge pages",  [REMEDY_READER] = "reader",
		[REMEDY_KERNEL] = "kernel",   [REMEDY_PREFAULT] = "prefault",
		[REMEDY_CPUS] = "cpus",       [REMEDY_LOCK] = "lock",
		[REMEDY_NO_LOCK] = "no lock", [REMEDY_PLACE] = "place",
		[REMEDY_ABOVE] = "above",     [REMEDY_NOTHING] = "nothing",
	};

	return names[remedy];
}
