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
#include "opts.h"
#include "preflight.h"
#include "probe.h"
#include "rewrite.h"
#include "table.h"
#include "units.h"
#include "unwind.h"
#include "utf8.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { LINE = 8192 };

struct doctor {
	struct opts_settings settings;
	char *library;
	bool failed;
};

static void put_line(const char *head, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

/* Values and names of files are shown: they may hold anything. */
static void put_line(const char *head, const char *format, va_list args)
{
	char line[LINE], shown[LINE];

	vsnprintf(line, sizeof(line), format, args);
	utf8_clean(shown, line, sizeof(shown) - 1, 0);
	printf("  %-20s %s\n", head, shown);
}

__attribute__((format(printf, 2, 3))) static void fact(const char *name,
						       const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_line(name, format, args);
	va_end(args);
}

__attribute__((format(printf, 3, 4))) static void
check(struct doctor *d, bool good, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_line(good ? "ok" : "FAILED", format, args);
	va_end(args);
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
	else if (limit.rlim_cur / part < RECORD_LEAST_BYTES)
		fact(name, "%s: too little for a log",
		     units_bytes((double)limit.rlim_cur));
	else
		fact(name, "%s: a log takes %s at most",
		     units_bytes((double)limit.rlim_cur),
		     units_bytes((double)limit.rlim_cur / part));
}

static void show_limits(struct doctor *d)
{
	struct rlimit limit;
	char line[PREFLIGHT_LINE];

	puts("limits");
	show_limit("RLIMIT_FSIZE", RLIMIT_FSIZE, 1);
	show_limit("RLIMIT_AS", RLIMIT_AS, RECORD_PART_OF_AS);
	if (may_lock_memory())
		fact("RLIMIT_MEMLOCK", "does not bind (CAP_IPC_LOCK)");
	else if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
		 limit.rlim_cur <= RECORD_LEAST_MEMLOCK)
		fact("RLIMIT_MEMLOCK",
		     "%s: does not bind, as no program fits in that",
		     units_bytes((double)limit.rlim_cur));
	else
		show_limit("RLIMIT_MEMLOCK", RLIMIT_MEMLOCK,
			   RECORD_PART_OF_MEMLOCK);
	if (preflight_limit(line))
		check(d, false, "no program can have a log: %s", line);
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
	bool given = settings->given[i].source == OPTS_VARIABLE;
	const char *of_run =
		unwind_missing() || given ? NULL : knob_of_run(knob_at(i));

	knob_at(i)->show(&settings->knobs, &out);
	fact(knob_at(i)->variable, "%s (%s%s%s) - %s",
	     value[0] != '\0' ? value : "unset",
	     given ? "environment" : "default", of_run ? "; run: " : "",
	     of_run ? of_run : "", knob_at(i)->help);
}

static void show_settings(struct doctor *d)
{
	puts("settings");
	take_environment(d);
	for (size_t i = 0; i < knob_count(); i++)
		show_setting(&d->settings, i);
}

/* --- the library --- */

static void show_library(struct doctor *d)
{
	char why[512];

	puts("library");
#ifdef __GLIBC__
	fact("libc", "glibc %s", gnu_get_libc_version());
#else
	fact("libc", "not glibc");
#endif
	fact("stacks", "%s",
	     unwind_missing() != NULL ? unwind_missing()
				      : "unwound by libunwind, named by "
					"elfutils");
	d->library = launch_library(why);
	check(d, d->library != NULL, "%s",
	      d->library != NULL ? d->library : why);
}

/* --- which calls it catches --- */

static void show_code_change(void)
{
	static const char *const ways[] = {
		[REWRITE_IN_PLACE] = "allowed, by mprotect",
		[REWRITE_BY_PROC] = "allowed, by /proc/self/mem",
		[REWRITE_REFUSED] = "refused",
	};
	const char *obstacle = rewrite_obstacle();

	fact("changing code", "%s%s%s%s", ways[rewrite_try()],
	     *obstacle != '\0' ? " (" : "", obstacle,
	     *obstacle != '\0' ? ")" : "");
}

/* Is the layer hooked under the settings in force? */
static const char *in_force(const struct doctor *d,
			    const struct probe_result *r)
{
	struct knobs needed = d->settings.knobs;

	for (size_t i = 0; i < knob_count(); i++)
		if (strcmp(knob_at(i)->variable, "MMGATE_HOOKS") == 0 &&
		    knob_at(i)->parse(&needed, r->hooks) != 0)
			return "not in this build";
	return d->settings.knobs.hooks >= needed.hooks ? "yes"
						       : "not asked for";
}

static void matrix_heads(struct table *t, const struct doctor *d,
			 const struct probe *probe)
{
	table_column(t, NULL, "caught", false);
	for (int i = 0; i < PROBE_LAYERS; i++)
		table_column(t, NULL, probe->layers[i].name, false);
	table_cell(t, "needs MMGATE_HOOKS=");
	for (int i = 0; i < PROBE_LAYERS; i++)
		table_cell(t, probe->layers[i].hooks);
	table_cell(t, "in force");
	for (int i = 0; i < PROBE_LAYERS; i++)
		table_cell(t, in_force(d, &probe->layers[i]));
}

static void show_matrix(const struct doctor *d, const struct probe *probe)
{
	struct table *t = table_new();

	matrix_heads(t, d, probe);
	for (unsigned op = 0; op < OP_COUNT; op++) {
		table_cell(t, op_name(op));
		for (int i = 0; i < PROBE_LAYERS; i++)
			if ((probe_ops(i) >> op & 1) == 0)
				table_cell(t, "-");
			else
				table_cell(t, probe->layers[i].seen >> op & 1
						      ? "yes"
						      : "no");
	}
	table_print(t, "  ", TABLE_WIDTH, stdout);
	puts("  (each yes is a call that was made and is in the log; -: no "
	     "such call)");
}

/* What is claimed must be so; what is refused has its reason. */
static void check_layer(struct doctor *d, enum probe_layer layer,
			const struct probe_result *r)
{
	uint32_t ops = probe_ops(layer);

	for (unsigned op = 0; op < OP_COUNT; op++)
		if ((ops & r->claimed & ~r->seen) >> op & 1)
			check(d, false, "%s by %s should be caught and is not",
			      op_name(op), r->name);
	if ((ops & ~r->seen) != 0)
		fact(r->name, "%s", r->outcome);
}

static void show_hooks(struct doctor *d)
{
	struct probe probe;

	puts("hooks");
	show_code_change();
	probe_run(&probe, d->library);
	check(d, probe.problem[0] == '\0', "%s%s",
	      probe.problem[0] == '\0' ? "a program loads the library and logs"
				       : "no self-test: ",
	      probe.problem);
	if (probe.problem[0] != '\0')
		return;
	show_matrix(d, &probe);
	for (int i = 0; i < PROBE_LAYERS; i++)
		check_layer(d, i, &probe.layers[i]);
}

/* --- the command --- */

static void show_command(struct doctor *d, char **command)
{
	struct preflight p;

	puts("command");
	preflight_check(&p, command[0], d->library);
	preflight_arguments(&p, command, d->library);
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
		{PROBE_OPTION, no_argument, NULL, 'p'},
		{0},
	};
	static struct doctor d; /* all zero */
	int option;

	while ((option = opts_next(argc, argv, "+:", options)) != -1) {
		if (option == 'p')
			return probe_child();
		opts_print_help(&cmd_doctor);
		return EXIT_DONE;
	}
	opts_settings_init(&d.settings);
	show_kernel(&d);
	show_limits(&d);
	show_settings(&d);
	show_library(&d);
	if (d.library != NULL)
		show_hooks(&d);
	if (argv[optind] != NULL)
		show_command(&d, argv + optind);
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
