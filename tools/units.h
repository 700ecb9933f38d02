/* SPDX-License-Identifier: MIT */
/*
 * units: numbers for people.
 *
 * Each returns a pointer into a small ring of static buffers: good for some
 * sixteen calls, so for one printf.
 */
#ifndef MMGATE_UNITS_H
#define MMGATE_UNITS_H

#include <stdint.h>

const char *units_time(double ns); /* "0", "812 ns", "4.31 us", "1.20 s" */
const char *units_count(uint64_t count); /* "812", "43.1 k", "1.20 M" */
const char *units_bytes(double bytes);   /* "812 B", "4.31 KiB" */
const char *units_percent(double share); /* 0.123 -> "12.3 %" */

#endif
