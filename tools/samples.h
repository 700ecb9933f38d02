/* SPDX-License-Identifier: MIT */
/*
 * samples: what a log holds of code and stacks.
 *
 * Like log.h it believes nothing before it is checked.
 */
#ifndef MMGATE_SAMPLES_H
#define MMGATE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image.h"
#include "log.h"

/* Code that was mapped. */
struct samples_module {
	uint64_t start, end;
	uint64_t offset;         /* of `start` in the file */
	uint64_t from_ns, to_ns; /* when it was there: in [from_ns, to_ns) */
	struct image_identity identity;
	uint32_t slot; /* as the frames of chains name it */
};

struct samples_modules {
	struct samples_module *list; /* by time */
	size_t count;
	uint64_t lost; /* that had no room in the log */
};

/* To be given to samples_modules_free().  Empty where the log has none. */
struct samples_modules samples_modules(const struct log *log);
void samples_modules_free(struct samples_modules *modules);

/* What was at `address` at `time_ns`; NULL: no file that is known. */
const struct samples_module *
samples_module_at(const struct samples_modules *modules, uint64_t address,
		  uint64_t time_ns);

/* One sampled call. */
struct samples_call {
	const struct record_sample *raw;
	uint32_t id; /* 1 + its place among all */
	bool slow;
	bool worst;    /* one of the longest, which may be there twice: as one
			* that was picked, too */
	double weight; /* calls that it stands for */
	struct log_event event;
	/* Its chain, if the log has it; NULL: it is still a copy, */
	const struct record_frame *frames;
	uint32_t frame_count;
	bool cut;
	/* and this is it: raw->bytes of them, or NULL. */
	const unsigned char *copy;
};

/* How many there were and are. */
struct samples_count {
	uint64_t picked; /* calls */
	uint64_t lost;   /* of them, that found no room */
	uint64_t kept;
};

/* Calls `each` for every sample that counts, pool by pool, oldest first. False,
 * with a warning: the file cannot be read any more. */
bool samples_each(struct log *log, struct samples_count *count,
		  void (*each)(void *context, const struct samples_call *call),
		  void *context);

#endif
