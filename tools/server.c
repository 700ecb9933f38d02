/* SPDX-License-Identifier: MIT */
#include "server.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static bool says_so(const struct server *server, int file)
{
	struct stat st;
	bool found = false;
	char *text;
	ssize_t n;

	if (fstat(file, &st) != 0 || st.st_size == 0)
		return false;
	text = xcalloc((size_t)st.st_size + 1, 1);
	n = pread(file, text, (size_t)st.st_size, 0);
	for (ssize_t i = 0; i < n; i++)
		if (text[i] == '\0')
			text[i] = '\n';
	found = n > 0 && regexec(&server->ready, text, 0, NULL, 0) == 0;
	free(text);
	return found;
}

/* --- by its sockets --- */

/* Calls `each` with the lines of a file until one is true. */
static bool any_line(const char *path,
		     bool (*each)(const char *line, unsigned long inode),
		     unsigned long inode)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	if (f == NULL)
		return false;
	while (!found && getline(&line, &room, f) > 0)
		found = each(line, inode);
	free(line);
	fclose(f);
	return found;
}

static bool listens_tcp(const char *line, unsigned long inode)
{
	unsigned state;
	unsigned long other;

	return sscanf(line, "%*s %*s %*s %x %*s %*s %*s %*s %*s %lu", &state,
		      &other) == 2 &&
	       other == inode && state == LISTENS_TCP;
}

static bool listens_local(const char *line, unsigned long inode)
{
	unsigned flags;
	unsigned long other;

	return sscanf(line, "%*s %*s %*s %x %*s %*s %lu", &flags, &other) ==
		       2 &&
	       other == inode && (flags & LISTENS_LOCAL) != 0;
}

static bool is_listening(pid_t pid, unsigned long inode)
{
	static const struct {
		const char *name;
		bool (*each)(const char *line, unsigned long inode);
	} tables[] = {
		{"tcp", listens_tcp},
		{"tcp6", listens_tcp},
		{"unix", listens_local},
	};
	char path[PATH];

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid,
			 tables[i].name);
		if (any_line(path, tables[i].each, inode))
			return true;
	}
	return false;
}

/* Is the descriptor a socket that listens? */
static bool fd_listens(pid_t pid, const char *name)
{
	char path[PATH], target[64];
	unsigned long inode;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, name);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	return sscanf(target, "socket:[%lu]", &inode) == 1 &&
	       is_listening(pid, inode);
}

/* Calls `each` with the names of a directory that are numbers, until one is
 * true. */
static bool any_number(const char *path, bool (*each)(pid_t pid, const char *),
		       pid_t pid)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	bool found = false;

	if (dir == NULL)
		return false;
	while (!found && (entry = readdir(dir)) != NULL)
		found = isdigit((unsigned char)entry->d_name[0]) &&
			each(pid, entry->d_name);
	closedir(dir);
	return found;
}

static bool member_listens(pid_t group, const char *name)
{
	pid_t pid = (pid_t)strtol(name, NULL, 10);
	char path[PATH];

	if (getpgid(pid) != group)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	return any_number(path, fd_listens, pid);
}

bool server_is_ready(const struct server *server, const struct launch *launch,
		     const int files[2])
{
	if (server->has_ready)
		return says_so(server, files[0]) || says_so(server, files[1]);
	return any_number("/proc", member_listens, launch->pid);
}

const char *server_wait(const struct server *server, struct launch *launch,
			const int files[2], int *asked)
{
	for (uint64_t spent = 0; spent < server->ready_ns; spent += step_ns) {
		/* In this order: what is ready and ends at once has ended. */
		bool ready = server_is_ready(server, launch, files);

		if (launch_look(launch, ready ? 0 : step_ns))
			return "ended before it was ready";
		if (ready)
			return "";
		*asked = launch_asked();
		if (*asked != 0)
			return "";
	}
	return server->has_ready
		       ? "was not ready in time: nothing that it wrote matches "
			 "--ready"
		       : "was not ready in time: it listens on no socket "
			 "(--ready REGEX looks at its output instead)";
}
