/* SPDX-License-Identifier: MIT */
/*
 * hot: words for what every call passes through.
 */
#ifndef MMGATE_HOT_H
#define MMGATE_HOT_H

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define HOT inline __attribute__((always_inline))
/* Keeps what is rare out of the registers of what is not. */
#define COLD __attribute__((noinline))

/* For data of other files: it is in this library, at a fixed distance. */
#define HIDDEN __attribute__((visibility("hidden")))

#endif
