/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "log.h"
#include "source.h"
#include "text.h"
#include "utf8.h"

static bool ends_in(const char *name, const char *suffix)
{
	size_t length = strlen(name), end = strlen(suffix);

	return length > end && !strcmp(name + length - end, suffix);
}

static void add_log(struct log_dir *dir, const char *name)
{
	char *path = xasprintf("%s/%s", dir->path, name);
	char why[256];
	struct log *log = log_open_new(path, why);

	if (log) {
		/* Room doubles at each power of two. */
		if ((dir->count & (dir->count - 1)) == 0)
			dir->logs =
				xrealloc(dir->logs, 2 * (dir->count + 1) *
							    sizeof(*dir->logs));
		dir->logs[dir->count++] = log;
	} else {
		warn("%s: %s", path, why);
		dir->broken++;
	}
	free(path);
}

void log_clean_info(struct record_dir *info)
{
	char command[sizeof(info->command)], why[sizeof(info->unlogged_why)];

	utf8_clean(command, info->command, sizeof(command) - 1, 0);
	memcpy(info->command, command, sizeof(command));
	utf8_clean(why, info->unlogged_why, sizeof(why) - 1, 0);
	memcpy(info->unlogged_why, why, sizeof(why));
}

static bool check_info(const struct record_dir *info, uint64_t size,
		       char why[256])
{
	if (info->magic == 0)
		snprintf(why, 256, "was never begun: there was no room for it");
	else if (info->magic != RECORD_MAGIC)
		snprintf(why, 256, "is not mmgate's");
	else if (!log_is_this_format(info->version, why))
		return false;
	else if (size < sizeof(*info))
		snprintf(why, 256, "is truncated: %llu of %zu bytes",
			 (unsigned long long)size, sizeof(*info));
	else
		return true;
	return false;
}

static bool load_info(struct log_dir *dir, const char *path, char why[256])
{
	struct source source;
	const char *wrong;
	int error;

	errno = 0;
	wrong = source_open(&source, path);
	if (wrong) {
		snprintf(why, 256, "%s", errno == ENOENT ? "" : wrong);
		return false;
	}
	error = source_read(&source, &dir->info, sizeof(dir->info), 0);
	source_close(&source);
	if (error) {
		snprintf(why, 256, "cannot be read: %s", strerror(-error));
		return false;
	}
	return check_info(&dir->info, source.size, why);
}

/* A report can do without it, so a missing or strange one is no failure. */
static void read_info(struct log_dir *dir)
{
	char *path = xasprintf("%s/%s", dir->path, RECORD_DIR_NAME);

	dir->has_info = load_info(dir, path, dir->strange);
	if (*dir->strange)
		warn("%s: %s; nothing is known of the run as a whole", path,
		     dir->strange);
	log_clean_info(&dir->info);
	free(path);
}

char *log_unlogged(uint64_t count, const char *why)
{
	return xasprintf("%llu process%s got no log, and %s calls are in no "
			 "figure%s%s",
			 (unsigned long long)count, count == 1 ? "" : "es",
			 count == 1 ? "its" : "their",
			 *why == '\0' ? ""
			 : count == 1 ? ": "
				      : "; of the first: ",
			 why);
}

char *log_dir_gap(const struct log_dir *dir)
{
	if (*dir->strange)
		return xasprintf("whether there are processes that got no log "
				 "is not known, as " RECORD_DIR_NAME " %s",
				 dir->strange);
	if (!dir->has_info || dir->info.unlogged == 0)
		return NULL;
	return log_unlogged(dir->info.unlogged, dir->info.unlogged_why);
}

static int by_start(const void *a, const void *b)
{
	const struct log_process *p = log_process(*(struct log *const *)a);
	const struct log_process *q = log_process(*(struct log *const *)b);

	if (p->started_unix_ns != q->started_unix_ns)
		return p->started_unix_ns < q->started_unix_ns ? -1 : 1;
	return (p->pid > q->pid) - (p->pid < q->pid);
}

static struct log_dir *read_dir(const char *path, DIR *stream)
{
	struct log_dir *dir = xcalloc(1, sizeof(*dir));
	struct dirent *entry;

	dir->path = xstrdup(path);
	while ((entry = readdir(stream)))
		if (ends_in(entry->d_name, RECORD_SUFFIX))
			add_log(dir, entry->d_name);
	read_info(dir);
	if (dir->count > 0)
		qsort(dir->logs, dir->count, sizeof(*dir->logs), by_start);
	return dir;
}

/* None at all. */
static char *explain_none(const struct log_dir *dir)
{
	char *gap = dir->has_info ? log_dir_gap(dir) : NULL, *why;

	if (gap)
		why = xasprintf("%s: holds no log (*%s): %s", dir->path,
				RECORD_SUFFIX, gap);
	else
		why = xasprintf("%s: holds no log (*%s); make one with `mmgate "
				"run -o %s -- COMMAND`",
				dir->path, RECORD_SUFFIX, dir->path);
	free(gap);
	return why;
}

struct log_dir *log_dir_try(const char *path, char **why)
{
	DIR *stream = opendir(path);
	struct log_dir *dir;

	if (!stream) {
		*why = xasprintf("%s: cannot read the log directory (what "
				 "`mmgate run -o` wrote): %s",
				 path, strerror(errno));
		return NULL;
	}
	dir = read_dir(path, stream);
	closedir(stream);
	if (dir->count + dir->broken > 0)
		return dir;
	*why = explain_none(dir);
	log_dir_close(dir);
	return NULL;
}

struct log_dir *log_dir_open(const char *path)
{
	char *why;
	struct log_dir *dir = log_dir_try(path, &why);

	if (!dir)
		die(EXIT_FAILED, "%s", why);
	return dir;
}

/* PID-NANOSECONDS.mmgate: when it began; 0: another process's, or none. */
static uint64_t name_began(const char *name, uint32_t pid)
{
	const char *dash = strchr(name, '-');
	uint64_t number, began;
	size_t length;

	if (!dash || !ends_in(name, RECORD_SUFFIX) ||
	    text_parse_u64(name, (size_t)(dash - name), &number) != 0 ||
	    number != pid)
		return 0;
	length = strlen(dash + 1) - strlen(RECORD_SUFFIX);
	return text_parse_u64(dash + 1, length, &began) == 0 ? began : 0;
}

static char *newest_name(DIR *stream, uint32_t pid)
{
	struct dirent *entry;
	uint64_t newest = 0;
	char *name = NULL;

	while ((entry = readdir(stream))) {
		uint64_t began = name_began(entry->d_name, pid);

		if (began <= newest)
			continue;
		newest = began;
		free(name);
		name = xstrdup(entry->d_name);
	}
	return name;
}

char *log_dir_newest(const char *path, uint32_t pid, char **why)
{
	DIR *stream = opendir(path);
	char *name = NULL, *full = NULL;

	if (!stream) {
		*why = xasprintf("%s: cannot read the log directory: %s", path,
				 strerror(errno));
		return NULL;
	}
	name = newest_name(stream, pid);
	closedir(stream);
	if (name)
		full = xasprintf("%s/%s", path, name);
	else
		*why = xasprintf("%s holds no log of process %u", path, pid);
	free(name);
	return full;
}

void log_dir_close(struct log_dir *dir)
{
	size_t i;

	for (i = 0; i < dir->count; i++)
		log_close(dir->logs[i]);
	free(dir->logs);
	free(dir->path);
	free(dir);
}
