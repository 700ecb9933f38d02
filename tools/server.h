/* SPDX-License-Identifier: MIT */
/*
 * server: a program that does not end by itself, and when it is ready.
 *
 * It is ready when a line of its output matches, or else when one of its
 * processes listens: on TCP, or on a socket of the local kind.
 */
#ifndef MMGATE_SERVER_H
#define MMGATE_SERVER_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "launch.h"

enum { SERVER_LINE = 256 };

struct server {
	const char *load; /* the command that measures it, for sh -c */
	char **variables; /* the load's: it runs without the library */
	bool has_ready;
	const char *ready_text;
	regex_t ready;
	uint64_t ready_ns, end_ns; /* patience with its start, with its end */
};

/* False: `why` has one line. */
bool server_set_ready(struct server *server, const char *regex,
		      char why[SERVER_LINE]);

/* Is what it wrote, or the state of its sockets, that of a server that is
 * ready? */
bool server_is_ready(const struct server *server, const struct launch *launch);

/* Waits until it is.  "": it is; else what is wrong.  A signal that asks us to
 * end is returned in `asked`. */
const char *server_wait(const struct server *server, struct launch *launch,
			int *asked);

#endif
