/* SPDX-License-Identifier: MIT */
/*
 * advice: what a search for settings comes to, in words that can be followed.
 */
#ifndef MMGATE_ADVICE_H
#define MMGATE_ADVICE_H

#include <stdio.h>

#include "tune.h"

/* pre for the next four: a row is chosen. */

/* "lock=mutex", "fewer CPUs (1)", in memory of its own. */
char *advice_name(const struct tune *tune);

/* The whole command as a shell takes it. */
char *advice_command(const struct tune *tune);

/* "NAME=VALUE" each, NULL at the end: none when it is fewer CPUs.  With what
 * the environment gave the measured runs. */
char **advice_environment(const struct tune *tune);

/* The command that shows it at work; NULL when there is nothing to see. */
char *advice_look(const struct tune *tune);

/* What else can be tried: lines, NULL at the end. */
char **advice_others(const struct tune *tune);

/* "recommendation", "leave it alone", "no verdict" */
const char *advice_verdict(const struct tune *tune);

/* The best of the search, when that is all there is; or NULL. */
const char *advice_best_so_far(const struct tune *tune);

void advice_print_text(const struct tune *tune, FILE *out);
void advice_print_markdown(const struct tune *tune, FILE *out);
void advice_print_json(const struct tune *tune, FILE *out);

#endif
