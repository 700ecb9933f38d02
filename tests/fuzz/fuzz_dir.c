/* SPDX-License-Identifier: MIT */
/* A directory with two logs and the file of the run, all of which may lie. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../tools/cmd.h"
#include "../../tools/die.h"
#include "../../tools/rundir.h"
#include "../../tools/stats.h"
#include "forge.h"
#include "fuzz.h"
#include "stage.h"

static char *info, *sound_name;
static uint64_t patience; /* events until a reader has seen enough */
static off_t cut_at;      /* where a log is cut while it is open */

/* Who dies does not free what he has. */
int __lsan_is_turned_off(void)
{
	return 1;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	stage_begin();
	info = stage_path(RECORD_DIR_NAME);
	sound_name = stage_path("77-1700000000000000000.mmgate");
	return 0;
}

/* --- the directory --- */

static struct forge cut(struct forge *f, size_t length)
{
	struct forge part = *f;

	part.left = length < f->left ? length : f->left;
	f->at += part.left;
	f->left -= part.left;
	return part;
}

/* Names may hold anything too. */
static char *forge_name(struct forge *f)
{
	char name[100] = "", *c, *path;

	forge_bytes(f, name, sizeof(name) - 1);
	for (c = name; *c; c++)
		if (*c == '/')
			*c = '_';
	c = xasprintf("%s-%s", name, "78" RECORD_SUFFIX);
	path = stage_path(c);
	free(c);
	return path;
}

/* Returns the name of the one that is to be removed. */
static char *fill(struct forge *f)
{
	struct forge part = cut(f, forge_byte(f));
	char *path;

	forge_info(&part, info);
	path = forge_name(f);
	patience = forge_byte(f);
	cut_at = (off_t)(forge_number(f) & 0xffffff);
	part = cut(f, forge_byte(f));
	forge_log(&part, path);
	forge_log(f, sound_name);
	return path;
}

/* --- what `run` does with one --- */

static struct rundir looked_at;

static int look(int argc, char **argv)
{
	(void)argc;
	rundir_check(&looked_at, argv[1]);
	return 0;
}

/* --- what the library of readers can do, and no command does so far --- */

static int count_down(void *context, const struct log_event *event)
{
	uint64_t *left = context;

	stage_check(event->raw.op < OP_COUNT, "an event is of an op");
	return (*left)-- == 0 ? 42 : 0;
}

/* One histogram of all logs, whose clocks differ. */
static void add_up(const struct log_dir *dir)
{
	struct hist all = {0};
	size_t i;

	for (i = 0; i < dir->count; i++)
		hist_add(&all, &log_process(dir->logs[i])->op[0].kernel);
	stage_check(hist_percentile(&all, 0.5) <= hist_percentile(&all, 1),
		    "percentiles ascend");
	stage_check(hist_percentile(&all, 1) <= all.max_ns, "up to the most");
	hist_drop(&all);
}

static int sum_up(int argc, char **argv)
{
	struct log_dir *dir = log_dir_open(argv[1]);
	struct stats_total total = stats_sum(dir);
	uint64_t left = patience;
	size_t i;

	(void)argc;
	stage_check(total.wait_ns >= 0 && total.kernel_ns >= 0, "sums");
	add_up(dir);
	(void)!truncate(sound_name, cut_at);
	for (i = 0; i < dir->count; i++)
		log_each_event(dir->logs[i], count_down, &left);
	log_dir_close(dir);
	return 0;
}

static int trim(int argc, char **argv)
{
	struct rundir dir = {.path = argv[1]};

	(void)argc;
	dir.fd = open(argv[1], O_RDONLY | O_DIRECTORY);
	stage_check(rundir_logs(&dir, 0) == 2, "both logs are seen");
	rundir_trim(&dir, false);
	close(dir.fd);
	return 0;
}

/* --- the commands --- */

static struct stage_end report(const char *line, enum stage_form form)
{
	struct stage_end end = stage_run(cmd_report.run, line, form);

	stage_check(end.status == 0 || end.status == 1, "status 0 or 1");
	/* A report does without run.info, and says so. */
	stage_check(end.complaints > 0 || end.status == 0,
		    "what fails is said");
	stage_check(end.complaints <= 3, "one line a file");
	return end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct forge f = {data, size};
	char *name = fill(&f);
	struct stage_end before, after;

	stage_run(look, "look DIR", STAGE_TEXT);
	rundir_close(&looked_at);
	report("report --process s*?t DIR", STAGE_TEXT);
	before = report("report --format json DIR", STAGE_JSON);
	stage_run(trim, "trim DIR", STAGE_TEXT);
	after = report("report --format json DIR", STAGE_JSON);
	stage_check(before.output == after.output, "trimming loses nothing");
	before = report("report DIR", STAGE_TEXT);
	after = stage_run(cmd_export.run, "export --format csv DIR", STAGE_CSV);
	stage_check(before.status == after.status, "report and export agree");
	stage_run(sum_up, "sum_up DIR", STAGE_TEXT);
	unlink(name);
	free(name);
	return 0;
}
