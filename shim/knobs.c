/* SPDX-License-Identifier: MIT */
#include "knobs.h"

#include <errno.h>

#include "poison.h"

enum { MAX_LIST = 4096 };

/* What a library built without patching can do. */
#if HOOKS_PATCH
#define HOOKS_VALUES "symbols, libc or all"
#define HOOKS_INITIAL "libc"
enum { CHOICE_LIBC = HOOKS_LIBC, CHOICE_ALL = HOOKS_ALL };
#else
#define HOOKS_VALUES "symbols; not in this build: libc, all"
#define HOOKS_INITIAL "symbols"
enum { CHOICE_LIBC = -2, CHOICE_ALL = -2 };
#endif

static const struct {
	const char *name;
	enum lock_id id;
} locks[] = {
#define LOCK(name, help) {#name, LOCK_##name},
#define LOCK_POLICY(name, help) {#name, LOCK_##name},
#include "locks.def"
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* One word out of a list; -EINVAL when it is none of them. */
struct choice {
	const char *name;
	int value; /* -1: not built; -2: left out of this build */
};

static int choose(const struct choice *choices, size_t count, const char *value,
		  uint8_t *out)
{
	for (size_t i = 0; i < count; i++) {
		if (!text_equal(value, choices[i].name))
			continue;
		if (choices[i].value == -2)
			return -ENOTSUP;
		if (choices[i].value < 0)
			return -ENOSYS;
		*out = (uint8_t)choices[i].value;
		return 0;
	}
	return -EINVAL;
}

static void show_choice(const struct choice *choices, size_t count, int value,
			struct text *out)
{
	for (size_t i = 0; i < count; i++)
		if (choices[i].value == value) {
			text_put(out, choices[i].name);
			return;
		}
}

/* What follows "NAME:" in an argument such as slow:1ms, or NULL. */
static const char *argument(const char *value, const char *name)
{
	const char *rest = text_after(value, name);

	return rest != NULL && *rest == ':' ? rest + 1 : NULL;
}

/* The op that the `len`-long word at `s` names, or OP_COUNT. */
static unsigned find_op(const char *s, size_t len)
{
	unsigned op = 0;

	while (op < OP_COUNT && !text_is(s, len, op_name(op)))
		op++;
	return op;
}

/* Length of what comes before the colon in a word, or of the word. */
static size_t before_colon(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && s[n] != ':')
		n++;
	return n;
}

/* Threads inside, of limit:N; more than any program has are no limit. */
enum { MOST_LIMIT = 10000 };

/* LOCK or limit:N, `len` characters of it. */
static int parse_one_lock(const char *s, size_t len, uint8_t *id,
			  uint32_t *limit)
{
	size_t name = before_colon(s, len);
	uint64_t n;

	for (size_t i = 0; i < COUNT_OF(locks); i++) {
		bool counts = text_equal(locks[i].name, "limit");

		if (!text_is(s, name, locks[i].name))
			continue;
		if (counts != (name < len))
			return -EINVAL; /* it wants its number, others none */
		if (counts &&
		    (text_parse_u64(s + name + 1, len - name - 1, &n) != 0 ||
		     n == 0 || n > MOST_LIMIT))
			return -EINVAL;
		*id = (uint8_t)locks[i].id;
		if (counts)
			*limit = (uint32_t)n;
		return 0;
	}
	return -EINVAL;
}

/* OP:LOCK,...  One limit for all, as ops that name one kind share the lock. */
static int parse_lock_per_op(struct knobs *into, const char *value)
{
	uint32_t limit = 0, first = 0;
	unsigned named = 0;
	int error;

	for (unsigned op = 0; op < OP_COUNT; op++)
		into->lock_of[op] = LOCK_none;
	for (;;) {
		size_t len = text_word(value), colon = before_colon(value, len);
		unsigned op = find_op(value, colon);

		if (op == OP_COUNT || colon == len || named >> op & 1)
			return -EINVAL;
		named |= 1u << op;
		error = parse_one_lock(value + colon + 1, len - colon - 1,
				       &into->lock_of[op], &limit);
		if (error != 0)
			return error;
		if (first == 0)
			first = limit;
		if (limit != first)
			return -EINVAL;
		if (value[len] == '\0')
			break;
		value += len + 1;
	}
	into->lock = LOCK_PER_OP;
	if (limit != 0)
		into->limit = limit;
	return 0;
}

static int parse_lock(struct knobs *knobs, const char *value)
{
	size_t len = text_len(value);
	struct knobs parsed = *knobs;
	int error;

	if (find_op(value, before_colon(value, len)) != OP_COUNT)
		error = parse_lock_per_op(&parsed, value);
	else
		error = parse_one_lock(value, len, &parsed.lock, &parsed.limit);
	if (error == 0)
		*knobs = parsed;
	return error;
}

const char *knobs_lock_name(unsigned id)
{
	for (size_t i = 0; i < COUNT_OF(locks) && id < LOCK_COUNT; i++)
		if (locks[i].id == id)
			return locks[i].name;
	return NULL;
}

static void show_one_lock(unsigned id, uint32_t limit, struct text *out)
{
	for (size_t i = 0; i < COUNT_OF(locks); i++)
		if (locks[i].id == id)
			text_put(out, locks[i].name);
	if (id == LOCK_limit) {
		text_put(out, ":");
		text_put_u64(out, limit);
	}
}

static void show_lock(const struct knobs *knobs, struct text *out)
{
	const char *comma = "";

	if (knobs->lock != LOCK_PER_OP) {
		show_one_lock(knobs->lock, knobs->limit, out);
		return;
	}
	for (unsigned op = 0; op < OP_COUNT; op++) {
		if (knobs->lock_of[op] == LOCK_none)
			continue;
		text_put(out, comma);
		text_put(out, op_name(op));
		text_put(out, ":");
		show_one_lock(knobs->lock_of[op], knobs->limit, out);
		comma = ",";
	}
	if (*comma == '\0')
		text_put(out, "none");
}

enum lock_id knobs_lock_of(const struct knobs *knobs, enum op op)
{
	if (knobs->lock == LOCK_PER_OP)
		return (enum lock_id)knobs->lock_of[op];
	return knobs->calls >> op & 1 ? (enum lock_id)knobs->lock : LOCK_none;
}

bool knobs_lock_any(const struct knobs *knobs)
{
	for (unsigned op = 0; op < OP_COUNT; op++)
		if (knobs_lock_of(knobs, (enum op)op) != LOCK_none)
			return true;
	return false;
}

static int parse_calls(struct knobs *knobs, const char *value)
{
	unsigned calls = 0;

	if (text_equal(value, "all")) {
		knobs->calls = OPS_ALL;
		return 0;
	}
	for (;;) {
		size_t len = text_word(value);
		unsigned op = find_op(value, len);

		if (op == OP_COUNT)
			return -EINVAL;
		calls |= 1u << op;
		if (value[len] == '\0')
			break;
		value += len + 1;
	}
	knobs->calls = (uint8_t)calls;
	return 0;
}

static void show_calls(const struct knobs *knobs, struct text *out)
{
	const char *comma = "";

	if (knobs->calls == OPS_ALL) {
		text_put(out, "all");
		return;
	}
	for (unsigned op = 0; op < OP_COUNT; op++)
		if (knobs->calls >> op & 1) {
			text_put(out, comma);
			text_put(out, op_name(op));
			comma = ",";
		}
}

static const struct choice longs[] = {{"bypass", 0}, {"gate", 1}};

static int parse_long(struct knobs *knobs, const char *value)
{
	return choose(longs, COUNT_OF(longs), value, &knobs->long_gated);
}

static void show_long(const struct knobs *knobs, struct text *out)
{
	show_choice(longs, COUNT_OF(longs), knobs->long_gated, out);
}

static const struct choice hooks[] = {
	{"symbols", HOOKS_SYMBOLS}, {"libc", CHOICE_LIBC}, {"all", CHOICE_ALL}};

static int parse_hooks(struct knobs *knobs, const char *value)
{
	return choose(hooks, COUNT_OF(hooks), value, &knobs->hooks);
}

static void show_hooks(const struct knobs *knobs, struct text *out)
{
	show_choice(hooks, COUNT_OF(hooks), knobs->hooks, out);
}

static const struct choice places[] = {{"kernel", PLACE_KERNEL},
				       {"thread", PLACE_THREAD}};

static int parse_place(struct knobs *knobs, const char *value)
{
	return choose(places, COUNT_OF(places), value, &knobs->place);
}

static void show_place(const struct knobs *knobs, struct text *out)
{
	show_choice(places, COUNT_OF(places), knobs->place, out);
}

static int parse_delay(struct knobs *knobs, const char *value)
{
	enum { MOST_NS = 10000000 };
	uint32_t delay_ns[OP_COUNT] = {0};
	unsigned named = 0;
	uint64_t ns;

	for (bool more = !text_equal(value, "none"); more;) {
		size_t len = text_word(value), colon = before_colon(value, len);
		unsigned op = find_op(value, colon);

		if (op == OP_COUNT || colon == len || named >> op & 1 ||
		    text_parse_duration(value + colon + 1, len - colon - 1,
					&ns) != 0 ||
		    ns > MOST_NS)
			return -EINVAL;
		named |= 1u << op;
		delay_ns[op] = (uint32_t)ns;
		more = value[len] != '\0';
		value += len + 1;
	}
	for (unsigned op = 0; op < OP_COUNT; op++)
		knobs->delay_ns[op] = delay_ns[op];
	return 0;
}

bool knobs_delay_any(const struct knobs *knobs)
{
	for (unsigned op = 0; op < OP_COUNT; op++)
		if (knobs->delay_ns[op] != 0)
			return true;
	return false;
}

static void show_delay(const struct knobs *knobs, struct text *out)
{
	const char *comma = "";

	for (unsigned op = 0; op < OP_COUNT; op++) {
		if (knobs->delay_ns[op] == 0)
			continue;
		text_put(out, comma);
		text_put(out, op_name(op));
		text_put(out, ":");
		text_put_duration(out, knobs->delay_ns[op]);
		comma = ",";
	}
	if (!knobs_delay_any(knobs))
		text_put(out, "none");
}

static int parse_max_wait(struct knobs *knobs, const char *value)
{
	uint64_t ns;
	int error = text_parse_duration(value, text_len(value), &ns);

	if (error != 0)
		return error;
	/* A wait of zero would open the gate at once; an hour is for ever. */
	if (ns < 1000 || ns > UINT64_C(3600000000000))
		return -EINVAL;
	knobs->max_wait_ns = ns;
	return 0;
}

static void show_max_wait(const struct knobs *knobs, struct text *out)
{
	text_put_duration(out, knobs->max_wait_ns);
}

static int parse_log(struct knobs *knobs, const char *value)
{
	if (*value == '\0' || text_len(value) >= MAX_LIST)
		return -EINVAL;
	knobs->log = value;
	return 0;
}

static void show_log(const struct knobs *knobs, struct text *out)
{
	if (knobs->log != NULL)
		text_put(out, knobs->log);
}

static int parse_log_size(struct knobs *knobs, const char *value)
{
	uint64_t bytes;
	int error = text_parse_size(value, text_len(value), &bytes);

	if (error != 0)
		return error;
	/* Less cannot hold the figures of one process. */
	if (bytes < 256 * 1024 || bytes > UINT64_C(1) << 40)
		return -EINVAL;
	knobs->log_size = bytes;
	return 0;
}

static void show_log_size(const struct knobs *knobs, struct text *out)
{
	text_put_size(out, knobs->log_size);
}

static int parse_log_total(struct knobs *knobs, const char *value)
{
	uint64_t bytes;
	int error = text_parse_size(value, text_len(value), &bytes);

	if (error != 0)
		return error;
	if (bytes < 256 * 1024)
		return -EINVAL;
	knobs->log_total = bytes;
	return 0;
}

static void show_log_total(const struct knobs *knobs, struct text *out)
{
	text_put_size(out, knobs->log_total);
}

static int parse_every(const char *value, uint64_t *n)
{
	if (text_parse_u64(value, text_len(value), n) != 0 || *n == 0 ||
	    *n > UINT32_MAX)
		return -EINVAL;
	return 0;
}

static int parse_events(struct knobs *knobs, const char *value)
{
	const char *slow = argument(value, "slow");
	const char *every = argument(value, "every");
	uint64_t n = 0;
	enum knob_events events;

	if (text_equal(value, "off"))
		events = EVENTS_OFF;
	else if (text_equal(value, "all"))
		events = EVENTS_ALL;
	else if (slow != NULL &&
		 text_parse_duration(slow, text_len(slow), &n) == 0)
		events = EVENTS_SLOW;
	else if (every != NULL && parse_every(every, &n) == 0)
		events = EVENTS_EVERY;
	else
		return -EINVAL;
	knobs->events = (uint8_t)events;
	knobs->events_arg = n;
	return 0;
}

static void show_events(const struct knobs *knobs, struct text *out)
{
	switch ((enum knob_events)knobs->events) {
	case EVENTS_OFF:
		text_put(out, "off");
		break;
	case EVENTS_ALL:
		text_put(out, "all");
		break;
	case EVENTS_SLOW:
		text_put(out, "slow:");
		text_put_duration(out, knobs->events_arg);
		break;
	case EVENTS_EVERY:
		text_put(out, "every:");
		text_put_u64(out, knobs->events_arg);
		break;
	}
}

/* One word of it; each may come once. */
static int parse_stacks_word(struct knobs *knobs, const char *word, size_t len)
{
	const char *slow = argument(word, "slow");
	const char *every = argument(word, "every");
	uint64_t n;

	if (slow != NULL && !knobs->stacks_slow) {
		knobs->stacks_slow = true;
		return text_parse_duration(slow, len - (size_t)(slow - word),
					   &knobs->stacks_slow_ns);
	}
	if (every == NULL || knobs->stacks_every != 0 ||
	    text_parse_u64(every, len - (size_t)(every - word), &n) != 0 ||
	    n == 0 || n > UINT32_MAX)
		return -EINVAL;
	knobs->stacks_every = (uint32_t)n;
	return 0;
}

static int parse_stacks(struct knobs *knobs, const char *value)
{
	struct knobs parsed = {0};
	bool off = text_equal(value, "off");

	while (!off) {
		size_t len = text_word(value);

		if (parse_stacks_word(&parsed, value, len) != 0)
			return -EINVAL;
		if (value[len] == '\0')
			break;
		value += len + 1;
	}
	knobs->stacks_every = parsed.stacks_every;
	knobs->stacks_slow = parsed.stacks_slow;
	knobs->stacks_slow_ns = parsed.stacks_slow_ns;
	return 0;
}

static void show_stacks(const struct knobs *knobs, struct text *out)
{
	if (!knobs_has_stacks(knobs))
		text_put(out, "off");
	if (knobs->stacks_every != 0) {
		text_put(out, "every:");
		text_put_u64(out, knobs->stacks_every);
	}
	if (!knobs->stacks_slow)
		return;
	text_put(out, knobs->stacks_every != 0 ? ",slow:" : "slow:");
	text_put_duration(out, knobs->stacks_slow_ns);
}

static int parse_stack_size(struct knobs *knobs, const char *value)
{
	uint64_t bytes;
	int error = text_parse_size(value, text_len(value), &bytes);

	if (error != 0)
		return error;
	if (bytes < 1024 || bytes > KNOBS_MOST_STACK)
		return -EINVAL;
	knobs->stack_size = bytes & ~UINT64_C(7); /* whole words */
	return 0;
}

static void show_stack_size(const struct knobs *knobs, struct text *out)
{
	text_put_size(out, knobs->stack_size);
}

static const struct choice follows[] = {
	{"none", FOLLOW_NONE}, {"exec", FOLLOW_EXEC}, {"fork", FOLLOW_FORK}};

static int parse_follow(struct knobs *knobs, const char *value)
{
	return choose(follows, COUNT_OF(follows), value, &knobs->follow);
}

static void show_follow(const struct knobs *knobs, struct text *out)
{
	show_choice(follows, COUNT_OF(follows), knobs->follow, out);
}

/* A list of globs on base names: no empty words, no slashes. */
static int parse_list(const char *value)
{
	size_t len = 0;

	for (const char *s = value;; s++) {
		if (*s == '/')
			return -EINVAL;
		if (*s != ',' && *s != '\0') {
			len++;
			continue;
		}
		if (len == 0)
			return -EINVAL;
		if (*s == '\0')
			return 0;
		len = 0;
	}
}

static int parse_only(struct knobs *knobs, const char *value)
{
	int error = text_equal(value, "all") ? 0 : parse_list(value);

	if (error == 0)
		knobs->only = text_equal(value, "all") ? NULL : value;
	return error;
}

static void show_only(const struct knobs *knobs, struct text *out)
{
	text_put(out, knobs->only != NULL ? knobs->only : "all");
}

static int parse_skip(struct knobs *knobs, const char *value)
{
	int error = text_equal(value, "none") ? 0 : parse_list(value);

	if (error == 0)
		knobs->skip = text_equal(value, "none") ? NULL : value;
	return error;
}

static void show_skip(const struct knobs *knobs, struct text *out)
{
	text_put(out, knobs->skip != NULL ? knobs->skip : "none");
}

/* clang-format off */
static const struct knob knobs_table[] = {
	{"MMGATE_LOCK", "lock",
	 "none, mutex, spin, fifo, limit:N (1 to 10000), rw, auto, or OP:LOCK,... for some ops alone, with one N",
	 "none", "the lock at the gate", parse_lock, show_lock},
	{"MMGATE_CALLS", "calls",
	 "all, or a comma list of mmap, munmap, mprotect, madvise, mremap, brk, pkey_mprotect",
	 "mmap,munmap,mprotect,madvise", "which calls take the lock",
	 parse_calls, show_calls},
	{"MMGATE_LONG", "long", "bypass or gate", "bypass",
	 "calls that hold long by nature: MAP_POPULATE, MAP_LOCKED, MADV_POPULATE_*, and from 1 GiB on unmaps (a shrinking mremap too), MAP_FIXED, and madvise that frees, pages out or collapses",
	 parse_long, show_long},
	{"MMGATE_HOOKS", "hooks", HOOKS_VALUES, HOOKS_INITIAL,
	 "how calls are caught", parse_hooks, show_hooks},
	{"MMGATE_PLACE", "place", "kernel or thread", "kernel",
	 "where anonymous mappings go", parse_place, show_place},
	{"MMGATE_DELAY", "delay", "none, or a comma list of OP:DURATION, at most 10ms each", "none",
	 "busy wait added to each such call, to ask \"what if\"",
	 parse_delay, show_delay},
	{"MMGATE_MAX_WAIT", "max-wait", "a duration from 1us to 3600s", "1s",
	 "longest wait at the gate before it opens", parse_max_wait, show_max_wait},
	{"MMGATE_LOG", "o", "an existing directory", NULL,
	 "directory of the logs (run: made when missing, default ./mmgate.out)",
	 parse_log, show_log},
	{"MMGATE_LOG_SIZE", "log-size", "a size from 256K to 1024G", "64M",
	 "cap of one process's log", parse_log_size, show_log_size},
	{"MMGATE_LOG_TOTAL", "log-total", "a size from 256K", "1G",
	 "cap of all logs in the directory", parse_log_total, show_log_total},
	{"MMGATE_EVENTS", "events", "off, all, slow:DURATION or every:N", "all",
	 "which calls are recorded one by one", parse_events, show_events},
	{"MMGATE_STACKS", "stacks", "off, every:N, slow:DURATION, or both with a comma",
	 "off", "which calls are recorded with their stack", parse_stacks, show_stacks},
	{"MMGATE_STACK_SIZE", "stack-size", "a size from 1K to 64K", "16K",
	 "bytes of stack copied at most", parse_stack_size, show_stack_size},
	{"MMGATE_FOLLOW", "follow", "none, exec or fork", "exec",
	 "none: the started process only; exec: also what it executes; fork: also forked children",
	 parse_follow, show_follow},
	{"MMGATE_ONLY", "only", "all, or a comma list of globs on the executable's base name",
	 "all", "gate these programs only", parse_only, show_only},
	{"MMGATE_SKIP", "skip", "none, or a comma list of globs on the executable's base name",
	 "none", "leave these programs alone", parse_skip, show_skip},
};
/* clang-format on */

size_t knob_count(void)
{
	return COUNT_OF(knobs_table);
}

const struct knob *knob_at(size_t i)
{
	return &knobs_table[i];
}

const char *knob_of_run(const struct knob *knob)
{
	return knob->parse == parse_stacks ? "every:64,slow:1ms" : NULL;
}

void knobs_init(struct knobs *knobs)
{
	*knobs = (struct knobs){0};
	for (size_t i = 0; i < COUNT_OF(knobs_table); i++)
		if (knobs_table[i].initial != NULL)
			knobs_table[i].parse(knobs, knobs_table[i].initial);
}

bool knob_is_live(const struct knob *knob)
{
	return knob->parse == parse_lock || knob->parse == parse_calls ||
	       knob->parse == parse_long || knob->parse == parse_delay ||
	       knob->parse == parse_max_wait || knob->parse == parse_events ||
	       knob->parse == parse_stacks;
}

void knob_name(const struct knob *knob, struct text *out)
{
	for (const char *s = text_after(knob->variable, "MMGATE_"); *s != '\0';
	     s++) {
		char c = *s == '_' ? '_' : (char)(*s | 0x20);

		text_put_bytes(out, &c, 1);
	}
}

const struct knob *knob_find(const char *s, size_t len)
{
	for (size_t i = 0; i < COUNT_OF(knobs_table); i++) {
		char name[32];
		struct text out = text_over(name, sizeof(name));

		knob_name(&knobs_table[i], &out);
		if (text_is(s, len, name))
			return &knobs_table[i];
	}
	return NULL;
}

static size_t length_to(const char *s, char end)
{
	size_t n = 0;

	while (s[n] != '\0' && s[n] != end)
		n++;
	return n;
}

int knobs_change(struct knobs *knobs, char *text)
{
	struct knobs changed = *knobs;

	while (*text != '\0') {
		size_t len = length_to(text, '\n');
		size_t name = length_to(text, '=');
		const struct knob *knob = knob_find(text, name);
		bool more = text[len] == '\n';
		int error;

		if (name >= len || knob == NULL)
			return -EINVAL;
		if (!knob_is_live(knob))
			return -EPERM;
		text[len] = '\0';
		error = knob->parse(&changed, text + name + 1);
		if (error != 0)
			return error;
		text += len + more;
	}
	*knobs = changed;
	return 0;
}

void knob_complain(const struct knob *knob, const char *value, int error,
		   struct text *out)
{
	text_put(out, knob->variable);
	text_put(out, "=");
	for (size_t i = 0; value[i] != '\0' && i < 80; i++)
		text_put_bytes(out, value[i] < ' ' ? "?" : value + i, 1);
	if (error == -ENOSYS)
		text_put(out, ": not in this version");
	else if (error == -ENOTSUP)
		text_put(out, ": not in this build, which patches no code");
	else
		text_put(out, ": not understood");
	text_put(out, "; accepted: ");
	/* What is not in this version comes behind a semicolon. */
	for (const char *s = knob->values; *s != '\0' && *s != ';'; s++)
		text_put_bytes(out, s, 1);
}

bool knob_list_names(const char *list, const char *name)
{
	for (;;) {
		size_t len = text_word(list);

		if (text_glob(list, len, name))
			return true;
		if (list[len] == '\0')
			return false;
		list += len + 1;
	}
}

static bool names_either(const char *list, const char *name, const char *other)
{
	return knob_list_names(list, name) ||
	       (other != NULL && knob_list_names(list, other));
}

bool knobs_select(const struct knobs *knobs, const char *name,
		  const char *other)
{
	if (knobs->only != NULL && !names_either(knobs->only, name, other))
		return false;
	return knobs->skip == NULL || !names_either(knobs->skip, name, other);
}
