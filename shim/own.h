/* SPDX-License-Identifier: MIT */
/*
 * own: do the library's exported functions stay as they are?
 *
 * Others that patch functions may find them in libc's place.
 */
#ifndef MMGATE_OWN_H
#define MMGATE_OWN_H

#include <stdint.h>

/* Remembers how they begin.  Once, at start. */
void own_keep(void);

/* Ops whose functions begin otherwise by now, a bit each. */
uint8_t own_lost(void);

#endif
