/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "die.h"
#include "gaps.h"
#include "launch.h"
#include "log.h"
#include "opts.h"
#include "preflight.h"
#include "rows.h"
#include "rundir.h"
#include "sampler.h"
#include "stats.h"
#include "text.h"
#include "units.h"
#include "unwind.h"

#define DEFAULT_DIR "mmgate.out"

enum { OPT_QUIET = 1, OPT_DRY_RUN, OPT_FORCE, OPT_KEEP_RAW, OPT_HELP };

static const struct option own_options[] = {
	{"quiet", no_argument, NULL, OPT_QUIET},
	{"dry-run", no_argument, NULL, OPT_DRY_RUN},
	{"force", no_argument, NULL, OPT_FORCE},
	{"keep-raw", no_argument, NULL, OPT_KEEP_RAW},
	{"help", no_argument, NULL, OPT_HELP},
	{0},
};

struct run {
	struct opts_settings settings;
	bool quiet, dry_run, force, keep_raw;
	struct preflight preflight;
	struct rundir dir;
	struct launch launch;
	struct sampler *sampler;
	struct record_dir info;
};

static void take_option(struct run *run, int option)
{
	switch (option) {
	case OPT_QUIET:
		run->quiet = true;
		break;
	case OPT_DRY_RUN:
		run->dry_run = true;
		break;
	case OPT_FORCE:
		run->force = true;
		break;
	case OPT_KEEP_RAW:
		run->keep_raw = true;
		break;
	case OPT_HELP:
		opts_print_help(&cmd_run);
		finish_stdout();
		exit(EXIT_DONE);
	default:
		opts_settings_option(&run->settings, (size_t)opts_knob(option),
				     optarg);
	}
}

static char **parse(struct run *run, int argc, char **argv)
{
	struct option *longs = opts_longs_with_knobs(own_options);
	char *shorts = opts_shorts_with_knobs("+:");
	int option;

	opts_settings_init(&run->settings);
	opts_settings_environment(&run->settings);
	while ((option = opts_next(argc, argv, shorts, longs)) != -1)
		take_option(run, option);
	free(longs);
	free(shorts);
	if (!unwind_missing())
		opts_settings_of_run(&run->settings);
	if (argv[optind] == NULL)
		die(EXIT_USAGE, "run: which command? mmgate run [options] -- "
				"CMD ARG...");
	return argv + optind;
}

static void check_command(struct run *run, char **command, const char *library)
{
	struct preflight *p = &run->preflight;

	preflight_check(p, command[0], library);
	preflight_arguments(p, command, library);
	if (p->status != EXIT_DONE &&
	    !(p->status == EXIT_NOT_GATED && run->force))
		die(p->status, "%s%s", p->reason,
		    p->status == EXIT_NOT_GATED ? " (--force runs it anyway)"
						: "");
	if (run->quiet)
		return;
	if (p->status != EXIT_DONE)
		warn("runs without the library: %s", p->reason);
	for (size_t i = 0; i < p->note_count; i++)
		warn("note: %s", p->notes[i]);
}

/* The logs go to the directory by its absolute name: the program may change
 * its own. */
static void check_directory(struct run *run)
{
	struct opts_settings *settings = &run->settings;
	const char *path = settings->knobs.log;

	rundir_check(&run->dir, path != NULL ? path : DEFAULT_DIR);
	for (size_t i = 0; i < knob_count(); i++)
		if (strcmp(knob_at(i)->variable, "MMGATE_LOG") == 0)
			opts_settings_option(settings, i, run->dir.path);
}

static void note_limit(const struct run *run)
{
	char limit[PREFLIGHT_LINE];

	if (!run->quiet && preflight_limit(limit))
		warn("note: no log: %s", limit);
}

/* Everything that can be refused is refused here, before anything is made. */
static void prepare(struct run *run, char **command)
{
	char why[512], *library = launch_library(why), *preload;

	if (library == NULL)
		die(EXIT_USAGE, "%s", why);
	check_command(run, command, library);
	check_directory(run);
	note_limit(run);
	run->launch.path = run->preflight.path;
	run->launch.argv = command;
	preload = launch_preload(library, run->preflight.runtimes,
				 getenv("LD_PRELOAD"));
	run->launch.variables = launch_variables(&run->settings, preload);
	free(preload);
	free(library);
}

static void put_word(const char *word)
{
	char *quoted = opts_quote(word);

	fputs(quoted, stdout);
	free(quoted);
}

static int show(const struct run *run)
{
	static const char *const states[] = {
		[RUNDIR_NEW] = "would be made",
		[RUNDIR_EMPTY] = "is empty and would be used",
		[RUNDIR_EARLIER] = "would be renamed",
	};

	for (char **v = run->launch.variables; *v != NULL; v++)
		puts(*v);
	printf(OPTS_STARTED "=its process number\n");
	printf("logs: %s %s", run->dir.path, states[run->dir.state]);
	if (run->dir.state == RUNDIR_EARLIER)
		printf(" %s, and made anew", run->dir.old);
	fputs("\ncommand: ", stdout);
	put_word(run->launch.path);
	for (char **arg = run->launch.argv + 1; *arg != NULL; arg++) {
		putchar(' ');
		put_word(*arg);
	}
	putchar('\n');
	return EXIT_DONE;
}

static void describe(struct record_dir *info, char **command)
{
	struct text words = text_over(info->command, sizeof(info->command));
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	info->magic = RECORD_MAGIC;
	info->version = RECORD_VERSION;
	info->started =
		(uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	for (; *command != NULL; command++) {
		text_put(&words, *command);
		if (command[1] != NULL)
			text_put(&words, " ");
	}
}

static uint64_t tick(void *context)
{
	struct run *run = context;
	uint64_t next = 2 * run->launch.tick_ns;

	/* By its name another directory may be meant by now. */
	if (rundir_trouble(&run->dir) == NULL)
		sampler_tick(run->sampler);
	/* What ends soon is looked at too. */
	return next < SAMPLER_TICK_NS ? next : SAMPLER_TICK_NS;
}

static void start(struct run *run)
{
	int error;

	describe(&run->info, run->launch.argv);
	rundir_make(&run->dir, &run->info);
	run->info.tlb_shootdowns = stats_tlb_shootdowns();
	error = launch_start(&run->launch);
	if (error != 0) {
		rundir_unmake(&run->dir);
		die(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN,
		    "cannot start %s: %s", run->launch.path, strerror(error));
	}
	run->info.pid = (uint32_t)run->launch.pid;
	rundir_started(&run->dir, run->launch.pid);
	run->sampler = sampler_new(run->dir.fd, run->dir.path);
	run->launch.tick = tick;
	run->launch.tick_context = run;
	run->launch.tick_ns = SAMPLER_TICK_NS / 20;
}

static void end_rows(struct run *run)
{
	int error = sampler_end(run->sampler);

	if (error != 0 && !run->quiet)
		warn("note: no figures over time: cannot write %s/" ROWS_NAME
		     ": %s",
		     run->dir.path, strerror(error));
}

static void finish(struct run *run)
{
	struct record_dir *info = &run->info;

	info->status = run->launch.status;
	info->wall_ns = run->launch.wall_ns;
	info->tlb_shootdowns = stats_tlb_shootdowns() - info->tlb_shootdowns;
	stats_take_usage(info, &run->launch.usage);
	rundir_finish(&run->dir, info);
	end_rows(run);
	rundir_trim(&run->dir, run->keep_raw);
}

/* --- the summary, on stderr --- */

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* "no lock", "waited 3 ms at the gate (lock=mutex)" ... */
static void tell_wait(const struct log_dir *dir, double wait_ns, char *out,
		      size_t size)
{
	char lock[64] = "", other[64];

	for (size_t i = 0; i < dir->count; i++) {
		log_setting(log_process(dir->logs[i])->settings, "lock", other,
			    sizeof(other));
		if (i > 0 && strcmp(lock, other) != 0) {
			snprintf(lock, sizeof(lock), "several");
			break;
		}
		memcpy(lock, other, sizeof(lock));
	}
	if (strcmp(lock, "none") == 0)
		snprintf(out, size, "no lock at the gate");
	else
		snprintf(out, size, "waited %s at the gate (lock=%s)",
			 units_time(wait_ns), lock);
}

static void sum_calls(const struct log_dir *dir,
		      const struct stats_total *total)
{
	double busy = total->wait_ns + total->kernel_ns;
	char share[64] = "", wait[128];

	if (total->thread_ns > 0)
		snprintf(share, sizeof(share), "; %s%s of the threads' time",
			 total->wait_ns > 0 ? "together " : "",
			 units_percent(busy / total->thread_ns));
	if (total->calls == 0 && total->unrecorded != 0) {
		warn("no figures of calls: %s call%s found no room in a log",
		     units_count(total->unrecorded), plural(total->unrecorded));
		return;
	}
	tell_wait(dir, total->wait_ns, wait, sizeof(wait));
	warn("%s call%s in %zu process%s: %s, %s in the kernel%s",
	     units_count(total->calls), plural(total->calls), dir->count,
	     dir->count == 1 ? "" : "es", wait, units_time(total->kernel_ns),
	     share);
}

static void sum_bypassed(const struct stats_total *total)
{
	char reasons[128] = "";
	struct text out = text_over(reasons, sizeof(reasons));
	uint64_t all = 0;

	for (unsigned i = 0; i < BYPASS_COUNT; i++) {
		if (total->bypassed[i] == 0)
			continue;
		text_put(&out, all != 0 ? ", " : "");
		text_put(&out, units_count(total->bypassed[i]));
		text_put(&out, " ");
		text_put(&out, log_bypass_name(i));
		all += total->bypassed[i];
	}
	if (all != 0)
		warn("%s call%s went without the lock (%s)", units_count(all),
		     plural(all), reasons);
}

static void sum_gate(const struct stats_total *total)
{
	sum_bypassed(total);
	if (total->opened != 0)
		warn("the gate opened %s time%s, as a wait was too long "
		     "(MMGATE_MAX_WAIT)",
		     units_count(total->opened), plural(total->opened));
}

/* "", ", exit status 5", ", ended by signal 6 (Aborted)" */
static void tell_end(int status, char *out, size_t size)
{
	const char *name;

	*out = '\0';
	if (WIFSIGNALED(status)) {
		name = strsignal(WTERMSIG(status));
		snprintf(out, size, ", ended by signal %d (%s)",
			 WTERMSIG(status), name != NULL ? name : "unknown");
	} else if (WEXITSTATUS(status) != 0) {
		snprintf(out, size, ", exit status %d", WEXITSTATUS(status));
	}
}

static void sum_run(const struct record_dir *info)
{
	uint64_t switches =
		info->voluntary_switches + info->involuntary_switches;
	uint64_t faults = info->minor_faults + info->major_faults;
	char end[128];

	tell_end(info->status, end, sizeof(end));
	warn("ran %s%s; %s context switch%s (%s forced), %s page fault%s, peak "
	     "memory %s",
	     units_time((double)info->wall_ns), end, units_count(switches),
	     switches == 1 ? "" : "es", units_count(info->involuntary_switches),
	     units_count(faults), plural(faults),
	     units_bytes((double)info->peak_rss_bytes));
}

/* Why the started process has no log; `said`: in its own words, if any. */
static const char *why_unseen(const struct run *run, const char *said)
{
	if (run->preflight.status != EXIT_DONE)
		return run->preflight.reason;
	if (!knobs_select(&run->settings.knobs,
			  text_base_name(run->preflight.program),
			  text_base_name(run->launch.argv[0])))
		return "MMGATE_ONLY or MMGATE_SKIP leaves it alone";
	if (*said != '\0')
		return said;
	if (rundir_trouble(&run->dir) != NULL)
		return "the directory of its log is gone";
	if (access(run->dir.path, W_OK | X_OK) != 0)
		return "the directory of its log was made unwritable";
	return "it left no log; a line above may say why, or `mmgate doctor -- "
	       "CMD`";
}

/* Processes whose layer is not wholly hooked; `outcome` gets the first one's
 * reason. */
static size_t unhooked(const struct log_dir *dir, const char *layer,
		       char *outcome, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; i < dir->count; i++) {
		const char *gap;
		char other[256];

		log_setting(log_process(dir->logs[i])->hooks, layer, other,
			    sizeof(other));
		gap = log_gap(other);
		if (gap != NULL && count++ == 0)
			snprintf(outcome, size, "%s", gap);
	}
	return count;
}

/* "not covered in 1 of 2 processes: ..." */
static void say_layer(const struct log_dir *dir, const char *calls,
		      const char *outcome, size_t count)
{
	char where[64] = "";

	if (count < dir->count)
		snprintf(where, sizeof(where), " in %zu of %zu processes",
			 count, dir->count);
	warn("not %scovered%s: calls %s: %s",
	     log_gap_is_partial(outcome) ? "all " : "", where, calls, outcome);
}

static void say_hooks(const struct log_dir *dir)
{
	char libc[256] = "", loader[256] = "", symbols[256] = "";
	size_t of_symbols = unhooked(dir, "symbols", symbols, sizeof(symbols));
	size_t of_libc = unhooked(dir, "libc", libc, sizeof(libc));
	size_t of_loader = unhooked(dir, "ld.so", loader, sizeof(loader));

	if (of_symbols != 0)
		say_layer(dir, "by the program itself", symbols, of_symbols);
	if (of_libc != 0)
		say_layer(dir, "that libc makes itself (malloc, thread stacks)",
			  libc, of_libc);
	if (of_loader != 0 && strcmp(libc, loader) != 0)
		say_layer(dir, "that the loader makes itself (dlopen)", loader,
			  of_loader);
}

static bool lost_any(const struct log_process *p)
{
	return p->unrecorded + p->events_lost + p->events_overwritten != 0;
}

/* Why something was lost.  One process stands for all: the others will have
 * met the same limit. */
static void say_limits(const struct log_dir *dir)
{
	for (size_t i = 0; i < dir->count; i++) {
		const struct log_process *p = log_process(dir->logs[i]);
		const char *limit = text_after(p->limits, "the log is");

		if (p->limits[0] == '\0' || !lost_any(p))
			continue;
		if (limit != NULL)
			warn("logs are%s", limit);
		else
			warn("%s", p->limits);
		return;
	}
}

/* What would have kept more, by the first that lost any. */
static const char *more_room(const struct log_dir *dir)
{
	size_t i = 0;

	while (i + 1 < dir->count && !lost_any(log_process(dir->logs[i])))
		i++;
	return gaps_more_room(log_process(dir->logs[i]));
}

/* Calls without an event that were to have one, by one process. */
static void say_gap(const struct log_dir *dir)
{
	char *why = NULL;

	for (size_t i = 0; i < dir->count && why == NULL; i++) {
		const struct log_process *p = log_process(dir->logs[i]);

		why = gaps_unasked(p);
		if (why != NULL)
			warn("calls of %s without an event: %s: %s", p->image,
			     units_count(p->events_without), why);
	}
	free(why);
}

static void say_lost(const struct run *run, const struct log_dir *dir,
		     const struct stats_total *total)
{
	bool wanted = run->settings.knobs.events == EVENTS_ALL;

	if (total->unrecorded != 0 && total->calls != 0)
		warn("%s call%s found no room in a log: figures are incomplete",
		     units_count(total->unrecorded), plural(total->unrecorded));
	if (total->events_lost != 0)
		warn("%s event%s had no room in a log (%s keeps more)",
		     units_count(total->events_lost),
		     plural(total->events_lost), more_room(dir));
	if (wanted && total->events_overwritten != 0)
		warn("%s event%s overwritten by newer ones (%s keeps more)",
		     units_count(total->events_overwritten),
		     total->events_overwritten == 1 ? " was" : "s were",
		     more_room(dir));
	say_gap(dir);
	say_limits(dir);
	if (dir->broken != 0)
		warn("%zu log%s could not be read", dir->broken,
		     plural(dir->broken));
}

static void say_unlogged(const struct record_dir *info)
{
	char *gap;

	if (info->unlogged == 0)
		return;
	gap = log_unlogged(info->unlogged, info->unlogged_why);
	warn("not covered: %s", gap);
	free(gap);
}

/* When it got no log it is the first such process, and what that says is its
 * own reason. */
static void say_unseen(const struct run *run, const struct record_dir *info)
{
	bool itself = info->unlogged > 0 &&
		      info->unlogged_pid == (uint64_t)run->launch.pid;
	uint64_t others = info->unlogged - 1;

	warn("not covered: %s itself: %s", run->launch.argv[0],
	     why_unseen(run, itself ? info->unlogged_why : ""));
	if (!itself)
		say_unlogged(info);
	else if (others > 0)
		warn("not covered: %s more process%s, which got no log either",
		     units_count(others), others == 1 ? "" : "es");
}

static void say_uncovered(const struct run *run, const struct log_dir *dir)
{
	struct record_dir info;

	if (!rundir_read(&run->dir, &info))
		info = (struct record_dir){0};
	if (rundir_logs(&run->dir, run->launch.pid) == 0) {
		say_unseen(run, &info);
	} else {
		say_unlogged(&info);
		if (run->preflight.loses_library)
			warn("not covered: what %s starts: its environment has "
			     "no LD_PRELOAD",
			     run->launch.argv[0]);
	}
	if (dir != NULL)
		say_hooks(dir);
}

static void say_advice(const struct run *run, const struct log_dir *dir)
{
	if (run->dir.on_disk && run->settings.knobs.events != EVENTS_OFF)
		warn("note: %s is on a disk, whose write-back can stall the "
		     "program for milliseconds; -o /dev/shm/NAME avoids that",
		     run->dir.path);
	if (dir != NULL) {
		char *path = opts_quote(run->dir.path);

		warn("next: mmgate report %s", path);
		free(path);
	}
}

/* What can be read of the logs, or NULL when there are none. */
static struct log_dir *open_logs(const struct run *run)
{
	const char *trouble = rundir_trouble(&run->dir);
	struct log_dir *dir = NULL;
	char *why = NULL;

	if (trouble != NULL)
		warn("no figures: %s %s", run->dir.path, trouble);
	else if (rundir_logs(&run->dir, 0) != 0)
		dir = log_dir_try(run->dir.path, &why);
	if (why != NULL)
		warn("no figures: %s", why);
	free(why);
	return dir;
}

static void summarize(const struct run *run)
{
	struct log_dir *dir = open_logs(run);
	struct stats_total total = {0};

	if (dir != NULL && dir->count != 0) {
		total = stats_sum(dir);
		sum_calls(dir, &total);
		sum_gate(&total);
	}
	sum_run(&run->info);
	say_uncovered(run, dir);
	if (total.second_libc != 0)
		warn("not covered: the calls of a second copy of libc "
		     "(dlmopen)");
	if (dir != NULL)
		say_lost(run, dir, &total);
	say_advice(run, dir);
	if (dir != NULL)
		log_dir_close(dir);
}

static int run(int argc, char **argv)
{
	static struct run run; /* all zero */

	launch_ignore_size(&run.launch);
	prepare(&run, parse(&run, argc, argv));
	if (run.dry_run)
		return show(&run);
	start(&run);
	launch_wait(&run.launch);
	die_as(launch_exit_status(run.launch.status));
	/* A reader of stderr that went away must not change the status. */
	signal(SIGPIPE, SIG_IGN);
	finish(&run);
	if (!run.quiet)
		summarize(&run);
	return launch_exit_status(run.launch.status);
}

const struct command cmd_run = {
	.name = "run",
	.summary = "runs a program through the gate and records its calls",
	.synopsis = "run [options] [--] CMD ARG...",
	.help = "  --quiet               no notes and no summary on stderr\n"
		"  --dry-run             print what would be set, and start "
		"nothing\n"
		"  --force               run CMD even if it cannot be "
		"instrumented\n"
		"  --keep-raw            leave the copies of stacks in the "
		"logs: memory of the\n"
		"                        program, which is else replaced by "
		"addresses in the end\n"
		"  --help                this text\n"
		"\n"
		"Settings; an option goes before its variable:\n" OPTS_SETTINGS
		"\n"
		"The exit status is CMD's own, 128+N when signal N ended it, 2 "
		"for wrong usage,\n"
		"125 when CMD cannot be instrumented, 126 when it cannot be "
		"executed, 127 when\n"
		"there is none.  An earlier directory of logs is renamed to "
		"DIR.old, replacing\n"
		"an older one.\n"
		"\n"
		"Example:\n"
		"  mmgate run --lock mutex -o /dev/shm/try -- xz -T4 -k "
		"big.tar\n"
		"  mmgate report /dev/shm/try\n",
	.run = run,
};
