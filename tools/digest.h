/* SPDX-License-Identifier: MIT */
/*
 * digest: what the events of one process say, in one reading of them.
 */
#ifndef MMGATE_DIGEST_H
#define MMGATE_DIGEST_H

#include "crowd.h"
#include "habits.h"
#include "log.h"

/* Which calls have an event. */
enum digest_part {
	DIGEST_ALL,
	DIGEST_SAMPLE, /* each stands for several */
	DIGEST_SLOW,   /* the slow ones */
};

struct digest {
	struct crowd *crowd;
	struct habits *habits;
	enum digest_part part;
	bool broken;       /* not all could be read */
	double kernel_ns;  /* of the calls that were seen, as weighted */
	uint64_t openings; /* of the gate */
};

/* Of the calls that began in [since, until) of CLOCK_MONOTONIC. */
struct digest *digest_read(struct log *log, uint64_t since_ns,
			   uint64_t until_ns);
void digest_free(struct digest *d);

/* Which ops share a lock at the gate, by the setting `lock`: a number below
 * OP_COUNT each. */
void digest_domains(const char *lock, unsigned char domain[OP_COUNT]);

#endif
