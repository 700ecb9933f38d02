/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "cmd.h"
#include "die.h"
#include "launch.h"
#include "log.h"
#include "opts.h"
#include "preflight.h"
#include "rundir.h"
#include "units.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* The self-test starts this command again, with the library in it. */
#define PROBE "--probe"

struct doctor {
	struct opts_settings settings;
	char *library;
	struct launch launch; /* of the self-test */
	bool failed;
};

__attribute__((format(printf, 2, 3))) static void fact(const char *name,
						       const char *format, ...)
{
	va_list args;

	printf("  %-20s ", name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

__attribute__((format(printf, 3, 4))) static void
check(struct doctor *d, bool good, const char *format, ...)
{
	va_list args;

	printf("  %-20s ", good ? "ok" : "FAILED");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	d->failed |= !good;
}

/* --- the kernel --- */

static const char *first_line(const char *path)
{
	static char line[256];
	FILE *f = fopen(path, "re");
	bool got = f != NULL && fgets(line, sizeof(line), f) != NULL;

	if (f != NULL)
		fclose(f);
	if (!got)
		return "not known";
	line[strcspn(line, "\n")] = '\0';
	return line;
}

/* Does this kernel take the advice for a page of ours? */
static bool takes_advice(int advice)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool taken;

	if (page == MAP_FAILED)
		return false;
	taken = madvise(page, size, advice) == 0;
	munmap(page, size);
	return taken;
}

static int usable_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set)
							    : 0;
}

static bool has_vma_locks(const char *release)
{
	unsigned major = 0, minor = 0;

	return sscanf(release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 4));
}

static void show_kernel(struct doctor *d)
{
	struct utsname name;

	uname(&name);
	puts("kernel");
	fact("release", "%s %s", name.release, name.machine);
	fact("clock source", "%s",
	     first_line("/sys/devices/system/clocksource/clocksource0/"
			"current_clocksource"));
	fact("CPUs", "%ld online, %d usable here",
	     sysconf(_SC_NPROCESSORS_ONLN), usable_cpus());
	fact("per-VMA locks", "%s, by its version",
	     has_vma_locks(name.release) ? "yes" : "no");
	fact("huge pages", "%s",
	     first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
	fact("vm.max_map_count", "%s",
	     first_line("/proc/sys/vm/max_map_count"));
	fact("vm.overcommit", "%s",
	     first_line("/proc/sys/vm/overcommit_memory"));
	fact("MADV_POPULATE_WRITE", "%s",
	     takes_advice(MADV_POPULATE_WRITE)
		     ? "yes"
		     : "no: a log gets all its space at the start");
	check(d, takes_advice(MADV_WIPEONFORK),
	      "MADV_WIPEONFORK, without which nothing is gated");
}

/* --- limits --- */

static bool may_lock_memory(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[2];

	return syscall(SYS_capget, &header, sets) == 0 &&
	       (sets[0].effective >> CAP_IPC_LOCK & 1);
}

/* A log takes this part of the limit at most. */
static void show_limit(const char *name, int resource, unsigned part)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		fact(name, "unlimited");
	else
		fact(name, "%s: a log takes %s at most",
		     units_bytes((double)limit.rlim_cur),
		     units_bytes((double)limit.rlim_cur / part));
}

static void show_limits(void)
{
	puts("limits");
	show_limit("RLIMIT_FSIZE", RLIMIT_FSIZE, 1);
	show_limit("RLIMIT_AS", RLIMIT_AS, 16);
	if (may_lock_memory())
		fact("RLIMIT_MEMLOCK", "does not bind (CAP_IPC_LOCK)");
	else
		show_limit("RLIMIT_MEMLOCK", RLIMIT_MEMLOCK, 4);
}

/* --- settings --- */

/* As the library does: what is wrong counts as not given. */
static void take_environment(struct doctor *d)
{
	for (char **e = environ; e != NULL && *e != NULL; e++) {
		char line[1024];
		struct text complaint = text_over(line, sizeof(line));

		if (opts_settings_inherit(&d->settings, *e, &complaint) != 0)
			check(d, false, "%s", line);
	}
}

static void show_setting(const struct opts_settings *settings, size_t i)
{
	char value[1024];
	struct text out = text_over(value, sizeof(value));

	knob_at(i)->show(&settings->knobs, &out);
	printf("  %-20s %s (%s): %s\n", knob_at(i)->variable,
	       value[0] != '\0' ? value : "unset",
	       settings->given[i].source == OPTS_VARIABLE ? "environment"
							  : "default",
	       knob_at(i)->help);
}

static void show_settings(struct doctor *d)
{
	puts("settings");
	take_environment(d);
	for (size_t i = 0; i < knob_count(); i++)
		show_setting(&d->settings, i);
}

/* --- the library --- */

static void probe_mmap(char *page, size_t size)
{
	(void)page;
	(void)!mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void probe_munmap(char *page, size_t size)
{
	munmap(page + size, size);
}

static void probe_mprotect(char *page, size_t size)
{
	mprotect(page, size, PROT_READ);
}

static void probe_madvise(char *page, size_t size)
{
	madvise(page, size, MADV_NORMAL);
}

static void probe_mremap(char *page, size_t size)
{
	(void)!mremap(page, size, size, 0);
}

static void probe_pkey_mprotect(char *page, size_t size)
{
	pkey_mprotect(page, size, PROT_READ, 0);
}

static void (*const probes[OP_COUNT])(char *page, size_t size) = {
	[OP_MMAP] = probe_mmap,
	[OP_MUNMAP] = probe_munmap,
	[OP_MPROTECT] = probe_mprotect,
	[OP_MADVISE] = probe_madvise,
	[OP_MREMAP] = probe_mremap,
	[OP_PKEY_MPROTECT] = probe_pkey_mprotect,
};

static int probe(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * size, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return EXIT_FAILED;
	for (int op = 0; op < OP_COUNT; op++)
		if (probes[op] != NULL)
			probes[op](pages, size);
	return EXIT_DONE;
}

static void show_hooks(struct doctor *d, const struct log_process *p)
{
	for (unsigned op = 0; op < OP_COUNT; op++)
		if (probes[op] == NULL)
			fact(op_name(op), "is not hooked in this version");
		else
			check(d, p->op[op].count != 0,
			      "%s called by its symbol is seen", op_name(op));
}

static void read_probe(struct doctor *d, const struct rundir *dir, int status)
{
	struct log_dir *logs;

	if (status != 0 || rundir_logs(dir, 0) == 0) {
		check(d, false,
		      "a program started with the library ended with status "
		      "%d and left no log",
		      launch_exit_status(status));
		return;
	}
	logs = log_dir_open(dir->path);
	check(d, logs->count == 1, "a program loads the library and logs");
	if (logs->count != 0)
		show_hooks(d, log_process(logs->logs[0]));
	log_dir_close(logs);
}

/* Its own settings, not those that may be being examined. */
static void clear_environment(void)
{
	for (size_t i = 0; i < knob_count(); i++)
		unsetenv(knob_at(i)->variable);
}

static char **probe_variables(const struct doctor *d, const char *runtimes,
			      const char *directory)
{
	char **variables = xcalloc(3, sizeof(*variables));
	char *preload = launch_preload(d->library, runtimes, NULL);

	variables[0] = xasprintf("LD_PRELOAD=%s", preload);
	variables[1] = xasprintf("MMGATE_LOG=%s", directory);
	free(preload);
	return variables;
}

static void start_probe(struct doctor *d, const struct rundir *dir)
{
	struct launch *launch = &d->launch;
	int error;

	clear_environment();
	error = launch_start(launch);
	if (error != 0) {
		check(d, false, "%s cannot be started: %s", launch->path,
		      strerror(error));
		return;
	}
	launch_wait(launch);
	read_probe(d, dir, launch->status);
}

static void run_probe(struct doctor *d, const char *directory)
{
	static char name[] = "mmgate", doctor[] = "doctor", option[] = PROBE;
	static char *argv[] = {name, doctor, option, NULL};
	const struct record_dir info = {.magic = RECORD_MAGIC,
					.version = RECORD_VERSION};
	struct preflight self;
	struct rundir dir;

	d->launch.argv = argv;
	d->launch.path = launch_own_path();
	preflight_check(&self, d->launch.path, d->library);
	if (self.status != EXIT_DONE) {
		check(d, false, "no self-test: %s", self.reason);
	} else {
		d->launch.variables =
			probe_variables(d, self.runtimes, directory);
		rundir_check(&dir, directory);
		rundir_make(&dir, &info);
		start_probe(d, &dir);
		rundir_close(&dir);
	}
	preflight_free(&self);
}

static void test_library(struct doctor *d)
{
	const char *tmp = getenv("TMPDIR");
	char *directory;

	directory = xasprintf("%s/mmgate-doctor-XXXXXX",
			      tmp != NULL && *tmp == '/' ? tmp : "/tmp");
	if (mkdtemp(directory) == NULL) {
		check(d, false, "cannot make %s: %s", directory,
		      strerror(errno));
	} else {
		run_probe(d, directory);
		rundir_remove(directory);
	}
	free(directory);
}

static void show_library(struct doctor *d)
{
	char why[512];

	puts("library");
#ifdef __GLIBC__
	fact("libc", "glibc %s", gnu_get_libc_version());
#else
	fact("libc", "not glibc");
#endif
	d->library = launch_library(why);
	check(d, d->library != NULL, "%s",
	      d->library != NULL ? d->library : why);
	if (d->library != NULL)
		test_library(d);
}

/* --- the command --- */

static void show_command(struct doctor *d, const char *command)
{
	struct preflight p;

	puts("command");
	preflight_check(&p, command, d->library);
	if (p.path != NULL)
		fact("file", "%s", p.path);
	if (p.program != NULL && strcmp(p.program, p.path) != 0)
		fact("interpreter", "%s", p.program);
	for (size_t i = 0; i < p.note_count; i++)
		fact("note", "%s", p.notes[i]);
	check(d, p.status == EXIT_DONE, "%s",
	      p.status == EXIT_DONE ? "the library can be preloaded"
				    : p.reason);
	preflight_free(&p);
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{"probe", no_argument, NULL, 'p'},
		{0},
	};
	static struct doctor d; /* all zero */
	int option;

	while ((option = opts_next(argc, argv, "+:", options)) != -1) {
		if (option == 'p')
			return probe();
		opts_print_help(&cmd_doctor);
		return EXIT_DONE;
	}
	opts_settings_init(&d.settings);
	show_kernel(&d);
	show_limits();
	show_settings(&d);
	show_library(&d);
	if (argv[optind] != NULL)
		show_command(&d, argv[optind]);
	return d.failed ? EXIT_FAILED : EXIT_DONE;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "says what works on this machine, and for a given program",
	.synopsis = "doctor [--] [CMD]",
	.help = "Shows facts about the kernel, the limits on a log and the "
		"settings in force,\n"
		"tests the library in a program of its own, and looks at CMD, "
		"if given, without\n"
		"starting it.  The exit status is 0, or 1 when a check "
		"failed.\n"
		"\n"
		"Example:\n"
		"  mmgate doctor -- ./server\n",
	.run = run,
};
