/* SPDX-License-Identifier: MIT */
/*
 * knobs: every setting, once.
 *
 * The table behind knob_count() and knob_at() is the only place that knows a
 * setting's variable, option, accepted values, default and parser.  The
 * preloaded library, `mmgate run`, the help, `doctor` and the test of the
 * README all read it.
 *
 * Part of the pure bottom: no function allocates, does I/O or touches errno.
 */
#ifndef MMGATE_KNOBS_H
#define MMGATE_KNOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops.h"
#include "text.h"

enum lock_id {
#define LOCK(name, help) LOCK_##name,
#include "locks.def"
	LOCK_COUNT,
/* No locks: what MMGATE_LOCK may say beside them. */
#define LOCK_POLICY(name, help) LOCK_##name,
#include "locks.def"
	LOCK_PER_OP
};

enum knob_hooks { HOOKS_SYMBOLS, HOOKS_LIBC, HOOKS_ALL };
enum knob_place { PLACE_KERNEL, PLACE_THREAD };
enum knob_events { EVENTS_OFF, EVENTS_ALL, EVENTS_SLOW, EVENTS_EVERY };
enum knob_follow { FOLLOW_NONE, FOLLOW_EXEC, FOLLOW_FORK };

/* Of a stack, bytes that are copied at most. */
enum { KNOBS_MOST_STACK = 64 << 10 };

/* The values in force.  Strings point to what was parsed. */
struct knobs {
	uint8_t lock;              /* enum lock_id, LOCK_auto or LOCK_PER_OP */
	uint8_t lock_of[OP_COUNT]; /* the same, for LOCK_PER_OP */
	uint8_t calls;      /* ops that take the lock, a bit each; not for
			       LOCK_PER_OP */
	uint8_t long_gated; /* bool */
	uint8_t hooks;      /* enum knob_hooks */
	uint8_t place;      /* enum knob_place */
	uint8_t events;     /* enum knob_events */
	uint8_t follow;     /* enum knob_follow */
	uint32_t delay_ns[OP_COUNT];
	uint32_t limit;      /* threads inside, of the lock of that name */
	uint64_t events_arg; /* slow: ns; every: N */
	uint64_t max_wait_ns;
	uint64_t log_size;
	uint64_t log_total;
	bool stacks_slow;        /* calls of at least stacks_slow_ns */
	uint32_t stacks_every;   /* and every so many-th; 0: no */
	uint64_t stacks_slow_ns; /* wait + kernel */
	uint64_t stack_size;     /* a multiple of 8 */
	const char *log;         /* NULL: no log */
	const char *only;
	const char *skip;
};

/* Are any stacks copied? */
static inline bool knobs_has_stacks(const struct knobs *knobs)
{
	return knobs->stacks_slow || knobs->stacks_every != 0;
}

struct knob {
	const char *variable; /* "MMGATE_LOCK" */
	const char *option;   /* of run, without dashes: "lock"; "o" is -o */
	const char *values;   /* what is accepted, for people */
	const char *initial;  /* the default, as its parser takes it; NULL:
			       * unset */
	const char *help;     /* one line */
	/* 0, -EINVAL (not understood), -ENOSYS (known, not built yet) or
	 * -ENOTSUP (left out of this build). */
	int (*parse)(struct knobs *knobs, const char *value);
	/* Writes the value in force the way that parse takes it. */
	void (*show)(const struct knobs *knobs, struct text *out);
};

size_t knob_count(void);
const struct knob *knob_at(size_t i);

/* The default of `mmgate run`, where it has one of its own; else NULL. */
const char *knob_of_run(const struct knob *knob);

/* May it change while the program runs? */
bool knob_is_live(const struct knob *knob);

/* The name of the setting in the log, as MMGATE_MAX_WAIT's is max_wait. */
void knob_name(const struct knob *knob, struct text *out);

/* The setting whose name is `len` characters at `s`, or NULL. */
const struct knob *knob_find(const char *s, size_t len);

/* Changes live settings as "name=value\n" each says, all or none; the newlines
 * in `text` become ends.  0, or the parser's error; -EPERM: one is not live. */
int knobs_change(struct knobs *knobs, char *text);

/* All defaults. */
void knobs_init(struct knobs *knobs);

/* The name of a lock (enum lock_id below LOCK_COUNT), or NULL. */
const char *knobs_lock_name(unsigned id);

/* The lock that calls of an op take, LOCK_none for none, or LOCK_auto. */
enum lock_id knobs_lock_of(const struct knobs *knobs, enum op op);

/* Does any op take a lock; is any delayed? */
bool knobs_lock_any(const struct knobs *knobs);
bool knobs_delay_any(const struct knobs *knobs);

/* Writes "VARIABLE=VALUE: " and what is wrong and accepted, one line without
 * its end, for the error that parse returned. */
void knob_complain(const struct knob *knob, const char *value, int error,
		   struct text *out);

/* Does a comma list of globs (MMGATE_ONLY, MMGATE_SKIP) name `name`? */
bool knob_list_names(const char *list, const char *name);

/* Should an executable be gated at all?  Its file's base name, and the one that
 * it was executed by (redis-server may be a link to redis-check-rdb; NULL: not
 * known): either will do. */
bool knobs_select(const struct knobs *knobs, const char *name,
		  const char *other);

#endif
