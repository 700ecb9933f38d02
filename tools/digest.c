/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "digest.h"

struct reading {
	struct digest *digest;
	uint64_t since_ns, until_ns;
};

/* "mprotect:mutex,madvise:spin": ops that name the same kind share a lock. */
void digest_domains(const char *lock, unsigned char domain[OP_COUNT])
{
	char copy[256], *rest = copy, *word, *kind, *kinds[OP_COUNT] = {NULL};
	unsigned op, i;

	memset(domain, 0, OP_COUNT);
	snprintf(copy, sizeof(copy), "%s", lock);
	while ((word = strsep(&rest, ","))) {
		kind = strchr(word, ':');
		if (!kind)
			continue;
		*kind++ = '\0';
		for (i = 0; i + 1 < OP_COUNT && kinds[i]; i++)
			if (!strcmp(kinds[i], kind))
				break;
		kinds[i] = kind;
		for (op = 0; op < OP_COUNT; op++)
			if (!strcmp(op_name(op), word))
				domain[op] = (unsigned char)i;
	}
}

static int take(void *context, const struct log_event *e)
{
	const struct reading *r = context;
	struct digest *d = r->digest;
	int others;

	if (e->time_ns < r->since_ns || e->time_ns >= r->until_ns)
		return 0;
	if (e->raw.kind == EVENT_OPENED)
		d->openings++;
	if (e->raw.kind != EVENT_CALL)
		return 0;
	if (e->raw.weight > 1)
		d->part = DIGEST_SAMPLE;
	d->kernel_ns += (double)e->raw.weight * (double)e->kernel_ns;
	crowd_add(d->crowd, e, &others);
	habits_add(d->habits, e, others);
	return 0;
}

static const char *setting(const struct log *log, const char *name)
{
	static char value[256];

	log_setting(log_process(log)->settings, name, value, sizeof(value));
	return value;
}

struct digest *digest_read(struct log *log, uint64_t since_ns,
			   uint64_t until_ns)
{
	struct digest *d = xcalloc(1, sizeof(*d));
	struct reading r = {d, since_ns, until_ns};
	unsigned char domain[OP_COUNT];

	digest_domains(setting(log, "lock"), domain);
	if (!strncmp(setting(log, "events"), "slow:", 5))
		d->part = DIGEST_SLOW;
	d->crowd = crowd_new(domain);
	d->habits = habits_new();
	d->broken = log_each_event(log, take, &r) != 0;
	crowd_end(d->crowd);
	habits_end(d->habits);
	return d;
}

void digest_free(struct digest *d)
{
	crowd_free(d->crowd);
	habits_free(d->habits);
	free(d);
}
