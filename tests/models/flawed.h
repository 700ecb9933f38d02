/* SPDX-License-Identifier: MIT */
/*
 * flawed: locks that are wrong on purpose, each in one way that was tempting.
 *
 * FLAW(name, sound, report)  functions that it leaves out are the sound
 *                            one's; report: what the explorer must say
 */
#ifndef FLAW
#include "lock.h"

#define FLAW(name, sound, report) extern const struct lock_kind flawed_##name;
#include "flawed.h"
#else

/* Looks, then takes: not in one step. */
FLAW(look, mutex, "two threads hold the lock")
/* Wakes when nobody is said to sleep. */
FLAW(wake, mutex, "everybody sleeps and nobody will wake them")
/* A woken thread takes the lock as if nobody else slept. */
FLAW(retake, mutex, "everybody sleeps and nobody will wake them")
/* Marks the lock contended only if it is still held, then sleeps anyhow. */
FLAW(mark, mutex, "everybody sleeps and nobody will wake them")
/* A sleeper whose time is over leaves without a last look. */
FLAW(hasty, mutex, "gave up on a free lock")
/* Looks for abandonment after its sleep only. */
FLAW(deaf, mutex, "asleep on an abandoned lock")
/* Keeps the lock for sleepers though there were none. */
FLAW(keep, mutex, "everybody sleeps and nobody will wake them")
/* Serves the next ticket, also one whose thread gave up. */
FLAW(serve, fifo, "everybody sleeps and nobody will wake them")
/* Takes the sign of sleepers away though it wakes nobody yet. */
FLAW(unmark, rw, "everybody sleeps and nobody will wake them")

#undef FLAW
#endif
