/* SPDX-License-Identifier: MIT */
/*
 * sites: who caused the calls of a process.
 *
 * The library copies the stacks of a sample of calls (MMGATE_STACKS); here
 * they are call chains with names, and their figures are added up.  A site is
 * the first frame of the program in a chain: not of libc, the loader, an
 * allocator, or a language's library.  `via` is the function of those, called
 * from there, that led to the call: malloc, free, pthread_create, dlopen.
 *
 * Figures are estimates of the whole run: each sample stands for `weight`
 * calls.  Where an op's samples stand for all its calls, their numbers and
 * times add up to what is known of these.  With stacks=slow:D alone they are of
 * the slow calls only.
 */
#ifndef MMGATE_SITES_H
#define MMGATE_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frames.h"
#include "images.h"
#include "log.h"
#include "symbols.h"

/* A call chain, one for each that is different. */
struct sites_stack {
	const struct sites_frame *const *frames; /* innermost first */
	size_t count;
	bool cut;         /* the copy ended before the chain did */
	size_t site;      /* its site, an index of sites.list */
	uint64_t samples; /* what led here */
	double calls, wait_ns, kernel_ns;
};

/* What is added up, for a site or another group of samples. */
struct sites_sum {
	uint64_t samples;
	double count, errors, bytes;
	double wait_ns, kernel_ns;
	double max_ns;          /* longest wait + kernel of a sample */
	uint64_t threads;       /* that were seen in it */
	double of_op[OP_COUNT]; /* count, by op */
	double of_size[64];     /* count, by log2 of the length; 0: none */
};

struct sites_row {
	/* "module!function (file:line)", "module+0x1234"; of a thread its
	 * number, of a size "64 KiB to 128 KiB". */
	const char *name;
	const char *via; /* "malloc"; NULL: the wrapped call itself */
	/* The frame that the name is of; NULL: of no frame. */
	const struct sites_frame *frame;
	struct sites_sum sum;
};

enum sites_by { BY_CALL, BY_SITE, BY_THREAD, BY_SIZE, BY_LIBRARY, BY_COUNT };

/* One sampled call. */
struct sites_sample {
	struct log_event event; /* raw.weight is what the library noted */
	double weight;          /* calls that it stands for */
	double wait_ns;         /* of those */
	double kernel_ns;
	bool slow;    /* sampled as a slow one */
	bool worst;   /* as one of the longest, beyond chance */
	size_t stack; /* an index of sites.stacks */
};

struct sites {
	const struct log_process *process;
	struct sites_row *list; /* the sites, worst wait + kernel first */
	size_t count;
	struct sites_stack *stacks; /* worst first */
	size_t stack_count;
	struct sites_sample *samples; /* by time */
	size_t sample_count;
	struct sites_sum all;
	/* How good it is. */
	uint64_t cut;        /* samples whose chain is cut */
	uint64_t unresolved; /* samples without any chain */
	uint64_t lost;       /* had to be sampled, and found no room */
	bool stopped;        /* stacks were switched off while it ran */
	const char *missing; /* NULL, or why there is nothing: "no stacks were
			      * recorded (--stacks off)" ... */
};

/* Reads the log's samples.  `images` (images_new(), in the end
 * images_free(images, symbols_free)) serves any number of logs, and they end
 * before it.  Never NULL. */
struct sites *sites_open(struct log *log, struct images *images);
/* The same of the calls that began in [since, until) of CLOCK_MONOTONIC. */
struct sites *sites_open_part(struct log *log, struct images *images,
			      uint64_t since_ns, uint64_t until_ns);
void sites_close(struct sites *sites);

/* The stacks of a site as they read, down to so many frames: those with the
 * same names are one, worst first, *count of them; to be freed. */
struct sites_stack *sites_stacks_of(const struct sites *sites, size_t site,
				    size_t most, size_t *count);
/* The rows of another grouping, worst first, *count of them; to be given to
 * sites_rows_free(). */
struct sites_row *sites_group(const struct sites *sites, enum sites_by by,
			      size_t *count);
void sites_rows_free(struct sites_row *rows, size_t count);

/* The stack that was copied with an event of the same log, or NULL: it has
 * none, or has lost it to a later one. */
const struct sites_stack *sites_stack_of(const struct sites *sites,
					 const struct log_event *event);

/* The frames at an address that the process had at `time_ns`, innermost first;
 * `is_return`: it is a return address.  Valid until sites_close(). */
size_t sites_frames_at(struct sites *sites, uint64_t pc, uint64_t time_ns,
		       bool is_return,
		       const struct sites_frame *const **frames);

#endif
