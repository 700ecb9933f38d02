/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "busy.h"
#include "cmd.h"
#include "die.h"
#include "opts.h"
#include "output.h"
#include "report.h"
#include "report_diff.h"
#include "text.h"
#include "units.h"

/* A format. */
struct view {
	const char *name;
	uint64_t worst; /* so many calls, if nobody says otherwise */
	void (*write)(const struct report *report, FILE *out);
	/* Of two; NULL: it cannot. */
	void (*diff)(const struct report *a, const struct report *b, FILE *out);
};

static const struct view formats[] = {
	{"text", 0, report_text, report_diff_text},
	{"json", 0, report_json, report_diff_json},
	{"html", 10, report_html, NULL},
	{NULL, 0, NULL, NULL},
};

/* A time after the start, or before the end. */
struct moment {
	bool given, before_end;
	uint64_t ns;
};

struct request {
	const char *directory;
	const char *process;
	const char *output;
	const struct view *format;
	enum sites_by by;
	bool by_given;
	struct moment since, until;
	uint64_t worst; /* 0: not asked for */
	const char *diff;
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
		    "report: --format %s: accepted are text, json and html",
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

static struct moment parse_moment(const char *option, const char *text)
{
	struct moment m = {.given = true, .before_end = *text == '-'};
	const char *number = text + m.before_end;

	if (text_parse_duration(number, strlen(number), &m.ns))
		die(EXIT_USAGE,
		    "report: --%s %s: a time after the start such as 12.5s, or "
		    "-5s: before the end",
		    option, text);
	return m;
}

static uint64_t parse_worst(const char *text)
{
	uint64_t most;

	if (text_parse_u64(text, strlen(text), &most) || most == 0 ||
	    most > WORST_MOST)
		die(EXIT_USAGE, "report: --worst %s: a number from 1 to %d",
		    text, WORST_MOST);
	return most;
}

static void take_option(struct request *r, int option)
{
	switch (option) {
	case OPT_BY:
		r->by = find_grouping(optarg);
		r->by_given = true;
		break;
	case OPT_PROCESS:
		r->process = optarg;
		break;
	case OPT_FORMAT:
		r->format = find_format(optarg);
		break;
	case OPT_SINCE:
		r->since = parse_moment("since", optarg);
		break;
	case OPT_UNTIL:
		r->until = parse_moment("until", optarg);
		break;
	case OPT_DIFF:
		r->diff = optarg;
		break;
	case OPT_WORST:
		r->worst = parse_worst(optarg);
		break;
	case 'o':
		r->output = optarg;
		break;
	}
}

static struct request parse(int argc, char **argv)
{
	struct request r = {.format = &formats[0]};
	int option;

	while ((option = opts_next(argc, argv, ":o:", longs)) != -1)
		take_option(&r, option);
	r.directory = output_directory(argc, argv);
	if (r.worst == 0)
		r.worst = r.format->worst;
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

/* --- when --- */

/* Beginning and end of the whole run. */
static void find_span(const struct report *report, uint64_t *from, uint64_t *to)
{
	const struct log_process *p;
	size_t i;

	*from = UINT64_MAX;
	*to = 0;
	for (i = 0; i < report->dir->count; i++) {
		p = log_process(report->dir->logs[i]);
		if (p->started_ns < *from)
			*from = p->started_ns;
		if (p->started_ns + p->duration_ns > *to)
			*to = p->started_ns + p->duration_ns;
	}
	if (report->rows && report->rows->row[0].from_ns < *from)
		*from = report->rows->row[0].from_ns;
	if (*from > *to)
		*from = *to;
}

static uint64_t instant(const struct moment *m, uint64_t from, uint64_t to)
{
	if (m->before_end)
		return to - from > m->ns ? to - m->ns : from;
	return from < UINT64_MAX - m->ns ? from + m->ns : UINT64_MAX - 1;
}

static void set_window(struct report *report, const struct request *r)
{
	uint64_t from, to;

	find_span(report, &from, &to);
	report->origin_ns = from;
	report->windowed = r->since.given || r->until.given;
	report->window = (struct window){0, UINT64_MAX};
	if (r->since.given)
		report->window.since_ns = instant(&r->since, from, to);
	if (r->until.given)
		report->window.until_ns = instant(&r->until, from, to);
	if (report->window.until_ns <= report->window.since_ns)
		die(EXIT_USAGE, "report: --until is not after --since");
	if (report->windowed && report->window.since_ns > to)
		die(EXIT_FAILED,
		    "report: --since is after the end, which was "
		    "%s after the start",
		    units_time((double)(to - from)));
}

/* Processes that made calls at any time. */
static size_t with_calls(const struct report *report)
{
	size_t i, count = 0;

	for (i = 0; i < report->count; i++)
		count += report_calls(log_process(report->logs[i])) > 0;
	return count;
}

/* True: it cannot be done, as no process has events. */
static bool cut_processes(struct report *report)
{
	size_t i, blind = 0;
	unsigned lacks;

	if (report->windowed)
		report->owned = xcalloc(report->count, sizeof(*report->owned));
	for (i = 0; report->windowed && i < report->count; i++) {
		report->owned[i] = window_process(report->logs[i],
						  &report->window, &lacks);
		report->processes[i] = report->owned[i];
		report->window_lacks |= lacks;
		blind += lacks & WINDOW_BLIND ? 1 : 0;
	}
	return blind > 0 && blind == with_calls(report);
}

/* No single call is there that would tell of a part. */
static void refuse_part(const struct report *report)
{
	char *why = report_gap(report);

	warn("report: a part of the run is told by single calls, and none are "
	     "in the log: %s; leave --since and --until away",
	     why ? why : "they were not recorded");
	free(why);
}

static void free_processes(struct report *report)
{
	size_t i;

	for (i = 0; report->windowed && i < report->count; i++)
		window_process_free(report->owned[i]);
	free(report->owned);
	free(report->processes);
	free(report->logs);
}

/* --- all of it --- */

/* A report and what it holds on to. */
struct opened {
	struct log_dir *dir;
	struct report report;
	struct rows rows;
	struct studies studies;
	struct worst worst;
	bool untold; /* there is nothing to report of that part */
};

static void take_rows(struct opened *o)
{
	char why[256];

	if (rows_read(&o->rows, o->dir->path, why))
		o->report.rows = &o->rows;
	else if (*why)
		warn("%s/" ROWS_NAME ": %s", o->dir->path, why);
}

static void cut_rows(struct opened *o)
{
	const struct window *w = &o->report.window;

	if (!o->report.rows || !o->report.windowed)
		return;
	rows_cut(&o->rows, w->since_ns, w->until_ns);
	if (o->rows.count == 0)
		o->report.rows = NULL;
}

static void look_into(struct opened *o, const struct request *r)
{
	struct report *report = &o->report;

	o->studies = studies_of(report->dir, report->processes, report->logs,
				report->count, report->images, report->rows,
				&report->window);
	report->studies = &o->studies;
	if (r->worst == 0)
		return;
	o->worst = worst_find(report->processes, report->logs, report->count,
			      &report->window, r->worst);
	report->worst = &o->worst;
}

/* Each is read once for the verdict, and more often for what else is asked. */
static uint64_t events_to_read(const struct log_dir *dir,
			       const struct request *r)
{
	unsigned times =
		1 + (r->since.given || r->until.given) + 2 * (r->worst > 0);

	return times * busy_events(dir);
}

static void open_report(struct opened *o, const char *directory,
			struct images *images, const struct request *r)
{
	*o = (struct opened){.dir = log_dir_open(directory)};
	busy_begin(events_to_read(o->dir, r));
	o->report =
		(struct report){.dir = o->dir, .images = images, .by = r->by};
	select_processes(&o->report, r->process);
	take_rows(o);
	set_window(&o->report, r);
	o->untold = cut_processes(&o->report);
	if (!o->untold) {
		cut_rows(o);
		look_into(o, r);
	}
	busy_end();
	if (o->untold)
		refuse_part(&o->report);
}

static void close_report(struct opened *o)
{
	worst_drop(&o->worst);
	studies_drop(&o->studies);
	free_processes(&o->report);
	rows_drop(&o->rows);
	log_dir_close(o->dir);
}

static void write_opened(const struct request *r, const struct opened *one,
			 const struct opened *other)
{
	FILE *out = output_open(r->output);

	if (r->diff)
		r->format->diff(&one->report, &other->report, out);
	else
		r->format->write(&one->report, out);
	output_close(out, r->output);
}

/* False when a log of it could not be read, or does not tell what is asked. */
static bool write_report(const struct request *r, struct images *images)
{
	struct opened one, other = {.dir = NULL};
	bool sound, told;

	open_report(&one, r->directory, images, r);
	sound = one.dir->broken == 0;
	if (r->diff) {
		open_report(&other, r->diff, images, r);
		sound = sound && other.dir->broken == 0;
	}
	told = !one.untold && !other.untold;
	if (told)
		write_opened(r, &one, &other);
	if (r->diff)
		close_report(&other);
	close_report(&one);
	return sound && told;
}

/* What would have no effect is refused. */
static void check_combination(const struct request *r)
{
	if (r->diff && !r->format->diff)
		die(EXIT_USAGE,
		    "report: --diff with --format %s: it has text "
		    "and json",
		    r->format->name);
	if (r->diff && (r->by_given || r->worst > 0))
		die(EXIT_USAGE,
		    "report: --diff has its own rows: leave --%s away",
		    r->by_given ? "by" : "worst");
	if (r->by_given && r->format->write == report_html)
		die(EXIT_USAGE, "report: --by with --format html: the page has "
				"all of them but by size and library, which "
				"text and json have; leave it away");
}

static int run(int argc, char **argv)
{
	struct request r = parse(argc, argv);
	struct images *images = images_new();
	bool sound;

	check_combination(&r);
	sound = write_report(&r, images);
	images_free(images, symbols_free);
	return sound ? EXIT_DONE : EXIT_FAILED;
}

const struct command cmd_report = {
	.name = "report",
	.summary = "says where the time of a run went",
	.synopsis = "report [DIR] [--by call|site|thread|size|library] "
		    "[--process NAME] [--since T] [--until T] [--worst N] "
		    "[--diff DIR2] "
		    "[--format text|json|html] [-o FILE]",
	.help = "Reads the logs in DIR (default " OUTPUT_DIRECTORY "), worst "
		"process and worst call first.\n"
		"DIR may be in use: the figures are those of the moment.\n"
		"\n"
		"  --by call           the rows: one per kind of call; or per "
		"site (place in the\n"
		"                      program) or library, estimated from the "
		"calls that were\n"
		"                      recorded with their stack; or per "
		"thread or size\n"
		"  --process NAME      only processes whose image name matches "
		"the pattern NAME\n"
		"                      (* and ?), or whose number it is; what "
		"`run` saw (json:\n"
		"                      run, rows) stays that of all\n"
		"  --since T           only calls that began from then on: 10s "
		"after the start,\n"
		"                      -5s before the end; by the single "
		"calls in the log\n"
		"  --until T           and before then\n"
		"  --worst N           the N calls that took longest, 1 to "
		"1000 (html: 10)\n"
		"  --diff DIR2         beside another run; text and json, "
		"without --by, --worst\n"
		"  --format text|json  for people (default), or for programs\n"
		"  --format html       one file for a browser, with charts: it "
		"needs nothing else and\n"
		"                      no network\n"
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
