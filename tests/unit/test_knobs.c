/* SPDX-License-Identifier: MIT */
#include "knobs.h"

#include <errno.h>

#include "check.h"

static const struct knob *find(const char *variable)
{
	for (size_t i = 0; i < knob_count(); i++)
		if (strcmp(knob_at(i)->variable, variable) == 0)
			return knob_at(i);
	return NULL;
}

static const char *shown(const struct knob *knob, const struct knobs *knobs)
{
	static char buffer[256];
	struct text t = text_over(buffer, sizeof(buffer));

	knob->show(knobs, &t);
	return buffer;
}

static const struct {
	const char *variable, *value;
	int error;
	const char *show; /* NULL: as the value */
} cases[] = {
	{"MMGATE_LOCK", "none", 0, NULL},
	{"MMGATE_LOCK", "mutex", 0, NULL},
	{"MMGATE_LOCK", "spin", 0, NULL},
	{"MMGATE_LOCK", "fifo", 0, NULL},
	{"MMGATE_LOCK", "rw", 0, NULL},
	{"MMGATE_LOCK", "auto", 0, NULL},
	{"MMGATE_LOCK", "auto:2", -EINVAL, NULL},
	{"MMGATE_LOCK", "limit:4", 0, NULL},
	{"MMGATE_LOCK", "limit:10000", 0, NULL},
	{"MMGATE_LOCK", "limit:10001", -EINVAL, NULL},
	{"MMGATE_LOCK", "limit:4:4", -EINVAL, NULL},
	{"MMGATE_LOCK", "mutex:4", -EINVAL, NULL},
	{"MMGATE_LOCK", "mprotect:mutex,madvise:none", 0, "mprotect:mutex"},
	{"MMGATE_LOCK", "madvise:spin,mmap:limit:3", 0,
	 "mmap:limit:3,madvise:spin"},
	{"MMGATE_LOCK", "mmap:limit:3,munmap:limit:3", 0, NULL},
	{"MMGATE_LOCK", "mmap:limit:3,munmap:limit:4", -EINVAL, NULL},
	{"MMGATE_LOCK", "mmap:none,brk:none", 0, "none"},
	{"MMGATE_LOCK", "mmap:none,mmap:mutex", -EINVAL, NULL},
	{"MMGATE_LOCK", "mmap:limit", -EINVAL, NULL},
	{"MMGATE_LOCK", "mmap:mutex,", -EINVAL, NULL},
	{"MMGATE_LOCK", "mutex,mmap:mutex", -EINVAL, NULL},
	{"MMGATE_LOCK", "mmap:auto,brk:spin", 0, NULL},
	{"MMGATE_LOCK", "limit", -EINVAL, NULL},
	{"MMGATE_LOCK", "limit:", -EINVAL, NULL},
	{"MMGATE_LOCK", "limit:0", -EINVAL, NULL},
	{"MMGATE_LOCK", "limit:x", -EINVAL, NULL},
	{"MMGATE_LOCK", "limit:-1", -EINVAL, NULL},
	{"MMGATE_LOCK", "", -EINVAL, NULL},
	{"MMGATE_LOCK", "Mutex", -EINVAL, NULL},
	{"MMGATE_LOCK", "mutex ", -EINVAL, NULL},
	{"MMGATE_LOCK", "mutex,spin", -EINVAL, NULL},
	{"MMGATE_LOCK", "open:mutex", -EINVAL, NULL},
	{"MMGATE_LOCK", "mmap:nonsense", -EINVAL, NULL},
	{"MMGATE_LOCK", "mmap:", -EINVAL, NULL},
	{"MMGATE_LOCK", "mmap:mutex,,munmap:none", -EINVAL, NULL},
	{"MMGATE_CALLS", "all", 0, NULL},
	{"MMGATE_CALLS", "mmap", 0, NULL},
	{"MMGATE_CALLS", "munmap,mmap", 0, "mmap,munmap"},
	{"MMGATE_CALLS", "mmap,mmap", 0, "mmap"},
	{"MMGATE_CALLS",
	 "mmap,munmap,mprotect,madvise,mremap,brk,pkey_mprotect", 0, "all"},
	{"MMGATE_CALLS", "mremap,brk,pkey_mprotect", 0, NULL},
	{"MMGATE_CALLS", "", -EINVAL, NULL},
	{"MMGATE_CALLS", "mmap,", -EINVAL, NULL},
	{"MMGATE_CALLS", ",mmap", -EINVAL, NULL},
	{"MMGATE_CALLS", "mmap, munmap", -EINVAL, NULL},
	{"MMGATE_CALLS", "mmap64", -EINVAL, NULL},
	{"MMGATE_CALLS", "map", -EINVAL, NULL},
	{"MMGATE_CALLS", "all,mmap", -EINVAL, NULL},
	{"MMGATE_LONG", "bypass", 0, NULL},
	{"MMGATE_LONG", "gate", 0, NULL},
	{"MMGATE_LONG", "", -EINVAL, NULL},
	{"MMGATE_LONG", "yes", -EINVAL, NULL},
	{"MMGATE_HOOKS", "symbols", 0, NULL},
	{"MMGATE_HOOKS", "libc", HOOKS_PATCH ? 0 : -ENOTSUP, NULL},
	{"MMGATE_HOOKS", "all", HOOKS_PATCH ? 0 : -ENOTSUP, NULL},
	{"MMGATE_HOOKS", "", -EINVAL, NULL},
	{"MMGATE_HOOKS", "none", -EINVAL, NULL},
	{"MMGATE_PLACE", "kernel", 0, NULL},
	{"MMGATE_PLACE", "thread", 0, NULL},
	{"MMGATE_PLACE", "", -EINVAL, NULL},
	{"MMGATE_PLACE", "user", -EINVAL, NULL},
	{"MMGATE_DELAY", "none", 0, NULL},
	{"MMGATE_DELAY", "munmap:5us", 0, NULL},
	{"MMGATE_DELAY", "mprotect:1us,munmap:5us", 0,
	 "munmap:5us,mprotect:1us"},
	{"MMGATE_DELAY", "munmap:0s", 0, "none"},
	{"MMGATE_DELAY", "munmap:10ms", 0, NULL},
	{"MMGATE_DELAY", "munmap:1us,munmap:2us", -EINVAL, NULL},
	{"MMGATE_DELAY", "", -EINVAL, NULL},
	{"MMGATE_DELAY", "5us", -EINVAL, NULL},
	{"MMGATE_DELAY", "munmap", -EINVAL, NULL},
	{"MMGATE_DELAY", "munmap:", -EINVAL, NULL},
	{"MMGATE_DELAY", "munmap:5", -EINVAL, NULL},
	{"MMGATE_DELAY", "open:5us", -EINVAL, NULL},
	{"MMGATE_DELAY", "munmap:5us,", -EINVAL, NULL},
	{"MMGATE_DELAY", "munmap:11ms", -EINVAL, NULL},
	{"MMGATE_MAX_WAIT", "1us", 0, NULL},
	{"MMGATE_MAX_WAIT", "1.5ms", 0, "1500us"},
	{"MMGATE_MAX_WAIT", "1000ms", 0, "1s"},
	{"MMGATE_MAX_WAIT", "3600s", 0, NULL},
	{"MMGATE_MAX_WAIT", "0", -EINVAL, NULL},
	{"MMGATE_MAX_WAIT", "999ns", -EINVAL, NULL},
	{"MMGATE_MAX_WAIT", "3601s", -EINVAL, NULL},
	{"MMGATE_MAX_WAIT", "", -EINVAL, NULL},
	{"MMGATE_MAX_WAIT", "1", -EINVAL, NULL},
	{"MMGATE_MAX_WAIT", "for ever", -EINVAL, NULL},
	{"MMGATE_MAX_WAIT", "-1s", -EINVAL, NULL},
	{"MMGATE_LOG", "/some/where", 0, NULL},
	{"MMGATE_LOG", "", -EINVAL, NULL},
	{"MMGATE_LOG_SIZE", "256K", 0, NULL},
	{"MMGATE_LOG_SIZE", "262144", 0, "256K"},
	{"MMGATE_LOG_SIZE", "1.5M", 0, "1536K"},
	{"MMGATE_LOG_SIZE", "1024G", 0, NULL},
	{"MMGATE_LOG_SIZE", "255K", -EINVAL, NULL},
	{"MMGATE_LOG_SIZE", "1025G", -EINVAL, NULL},
	{"MMGATE_LOG_SIZE", "0", -EINVAL, NULL},
	{"MMGATE_LOG_SIZE", "64MB", -EINVAL, NULL},
	{"MMGATE_LOG_SIZE", "", -EINVAL, NULL},
	{"MMGATE_LOG_TOTAL", "256K", 0, NULL},
	{"MMGATE_LOG_TOTAL", "4G", 0, NULL},
	{"MMGATE_LOG_TOTAL", "1K", -EINVAL, NULL},
	{"MMGATE_LOG_TOTAL", "", -EINVAL, NULL},
	{"MMGATE_LOG_TOTAL", "lots", -EINVAL, NULL},
	{"MMGATE_EVENTS", "off", 0, NULL},
	{"MMGATE_EVENTS", "all", 0, NULL},
	{"MMGATE_EVENTS", "slow:1ms", 0, NULL},
	{"MMGATE_EVENTS", "slow:0.5ms", 0, "slow:500us"},
	{"MMGATE_EVENTS", "every:64", 0, NULL},
	{"MMGATE_EVENTS", "every:1", 0, NULL},
	{"MMGATE_EVENTS", "every:0", -EINVAL, NULL},
	{"MMGATE_EVENTS", "every:", -EINVAL, NULL},
	{"MMGATE_EVENTS", "every", -EINVAL, NULL},
	{"MMGATE_EVENTS", "every:1.5", -EINVAL, NULL},
	{"MMGATE_EVENTS", "slow", -EINVAL, NULL},
	{"MMGATE_EVENTS", "slow:", -EINVAL, NULL},
	{"MMGATE_EVENTS", "slow:5", -EINVAL, NULL},
	{"MMGATE_EVENTS", "", -EINVAL, NULL},
	{"MMGATE_EVENTS", "on", -EINVAL, NULL},
	{"MMGATE_STACKS", "off", 0, NULL},
	{"MMGATE_STACKS", "every:64", 0, NULL},
	{"MMGATE_STACKS", "slow:1ms", 0, NULL},
	{"MMGATE_STACKS", "slow:0", 0, "slow:0ns"},
	{"MMGATE_STACKS", "every:64,slow:1ms", 0, NULL},
	{"MMGATE_STACKS", "slow:1ms,every:64", 0, "every:64,slow:1ms"},
	{"MMGATE_STACKS", "every:64,every:2", -EINVAL, NULL},
	{"MMGATE_STACKS", "slow:1ms,slow:2ms", -EINVAL, NULL},
	{"MMGATE_STACKS", "every:4294967296", -EINVAL, NULL},
	{"MMGATE_STACKS", "off,every:64", -EINVAL, NULL},
	{"MMGATE_STACKS", "slow:", -EINVAL, NULL},
	{"MMGATE_STACKS", "every:0", -EINVAL, NULL},
	{"MMGATE_STACKS", "every:64,", -EINVAL, NULL},
	{"MMGATE_STACKS", "all", -EINVAL, NULL},
	{"MMGATE_STACKS", "", -EINVAL, NULL},
	{"MMGATE_STACK_SIZE", "16K", 0, NULL},
	{"MMGATE_STACK_SIZE", "16384", 0, "16K"},
	{"MMGATE_STACK_SIZE", "1K", 0, NULL},
	{"MMGATE_STACK_SIZE", "64K", 0, NULL},
	{"MMGATE_STACK_SIZE", "5001", 0, "5000"},
	{"MMGATE_STACK_SIZE", "1023", -EINVAL, NULL},
	{"MMGATE_STACK_SIZE", "65K", -EINVAL, NULL},
	{"MMGATE_STACK_SIZE", "", -EINVAL, NULL},
	{"MMGATE_FOLLOW", "none", 0, NULL},
	{"MMGATE_FOLLOW", "exec", 0, NULL},
	{"MMGATE_FOLLOW", "fork", 0, NULL},
	{"MMGATE_FOLLOW", "", -EINVAL, NULL},
	{"MMGATE_FOLLOW", "all", -EINVAL, NULL},
	{"MMGATE_ONLY", "all", 0, NULL},
	{"MMGATE_ONLY", "python*,java", 0, NULL},
	{"MMGATE_ONLY", "", -EINVAL, NULL},
	{"MMGATE_ONLY", "a,,b", -EINVAL, NULL},
	{"MMGATE_ONLY", "a,", -EINVAL, NULL},
	{"MMGATE_ONLY", "/usr/bin/java", -EINVAL, NULL},
	{"MMGATE_SKIP", "none", 0, NULL},
	{"MMGATE_SKIP", "make,*sh", 0, NULL},
	{"MMGATE_SKIP", "", -EINVAL, NULL},
	{"MMGATE_SKIP", ",a", -EINVAL, NULL},
	{"MMGATE_SKIP", "bin/sh", -EINVAL, NULL},
};

static void check_cases(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct knob *knob = find(cases[i].variable);
		const char *value = cases[i].value;
		struct knobs knobs, before;

		knobs_init(&knobs);
		before = knobs;
		if (!check_int(cases[i].error, knob->parse(&knobs, value),
			       "%s=%s", knob->variable, value))
			continue;
		if (cases[i].error == 0)
			check_text(cases[i].show ? cases[i].show : value,
				   shown(knob, &knobs), "%s=%s is shown",
				   knob->variable, value);
		else
			check_true(memcmp(&before, &knobs, sizeof(knobs)) == 0,
				   "%s=%s changes nothing", knob->variable,
				   value);
	}
}

static bool has_case(const struct knob *knob, int error)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(cases[i].variable, knob->variable) == 0 &&
		    cases[i].error == error)
			return true;
	return false;
}

/* The default, parsed, is what is in force; what is shown, parsed, too. */
static void check_default(const struct knob *knob)
{
	struct knobs initial, knobs;
	char before[256];

	knobs_init(&initial);
	knobs = initial;
	snprintf(before, sizeof(before), "%s", shown(knob, &initial));
	check_text(knob->initial ? knob->initial : "", before,
		   "%s: default is shown", knob->variable);
	if (knob->initial == NULL)
		return;
	check_int(0, knob->parse(&knobs, before), "%s: default is taken",
		  knob->variable);
	check_text(before, shown(knob, &knobs), "%s: default comes back",
		   knob->variable);
	check_true(memcmp(&initial, &knobs, sizeof(knobs)) == 0,
		   "%s: default touches nothing else", knob->variable);
}

static void check_table(void)
{
	for (size_t i = 0; i < knob_count(); i++) {
		const struct knob *knob = knob_at(i);

		check_default(knob);
		check_true(has_case(knob, 0), "%s: has a case here",
			   knob->variable);
		check_true(has_case(knob, -EINVAL), "%s: has a bad case here",
			   knob->variable);
		check_true(*knob->help != '\0' && *knob->values != '\0',
			   "%s: has help", knob->variable);
		check_true(strncmp(knob->variable, "MMGATE_", 7) == 0,
			   "%s: is ours", knob->variable);
		for (size_t j = 0; j < i; j++)
			if (strcmp(knob->option, knob_at(j)->option) == 0 ||
			    find(knob->variable) != knob)
				check_true(false, "%s: is there once",
					   knob->variable);
	}
}

static const char *complaint(const char *variable, const char *value, int error)
{
	static char buffer[512];
	struct text t = text_over(buffer, sizeof(buffer));

	knob_complain(find(variable), value, error, &t);
	return buffer;
}

static void check_complaint(const char *variable, const char *value, int error,
			    const char *starts)
{
	char expected[512];

	/* Without what is not in this version, behind a semicolon. */
	snprintf(expected, sizeof(expected), "%s; accepted: %.*s", starts,
		 (int)strcspn(find(variable)->values, ";"),
		 find(variable)->values);
	check_text(expected, complaint(variable, value, error), "%s", starts);
}

static void check_complaints(void)
{
	char value[200];
	const char *said;

	check_complaint("MMGATE_LONG", "x", -EINVAL,
			"MMGATE_LONG=x: not "
			"understood");
	check_complaint("MMGATE_PLACE", "thread", -ENOSYS,
			"MMGATE_PLACE=thread: not in this version");
	/* Control characters stay out of the terminal. */
	check_complaint("MMGATE_LONG", "a\nb\033", -EINVAL,
			"MMGATE_LONG=a?b?: not understood");
	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	said = complaint("MMGATE_LONG", value, -EINVAL);
	check_true(strlen(said) < 160 && strstr(said, "accepted: bypass"),
		   "a long value does not hide the rest");
}

/* Which ops take which lock. */
static void check_lock_of(void)
{
	struct knobs knobs;

	knobs_init(&knobs);
	check_true(!knobs_lock_any(&knobs), "no lock by default");
	find("MMGATE_LOCK")->parse(&knobs, "spin");
	find("MMGATE_CALLS")->parse(&knobs, "munmap,brk");
	check_int(LOCK_spin, knobs_lock_of(&knobs, OP_BRK), "brk, as in calls");
	check_int(LOCK_none, knobs_lock_of(&knobs, OP_MMAP), "mmap, not in it");
	/* A list of ops says which by itself. */
	find("MMGATE_LOCK")->parse(&knobs, "mmap:limit:2,mremap:fifo");
	check_int(LOCK_limit, knobs_lock_of(&knobs, OP_MMAP), "mmap by name");
	check_int(LOCK_fifo, knobs_lock_of(&knobs, OP_MREMAP),
		  "mremap by name");
	check_int(LOCK_none, knobs_lock_of(&knobs, OP_MUNMAP), "not named");
	check_int(2, (int)knobs.limit, "the limit's number");
	check_true(knobs_lock_any(&knobs), "some lock");
	find("MMGATE_LOCK")->parse(&knobs, "mmap:mutex,brk:nonsense");
	check_int(LOCK_limit, knobs_lock_of(&knobs, OP_MMAP),
		  "a bad value changes nothing");
}

static void check_lock_names(void)
{
	check_text("none", knobs_lock_name(LOCK_none), "the first");
	check_text("rw", knobs_lock_name(LOCK_rw), "the last");
	check_true(!knobs_lock_name(LOCK_auto), "auto is no lock");
	check_true(!knobs_lock_name(LOCK_COUNT) && !knobs_lock_name(UINT32_MAX),
		   "nor is any other number");
}

static int change(struct knobs *knobs, const char *text)
{
	char buffer[256];

	snprintf(buffer, sizeof(buffer), "%s", text);
	return knobs_change(knobs, buffer);
}

/* As `mmgate set` asks for it. */
static void check_change(void)
{
	struct knobs knobs;

	knobs_init(&knobs);
	check_int(0, change(&knobs, "lock=spin\nmax_wait=5ms\n"), "two");
	check_int(LOCK_spin, knobs.lock, "the lock");
	check_u64(5000000, knobs.max_wait_ns, "the longest wait");
	check_int(0, change(&knobs, "delay=munmap:1us"), "without a newline");
	check_u64(1000, knobs.delay_ns[OP_MUNMAP], "the delay");
	check_int(0, change(&knobs, ""), "nothing");
	check_int(-EINVAL, change(&knobs, "lock=none\nlock=nonsense"),
		  "the second is bad");
	check_int(LOCK_spin, knobs.lock, "so the first is not done either");
	check_int(-EPERM, change(&knobs, "hooks=all"), "not while it runs");
	check_int(-EINVAL, change(&knobs, "lock"), "no value");
	check_int(-EINVAL, change(&knobs, "lock\n=x"), "no value, then a line");
	check_int(-EINVAL, change(&knobs, "=none"), "no name");
	check_int(-EINVAL, change(&knobs, "colour=red"), "an unknown name");
}

static void check_selection(void)
{
	struct knobs knobs;

	knobs_init(&knobs);
	check_true(knobs_select(&knobs, "anything", NULL), "all by default");
	find("MMGATE_ONLY")->parse(&knobs, "python*,java");
	check_true(knobs_select(&knobs, "python3.11", NULL), "only: a glob");
	check_true(knobs_select(&knobs, "java", NULL), "only: the last word");
	check_true(!knobs_select(&knobs, "javac", NULL),
		   "only: nothing longer");
	check_true(!knobs_select(&knobs, "", NULL), "only: not the nameless");
	find("MMGATE_SKIP")->parse(&knobs, "*3.11,sh");
	check_true(!knobs_select(&knobs, "python3.11", NULL),
		   "skip beats only");
	check_true(knobs_select(&knobs, "python3.12", NULL),
		   "skip: others stay");
	find("MMGATE_ONLY")->parse(&knobs, "all");
	check_true(knobs_select(&knobs, "bash", NULL),
		   "only all, skip sh: bash");
	check_true(!knobs_select(&knobs, "sh", NULL), "only all, skip sh: sh");
	find("MMGATE_SKIP")->parse(&knobs, "none");
	check_true(knobs_select(&knobs, "sh", NULL), "skip none");
	knobs.only = "python3";
	check_true(knobs_select(&knobs, "python3.11", "python3"),
		   "only: by the name of the link");
	knobs.only = NULL;
	knobs.skip = "python3";
	check_true(!knobs_select(&knobs, "python3.11", "python3"),
		   "skip: by the name of the link");
}

int main(void)
{
	check_table();
	check_cases();
	check_complaints();
	check_lock_of();
	check_lock_names();
	check_change();
	check_selection();
	return check_done();
}
