/* SPDX-License-Identifier: MIT */
/*
 * record: the format of what mmgate leaves on disk.
 *
 * A log directory holds one log per exec image (and per forked child under
 * MMGATE_FOLLOW=fork), named PID-NANOSECONDS.mmgate, and one RECORD_DIR_NAME.
 *
 * A log is a header, `stripes` stripes and `stripes` rings:
 *
 *   0                                     struct record_header
 *   header.stripes_at + i * stripe_bytes  struct record_stripe i
 *   header.rings_at + i * ring_bytes      ring i: ring_slots events
 *   header.stacks                         where code and stacks are, if asked
 *                                         for: see struct record_stacks
 *
 * The file is sparse: a part that nobody needed is a hole and reads as zeros.
 * Times are in ticks of header.clock; two (ticks, ns) pairs convert them.
 * Writers only add, with relaxed atomics, and may be killed between any two
 * stores; so a reader takes nothing for granted but the header once its magic
 * is there, and checks an event by `seq` and `check`.
 *
 * Every field has a fixed size and natural alignment, so 32- and 64-bit
 * programs write the same bytes.  Any change raises RECORD_VERSION.
 * Part of the pure bottom: the tools include it too.
 */
#ifndef MMGATE_RECORD_H
#define MMGATE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "ops.h"

#define RECORD_MAGIC UINT64_C(0x31657461676d6d) /* "mmgate1\0" */
#define RECORD_VERSION 3u
#define RECORD_SUFFIX ".mmgate"
#define RECORD_DIR_NAME "run.info"

/*
 * Histogram of ticks: values below 2 * RECORD_SUB have a bucket each; above,
 * each power of two is cut in RECORD_SUB equal buckets, so the middle of a
 * bucket is within 1/64 (1.6 %) of any value in it.  Larger values than the
 * last bucket's go to the last bucket; `max` is exact.
 */
enum {
	RECORD_SUB_BITS = 5,
	RECORD_SUB = 1 << RECORD_SUB_BITS,
	RECORD_TOP_BIT = 41, /* the last bucket ends at 2^42 ticks */
	RECORD_BUCKETS = (RECORD_TOP_BIT - RECORD_SUB_BITS + 2) * RECORD_SUB,
};

static inline unsigned record_bucket(uint64_t value)
{
	unsigned top;

	if (value < RECORD_SUB)
		return (unsigned)value;
	top = 63 - (unsigned)__builtin_clzll(value);
	if (top > RECORD_TOP_BIT)
		return RECORD_BUCKETS - 1;
	return (top - RECORD_SUB_BITS + 1) * RECORD_SUB +
	       ((value >> (top - RECORD_SUB_BITS)) & (RECORD_SUB - 1));
}

/* Smallest value that falls into `bucket`. */
static inline uint64_t record_bucket_floor(unsigned bucket)
{
	unsigned row = bucket / RECORD_SUB, column = bucket % RECORD_SUB;

	if (row == 0)
		return column;
	return (uint64_t)(RECORD_SUB + column) << (row - 1);
}

struct record_hist {
	uint64_t sum;
	uint64_t max;
	uint64_t bucket[RECORD_BUCKETS];
};

/* Why a call that wanted the lock went without it. */
enum record_bypass {
	BYPASS_REENTRY, /* its thread was inside the gate already */
	BYPASS_TIMEOUT, /* waited MMGATE_MAX_WAIT, or found the gate open */
	BYPASS_LONG,    /* holds long by nature, and MMGATE_LONG is bypass */
	BYPASS_COUNT
};

/*
 * One op's figures.  Its count is the sum of kernel.bucket, its gated count
 * the sum of wait.bucket: nothing is stored twice.
 */
struct record_op {
	uint64_t errors;
	uint64_t bytes; /* of successful calls */
	uint64_t bypassed[BYPASS_COUNT];
	uint64_t spare[3];
	struct record_hist kernel;
	struct record_hist wait;
	uint64_t fill[116];
};

/*
 * The share of the threads that hash to one stripe.  Its parts, the head, wake
 * and each op, are whole pages, and get memory when they are first used.
 */
struct record_stripe {
	uint64_t head; /* events ever begun in this stripe's ring */
	/* Events stop growing the ring here (a power of two); ring_slots at
	 * first, less when the room ran out. */
	uint64_t capacity;
	uint64_t populated;    /* slots that have memory behind them */
	uint64_t thread_ticks; /* between calls, summed over threads: with
				* what calls took, the time lived */
	uint64_t clamped;      /* negative time differences set to 0 */
	uint64_t lost_events;  /* had no room at all */
	uint64_t fill_head[506];
	struct record_hist wake;
	uint64_t fill_wake[318];
	struct record_op op[OP_COUNT];
};

/* What an event is about. */
enum record_kind {
	EVENT_CALL,
	EVENT_OPENED, /* the gate opened; wait = the wait that led to it */
	/* Calls of the op take the lock `arg` from now on (enum lock_id), and
	 * took `flags` before. */
	EVENT_LOCK,
	EVENT_KINDS
};

/* How a call passed. */
enum record_outcome {
	OUTCOME_UNGATED, /* wanted no lock */
	OUTCOME_GATED,
	OUTCOME_BYPASSED, /* + enum record_bypass */
};

/* Whose code made the call, by its return address. */
enum record_layer {
	CALLER_UNKNOWN,
	CALLER_PROGRAM,
	CALLER_LIBRARY, /* any other than these two */
	CALLER_LIBC,
	CALLER_LOADER,
};

/*
 * One call.  `seq` is the low half of its number in the ring, from 1, and is
 * written last; `check` is record_event_check() of the rest.
 */
struct record_event {
	uint64_t time; /* ticks at entry */
	uint64_t addr;
	uint64_t length;
	uint64_t offset; /* mmap: offset; mremap: new address */
	int64_t result;  /* the kernel's, so -errno for a failure */
	uint64_t caller; /* return address */
	uint32_t wait_low, kernel_low;
	uint16_t wait_high, kernel_high;
	uint32_t arg;   /* prot or advice; mremap: low half of the new length */
	uint32_t flags; /* mmap, mremap: flags */
	int32_t fd;     /* mmap: fd; pkey_mprotect: key; mremap: high half of
			 * the new length */
	uint32_t tid;
	uint32_t weight; /* calls that this event stands for */
	uint32_t stack;  /* 1 + its place among the samples; 0: none */
	uint8_t kind;
	uint8_t op;
	uint8_t outcome;
	uint8_t layer; /* enum record_layer, of the caller */
	uint32_t seq;
	uint32_t check;
};

static inline uint64_t record_event_wait(const struct record_event *e)
{
	return (uint64_t)e->wait_high << 32 | e->wait_low;
}

static inline uint64_t record_event_kernel(const struct record_event *e)
{
	return (uint64_t)e->kernel_high << 32 | e->kernel_low;
}

static inline uint64_t record_rotate(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

/* Folds everything but seq and check; a mix of two events does not pass. */
static inline uint32_t record_event_check(const struct record_event *e)
{
	uint64_t x = e->time ^ record_rotate(e->addr, 1) ^
		     record_rotate(e->length, 3) ^ record_rotate(e->offset, 5) ^
		     record_rotate((uint64_t)e->result, 7) ^
		     record_rotate(e->caller, 9);

	x ^= (uint64_t)e->wait_low << 32 | e->kernel_low;
	x ^= record_rotate((uint64_t)e->wait_high << 16 | e->kernel_high, 11);
	x ^= record_rotate((uint64_t)e->arg << 32 | e->flags, 13);
	x ^= record_rotate((uint64_t)(uint32_t)e->fd << 32 | e->tid, 15);
	x ^= record_rotate((uint64_t)e->weight << 32 | e->stack, 17);
	x ^= record_rotate((uint64_t)e->kind << 24 | (uint64_t)e->op << 16 |
				   (uint64_t)e->outcome << 8 | e->layer,
			   19);
	return (uint32_t)(x ^ x >> 32);
}

/* One instant on both clocks; check = ticks ^ ns ^ RECORD_MAGIC. */
struct record_pair {
	uint64_t ticks;
	uint64_t ns; /* CLOCK_MONOTONIC */
	uint64_t check;
};

/*
 * Code that was mapped: a record_module and behind it the path, as long as the
 * `slots` of RECORD_MODULE_BYTES that it takes, ended by a '\0'.  What was
 * there at an instant is the latest one with time <= the instant and unmapped
 * 0 or later.
 */
enum { RECORD_MODULE_BYTES = 256, RECORD_BUILD_ID = 32 };

struct record_module {
	uint32_t slots; /* 0: not written, or not whole; written last */
	uint32_t build_id_bytes;
	uint64_t time;     /* ticks; 0: from the start */
	uint64_t unmapped; /* ticks; 0: not yet */
	uint64_t start, length;
	uint64_t offset; /* of `start` in the file */
	/* As fstat had them; 0: not asked. */
	uint64_t device, inode, bytes;
	uint64_t modified; /* Unix ns */
	uint8_t build_id[RECORD_BUILD_ID];
};

/*
 * One sampled call.  Its pool has room for `slots` of them; of the `head` calls
 * that were picked for it every 2^n-th is kept, so that those that are cover
 * the whole run: see record_pool_*().  event.seq is the low half of number + 1,
 * written last; event.weight is of a pick, so the sample stands for
 * weight << n calls.
 */
enum record_pool_kind { POOL_EVERY, POOL_SLOW, POOL_COUNT };

/* Why the copy ends where it does. */
enum record_end {
	END_OWNER, /* the thread's stack does */
	END_SIZE,  /* MMGATE_STACK_SIZE */
	END_PAGE,  /* whose stack it is, is not known beyond this page */
};

/* In this order: rbx, rbp, r12 to r15, rsp, rip; or x19 to x30, sp, pc. */
enum { RECORD_REGISTERS = 14 };

struct record_sample {
	struct record_event event;
	uint64_t number; /* of the pick in its pool, from 0 */
	uint64_t from;   /* address of the first byte of the copy */
	uint64_t registers[RECORD_REGISTERS];
	uint32_t bytes; /* of the copy; 0: `run` has taken it away */
	uint32_t chain; /* 1 + an eighth of where its record_chain lies among
			 * the chains; 0: not unwound */
	uint8_t end;    /* enum record_end */
	uint8_t fill[23];
};

/* A call chain, in what `run` makes of the copies: frames follow. */
struct record_chain {
	uint32_t frames;
	uint32_t cut; /* 1: there were more */
};

struct record_frame {
	uint64_t pc;     /* of a caller: where it goes on */
	uint32_t module; /* 1 + slot of its record_module; 0: none */
	uint32_t flags;
};

enum record_frame_flag {
	FRAME_EXACT = 1,   /* pc is an instruction's own, as under a signal */
	FRAME_GUESSED = 2, /* by frame pointers, as all behind it */
};

struct record_pool {
	uint64_t head;  /* picks ever */
	uint64_t lost;  /* of them, that found no room */
	uint32_t slots; /* a power of two; 0: none */
	uint32_t first; /* place of its first sample among all */
	/* POOL_SLOW: places behind its slots for the calls that took longest,
	 * whatever else was picked.  Their `number` is the place's own, from 0;
	 * they stand for nothing more than themselves. */
	uint32_t worst;
	uint32_t spare;
};

/* What a log takes at most of what the process may map and lock: such a part.
 * Any program with a libc has more than the least: mlockall() fails all the
 * same. */
enum {
	RECORD_PART_OF_AS = 16,
	RECORD_PART_OF_MEMLOCK = 4,
	RECORD_LEAST_MEMLOCK = 2 << 20,
};

/* All 0 where MMGATE_STACKS and MMGATE_EVENTS are off. */
struct record_stacks {
	uint32_t module_bytes, sample_bytes; /* RECORD_MODULE_BYTES, ... */
	uint32_t machine;                    /* EM_X86_64 or EM_AARCH64 */
	uint32_t module_slots;
	uint64_t modules_at, modules_used, modules_lost;
	uint64_t samples_at;
	uint64_t copies_at;              /* see record_copy_page() */
	uint64_t copy_bytes;             /* room for each */
	uint64_t chains_at, chain_bytes; /* 0: `run` has not unwound them */
	struct record_pool pool[POOL_COUNT];
};

/* Samples that there is room for. */
static inline uint64_t record_samples(const struct record_stacks *stacks)
{
	return (uint64_t)stacks->pool[POOL_EVERY].slots +
	       stacks->pool[POOL_SLOW].slots + stacks->pool[POOL_SLOW].worst;
}

/*
 * Where page `page` of a place's copy is in the file.  The first pages of all
 * places lie side by side, behind them all second ones, and so on: most copies
 * are short, so memory for many comes with one call.
 * pre: copy_bytes is a multiple of RECORD_COPY_PAGE.
 */
enum { RECORD_COPY_PAGE = 4096 };

static inline uint64_t record_copy_page(const struct record_stacks *stacks,
					uint32_t place, uint32_t page)
{
	return stacks->copies_at +
	       (page * record_samples(stacks) + place) * RECORD_COPY_PAGE;
}

/* Of the first `head` picks every 2^n-th is kept. */
static inline unsigned record_pool_thin(uint64_t head, uint32_t slots)
{
	uint64_t laps = head <= slots ? 0 : (head - 1) / slots;

	return laps == 0 ? 0 : 64 - (unsigned)__builtin_clzll(laps);
}

/*
 * The slot of pick `number`, which is kept while n is no more than its own.
 * Each time that n grows, every second slot in use is free again, and the next
 * picks go there: those whose bit n - 1 (of log2 slots, in turn) is 1.
 * pre: number is a multiple of 2^n, n = record_pool_thin(number + 1, slots).
 */
static inline uint32_t record_pool_slot(uint64_t number, uint32_t slots)
{
	unsigned bits = (unsigned)__builtin_ctz(slots), by;
	unsigned n = record_pool_thin(number + 1, slots);
	uint32_t low;

	if (n == 0)
		return (uint32_t)number;
	low = (uint32_t)(number >> n) & (slots / 2 - 1);
	by = n % bits;
	low = (low << by | low >> (bits - by)) & (slots - 1);
	return low | 1u << (n - 1) % bits;
}

/*
 * What `mmgate set` asks of a running program: "name=value\n" each, as in
 * header.settings.  It writes text and check, then the next serial; the program
 * takes that up at the next call that it records, and answers.  Requests that
 * were not answered yet are repeated by the next one, which takes their place.
 */
struct record_control {
	uint32_t serial;   /* of the last request; 0: there was none */
	uint32_t answered; /* the last that was looked at */
	uint32_t refused;  /* 1: that one could not be followed */
	uint32_t check;    /* record_control_check() */
	char text[496];
};

static inline uint32_t record_control_check(uint32_t serial, const char *text,
					    size_t size)
{
	uint32_t x = serial ^ 0x6d6d6774;

	for (size_t i = 0; i < size; i++)
		x = (x ^ (uint8_t)text[i]) * 16777619u;
	return x;
}

enum record_clock {
	RECORD_CLOCK_NS = 1, /* ticks are ns of CLOCK_MONOTONIC */
	RECORD_CLOCK_TSC = 2,
};

enum {
	RECORD_HEADER_BYTES = 8192,
	RECORD_CHUNK_SLOTS = 1024, /* a ring gets memory in such steps */
	RECORD_MAX_STRIPES = 16,
};

struct record_header {
	uint64_t magic; /* written last, when the rest is in place */
	uint32_t version;
	uint32_t header_bytes;
	uint64_t file_bytes;
	uint32_t op_count;
	uint32_t bucket_count;
	uint32_t event_bytes;
	uint32_t stripe_bytes;
	uint32_t stripes;
	uint32_t ring_slots; /* a power of two; 0: no events */
	uint64_t stripes_at;
	uint64_t rings_at;
	uint32_t pid;
	uint32_t ppid;
	uint32_t epoch;   /* 1 in an exec'd image, its parent's + 1 in a fork */
	uint32_t clock;   /* enum record_clock */
	uint64_t started; /* Unix ns */
	struct record_pair start;
	struct record_pair fresh[2]; /* refreshed in turn while running */
	struct record_pair end;      /* exit() came this far */
	uint64_t threads;            /* threads that ever made a call */
	uint64_t opened;             /* times the gate opened */
	uint64_t unrecorded;         /* calls that found no room at all */
	uint64_t second_libc;        /* times another copy of libc was mapped */
	uint64_t lock_changes;       /* by `set` and auto */
	uint8_t lock_now[8];         /* enum lock_id of each op */
	uint64_t settings_version;   /* odd: they are being written anew */
	uint64_t spare[3];
	char comm[16];
	char exe[1024];      /* target of /proc/self/exe, or empty */
	char settings[2048]; /* effective ones, "name=value\n" each */
	char hooks[1024];    /* "layer=outcome\n" each */
	char coverage[512];  /* "op=layer,...\n" each */
	char limits[512];    /* why less is recorded than asked for, or empty */
	struct record_stacks stacks;
	/* What each call looks at is apart from what many write to. */
	uint64_t fill_control[3];
	struct record_control control;
};

/*
 * A log is stored to through a mapping.  These file systems may need new space
 * for a page that has some, each time after it was written back; where there
 * is none left the store ends the program by SIGBUS.  So they hold no log.
 * Their name by their number (of statfs), or NULL.
 */
static inline const char *record_unfit(uint32_t type)
{
	switch (type) {
	case 0x9123683e:
		return "btrfs";
	case 0xca451a4e:
		return "bcachefs";
	case 0x2fc12fc1:
		return "zfs";
	case 0x3434:
		return "nilfs2";
	default:
		return NULL;
	}
}

/* The smallest log: figures, and no events. */
#define RECORD_LEAST_BYTES (RECORD_HEADER_BYTES + sizeof(struct record_stripe))

/*
 * RECORD_DIR_NAME: one page that every process of a directory shares.
 * `run` makes it (a bare library does when it finds none), counts allocated
 * bytes in it and, at the end, adds what it knows of the whole run.  A process
 * that gets no log counts itself here.
 */
struct record_dir {
	uint64_t magic;
	uint32_t version;
	uint32_t spare0;
	uint64_t allocated; /* bytes of log handed out, for MMGATE_LOG_TOTAL */
	uint64_t started;   /* Unix ns */
	uint32_t pid;       /* of the command that was started */
	uint32_t finished;  /* 1: the fields below are set */
	int32_t status;     /* wait status of the command */
	uint32_t spare1;
	uint64_t wall_ns;
	uint64_t user_ns,
		system_ns; /* of the command and its waited children */
	uint64_t voluntary_switches, involuntary_switches;
	uint64_t minor_faults, major_faults;
	uint64_t peak_rss_bytes;
	uint64_t tlb_shootdowns; /* of the machine, during the run */
	uint64_t unlogged;       /* processes that got no log */
	uint64_t unlogged_pid;   /* of the first of them */
	uint64_t spare2[14];
	char command[2048];     /* words separated by spaces, cut when longer */
	char unlogged_why[256]; /* in its words */
	char fill[4096 - 2048 - 256 - 31 * 8];
};

#define RECORD_STRIPE_BYTES sizeof(struct record_stripe)
#define RECORD_RING_CHUNK (RECORD_CHUNK_SLOTS * sizeof(struct record_event))

_Static_assert(sizeof(struct record_hist) == 16 + 8 * RECORD_BUCKETS, "hist");
_Static_assert(sizeof(struct record_op) == 5 * 4096, "op");
_Static_assert(offsetof(struct record_stripe, wake) == 4096, "wake");
_Static_assert(offsetof(struct record_stripe, op) == 4 * 4096, "ops");
_Static_assert(sizeof(struct record_event) == 96, "event");
_Static_assert(offsetof(struct record_event, seq) == 88, "seq");
_Static_assert(RECORD_RING_CHUNK % 4096 == 0, "chunk");
_Static_assert(sizeof(struct record_pair) == 24, "pair");
_Static_assert(sizeof(struct record_module) == 112, "module");
_Static_assert(sizeof(struct record_sample) == 256, "sample");
_Static_assert(offsetof(struct record_sample, bytes) == 224, "sample");
_Static_assert(sizeof(struct record_frame) == 16, "frame");
_Static_assert(sizeof(struct record_pool) == 32, "pool");
_Static_assert(sizeof(struct record_stacks) == 80 + 64, "stacks");
_Static_assert(offsetof(struct record_header, stacks) % 8 == 0, "stacks");
_Static_assert(offsetof(struct record_header, comm) == 264, "comm");
_Static_assert(offsetof(struct record_header, control) % 64 == 0, "control");
_Static_assert(sizeof(struct record_header) <= RECORD_HEADER_BYTES, "header");
_Static_assert(sizeof(struct record_dir) == 4096, "dir");
/* A short-lived child (one thread, so nobody to wake it) costs at most 256 KiB,
 * even if it uses every op. */
_Static_assert(RECORD_HEADER_BYTES + offsetof(struct record_stripe, wake) +
			       OP_COUNT * sizeof(struct record_op) +
			       RECORD_RING_CHUNK <=
		       256 * 1024,
	       "short-lived child");

#endif
