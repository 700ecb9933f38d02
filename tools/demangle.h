/* SPDX-License-Identifier: MIT */
/*
 * demangle: C++ and Rust names, by the C++ library if there is one here.
 */
#ifndef MMGATE_DEMANGLE_H
#define MMGATE_DEMANGLE_H

/* The name that people know a symbol by, without its parameters and without
 * what compilers add to it (".isra.0"); no control characters.  To be freed. */
char *demangle(const char *symbol);

#endif
