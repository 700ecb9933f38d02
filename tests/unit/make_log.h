/* SPDX-License-Identifier: MIT */
/*
 * make_log: writes logs as the library would, for tests of their readers.
 *
 * The file is mapped, so a test can also spoil it in place.  Failure ends the
 * program.
 */
#ifndef MMGATE_MAKE_LOG_H
#define MMGATE_MAKE_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "record.h"

struct make_log {
	char *base;
	size_t size;
	double ns_per_tick;
	struct record_header *header;
};

/* A directory of the test's own, and the path of a log in it.  When the program
 * ends it goes, with what is in it. */
const char *make_log_directory(void);
const char *make_log_path(void);

/* An empty log: image "subject", process 77, started at tick 1000 and at
 * MAKE_LOG_START_NS, not ended. */
struct make_log make_log_begin(const char *path, uint32_t stripes,
			       uint32_t ring_slots, double ns_per_tick);

/* The same with room for modules, and for MAKE_LOG_SAMPLES samples in each
 * pool and as many of the worst. */
struct make_log make_log_begin_with_stacks(const char *path, uint32_t stripes,
					   uint32_t ring_slots,
					   double ns_per_tick);

enum { MAKE_LOG_MODULES = 16, MAKE_LOG_SAMPLES = 8, MAKE_LOG_COPY = 8192 };

/* Slot `i` of modules; sample `i` of both pools and the worst, and a page of
 * its copy. */
struct record_module *make_log_module(struct make_log *m, uint32_t i);
struct record_sample *make_log_sample(struct make_log *m, uint32_t i);
char *make_log_copy(struct make_log *m, uint32_t i, uint32_t page);
/* Where chains are: the end of the file, MAKE_LOG_COPY bytes. */
char *make_log_chains(struct make_log *m);

#define MAKE_LOG_START_TICKS 1000
#define MAKE_LOG_START_NS UINT64_C(5000000000)

struct record_stripe *make_log_stripe(struct make_log *m, uint32_t stripe);
struct record_event *make_log_slot(struct make_log *m, uint32_t stripe,
				   uint64_t slot);

void make_log_value(struct record_hist *h, uint64_t ticks);
/* Counts a call in the histograms; waited == UINT64_MAX: not gated. */
void make_log_count(struct make_log *m, uint32_t stripe, enum op op,
		    uint64_t waited, uint64_t kernel);
/* Writes the ring's next event, with seq and check. */
void make_log_event(struct make_log *m, uint32_t stripe,
		    struct record_event event);

struct record_pair make_log_pair(const struct make_log *m, uint64_t ticks);

void make_log_close(struct make_log *m);

#endif
