/* SPDX-License-Identifier: MIT */
/*
 * output: what commands that turn logs into something have in common.
 */
#ifndef MMGATE_OUTPUT_H
#define MMGATE_OUTPUT_H

#include <stdio.h>

/* Where `run` puts logs when nobody says otherwise. */
#define OUTPUT_DIRECTORY "./mmgate.out"

/* The one word behind the options, or the default; more are refused. */
const char *output_directory(int argc, char **argv);

/* `path`, or standard output when it is NULL.  Failure is fatal in both. */
FILE *output_open(const char *path);
/* The same in two steps, for what takes long between them: what a file holds
 * stays until there is something to write. */
FILE *output_hold(const char *path);
void output_begin(FILE *out, const char *path);
/* Everything is written when this returns. */
void output_close(FILE *out, const char *path);

/* Without what a terminal would obey, in memory of its own. */
char *output_clean(const char *text);

/* Writes lines of text, those of more than `width` characters cut between
 * words, what follows further in.  A longer word stays whole. */
void output_folded(const char *text, size_t width, FILE *out);

#endif
