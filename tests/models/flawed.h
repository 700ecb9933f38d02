/* SPDX-License-Identifier: MIT */
/*
 * flawed: locks that are wrong on purpose, each in one way that was tempting.
 *
 * FLAW(name, report)  what the explorer must say about it
 */
#ifndef FLAW
#include "lock.h"

#define FLAW(name, report) extern const struct lock_kind flawed_##name;
#include "flawed.h"
#else

/* Looks, then takes: not in one step. */
FLAW(look, "two threads hold the lock")
/* Wakes when nobody is said to sleep. */
FLAW(wake, "everybody sleeps and nobody will wake them")
/* A woken thread takes the lock as if nobody else slept. */
FLAW(retake, "everybody sleeps and nobody will wake them")
/* Marks the lock contended only if it is still held, then sleeps anyhow. */
FLAW(mark, "everybody sleeps and nobody will wake them")
/* A sleeper whose time is over leaves without a last look. */
FLAW(hasty, "gave up on a free lock")
/* Looks for abandonment after its sleep only. */
FLAW(deaf, "asleep on an abandoned lock")
/* Keeps the lock for sleepers though there were none. */
FLAW(keep, "everybody sleeps and nobody will wake them")

#undef FLAW
#endif
