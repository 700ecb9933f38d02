/* SPDX-License-Identifier: MIT */
/*
 * probe: the self-test: which calls does the library see on this machine?
 *
 * Starts this command again, with the library in it, for each value of
 * MMGATE_HOOKS, and reads what it made of calls that are known.  A way to make
 * a call counts as caught when its call is in the log, whatever the library
 * says of itself.
 */
#ifndef MMGATE_PROBE_H
#define MMGATE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "probe_calls.h"

/* What a layer needs at least, and what was found of it. */
struct probe_result {
	const char *name;  /* "ld.so" */
	const char *hooks; /* the value of MMGATE_HOOKS that asks for it */
	uint32_t seen;     /* ops, a bit each */
	uint32_t claimed;  /* ops that the library says it catches */
	char outcome[256]; /* the library's: "patched", "symbols only: ..." */
};

struct probe {
	char problem[512]; /* why there is no result; or empty */
	struct probe_result layers[PROBE_LAYERS];
};

/* Tests the library at this path, with logs in a private directory that is
 * gone afterwards.  Takes the settings out of this process's environment. */
void probe_run(struct probe *probe, const char *library);

/* The started command's part: argv is { "mmgate", "doctor", PROBE_OPTION }. */
#define PROBE_OPTION "probe"
int probe_child(void);

#endif
