/* SPDX-License-Identifier: MIT */
/*
 * export: formats of `mmgate export` that are more than a line for each event.
 *
 * Each writes all of a directory and returns an exit status: EXIT_FAILED when
 * not all could be read.
 */
#ifndef MMGATE_EXPORT_H
#define MMGATE_EXPORT_H

#include <stdio.h>

#include "images.h"
#include "log.h"

struct export
{
	const struct log_dir *dir;
	FILE *out;
	struct images *images;
	bool names; /* of functions, in place of addresses of code */
};

/* A stack a line as flame graph tools read them, and its nanoseconds. */
int export_folded(const struct export *x);

/* Trace Event Format, for Perfetto and chrome://tracing: waits and system calls
 * as slices of their threads, figures over time as counters. */
int export_chrome(const struct export *x);

/* Text format 0.0.4 of Prometheus, as the node exporter's text-file collector
 * reads it: figures by image name and op. */
int export_prometheus(const struct export *x);

#endif
