/* SPDX-License-Identifier: MIT */
/*
 * request: what `mmgate set` asks of the running program.
 *
 * It writes a text and then its number into the log; the next call that ends
 * does what the text says and answers.
 */
#ifndef MMGATE_REQUEST_H
#define MMGATE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "hot.h"
#include "log.h"
#include "thread.h"

extern HIDDEN uint32_t request_seen; /* the number of the last one */

/* Is there a new one?  pre: the log is open. */
static HOT bool request_waits(void)
{
	return log_request() !=
	       __atomic_load_n(&request_seen, __ATOMIC_RELAXED);
}

/* Follows it, unless another thread does. */
COLD void request_follow(struct thread *t);

/* In a forked child, whose log has had none. */
void request_begin_child(void);

#endif
