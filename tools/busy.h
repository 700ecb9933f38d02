/* SPDX-License-Identifier: MIT */
/*
 * busy: how far the reading of events is, on stderr, if that is a terminal and
 * it takes longer than a second.
 */
#ifndef MMGATE_BUSY_H
#define MMGATE_BUSY_H

#include "log.h"

/* So many events will be read by log_each_event(), from all logs. */
void busy_begin(uint64_t events);
/* Takes the line away, if there is one.  Before anything else is printed. */
void busy_end(void);

/* Events in all logs of a directory. */
uint64_t busy_events(const struct log_dir *dir);

#endif
