/* SPDX-License-Identifier: MIT */
#include "server.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clocks.h"
#include "die.h"

enum { LISTENS_TCP = 0x0a, LISTENS_LOCAL = 0x10000, PATH = 300 };

static const uint64_t step_ns = 10000000;

bool server_set_ready(struct server *server, const char *regex,
		      char why[SERVER_LINE])
{
	int error = regcomp(&server->ready, regex,
			    REG_EXTENDED | REG_NEWLINE | REG_NOSUB);

	server->ready_text = regex;
	server->has_ready = error == 0;
	if (error != 0)
		regerror(error, &server->ready, why, SERVER_LINE);
	return error == 0;
}

/* --- by its output --- */

static bool says_so(const struct server *server, const struct launch *launch)
{
	for (int i = 0; i < 2; i++)
		if (regexec(&server->ready, capture_text(&launch->output[i]), 0,
			    NULL, 0) == 0)
			return true;
	return false;
}

/* --- by its sockets --- */

/* One look at all its processes: the sockets that listen, in the network that
 * the last of them is in. */
struct look {
	char network[64];
	unsigned long *listening;
	size_t count, room;
};

static bool listens_tcp(const char *line, unsigned long *inode)
{
	unsigned state;

	return sscanf(line, "%*s %*s %*s %x %*s %*s %*s %*s %*s %lu", &state,
		      inode) == 2 &&
	       state == LISTENS_TCP;
}

static bool listens_local(const char *line, unsigned long *inode)
{
	unsigned flags;

	return sscanf(line, "%*s %*s %*s %x %*s %*s %lu", &flags, inode) == 2 &&
	       (flags & LISTENS_LOCAL) != 0;
}

static void add_listening(struct look *look, unsigned long inode)
{
	if (look->count == look->room) {
		look->room = look->room == 0 ? 64 : 2 * look->room;
		look->listening = xrealloc(
			look->listening, look->room * sizeof(*look->listening));
	}
	look->listening[look->count++] = inode;
}

static void read_table(struct look *look, const char *path,
		       bool (*listens)(const char *line, unsigned long *inode))
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	unsigned long inode;

	if (f == NULL)
		return;
	while (getline(&line, &room, f) > 0)
		if (listens(line, &inode))
			add_listening(look, inode);
	free(line);
	fclose(f);
}

static void read_tables(struct look *look, pid_t pid)
{
	static const struct {
		const char *name;
		bool (*listens)(const char *line, unsigned long *inode);
	} tables[] = {
		{"tcp", listens_tcp},
		{"tcp6", listens_tcp},
		{"unix", listens_local},
	};
	char path[PATH];

	look->count = 0;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid,
			 tables[i].name);
		read_table(look, path, tables[i].listens);
	}
}

static bool read_link(const char *path, char *target, size_t size)
{
	ssize_t n = readlink(path, target, size - 1);

	target[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static void enter_network(struct look *look, pid_t pid)
{
	char path[PATH], network[sizeof(look->network)];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	if (read_link(path, network, sizeof(network)) &&
	    strcmp(network, look->network) == 0)
		return;
	memcpy(look->network, network, sizeof(network));
	read_tables(look, pid);
}

/* Is the descriptor a socket that listens? */
static bool fd_listens(const struct look *look, const char *directory,
		       const char *name)
{
	char path[PATH], target[64];
	unsigned long inode;
	size_t i = 0;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (!read_link(path, target, sizeof(target)) ||
	    sscanf(target, "socket:[%lu]", &inode) != 1)
		return false;
	while (i < look->count && look->listening[i] != inode)
		i++;
	return i < look->count;
}

static bool member_listens(const struct group_member *member, void *context)
{
	struct look *look = context;
	const struct dirent *entry;
	char path[32];
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)member->pid);
	dir = opendir(path);
	if (dir == NULL)
		return false;
	enter_network(look, member->pid);
	while (!found && (entry = readdir(dir)) != NULL)
		found = isdigit((unsigned char)entry->d_name[0]) &&
			fd_listens(look, path, entry->d_name);
	closedir(dir);
	return found;
}

bool server_is_ready(const struct server *server, const struct launch *launch)
{
	struct look look = {0};
	bool ready;

	if (server->has_ready)
		return says_so(server, launch);
	ready = group_any(launch_group(launch), member_listens, &look);
	free(look.listening);
	return ready;
}

const char *server_wait(const struct server *server, struct launch *launch,
			int *asked)
{
	const uint64_t from = clocks_now();

	do {
		/* In this order: what is ready and ends at once has ended. */
		bool ready = server_is_ready(server, launch);

		if (launch_look(launch, ready ? 0 : step_ns))
			return "ended before it was ready";
		if (ready)
			return "";
		*asked = launch_asked();
		if (*asked != 0)
			return "";
	} while (clocks_now() - from < server->ready_ns);
	return server->has_ready
		       ? "was not ready in time: nothing that it wrote matches "
			 "--ready"
		       : "was not ready in time: it listens on no socket "
			 "(--ready REGEX looks at its output instead)";
}
