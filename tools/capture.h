/* SPDX-License-Identifier: MIT */
/*
 * capture: what programs write into a pipe, kept in memory.
 *
 * It is a pipe because a program may open one again by its name (/dev/stdout),
 * which cuts nothing off and overwrites nothing, and because no limit on the
 * size of files holds for it.
 */
#ifndef MMGATE_CAPTURE_H
#define MMGATE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

enum { CAPTURE_MOST = 256 << 20 }; /* bytes that are kept */

struct capture {
	int reader, writer; /* the second is what a program writes to; -1 */
	char *text;         /* a zero byte in it became a line's end */
	size_t size, room;
	bool full; /* more was written than is kept */
};

/* False: errno says why.  Both ends are closed by an exec. */
bool capture_open(struct capture *capture);

/* Takes what is there, a megabyte at most, and never waits: how many bytes.  Of
 * one that is full nothing is taken any more. */
size_t capture_take(struct capture *capture);

/* Takes the rest and closes the pipe: who still has an end gets SIGPIPE.  Does
 * nothing the second time. */
void capture_finish(struct capture *capture);

/* What was taken, and a zero byte behind it. */
const char *capture_text(const struct capture *capture);

/* pre: it is finished. */
void capture_free(struct capture *capture);

#endif
