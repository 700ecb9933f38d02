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
#define RECORD_VERSION 1u
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
	uint32_t stack;  /* 0: none */
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
	uint64_t spare[6];
	char comm[16];
	char exe[1024];      /* target of /proc/self/exe, or empty */
	char settings[2048]; /* effective ones, "name=value\n" each */
	char hooks[1024];    /* "layer=outcome\n" each */
	char coverage[512];  /* "op=layer,...\n" each */
	char limits[512];    /* why less is recorded than asked for, or empty */
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

/*
 * RECORD_DIR_NAME: one page that every process of a directory shares.
 * `run` makes it (a bare library does when it finds none), counts allocated
 * bytes in it and, at the end, adds what it knows of the whole run.
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
	uint64_t spare2[16];
	char command[2048]; /* words separated by spaces, cut when longer */
	char fill[4096 - 2048 - 31 * 8];
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
_Static_assert(offsetof(struct record_header, comm) == 264, "comm");
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
