/* SPDX-License-Identifier: MIT */
#include <getopt.h>

#include "die.h"
#include "output.h"

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
	FILE *out;

	if (!path)
		return stdout;
	out = fopen(path, "we");
	if (!out)
		die_errno(EXIT_USAGE, "-o %s", path);
	return out;
}

void output_close(FILE *out, const char *path)
{
	if (!path) {
		finish_stdout();
		return;
	}
	if (ferror(out) | (fclose(out) != 0))
		die_errno(EXIT_FAILED, "-o %s: cannot write", path);
}
