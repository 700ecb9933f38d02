/* SPDX-License-Identifier: MIT */
/*
 * sampler: writes the rows of rows.h while a run goes on.
 *
 * It reads logs and /proc, nothing that takes a lock of the program's: of
 * /proc/PID only stat and the threads' status and schedstat, which need no
 * mmap_lock.  It stops for good at the first failure to write, and takes at
 * most about one per cent of a CPU: what does not fit comes with a later tick.
 */
#ifndef MMGATE_SAMPLER_H
#define MMGATE_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

struct sampler;

/* Ticks are as far apart, but for the first. */
#define SAMPLER_TICK_NS UINT64_C(1000000000)

/* `path` is the directory that `fd` stands for; both outlive the sampler. */
struct sampler *sampler_new(int fd, const char *path);

/* Looks at everything, and adds a row. */
void sampler_tick(struct sampler *s);

/* The last look, after the program's end, and frees it.  0, or the errno that
 * ended it early. */
int sampler_end(struct sampler *s);

#endif
