/* SPDX-License-Identifier: MIT */
/*
 * gaps: why calls of a process are not in its log one by one, and what would
 * keep them there.
 *
 * Whether `mmgate set` changed events is not written down, but what became of
 * each call is: its event is there, was overwritten, found no room, or was
 * never written.
 */
#ifndef MMGATE_GAPS_H
#define MMGATE_GAPS_H

#include "log.h"

/* "older ones were overwritten (a larger --log-size keeps more)": a half
 * sentence in memory of its own; NULL: nearly all calls are there. */
char *gaps_why(const struct log_process *p);
/* The same of those alone that never had an event; of these, unless it was
 * started with settings that ask for no event of each call. */
char *gaps_never(const struct log_process *p);
char *gaps_unasked(const struct log_process *p);
/* Are the calls that are there the newest? */
bool gaps_is_newest(const struct log_process *p);
/* What lets the log hold more: "a larger --log-size", "more free space". */
const char *gaps_more_room(const struct log_process *p);

#endif
