/* SPDX-License-Identifier: MIT */
/*
 * study: a report's processes looked into: events read, verdict found.
 *
 * Only those that cost most are looked into: a thousand processes are a matter
 * of a moment.
 */
#ifndef MMGATE_STUDY_H
#define MMGATE_STUDY_H

#include "digest.h"
#include "log.h"
#include "rows.h"
#include "sites.h"
#include "verdict.h"
#include "window.h"

enum { STUDY_MOST = 8 };

struct study {
	const struct log_process *process;
	struct log *log;
	struct digest *digest;
	struct sites *sites;
	struct verdict verdict;
};

struct studies {
	struct study of[STUDY_MOST];
	size_t count;
	size_t worst; /* whose verdict is the run's */
};

/* Looks into the worst of `count` processes, whose logs these are. */
struct studies studies_of(const struct log_dir *dir,
			  const struct log_process *const *processes,
			  struct log *const *logs, size_t count,
			  struct images *images, const struct rows *rows,
			  const struct window *window);
/* "function via malloc", in memory of its own. */
char *study_site(const struct sites_row *site);
/* Names the code that made a call: its site where samples show it, otherwise
 * the function at the address; in memory of its own. */
char *study_name(struct sites *sites, unsigned op, uint64_t address,
		 uint64_t time_ns);
void studies_drop(struct studies *studies);

/* Of that process, or NULL. */
const struct study *studies_find(const struct studies *studies,
				 const struct log_process *process);
/* The one whose verdict is the run's, or NULL: there is none. */
const struct study *studies_worst(const struct studies *studies);

#endif
