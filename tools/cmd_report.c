/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "die.h"
#include "opts.h"
#include "output.h"
#include "report.h"
#include "text.h"

/* A value that an option takes.  Without `write` (of a format) it is known and
 * refused until it is built. */
struct view {
	const char *name;
	void (*write)(const struct report *report, FILE *out);
};

static const struct view formats[] = {
	{"text", report_text},
	{"json", report_json},
	{"html", NULL},
	{NULL, NULL},
};

struct request {
	const char *directory;
	const char *process;
	const char *output;
	const struct view *format;
	enum sites_by by;
};

enum {
	OPT_BY = 256,
	OPT_PROCESS,
	OPT_FORMAT,
	OPT_SINCE,
	OPT_UNTIL,
	OPT_WORST,
	OPT_DIFF,
};

static const struct option longs[] = {
	{"by", required_argument, NULL, OPT_BY},
	{"process", required_argument, NULL, OPT_PROCESS},
	{"format", required_argument, NULL, OPT_FORMAT},
	{"since", required_argument, NULL, OPT_SINCE},
	{"until", required_argument, NULL, OPT_UNTIL},
	{"worst", required_argument, NULL, OPT_WORST},
	{"diff", required_argument, NULL, OPT_DIFF},
	{NULL, 0, NULL, 0},
};

/* --- what is asked for --- */

static const struct view *find_format(const char *name)
{
	const struct view *f;

	for (f = formats; f->name; f++)
		if (!strcmp(f->name, name))
			break;
	if (!f->name)
		die(EXIT_USAGE,
		    "report: --format %s: accepted are text and json", name);
	if (!f->write)
		die(EXIT_USAGE, "report: --format %s: not in this version",
		    name);
	return f;
}

static enum sites_by find_grouping(const char *name)
{
	int by = 0;

	while (by < BY_COUNT && strcmp(report_by_name(by), name) != 0)
		by++;
	if (by == BY_COUNT)
		die(EXIT_USAGE,
		    "report: --by %s: accepted are call, site, thread, size "
		    "and library",
		    name);
	return by;
}

_Noreturn static void refuse_for_now(int option)
{
	const struct option *o = longs;

	while (o->val != option)
		o++;
	die(EXIT_USAGE, "report: --%s: not in this version", o->name);
}

static void take_option(struct request *r, int option)
{
	switch (option) {
	case OPT_BY:
		r->by = find_grouping(optarg);
		break;
	case OPT_PROCESS:
		r->process = optarg;
		break;
	case OPT_FORMAT:
		r->format = find_format(optarg);
		break;
	case 'o':
		r->output = optarg;
		break;
	default:
		refuse_for_now(option);
	}
}

static struct request parse(int argc, char **argv)
{
	struct request r = {.format = &formats[0]};
	int option;

	while ((option = opts_next(argc, argv, ":o:", longs)) != -1)
		take_option(&r, option);
	r.directory = output_directory(argc, argv);
	return r;
}

/* --- which processes --- */

static bool is_wanted(const struct log_process *p, const char *wanted)
{
	uint64_t pid;

	if (!wanted)
		return true;
	if (!text_parse_u64(wanted, strlen(wanted), &pid) && pid == p->pid)
		return true;
	return text_glob(wanted, strlen(wanted), p->image);
}

static void select_processes(struct report *report, const char *wanted)
{
	const struct log_process *p;
	size_t i;

	report->processes =
		xcalloc(report->dir->count, sizeof(*report->processes));
	report->logs = xcalloc(report->dir->count, sizeof(*report->logs));
	for (i = 0; i < report->dir->count; i++) {
		p = log_process(report->dir->logs[i]);
		if (!is_wanted(p, wanted))
			continue;
		report->logs[report->count] = report->dir->logs[i];
		report->processes[report->count++] = p;
	}
	if (report->count == 0 && report->dir->count > 0)
		die(EXIT_FAILED,
		    "report: --process %s: none of the %zu processes in %s has "
		    "this "
		    "image name or number",
		    wanted, report->dir->count, report->dir->path);
}

static int run(int argc, char **argv)
{
	struct request r = parse(argc, argv);
	struct log_dir *dir = log_dir_open(r.directory);
	struct report report = {.dir = dir, .images = images_new(), .by = r.by};
	int status = dir->broken > 0 ? EXIT_FAILED : EXIT_DONE;
	FILE *out;

	select_processes(&report, r.process);
	out = output_open(r.output);
	r.format->write(&report, out);
	output_close(out, r.output);
	images_free(report.images, symbols_free);
	free(report.processes);
	free(report.logs);
	log_dir_close(dir);
	return status;
}

const struct command cmd_report = {
	.name = "report",
	.summary = "says where the time of a run went",
	.synopsis = "report [DIR] [--by call|site|thread|size|library] "
		    "[--process NAME] [--format text|json] [-o FILE]",
	.help = "Reads the logs in DIR (default " OUTPUT_DIRECTORY "), worst "
		"process and worst call first.\n"
		"DIR may be in use: the figures are those of the moment.\n"
		"\n"
		"  --by call           the rows: one per kind of call; or per "
		"site (place in the\n"
		"                      program), thread, size or library, "
		"estimated from the calls\n"
		"                      that were recorded with their stack\n"
		"  --process NAME      only processes whose image name matches "
		"the pattern NAME\n"
		"                      (* and ?), or whose number it is\n"
		"  --format text|json  for people (default), or for programs\n"
		"  -o FILE             write to FILE, not to standard output\n"
		"\n"
		"Exit status: 0; 1 when a log could not be read (the others "
		"are reported) or nothing\n"
		"matches; 2 usage.\n"
		"\n"
		"Example: the worst waits of one program of many, for jq\n"
		"  mmgate report --process 'clam*' --format json | jq "
		"'.processes[].calls'\n",
	.run = run,
};
