/* SPDX-License-Identifier: MIT */
/*
 * cmd: what a command of mmgate is.
 *
 * To add one: write cmd_NAME.c that ends in its `const struct command
 * cmd_NAME`, and add a row to the table in main.c.  Help and `mmgate help NAME`
 * derive from the struct; a test holds the manual page against it.
 */
#ifndef MMGATE_CMD_H
#define MMGATE_CMD_H

struct command {
	const char *name;
	const char *summary;  /* one line, for the list */
	const char *synopsis; /* without "mmgate" */
	const char *help;     /* options and an example, ends in a newline */
	/* argv[0] is the command's name.  Returns the exit status. */
	int (*run)(int argc, char **argv);
};

extern const struct command cmd_run, cmd_report, cmd_export, cmd_set,
	cmd_doctor, cmd_compare, cmd_tune;

#endif
