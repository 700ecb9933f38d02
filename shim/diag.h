/* SPDX-License-Identifier: MIT */
/*
 * diag: one line on the program's stderr.
 *
 * Only while the library starts: later, descriptor 2 may be the program's
 * database.  At most DIAG_MAX lines a process, so that a bad environment
 * cannot flood anybody.
 */
#ifndef MMGATE_DIAG_H
#define MMGATE_DIAG_H

enum { DIAG_MAX = 8 };

/* Writes "mmgate: " and the line. */
void diag_line(const char *line);

#endif
