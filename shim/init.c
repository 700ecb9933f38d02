/* SPDX-License-Identifier: MIT */
/*
 * init: the library's start, in named steps.
 *
 * The library is linked with -z initfirst: under glibc this constructor runs
 * before all others, while the process has one thread, and before libc's own:
 * the environment comes as an argument, and getenv would find nothing.
 */
#include <elf.h>
#include <stddef.h>

#include "clock.h"
#include "diag.h"
#include "elf.h"
#include "figures.h"
#include "gate.h"
#include "knobs.h"
#include "libc.h"
#include "locks.h"
#include "log.h"
#include "modules.h"
#include "patch.h"
#include "place.h"
#include "rules.h"
#include "stack.h"
#include "sys.h"
#include "text.h"
#include "turn.h"
#include "world.h"
#include "wrap.h"

#include "poison.h"

/* Strings outlive the environment they came from, which the program owns. */
static char log_path[4096], only[1024], skip[1024], exe[1024], comm[17];
static char hooks[1024], coverage[512];
static struct knobs knobs;
static struct patch_report patches;
static const char *libc_path;     /* the loader's string */
static const Elf64_Phdr *headers; /* the program's */
static unsigned long header_count;
static struct turn correcting; /* what the log says of hooks */
static bool followed;          /* by MMGATE_FOLLOW, _ONLY and _SKIP */

static unsigned long auxv_value(const Elf64_auxv_t *auxv, unsigned long type)
{
	for (; auxv->a_type != AT_NULL; auxv++)
		if (auxv->a_type == type)
			return auxv->a_un.a_val;
	return 0;
}

/* A trusted copy of the library in a setuid program: the environment is not
 * its owner's word. */
static bool is_secure(const Elf64_auxv_t *auxv)
{
	for (; auxv->a_type != AT_NULL; auxv++)
		if (auxv->a_type == AT_SECURE)
			return auxv->a_un.a_val != 0;
	return true; /* not said: better not */
}

static const char *env_value(char **env, const char *name)
{
	for (; *env != NULL; env++) {
		const char *rest = text_after(*env, name);

		if (rest != NULL && *rest == '=')
			return rest + 1;
	}
	return NULL;
}

static void complain(const struct knob *knob, const char *value, int error)
{
	char line[1024];
	struct text out = text_over(line, sizeof(line));

	knob_complain(knob, value, error, &out);
	text_put(&out, "; using ");
	if (knob->initial == NULL)
		text_put(&out, "none");
	else
		text_put(&out, knob->initial);
	diag_line(line);
}

static void read_settings(char **env)
{
	knobs_init(&knobs);
	for (size_t i = 0; i < knob_count(); i++) {
		const struct knob *knob = knob_at(i);
		const char *value = env_value(env, knob->variable);
		int error;

		if (value == NULL)
			continue;
		error = knob->parse(&knobs, value);
		if (error != 0)
			complain(knob, value, error);
	}
}

/* Absolute: a forked child may open its log from another directory. */
static void keep_log_path(void)
{
	struct text out;
	long n = 0;

	if (knobs.log == NULL)
		return;
	if (knobs.log[0] != '/')
		n = sys_call3(__NR_getcwd, (long)log_path, sizeof(log_path), 0);
	out = text_over(log_path + (n > 0 ? n - 1 : 0),
			sizeof(log_path) - (size_t)(n > 0 ? n - 1 : 0));
	text_put(&out, n > 0 ? "/" : "");
	text_put(&out, knobs.log);
	knobs.log = log_path;
	if (!out.cut)
		return;
	diag_line("no log: the path in MMGATE_LOG is too long");
	knobs.log = NULL;
}

/* A list that is only looked at now, and shown later; shown cut, if it must. */
static const char *keep(const char *list, char *to, size_t size)
{
	struct text out = text_over(to, size);

	if (list == NULL)
		return NULL;
	text_put(&out, list);
	return to;
}

/* The executable's path, for the log and for MMGATE_ONLY and _SKIP. */
static void read_names(const Elf64_auxv_t *auxv)
{
	enum { PR_GET_NAME = 16 };
	const char *path = (const char *)auxv_value(auxv, AT_EXECFN);
	struct text out;
	long n;

	if (knobs.log == NULL && knobs.only == NULL && knobs.skip == NULL)
		return; /* nobody asks */
	n = sys_readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n <= 0) {
		out = text_over(exe, sizeof(exe));
		text_put(&out, path != NULL ? path : "");
	} else {
		exe[n] = '\0';
	}
	sys_prctl(PR_GET_NAME, (unsigned long)comm);
}

/* Is this not a process that `run` started, but one below it? */
static bool is_descendant(char **env)
{
	const char *pid = env_value(env, "MMGATE_STARTED");
	uint64_t n;

	return pid != NULL && (text_parse_u64(pid, text_len(pid), &n) != 0 ||
			       n != sys_getpid());
}

static bool is_followed(char **env, const Elf64_auxv_t *auxv)
{
	const char *path = (const char *)auxv_value(auxv, AT_EXECFN);

	if (!knobs_select(&knobs, text_base_name(exe),
			  path != NULL ? text_base_name(path) : NULL))
		return false;
	if (knobs.follow != FOLLOW_NONE)
		return true;
	if (env_value(env, "MMGATE_STARTED") == NULL)
		diag_line("MMGATE_FOLLOW=none needs `mmgate run`, which says "
			  "which process was started; using exec");
	return !is_descendant(env);
}

static const char *const layer_names[] = {"libc", "ld.so", "syscall", "inline"};

/* "libc=patched", "libc=symbols only: REASON", "inline=off", ... */
static void describe_hooks(void)
{
	struct text out = text_over(hooks, sizeof(hooks));

	text_put(&out, patches.lost == 0
			       ? "symbols=on\n"
			       : "symbols=on, but another library has patched "
				 "functions and gets their calls first\n");
	for (int i = 0; i < LAYER_COUNT; i++) {
		const char *reason = patches.reason[i];
		bool optional = i == LAYER_SYSCALL || i == LAYER_INLINE;

		text_put(&out, layer_names[i]);
		if (patches.ops[i] != 0)
			text_put(&out, "=patched");
		else
			text_put(&out, optional && *reason == '\0'
					       ? "=off"
					       : "=symbols only");
		text_put(&out, *reason != '\0' ? ": " : "");
		text_put(&out, reason);
		text_put(&out, "\n");
	}
}

/* "mmap=symbols,libc,ld.so" ... */
static void describe_coverage(void)
{
	struct text out = text_over(coverage, sizeof(coverage));

	for (unsigned op = 0; op < OP_COUNT; op++) {
		const char *comma = "";

		text_put(&out, op_name(op));
		text_put(&out, "=");
		if (op != OP_BRK && (patches.lost >> op & 1) == 0) {
			text_put(&out, "symbols");
			comma = ",";
		}
		for (int i = 0; i < LAYER_COUNT; i++)
			if (patches.ops[i] >> op & 1) {
				text_put(&out, comma);
				text_put(&out, layer_names[i]);
				comma = ",";
			}
		text_put(&out, "\n");
	}
}

/* Whose code is where, to class callers by; libc is watched from now on. */
static struct figures_callers find_callers(const struct patch_process *process)
{
	struct figures_callers callers = {0};
	struct elf_image image;

	elf_program_text(process->headers, process->header_count,
			 &callers.program.from, &callers.program.to);
	if (libc_find(process->headers, process->header_count, process->loader,
		      &image)) {
		callers.libc =
			(struct figures_range){image.text, image.text_end};
		libc_path = image.path;
		wrap_watch(&image, patches.foreign);
	}
	if (process->loader != NULL && elf_read(process->loader, &image))
		callers.loader =
			(struct figures_range){image.text, image.text_end};
	return callers;
}

static bool under_valgrind(char **env)
{
	const char *preload = env_value(env, "LD_PRELOAD");

	for (; preload != NULL && *preload != '\0'; preload++)
		if (text_after(preload, "vgpreload_") != NULL)
			return true;
	return false;
}

/* Others may patch code at any time, and the process may be killed. */
static void correct_log(void)
{
	if (!turn_begin(&correcting))
		return;
	if (patch_recheck(&patches)) {
		describe_hooks();
		describe_coverage();
		log_correct(hooks, coverage);
	}
	turn_end(&correcting);
}

static struct figures_callers install_hooks(const struct patch_process *process)
{
	struct figures_callers callers;

	patch_apply(knobs.hooks, process, &patches);
	callers = find_callers(process);
	patches.lost |= wrap_taken();
	describe_hooks();
	describe_coverage();
	return callers;
}

static void wipe(void)
{
	world_page = (struct world_page){0};
}

/* Does madvise do as it is told?  An emulator may take any advice, and leave
 * it, and then nothing would tell a child that it is one. */
static void mind_forks(const struct patch_process *process)
{
	enum { NO_ADVICE = 0x7fff };
	struct elf_image libc;

	if (sys_madvise(&world_page, sizeof(world_page), NO_ADVICE) != 0)
		return;
	if (libc_find(process->headers, process->header_count, process->loader,
		      &libc) &&
	    libc_at_fork(&libc, wipe))
		diag_line("madvise does nothing here, as under an emulator: "
			  "children are known by libc's fork() alone");
	else
		diag_line("madvise does nothing here, as under an emulator: "
			  "forked children are not told from their parents");
}

/* Apart, as a child that says nothing may be on a handler's small stack. */
__attribute__((noinline)) static void say_no_log(const char *why)
{
	char line[1024];
	struct text out = text_over(line, sizeof(line));

	text_put(&out, "no log in ");
	text_put(&out, knobs.log);
	text_put(&out, ": ");
	text_put(&out, why);
	diag_line(line);
}

static void open_log(struct record_pair start, bool quiet)
{
	const struct log_about about = {
		.exe = exe,
		.comm = comm,
		.hooks = hooks,
		.coverage = coverage,
		.libc = libc_path,
		.epoch = world_epoch(),
		.start = start,
	};
	char why[256];
	struct text out = text_over(why, sizeof(why));

	if (log_open(&knobs, &about, &out)) {
		modules_begin(headers, header_count, exe);
		stack_begin();
	} else if (!quiet) {
		say_no_log(why);
	}
}

static bool has_work(const struct knobs *now)
{
	return knobs_lock_any(now) || knobs_delay_any(now) ||
	       now->place != PLACE_KERNEL || log_is_open();
}

/* What cannot be is said, and not recorded as if it were. */
static void start_place(uint64_t page_size, bool quiet)
{
	const char *reason;
	char line[256];
	struct text out = text_over(line, sizeof(line));

	if (!followed || knobs.place == PLACE_KERNEL)
		return;
	reason = place_init(page_size);
	if (reason == NULL)
		return;
	knobs.place = PLACE_KERNEL;
	text_put(&out, "MMGATE_PLACE=thread: ");
	text_put(&out, reason);
	text_put(&out, "; using kernel");
	if (!quiet)
		diag_line(line);
}

static bool arrive_in_child(void)
{
	log_forget();
	if (correcting.since != 0) { /* the parent's words may be half done */
		describe_hooks();
		describe_coverage();
		turn_end(&correcting);
	}
	if (!followed || knobs.follow != FOLLOW_FORK)
		return false;
	if (knobs.log != NULL)
		/* Laid out as its parent's was.  stderr may be anything. */
		open_log(clock_pair(), true);
	return has_work(rules_settings());
}

/* Everything that a process needs that calls are gated or recorded in. */
static void take_part(const struct patch_process *process, char **argv,
		      char **env, const Elf64_auxv_t *auxv)
{
	struct record_pair began;
	struct figures_callers callers;

	knobs.only = keep(knobs.only, only, sizeof(only));
	knobs.skip = keep(knobs.skip, skip, sizeof(skip));
	clock_init((const void *)auxv_value(auxv, AT_SYSINFO_EHDR),
		   knobs.log != NULL);
	locks_init();
	began = clock_pair();
	headers = process->headers;
	header_count = process->header_count;
	if (knobs_has_stacks(&knobs))
		stack_init(&knobs, libc_first_stack(argv, auxv));
	mind_forks(process);
	callers = install_hooks(process);
	if (knobs.log != NULL)
		open_log(began, is_descendant(env)); /* once a run */
	figures_init(&callers);
	figures_now_and_then = correct_log;
	gate_init(&knobs);
	world_start(has_work(&knobs));
}

static void begin(char **argv, char **env)
{
	const Elf64_auxv_t *auxv = libc_auxv(env);
	const struct patch_process process = {
		.headers = (const void *)auxv_value(auxv, AT_PHDR),
		.header_count = auxv_value(auxv, AT_PHNUM),
		.loader = (const void *)auxv_value(auxv, AT_BASE),
		.page_size = auxv_value(auxv, AT_PAGESZ),
		.under_valgrind = under_valgrind(env),
	};

	if (is_secure(auxv))
		return;
	read_settings(env);
	keep_log_path();
	read_names(auxv);
	gate_new_process = arrive_in_child;
	if (world_init() != 0)
		diag_line("this kernel cannot wipe memory in a forked child "
			  "(Linux 4.14 can): calls pass, nothing is recorded");
	else
		followed = is_followed(env, auxv);
	start_place(process.page_size, is_descendant(env)); /* once a run */
	if (followed && (has_work(&knobs) || knobs.log != NULL))
		take_part(&process, argv, env, auxv);
}

__attribute__((constructor)) static void start(int argc, char **argv,
					       char **argument)
{
	(void)argc;
	if (libc_is_this())
		begin(argv, libc_environment(argument));
}

__attribute__((destructor)) static void finish(void)
{
	if (!world_active(world_self()) || !log_is_open())
		return;
	correct_log();
	log_end();
}
