/* SPDX-License-Identifier: MIT */
#include "group.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { PATH = 300, LINE = 1024 };

static bool read_stat(const char *pid, char line[LINE])
{
	char path[PATH];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	n = fread(line, 1, LINE - 1, f);
	line[n] = '\0';
	fclose(f);
	return n > 0;
}

/* "PID (NAME) STATE PARENT GROUP ... THREADS ...": a name may have anything in
 * it, and a process whose first thread has ended lives on in the others. */
static bool is_member(pid_t group, const char *pid, char name[GROUP_NAME])
{
	char line[LINE], *from, *to, state;
	long threads;
	int its;

	if (!read_stat(pid, line))
		return false;
	from = strchr(line, '(');
	to = strrchr(line, ')');
	if (from == NULL || to == NULL ||
	    sscanf(to + 1,
		   " %c %*s %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		   "%*s %*s %ld",
		   &state, &its, &threads) != 3 ||
	    its != group || (strchr("ZXx", state) != NULL && threads <= 1))
		return false;
	if (name != NULL)
		snprintf(name, GROUP_NAME, "%.*s", (int)(to - from - 1),
			 from + 1);
	return true;
}

bool group_alive(pid_t group, char name[GROUP_NAME])
{
	const struct dirent *entry;
	bool found = false;
	DIR *dir;

	if (kill(-group, 0) != 0 && errno == ESRCH)
		return false;
	dir = opendir("/proc");
	if (dir == NULL)
		return false;
	while (!found && (entry = readdir(dir)) != NULL)
		found = isdigit((unsigned char)entry->d_name[0]) &&
			is_member(group, entry->d_name, name);
	closedir(dir);
	return found;
}
