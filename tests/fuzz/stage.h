/* SPDX-License-Identifier: MIT */
/*
 * stage: where a command plays under the fuzzer.
 *
 * It runs as in the program, from its argv to its exit status, in one process
 * over and over: exit() comes back, standard output and error are looked at
 * byte for byte.  Whatever breaks a promise ends the program with a line that
 * says which, and so is a finding.
 */
#ifndef MMGATE_FUZZ_STAGE_H
#define MMGATE_FUZZ_STAGE_H

#include <stdbool.h>
#include <stdint.h>

/* What standard output has to be, beside free of control characters. */
enum stage_form {
	STAGE_TEXT,
	STAGE_CSV,
	STAGE_JSON,
	STAGE_JSON_LINES,
	STAGE_HTML,
};

struct stage_end {
	int status;
	bool died;           /* by exit(), and so without freeing anything */
	unsigned complaints; /* lines on standard error */
	uint64_t output;     /* a hash of standard output */
};

/* Makes a directory of this process, in memory where there is such a place,
 * which is gone when the process ends.  Its name, with a name behind it: */
void stage_begin(void);
char *stage_path(const char *name);

/* Calls a command with the words of `line`, of which DIR stands for the
 * directory. */
struct stage_end stage_run(int (*command)(int argc, char **argv),
			   const char *line, enum stage_form form);

/* A promise: says `what` and aborts when it does not hold. */
void stage_check(bool holds, const char *what);

#endif
