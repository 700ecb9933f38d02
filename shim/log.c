/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "clock.h"
#include "locks.h"
#include "sys.h"
#include "text.h"

#include "poison.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum {
	PATH_ROOM = 4096 + 64,
	SPENT = -ENOBUFS,   /* MMGATE_LOG_TOTAL is */
	STRANGE = -EBADMSG, /* RECORD_DIR_NAME is not of this version */
};

/* How far a ring reaches; the stripe in the file has copies for readers. */
struct ring {
	uint64_t capacity;  /* slots, a power of two: it turns there */
	uint64_t populated; /* slots that have memory */
};

/*
 * This process's log; header NULL: none.  Whatever says where we may write is
 * kept here, not in the file, which others of this user can change.
 */
static struct {
	char *base;
	struct record_header *header;
	struct record_dir *dir; /* shared by all logs of the directory */
	bool in_dir;            /* it is this process's, not its parent's */
	uint32_t dir_version;   /* of its format */
	uint64_t total;         /* MMGATE_LOG_TOTAL */
	uint64_t rings_at;
	uint64_t started; /* ticks */
	uint32_t stripes;
	uint32_t ring_slots;
	struct record_stacks stacks; /* where they are, and no counts */
	bool all_there; /* the whole file has memory: no populating */
	uint32_t refused[RECORD_MAX_STRIPES]; /* parts that got none */
	struct sys_file libc;                 /* inode 0: not known */
	uint32_t full; /* it was said that the log cannot grow */
	struct ring rings[RECORD_MAX_STRIPES];
} self;

struct log_hot log_hot;

static uint64_t load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static uint64_t add(uint64_t *p, uint64_t n)
{
	return __atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}

static void store(uint64_t *p, uint64_t n)
{
	__atomic_store_n(p, n, __ATOMIC_RELAXED);
}

static const char *reason(long error)
{
	switch (-error) {
	case 0:
		return "";
	case ENOENT:
		return "no such directory";
	case ENOTDIR:
		return "not a directory";
	case EACCES:
	case EPERM:
		return "permission denied";
	case EROFS:
		return "read-only file system";
	case EDQUOT:
		return "the quota of its file system is used up";
	case ENOSPC:
	case EFAULT: /* what populating a full file system gives */
		return "no space left on its file system; free some, or give "
		       "another directory";
	case EMFILE:
	case ENFILE:
		return "no descriptor free";
	case ELOOP:
		return "a symbolic link is in the way";
	case ENOMEM:
		return "no memory";
	case EOPNOTSUPP: /* of allocate() */
		return "this kernel and file system cannot set space aside";
	default:
		return "the system refused";
	}
}

/* --- how large --- */

static bool may_lock_memory(void)
{
	enum { CAP_IPC_LOCK = 14 };
	struct {
		uint32_t version;
		int pid;
	} header = {0x20080522, 0};
	struct {
		uint32_t effective, permitted, inheritable;
	} sets[2];

	return sys_capget(&header, sets) == 0 &&
	       (sets[0].effective >> CAP_IPC_LOCK & 1);
}

static void lower(uint64_t *bytes, uint64_t cap, const char *by,
		  const char **because)
{
	if (cap < *bytes) {
		*bytes = cap;
		*because = by;
	}
}

/*
 * A file beyond RLIMIT_FSIZE is a deadly signal.  The other two limits count
 * what is mapped: the program must be able to map and mlockall() what it could
 * without us, so the log takes a small part of them only.
 */
static uint64_t allowed_bytes(uint64_t wanted, const char **because)
{
	enum { LIMIT_FSIZE = 1, LIMIT_MEMLOCK = 8, LIMIT_AS = 9 };
	struct sys_rlimit limit;

	if (sys_getrlimit(LIMIT_FSIZE, &limit) == 0)
		lower(&wanted, limit.soft, "RLIMIT_FSIZE (ulimit -f)", because);
	if (sys_getrlimit(LIMIT_AS, &limit) == 0 && limit.soft != UINT64_MAX)
		lower(&wanted, limit.soft / RECORD_PART_OF_AS,
		      "RLIMIT_AS (ulimit -v)", because);
	if (sys_getrlimit(LIMIT_MEMLOCK, &limit) == 0 &&
	    limit.soft > RECORD_LEAST_MEMLOCK &&
	    limit.soft / RECORD_PART_OF_MEMLOCK < wanted && !may_lock_memory())
		lower(&wanted, limit.soft / RECORD_PART_OF_MEMLOCK,
		      "RLIMIT_MEMLOCK (ulimit -l)", because);
	return wanted;
}

static uint32_t power_of_two_below(uint64_t n)
{
	if (n > UINT32_MAX)
		n = UINT32_MAX;
	return n == 0 ? 0 : 1u << (31 - __builtin_clz((uint32_t)n));
}

static uint32_t slots_for(uint64_t bytes, uint32_t stripes)
{
	uint64_t fixed =
		RECORD_HEADER_BYTES + stripes * (uint64_t)RECORD_STRIPE_BYTES;
	uint32_t slots;

	if (bytes < fixed)
		return 0;
	slots = power_of_two_below((bytes - fixed) / stripes /
				   sizeof(struct record_event));
	return slots < RECORD_CHUNK_SLOTS ? 0 : slots;
}

/* Twice as many stripes as CPUs, so that threads that run at the same time
 * seldom meet, as long as rings with some depth fit. */
static uint32_t stripes_for(uint64_t bytes)
{
	uint32_t stripes = 1;

	while (stripes < 2 * lock_cpus && stripes < RECORD_MAX_STRIPES &&
	       slots_for(bytes, stripes * 2) >= 8 * RECORD_CHUNK_SLOTS)
		stripes *= 2;
	return stripes;
}

/* Only one thread sets a process up, perhaps on a signal handler's small
 * stack: what is large lies here. */
static struct {
	char path[PATH_ROOM];
	char limits[512];
	struct record_header layout;
} scratch;

/* Code is noted wherever addresses of it are. */
static uint64_t module_bytes(const struct knobs *knobs, uint64_t bytes)
{
	enum { LEAST = 16 << 10, MOST = 512 << 10 };
	uint64_t share = bytes / 128 & ~(uint64_t)(LEAST - 1);

	if (knobs->events == EVENTS_OFF && !knobs_has_stacks(knobs))
		return 0;
	if (share > MOST)
		return MOST;
	return share < LEAST ? LEAST : share;
}

static uint32_t pool_slots(uint64_t bytes, uint64_t each)
{
	enum { FEWEST = 8 };
	uint32_t slots = power_of_two_below(bytes / each);

	if (slots > LOG_MOST_SLOTS)
		return LOG_MOST_SLOTS;
	return slots < FEWEST ? 0 : slots;
}

/* A small part, as long as there is enough for the others. */
static uint32_t worst_slots(uint64_t bytes, uint64_t each)
{
	enum { PART = 8 };
	uint64_t slots = bytes / each / PART;

	return slots < LOG_MOST_WORST ? (uint32_t)slots : LOG_MOST_WORST;
}

/* The pools in the `left` bytes from samples_at on; returns where they end. */
static uint64_t lay_out_pools(struct record_stacks *s,
			      const struct knobs *knobs, uint64_t left)
{
	struct record_pool *every = &s->pool[POOL_EVERY];
	struct record_pool *slow = &s->pool[POOL_SLOW];
	uint64_t each = s->copy_bytes + sizeof(struct record_sample);
	uint64_t count;

	if (left < SYS_PAGE_MAX)
		return s->samples_at;
	left -= SYS_PAGE_MAX; /* what may lie between samples and copies */
	if (knobs->stacks_slow)
		slow->worst = worst_slots(left, each);
	left -= slow->worst * each;
	if (knobs->stacks_every != 0)
		every->slots = pool_slots(
			knobs->stacks_slow ? left / 5 * 4 : left, each);
	if (knobs->stacks_slow)
		slow->slots = pool_slots(left - every->slots * each, each);
	slow->first = every->slots;
	count = record_samples(s);
	s->copies_at = s->samples_at + count * sizeof(struct record_sample);
	s->copies_at = (s->copies_at + SYS_PAGE_MAX - 1) &
		       ~(uint64_t)(SYS_PAGE_MAX - 1);
	return count == 0 ? s->samples_at
			  : s->copies_at + count * s->copy_bytes;
}

/* What is behind the rings. */
static void lay_out_stacks(struct record_header *h, const struct knobs *knobs,
			   uint64_t bytes)
{
	struct record_stacks *s = &h->stacks;
	uint64_t modules = module_bytes(knobs, bytes);

	if (modules == 0 || h->file_bytes + modules > bytes)
		return;
	s->module_bytes = RECORD_MODULE_BYTES;
	s->sample_bytes = sizeof(struct record_sample);
	s->machine = SYS_MACHINE;
	s->module_slots = (uint32_t)(modules / RECORD_MODULE_BYTES);
	s->modules_at = h->file_bytes;
	s->samples_at = s->modules_at + modules;
	s->copy_bytes = (knobs->stack_size + RECORD_COPY_PAGE - 1) &
			~(uint64_t)(RECORD_COPY_PAGE - 1);
	h->file_bytes = lay_out_pools(s, knobs, bytes - s->samples_at);
}

/* A power of two, which leaves room for stacks; where it is too little the
 * rings give half of theirs. */
static uint32_t ring_slots(uint32_t stripes, const struct knobs *knobs,
			   uint64_t bytes)
{
	uint64_t modules = module_bytes(knobs, bytes), left;
	uint32_t slots;

	if (knobs->events == EVENTS_OFF || modules > bytes)
		return 0;
	slots = slots_for(bytes - modules, stripes);
	left = bytes - modules - stripes * (uint64_t)RECORD_STRIPE_BYTES -
	       stripes * (uint64_t)slots * sizeof(struct record_event);
	if (knobs_has_stacks(knobs) && left < bytes / 8 &&
	    slots > RECORD_CHUNK_SLOTS)
		slots /= 2;
	return slots;
}

static void lay_out(uint64_t bytes, const struct knobs *knobs)
{
	struct record_header *h = &scratch.layout;

	*h = (struct record_header){
		.version = RECORD_VERSION,
		.header_bytes = RECORD_HEADER_BYTES,
		.op_count = OP_COUNT,
		.bucket_count = RECORD_BUCKETS,
		.event_bytes = sizeof(struct record_event),
		.stripe_bytes = RECORD_STRIPE_BYTES,
		.stripes_at = RECORD_HEADER_BYTES,
	};
	h->stripes = stripes_for(bytes);
	h->ring_slots = ring_slots(h->stripes, knobs, bytes);
	h->rings_at =
		h->stripes_at + h->stripes * (uint64_t)RECORD_STRIPE_BYTES;
	h->file_bytes = h->rings_at + h->stripes * (uint64_t)h->ring_slots *
					      sizeof(struct record_event);
	lay_out_stacks(h, knobs, bytes);
}

/* --- the directory's shared page --- */

/* 0: it is not mmgate's. */
static uint32_t dir_version(const uint64_t first[2])
{
	return first[0] == RECORD_MAGIC ? (uint32_t)first[1] : 0;
}

static long dir_begin(int fd)
{
	struct {
		uint64_t magic;
		uint32_t version, spare;
	} first = {RECORD_MAGIC, RECORD_VERSION, 0};
	long error = sys_ftruncate(fd, sizeof(struct record_dir));

	if (error == 0)
		error = sys_pwrite(fd, &first, sizeof(first), 0);
	return error < 0 ? error : 0;
}

/* Sized but not written: by a process that is at it, or had no room. */
static bool is_begun(int fd, const uint64_t first[2])
{
	enum { FROM_END = 2 };

	return first[0] == 0 && first[1] == 0 &&
	       sys_call3(__NR_lseek, fd, 0, FROM_END) ==
		       sizeof(struct record_dir);
}

/* Its first bytes say what it is; an empty one is made ours, if we may. */
static long dir_check(int fd, bool make)
{
	uint64_t first[2];
	long n = sys_read(fd, first, sizeof(first));

	if (n == 0 || (n == sizeof(first) && is_begun(fd, first)))
		return make ? dir_begin(fd) : -ENOENT;
	self.dir_version = n == sizeof(first) ? dir_version(first) : 0;
	return self.dir_version == RECORD_VERSION ? 0 : STRANGE;
}

static long dir_map(int fd)
{
	long at = sys_mmap(NULL, sizeof(struct record_dir),
			   PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	long error;

	if (sys_failed(at))
		return at;
	/* A short file would answer the first store with SIGBUS.  -EINVAL: an
	 * old kernel, which cannot tell. */
	error = sys_madvise((const void *)at, sizeof(struct record_dir),
			    MADV_POPULATE_WRITE);
	if (error != 0 && error != -EINVAL) {
		sys_munmap((const void *)at, sizeof(struct record_dir));
		return error;
	}
	self.dir = (struct record_dir *)at;
	self.in_dir = true;
	return 0;
}

/* Maps RECORD_DIR_NAME; `make`: and makes it when it is missing or empty. */
static long dir_open(const char *directory, bool make)
{
	struct text out = text_over(scratch.path, sizeof(scratch.path));
	int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
	long fd, error;

	text_put(&out, directory);
	text_put(&out, "/" RECORD_DIR_NAME);
	fd = sys_openat(AT_FDCWD, scratch.path, make ? flags | O_CREAT : flags,
			0600);
	if (sys_failed(fd))
		return fd;
	error = dir_check((int)fd, make);
	if (error == 0)
		error = dir_map((int)fd);
	sys_close((int)fd);
	return error;
}

/* Takes `bytes` of the directory's allowance; false when they are gone. */
static bool reserve(uint64_t bytes)
{
	if (add(&self.dir->allocated, bytes) + bytes <= self.total)
		return true;
	add(&self.dir->allocated, -bytes);
	return false;
}

/* --- the file --- */

/* Opens a new file, whose name is then in scratch.path. */
static long create(const char *directory, uint32_t pid, uint64_t started)
{
	long fd = -EEXIST;

	/* Two processes with one number (pid namespaces) and one instant are
	 * unlikely once; O_EXCL makes sure, and never follows a link. */
	for (uint64_t i = 0; i < 16 && fd == -EEXIST; i++) {
		struct text out = text_over(scratch.path, PATH_ROOM);

		text_put(&out, directory);
		text_put(&out, "/");
		text_put_u64(&out, pid);
		text_put(&out, "-");
		text_put_u64(&out, started + i);
		text_put(&out, RECORD_SUFFIX);
		fd = sys_openat(AT_FDCWD, scratch.path,
				O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW |
					O_CLOEXEC,
				0600);
	}
	return fd;
}

/* Memory for a part of the file, or -errno; never a signal later. */
static long populate(uint64_t from, uint64_t bytes)
{
	uint64_t start = from & ~(uint64_t)(SYS_PAGE_MAX - 1);

	if (self.all_there)
		return 0;
	return sys_madvise(self.base + start, from + bytes - start,
			   MADV_POPULATE_WRITE);
}

/* For an old kernel: memory for the whole file. */
static long allocate(int fd, uint64_t bytes, uint64_t reserved)
{
	long error;

	if (!reserve(bytes - reserved))
		return SPENT;
	error = sys_fallocate(fd, 0, 0, bytes);
	if (error != 0)
		add(&self.dir->allocated, reserved - bytes);
	self.all_there = error == 0;
	return error;
}

/* Sizes and maps the file.  On an old kernel everything is allocated now. */
static long map(int fd, uint64_t first)
{
	uint64_t bytes = scratch.layout.file_bytes;
	long error = sys_ftruncate(fd, bytes), at;

	if (error != 0)
		return error;
	at = sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (sys_failed(at))
		return at;
	self.base = (char *)at;
	self.all_there = false;
	/* Without it a fault reads ahead, megabytes of holes on some disks. */
	sys_madvise(self.base, bytes, MADV_RANDOM);
	error = populate(0, first);
	if (error == -EINVAL)
		error = allocate(fd, bytes, first);
	if (error != 0)
		sys_munmap(self.base, bytes);
	return error;
}

/* The file of this process, in place and with memory for its first parts. */
static long make_file(const char *directory, uint32_t pid, uint64_t started)
{
	uint64_t first =
		RECORD_HEADER_BYTES + offsetof(struct record_stripe, wake);
	long fd, error;

	if (!reserve(first))
		return SPENT;
	fd = create(directory, pid, started);
	error = sys_failed(fd) ? fd : map((int)fd, first);
	if (!sys_failed(fd))
		sys_close((int)fd);
	if (error == 0)
		return 0;
	if (!sys_failed(fd))
		sys_unlinkat(AT_FDCWD, scratch.path);
	add(&self.dir->allocated, -first);
	return error;
}

static void copy(char *to, size_t size, const char *from)
{
	struct text out = text_over(to, size);

	text_put(&out, from);
}

static void describe_settings(const struct knobs *knobs, char *to, size_t size)
{
	struct text out = text_over(to, size);

	for (size_t i = 0; i < knob_count(); i++) {
		const struct knob *knob = knob_at(i);

		knob_name(knob, &out);
		text_put(&out, "=");
		knob->show(knobs, &out);
		text_put(&out, "\n");
	}
}

static void fill_header(const struct knobs *knobs,
			const struct log_about *about, uint64_t started,
			uint32_t pid)
{
	struct record_header *h = self.header;

	*h = scratch.layout;
	h->pid = pid;
	h->ppid = sys_getppid();
	h->epoch = about->epoch;
	h->clock = clock_is_tsc ? RECORD_CLOCK_TSC : RECORD_CLOCK_NS;
	h->started = started;
	h->start = about->start;
	copy(h->comm, sizeof(h->comm), about->comm);
	copy(h->exe, sizeof(h->exe), about->exe);
	copy(h->hooks, sizeof(h->hooks), about->hooks);
	copy(h->coverage, sizeof(h->coverage), about->coverage);
	copy(h->limits, sizeof(h->limits), scratch.limits);
	describe_settings(knobs, h->settings, sizeof(h->settings));
	h->fresh[0] = clock_pair();
	__atomic_store_n(&h->magic, RECORD_MAGIC, __ATOMIC_RELEASE);
}

bool log_read_request(uint32_t serial, char *text, size_t size)
{
	const struct record_control *c = log_hot.control;

	if (size < sizeof(c->text))
		return false;
	/* Byte by byte: it is shared, and may change meanwhile. */
	for (size_t i = 0; i < sizeof(c->text); i++)
		text[i] = __atomic_load_n(&c->text[i], __ATOMIC_RELAXED);
	return text[sizeof(c->text) - 1] == '\0' &&
	       record_control_check(serial, text, sizeof(c->text)) ==
		       __atomic_load_n(&c->check, __ATOMIC_RELAXED);
}

void log_settings(const struct knobs *knobs)
{
	/* Not on a signal handler's small stack. */
	static char fresh[sizeof(((struct record_header *)NULL)->settings)];
	struct record_header *h = self.header;
	uint64_t version = load(&h->settings_version) | 1;

	describe_settings(knobs, fresh, sizeof(fresh));
	store(&h->settings_version, version);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (size_t i = 0; i < sizeof(fresh); i++)
		__atomic_store_n(&h->settings[i], fresh[i], __ATOMIC_RELAXED);
	__atomic_store_n(&h->settings_version, version + 1, __ATOMIC_RELEASE);
}

void log_answer(uint32_t serial, bool refused)
{
	struct record_header *h = self.header;

	__atomic_store_n(&h->control.refused, refused, __ATOMIC_RELAXED);
	__atomic_store_n(&h->control.answered, serial, __ATOMIC_RELEASE);
}

void log_lock(enum op op, uint8_t lock)
{
	__atomic_store_n(&self.header->lock_now[op], lock, __ATOMIC_SEQ_CST);
}

void log_locks_changed(void)
{
	add(&self.header->lock_changes, 1);
}

static void explain_limit(uint64_t bytes, const char *because)
{
	struct text out = text_over(scratch.limits, sizeof(scratch.limits));

	if (because == NULL)
		return;
	text_put(&out, "the log is limited to ");
	text_put_u64(&out, bytes / 1024);
	text_put(&out, " KiB by ");
	text_put(&out, because);
}

static void explain_no_room(const char *what)
{
	size_t used = text_len(scratch.limits);
	struct text out = {.at = scratch.limits + used,
			   .room = sizeof(scratch.limits) - used};

	text_put(&out, used > 0 ? "; " : "");
	text_put(&out, "it has no room for ");
	text_put(&out, what);
}

/* What a small log does without. */
static void explain_missing(const struct knobs *knobs)
{
	const struct record_header *h = &scratch.layout;

	if (knobs->events != EVENTS_OFF && h->ring_slots == 0)
		explain_no_room("single events");
	if (knobs_has_stacks(knobs) && record_samples(&h->stacks) == 0)
		explain_no_room("stacks");
}

static void explain_strange(struct text *why)
{
	text_put(why, "its " RECORD_DIR_NAME " is ");
	if (self.dir_version == 0) {
		text_put(why, "not mmgate's; give another directory");
		return;
	}
	text_put(why, "of another mmgate (format ");
	text_put_u64(why, self.dir_version);
	text_put(why, ", this library's is ");
	text_put_u64(why, RECORD_VERSION);
	text_put(why, "); give another directory");
}

static void explain_failure(struct text *why, long error)
{
	if (error == STRANGE) {
		explain_strange(why);
	} else if (error == SPENT) {
		text_put(why, "MMGATE_LOG_TOTAL, which is ");
		text_put_size(why, self.total);
		text_put(why, ", is used up; a larger one holds more");
	} else {
		text_put(why, reason(error));
	}
}

static void explain_too_little(struct text *why)
{
	text_put(why, scratch.limits);
	text_put(why, ", and takes ");
	text_put_u64(why, (RECORD_LEAST_BYTES + 1023) / 1024);
	text_put(why, " KiB at least; raise that limit");
}

/* Tells readers how far ring `i` reaches. */
static void show_ring(uint32_t i)
{
	struct record_stripe *stripe = log_stripe(i);

	store(&stripe->capacity, load(&self.rings[i].capacity));
	store(&stripe->populated, load(&self.rings[i].populated));
}

/* What the hot path needs to know of the file. */
static void set_up(const struct log_about *about)
{
	const struct record_header *layout = &scratch.layout;

	self.header = (struct record_header *)self.base;
	self.rings_at = layout->rings_at;
	self.stacks = layout->stacks;
	log_hot.next_look = 0;
	log_hot.stripes = self.base + RECORD_HEADER_BYTES;
	log_hot.control = &self.header->control;
	self.started = about->start.ticks;
	self.stripes = layout->stripes;
	self.ring_slots = layout->ring_slots;
	self.full = 0;
	for (uint32_t i = 0; i < self.stripes; i++) {
		log_hot.ready[i] = self.all_there ? UINT32_MAX
				   : i == 0       ? 1u << PART_HEAD
						  : 0;
		self.refused[i] = 0;
		self.rings[i].capacity = self.ring_slots;
		self.rings[i].populated = self.all_there ? self.ring_slots : 0;
		if (log_has(i, PART_HEAD))
			show_ring(i);
	}
	if (about->libc == NULL || sys_stat(about->libc, &self.libc) != 0)
		self.libc.inode = 0;
}

static bool is_fit(const char *directory, struct text *why)
{
	const char *name = record_unfit(sys_file_system(directory));

	if (name == NULL)
		return true;
	text_put(why, "it is on ");
	text_put(why, name);
	text_put(why, ", where a full disk would end the program");
	return false;
}

/* Where the directory has room for a log, this process's; or -errno. */
static long open_file(const struct knobs *knobs, const struct log_about *about)
{
	uint64_t started = clock_realtime();
	uint32_t pid = sys_getpid();
	long error = dir_open(knobs->log, true);

	self.total = knobs->log_total;
	if (error == 0)
		error = make_file(knobs->log, pid, started);
	if (error != 0)
		return error;
	set_up(about);
	fill_header(knobs, about, started, pid);
	log_hot.in_use = true;
	return 0;
}

static bool try_open(const struct knobs *knobs, const struct log_about *about,
		     struct text *why)
{
	const char *because = NULL;
	uint64_t bytes = allowed_bytes(knobs->log_size, &because);
	long error;

	lay_out(bytes, knobs);
	explain_limit(bytes, because);
	if (bytes < RECORD_LEAST_BYTES) {
		explain_too_little(why);
		/* To be counted, as far as that limit lets us. */
		dir_open(knobs->log, bytes >= sizeof(struct record_dir));
		return false;
	}
	explain_missing(knobs);
	error = open_file(knobs, about);
	if (error != 0)
		explain_failure(why, error);
	return error == 0;
}

/* So that the figures of the run are not taken for all of it. */
static void count_unlogged(const char *why)
{
	struct record_dir *dir = self.dir;

	if (!self.in_dir || add(&dir->unlogged, 1) != 0)
		return;
	store(&dir->unlogged_pid, sys_getpid());
	copy(dir->unlogged_why, sizeof(dir->unlogged_why), why);
}

bool log_open(const struct knobs *knobs, const struct log_about *about,
	      struct text *why)
{
	const char *reason_at = why->at;

	log_forget();
	self.in_dir = false;
	if (!is_fit(knobs->log, why))
		return false;
	if (try_open(knobs, about, why))
		return true;
	count_unlogged(reason_at);
	return false;
}

void log_forget(void)
{
	log_hot.in_use = false;
}

/* --- in use --- */

/* The log cannot grow any more: says so in it, once. */
static void note_full(const char *why)
{
	char *limits = self.header->limits;
	size_t used;
	struct text out;

	if (__atomic_exchange_n(&self.full, 1, __ATOMIC_RELAXED) != 0)
		return;
	/* The file may have been changed by others: no end is looked for
	 * beyond it. */
	limits[sizeof(self.header->limits) - 1] = '\0';
	used = text_len(limits);
	out = (struct text){.at = limits + used,
			    .room = sizeof(self.header->limits) - used};
	text_put(&out, used > 0 ? "; " : "");
	text_put(&out, why);
}

/* Takes `bytes` of the directory's allowance and fills them with memory.  NULL,
 * or why not. */
static const char *ask_memory(uint64_t from, uint64_t bytes)
{
	if (!reserve(bytes))
		return "MMGATE_LOG_TOTAL is reached: less is recorded";
	if (populate(from, bytes) == 0)
		return NULL;
	add(&self.dir->allocated, -bytes);
	return "no space left for the log: less is recorded";
}

static bool get_memory(uint64_t from, uint64_t bytes)
{
	const char *refusal = ask_memory(from, bytes);

	if (refusal != NULL)
		note_full(refusal);
	return refusal == NULL;
}

/* Gets memory for a part of stripe `i` that lies at `at`.  One refusal is
 * enough: asking again at each call would cost a system call each time. */
static bool get_part(uint32_t i, unsigned part, const void *at, uint64_t bytes)
{
	if (__atomic_load_n(&self.refused[i], __ATOMIC_RELAXED) >> part & 1)
		return false;
	if (!get_memory((uint64_t)((const char *)at - self.base), bytes)) {
		__atomic_fetch_or(&self.refused[i], 1u << part,
				  __ATOMIC_RELAXED);
		return false;
	}
	if (__atomic_fetch_or(&log_hot.ready[i], 1u << part,
			      __ATOMIC_RELEASE) >>
		    part &
	    1)
		add(&self.dir->allocated, -bytes); /* counted by another */
	return true;
}

static bool get_op(uint32_t i, enum op op)
{
	const struct record_op *at = &log_stripe(i)->op[op];

	return log_has(i, op) || get_part(i, op, at, sizeof(*at));
}

bool log_get_op(uint32_t *i, enum op op)
{
	if (get_op(*i, op))
		return true;
	*i = 0;
	if (get_op(0, op))
		return true;
	add(&self.header->unrecorded, 1);
	return false;
}

bool log_get_wake(uint32_t i)
{
	const struct record_stripe *s = log_stripe(i);

	return get_part(i, PART_WAKE, &s->wake,
			offsetof(struct record_stripe, op) -
				offsetof(struct record_stripe, wake));
}

static bool get_head(uint32_t i)
{
	if (log_has(i, PART_HEAD))
		return true;
	if (!get_part(i, PART_HEAD, log_stripe(i),
		      offsetof(struct record_stripe, wake)))
		return false;
	show_ring(i);
	return true;
}

uint32_t log_thread(void)
{
	uint32_t i = (uint32_t)(add(&self.header->threads, 1) % self.stripes);

	return get_head(i) ? i : 0;
}

/* No more room: the ring turns in what it has. */
static void stop_growing(uint32_t i, uint64_t populated)
{
	store(&self.rings[i].capacity, power_of_two_below(populated));
	show_ring(i);
}

/* Memory up to the chunk that holds `slot`; NULL, or why there is none. Several
 * threads may do so at the same time; populating twice does no harm but that it
 * waits twice for the address-space lock. */
static const char *extend(uint32_t i, uint64_t slot, uint64_t populated)
{
	struct ring *ring = &self.rings[i];
	uint64_t target = (slot / RECORD_CHUNK_SLOTS + 1) * RECORD_CHUNK_SLOTS;
	uint64_t bytes = (target - populated) * sizeof(struct record_event);
	uint64_t at =
		self.rings_at + (i * (uint64_t)self.ring_slots + populated) *
					sizeof(struct record_event);
	const char *refusal = ask_memory(at, bytes);

	if (refusal != NULL)
		return refusal;
	if (__atomic_compare_exchange_n(&ring->populated, &populated, target,
					false, __ATOMIC_RELEASE,
					__ATOMIC_RELAXED))
		show_ring(i);
	else
		add(&self.dir->allocated, -bytes); /* counted by the other */
	return NULL;
}

static void grow(uint32_t i, uint64_t slot)
{
	uint64_t populated = load(&self.rings[i].populated);
	const char *refusal;

	if (slot < populated)
		return;
	refusal = extend(i, slot, populated);
	if (refusal != NULL) {
		note_full(refusal);
		stop_growing(i, populated);
	}
}

/*
 * The thread that begins the last chunk with memory gets it for the next: those
 * that found it lacking would all ask at once.  Not yet in the first one, which
 * is all that many short processes use; and not where the ring turns earlier.
 * If there is none, nothing is lost so far: who needs it will stop the ring.
 */
static void grow_ahead(uint32_t i, uint64_t slot, uint64_t populated,
		       uint64_t capacity)
{
	if (slot != 0 && slot + RECORD_CHUNK_SLOTS == populated &&
	    populated < capacity)
		extend(i, populated, populated);
}

struct record_event *log_claim(uint32_t i, uint64_t *number)
{
	struct ring *ring = &self.rings[i];
	struct record_stripe *stripe = log_stripe(i);
	uint64_t n, capacity, populated, slot;
	struct record_event *event;

	if (self.ring_slots == 0)
		return NULL;
	n = add(&stripe->head, 1);
	for (;;) {
		capacity = load(&ring->capacity);
		if (capacity == 0) {
			add(&stripe->lost_events, 1);
			return NULL;
		}
		slot = n & (capacity - 1);
		populated = __atomic_load_n(&ring->populated, __ATOMIC_ACQUIRE);
		if (slot < populated)
			break;
		grow(i, slot);
	}
	event = (struct record_event *)(self.base + self.rings_at) +
		i * (uint64_t)self.ring_slots + slot;
	/* From here to its seal the slot is nobody's. */
	__atomic_store_n(&event->seq, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	*number = n;
	grow_ahead(i, slot, populated, capacity);
	return event;
}

/* Every so often, more seldom the longer the process lives. */
bool log_compare_clocks(uint64_t now)
{
	enum { MOST = 1 << 28 }; /* about a tenth of a second */
	uint64_t due = load(&log_hot.next_look), age = now - self.started;
	struct record_header *h = self.header;

	if (now < due ||
	    !__atomic_compare_exchange_n(
		    &log_hot.next_look, &due,
		    now + (age / 4 < MOST ? age / 4 + 65536 : MOST), false,
		    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return false;
	/* In turn, so that a kill while one is written leaves the other. */
	h->fresh[h->fresh[0].ns < h->fresh[1].ns ? 0 : 1] = clock_pair();
	return true;
}

void log_mapped(const struct sys_file *file)
{
	if (self.libc.inode != 0 && file->inode == self.libc.inode &&
	    file->device == self.libc.device)
		add(&self.header->second_libc, 1);
}

const struct record_stacks *log_layout(void)
{
	return &self.stacks;
}

struct record_stacks *log_stacks(void)
{
	return &self.header->stacks;
}

void *log_at(uint64_t offset)
{
	return self.base + offset;
}

bool log_fill(uint64_t offset, uint64_t bytes)
{
	return self.all_there || get_memory(offset, bytes);
}

void log_filled_twice(uint64_t bytes)
{
	/* Not in a child that was forked meanwhile and has no log. */
	if (!self.all_there && log_hot.in_use)
		add(&self.dir->allocated, -bytes);
}

void log_opened(void)
{
	add(&self.header->opened, 1);
}

/* Readers may look meanwhile, and the process may be killed: what stays is not
 * touched. */
static void correct(char *to, size_t size, const char *text)
{
	size_t len = text_len(text);

	if (len >= size)
		len = size - 1;
	for (size_t i = 0; i < size; i++) {
		char c = i < len ? text[i] : '\0';

		if (to[i] != c)
			to[i] = c;
	}
}

void log_correct(const char *hooks, const char *coverage)
{
	correct(self.header->hooks, sizeof(self.header->hooks), hooks);
	correct(self.header->coverage, sizeof(self.header->coverage), coverage);
}

void log_end(void)
{
	self.header->end = clock_pair();
}
