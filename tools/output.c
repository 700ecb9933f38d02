/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "die.h"
#include "output.h"
#include "utf8.h"

/* How much further in the rest of a line stands. */
enum { HANG = 4 };

const char *output_directory(int argc, char **argv)
{
	if (argc - optind > 1)
		die(EXIT_USAGE,
		    "%s: one directory at a time, not %s and %s too", argv[0],
		    argv[optind], argv[optind + 1]);
	return optind < argc ? argv[optind] : OUTPUT_DIRECTORY;
}

FILE *output_open(const char *path)
{
	FILE *out = output_hold(path);

	output_begin(out, path);
	return out;
}

/* What was started without has a descriptor that nobody can write to. */
static void need_stdout(void)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	if (flags != -1 && (flags & O_ACCMODE) != O_RDONLY)
		return;
	errno = EBADF;
	die_errno(EXIT_FAILED, "cannot write to standard output");
}

FILE *output_hold(const char *path)
{
	FILE *out;
	int fd;

	if (!path) {
		need_stdout();
		return stdout;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	out = fd == -1 ? NULL : fdopen(fd, "w");
	if (!out)
		die_errno(EXIT_USAGE, "-o %s", path);
	return out;
}

void output_begin(FILE *out, const char *path)
{
	struct stat st;

	/* Devices and pipes have nothing to lose. */
	if (path && fstat(fileno(out), &st) == 0 && S_ISREG(st.st_mode) &&
	    ftruncate(fileno(out), 0) != 0)
		die_errno(EXIT_FAILED, "-o %s: cannot write", path);
}

char *output_clean(const char *text)
{
	size_t length = strlen(text);
	char *clean = xcalloc(length + 1, 1);

	utf8_clean(clean, text, length, 0);
	return clean;
}

void output_close(FILE *out, const char *path)
{
	bool failed;

	if (!path) {
		finish_stdout();
		return;
	}
	failed = ferror(out) != 0;
	if (fclose(out) != 0 || failed)
		die_errno(EXIT_FAILED, "-o %s: cannot write", path);
}

/* Bytes of the first `width` characters of a line, or all of it. */
static size_t bytes_of(const char *line, size_t length, size_t width)
{
	size_t at = 0, step;

	for (; width > 0 && at < length; width--) {
		step = utf8_length(line + at);
		at += step ? step : 1;
	}
	return at;
}

/* Where the line is cut: the last blank that fits, or else the first. */
static size_t cut_of(const char *line, size_t length, size_t width)
{
	size_t end = bytes_of(line, length, width), indent, at;

	if (end == length)
		return length;
	indent = strspn(line, " ");
	for (at = end; at > indent; at--)
		if (line[at] == ' ')
			return at;
	at = end + strcspn(line + end, " \n");
	return at < length ? at : length;
}

static void fold_line(const char *line, size_t length, size_t width, FILE *out)
{
	size_t indent = strspn(line, " ") + HANG, cut;

	if (indent > width / 2)
		indent = width / 2;
	cut = cut_of(line, length, width);
	fwrite(line, 1, cut, out);
	while (cut < length) {
		line += cut;
		length -= cut;
		cut = strspn(line, " ");
		line += cut;
		length -= cut;
		if (length == 0)
			break;
		fprintf(out, "\n%*s", (int)indent, "");
		cut = cut_of(line, length, width - indent);
		fwrite(line, 1, cut, out);
	}
	fputc('\n', out);
}

void output_folded(const char *text, size_t width, FILE *out)
{
	size_t length;

	for (; *text; text += length + (text[length] == '\n')) {
		length = strcspn(text, "\n");
		fold_line(text, length, width, out);
	}
}
