/* SPDX-License-Identifier: MIT */
/*
 * flame: the data of a flame graph, which the html report's script draws.
 *
 * A tree of frames, outermost first, weighted by waiting and by kernel time:
 * {"n":name,"w":ns,"k":ns,"c":[children]}.  What is too small to be seen, and
 * what is too deep, is left out.
 */
#ifndef MMGATE_FLAME_H
#define MMGATE_FLAME_H

#include <stdio.h>

#include "study.h"

/* False, and nothing is written, when there is no sample. */
bool flame_write(const struct studies *studies, FILE *out);

#endif
