/* SPDX-License-Identifier: MIT */
/*
 * preflight: can this command be instrumented?
 *
 * Looks at files, and at what a process may do here; starts nothing, and
 * leaves nothing changed.
 */
#ifndef MMGATE_PREFLIGHT_H
#define MMGATE_PREFLIGHT_H

#include <stdbool.h>
#include <stddef.h>

enum { PREFLIGHT_NOTES = 12, PREFLIGHT_LINE = 1024 };

struct preflight {
	char *path;    /* what execve takes */
	char *program; /* the file that becomes the process: `path`, or its
			* interpreter */
	/* EXIT_DONE: it can.  EXIT_NOT_FOUND, EXIT_NOT_RUN: it cannot even
	 * run.  EXIT_NOT_GATED: it runs, but without us. */
	int status;
	char reason[PREFLIGHT_LINE];   /* one line, unless EXIT_DONE */
	char runtimes[PREFLIGHT_LINE]; /* sanitizer runtimes that must be
					* preloaded before us, with colons */
	char *notes[PREFLIGHT_NOTES];  /* what will be seen less well */
	size_t note_count;
	bool loses_library; /* what it starts runs without us */
};

/* `library` is the library's path; NULL: judge by this command's own file. */
void preflight_check(struct preflight *preflight, const char *command,
		     const char *library);

/* Adds what can be told from the command's arguments: argv[0] is what was
 * checked. */
void preflight_arguments(struct preflight *preflight, char *const *argv,
			 const char *library);

/* Does a limit leave no room for any log, of this process's children?  `line`
 * says which, and what to do. */
bool preflight_limit(char line[PREFLIGHT_LINE]);

void preflight_free(struct preflight *preflight);

#endif
