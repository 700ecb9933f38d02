/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clocks.h"
#include "die.h"
#include "knobs.h"
#include "log.h"
#include "merge.h"
#include "source.h"
#include "text.h"
#include "utf8.h"

enum { WHY_BYTES = 256, LAST_EVENTS = 64, WATCH_EACH = 65536 };

struct log {
	char *path;
	dev_t device;
	ino_t inode;
	/* Of the header: where things are, and the clock. */
	uint64_t stripes_at, rings_at, ring_bytes;
	uint32_t stripes, ring_slots;
	double ns_per_tick;
	struct record_pair start;
	struct record_stacks stacks;
	struct log_process process;
};

static bool refuse(char why[WHY_BYTES], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static bool refuse(char why[WHY_BYTES], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, WHY_BYTES, format, args);
	va_end(args);
	return false;
}

/* --- is it a log of ours, and of this build? --- */

bool log_is_this_format(uint32_t version, char why[WHY_BYTES])
{
	if (version == RECORD_VERSION)
		return true;
	return refuse(why,
		      "was written by %s mmgate (format %u, this one reads %u)",
		      version > RECORD_VERSION ? "a newer" : "an older",
		      version, RECORD_VERSION);
}

static bool check_identity(const struct record_header *h, uint64_t size,
			   char why[WHY_BYTES])
{
	if (size >= sizeof(h->magic) && h->magic != RECORD_MAGIC)
		return h->magic == 0
			       ? refuse(why,
					"was never begun: its process ended "
					"while it made it, or still does")
			       : refuse(why, "is not a log of mmgate");
	if (size < RECORD_HEADER_BYTES)
		return refuse(why, "is truncated: %llu of %d bytes",
			      (unsigned long long)size, RECORD_HEADER_BYTES);
	return log_is_this_format(h->version, why);
}

/* Facts that are the same in every log of this format. */
static bool check_constants(const struct record_header *h, char why[WHY_BYTES])
{
	const struct {
		const char *name;
		uint64_t found, expected;
	} facts[] = {
		{"header_bytes", h->header_bytes, RECORD_HEADER_BYTES},
		{"op_count", h->op_count, OP_COUNT},
		{"bucket_count", h->bucket_count, RECORD_BUCKETS},
		{"event_bytes", h->event_bytes, sizeof(struct record_event)},
		{"stripe_bytes", h->stripe_bytes, sizeof(struct record_stripe)},
	};
	size_t i;

	for (i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		if (facts[i].found != facts[i].expected)
			return refuse(why, "is damaged: %s is %llu, not %llu",
				      facts[i].name,
				      (unsigned long long)facts[i].found,
				      (unsigned long long)facts[i].expected);
	return true;
}

/* Can `bytes` lie at `at` in a file of `total`, without touching what ends at
 * `before`? */
static bool fits(uint64_t at, uint64_t bytes, uint64_t before, uint64_t total)
{
	return at >= before && at <= total && bytes <= total - at &&
	       at % 8 == 0;
}

static bool check_pools(const struct record_stacks *s)
{
	const struct record_pool *every = &s->pool[POOL_EVERY];
	const struct record_pool *slow = &s->pool[POOL_SLOW];

	for (int i = 0; i < POOL_COUNT; i++)
		if (s->pool[i].slots > LOG_MOST_SAMPLES ||
		    s->pool[i].slots & (s->pool[i].slots - 1) ||
		    s->pool[i].slots == 1 ||
		    s->pool[i].worst > LOG_MOST_SAMPLES)
			return false;
	return every->first == 0 && every->worst == 0 &&
	       slow->first == every->slots;
}

static bool check_stacks(const struct record_header *h)
{
	const uint64_t behind = RECORD_HEADER_BYTES;
	const struct record_stacks *s = &h->stacks;
	uint64_t count = record_samples(s);
	uint64_t modules = (uint64_t)s->module_slots * RECORD_MODULE_BYTES;
	uint64_t samples = count * sizeof(struct record_sample);

	if (s->module_slots == 0)
		return count == 0;
	if (s->module_bytes != RECORD_MODULE_BYTES ||
	    s->sample_bytes != sizeof(struct record_sample) ||
	    s->module_slots > LOG_MOST_MODULES ||
	    !fits(s->modules_at, modules, behind, h->file_bytes))
		return false;
	if (!check_pools(s) ||
	    !fits(s->samples_at, samples, behind, h->file_bytes))
		return false;
	if (count > 0 &&
	    (s->copy_bytes > LOG_MOST_COPIED ||
	     s->copy_bytes % RECORD_COPY_PAGE != 0 ||
	     !fits(s->copies_at, count * s->copy_bytes, behind, h->file_bytes)))
		return false;
	return s->chain_bytes == 0 ||
	       fits(s->chains_at, s->chain_bytes, behind, h->file_bytes);
}

static bool check_layout(const struct record_header *h, uint64_t size,
			 char why[WHY_BYTES])
{
	uint64_t stripes = (uint64_t)h->stripes * sizeof(struct record_stripe);
	uint64_t rings = (uint64_t)h->stripes * h->ring_slots *
			 sizeof(struct record_event);

	if (h->stripes == 0 || h->stripes > RECORD_MAX_STRIPES)
		return refuse(why, "is damaged: %u stripes, not 1 to %d",
			      h->stripes, RECORD_MAX_STRIPES);
	if (h->ring_slots & (h->ring_slots - 1))
		return refuse(why,
			      "is damaged: rings of %u slots, no power of two",
			      h->ring_slots);
	if (h->file_bytes > INT64_MAX ||
	    !fits(h->stripes_at, stripes, RECORD_HEADER_BYTES, h->file_bytes))
		return refuse(why, "is damaged: no room for its stripes");
	if (rings > 0 &&
	    !fits(h->rings_at, rings, h->stripes_at + stripes, h->file_bytes))
		return refuse(why, "is damaged: no room for its rings");
	if (!check_stacks(h))
		return refuse(why, "is damaged: no room for its stacks");
	/* Unused parts are holes; they count in the size. */
	if (size < h->file_bytes)
		return refuse(why, "is truncated: %llu of %llu bytes",
			      (unsigned long long)size,
			      (unsigned long long)h->file_bytes);
	if (h->clock != RECORD_CLOCK_NS && h->clock != RECORD_CLOCK_TSC)
		return refuse(why, "is damaged: unknown clock %u", h->clock);
	return true;
}

/* --- the clock --- */

static bool pair_is_valid(const struct record_pair *p)
{
	return p->check == (p->ticks ^ p->ns ^ RECORD_MAGIC);
}

/* The latest sign of life with both clocks; NULL: none. */
static const struct record_pair *last_pair(const struct record_header *h)
{
	const struct record_pair *best = NULL;
	unsigned i;

	if (pair_is_valid(&h->end))
		return &h->end;
	for (i = 0; i < 2; i++)
		if (pair_is_valid(&h->fresh[i]) &&
		    (!best || h->fresh[i].ns > best->ns))
			best = &h->fresh[i];
	return best;
}

static bool find_rate(struct log *log, const struct record_header *h,
		      char why[WHY_BYTES])
{
	const struct record_pair *last = last_pair(h);

	log->start = h->start;
	log->ns_per_tick = 1;
	if (!pair_is_valid(&h->start))
		return refuse(why, "is damaged: its start time is not valid");
	if (h->clock == RECORD_CLOCK_NS)
		return true;
	if (!last || last->ticks <= h->start.ticks || last->ns <= h->start.ns)
		return refuse(why, "has no second time to measure its clock "
				   "by: its process ended at once");
	log->ns_per_tick = (double)(last->ns - h->start.ns) /
			   (double)(last->ticks - h->start.ticks);
	if (log->ns_per_tick < 1e-3 || log->ns_per_tick > 1e6)
		return refuse(why, "is damaged: a tick of %g ns",
			      log->ns_per_tick);
	return true;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A number of ns that came from a file: it may be anything. */
static uint64_t to_ns(double ns)
{
	if (ns >= 0x1p62)
		return UINT64_C(1) << 62;
	return ns > 0 ? (uint64_t)(ns + 0.5) : 0;
}

static uint64_t duration_ns(const struct log *log, uint64_t ticks)
{
	return to_ns((double)ticks * log->ns_per_tick);
}

/* An entry can be earlier than the start: the log opens in the first call. */
static uint64_t time_ns(const struct log *log, uint64_t ticks)
{
	int64_t since = (int64_t)(ticks - log->start.ticks);

	return to_ns((double)log->start.ns + (double)since * log->ns_per_tick);
}

/* --- the process --- */

/* The name that it was started by: redis-server rather than redis-check-rdb,
 * which it links to.  comm is cut at 15 bytes, so the file's name is the better
 * one where it begins the same. */
static const char *image_name(const struct log_process *p)
{
	const char *file = *p->exe ? text_base_name(p->exe) : p->comm;

	if (*p->comm && strncmp(file, p->comm, strlen(p->comm)) != 0)
		return p->comm;
	return file;
}

static void take_strings(struct log_process *p, const struct record_header *h)
{
	utf8_clean(p->comm, h->comm, sizeof(h->comm), 0);
	utf8_clean(p->exe, h->exe, sizeof(h->exe), 0);
	utf8_clean(p->settings, h->settings, sizeof(h->settings), '\n');
	utf8_clean(p->hooks, h->hooks, sizeof(h->hooks), '\n');
	utf8_clean(p->coverage, h->coverage, sizeof(h->coverage), '\n');
	utf8_clean(p->limits, h->limits, sizeof(h->limits), 0);
	utf8_clean(p->image, image_name(p), sizeof(p->image) - 1, 0);
}

static void take_header(struct log *log, const struct record_header *h)
{
	const struct record_pair *last = last_pair(h);
	struct log_process *p = &log->process;

	log->stripes_at = h->stripes_at;
	log->rings_at = h->rings_at;
	log->stripes = h->stripes;
	log->ring_slots = h->ring_slots;
	log->ring_bytes = (uint64_t)h->ring_slots * sizeof(struct record_event);
	log->stacks = h->stacks;
	p->pid = h->pid;
	p->ppid = h->ppid;
	p->epoch = h->epoch;
	p->started_unix_ns = h->started;
	p->started_ns = smaller(h->start.ns, UINT64_C(1) << 62);
	p->exited = pair_is_valid(&h->end);
	if (last && last->ns > h->start.ns)
		p->duration_ns = last->ns - h->start.ns;
	p->threads = h->threads;
	p->opened = h->opened;
	p->unrecorded = h->unrecorded;
	p->second_libc = h->second_libc;
	p->lock_changes = h->lock_changes;
	p->has_rings = h->ring_slots != 0;
	p->was_set = h->control.answered > 1 ||
		     (h->control.answered == 1 && !h->control.refused);
	for (unsigned op = 0; op < OP_COUNT; op++)
		p->lock_now[op] = h->lock_now[op] < LOCK_COUNT ? h->lock_now[op]
							       : LOCK_COUNT;
	take_strings(p, h);
}

/* --- stripes --- */

static void add_op(struct log *log, struct log_op *op,
		   const struct record_op *from)
{
	unsigned i;

	op->errors += from->errors;
	op->bytes += from->bytes;
	for (i = 0; i < BYPASS_COUNT; i++)
		op->bypassed[i] += from->bypassed[i];
	hist_add_record(&op->kernel, &from->kernel, log->ns_per_tick);
	hist_add_record(&op->wait, &from->wait, log->ns_per_tick);
	op->count = op->kernel.count;
	op->gated = op->wait.count;
}

static void add_head(struct log *log, const struct record_stripe *stripe)
{
	struct log_process *p = &log->process;

	p->thread_ns += duration_ns(log, stripe->thread_ticks);
	p->clamped += stripe->clamped;
}

static struct merge_ring ring_of(const struct log *log, uint32_t i,
				 const struct record_stripe *stripe)
{
	return (struct merge_ring){
		.at = log->rings_at + i * log->ring_bytes,
		.head = stripe->head,
		.capacity = stripe->capacity,
		.populated = stripe->populated,
	};
}

static bool check_ring(const struct log *log, const struct merge_ring *ring,
		       char why[WHY_BYTES])
{
	uint64_t slots = log->ring_slots;

	if (ring->capacity > slots || ring->populated > slots ||
	    (ring->capacity & (ring->capacity - 1)))
		return refuse(why,
			      "is damaged: a ring of %llu slots (%llu in "
			      "memory) where %llu fit",
			      (unsigned long long)ring->capacity,
			      (unsigned long long)ring->populated,
			      (unsigned long long)slots);
	return true;
}

static void count_events(struct log_process *p, const struct merge_ring *ring,
			 uint64_t lost)
{
	uint64_t kept = ring->head - merge_first(ring);

	p->events_kept += kept;
	p->events_lost += lost;
	if (ring->head - kept > lost)
		p->events_overwritten += ring->head - kept - lost;
}

static uint64_t event_end_ns(const struct log *log,
			     const struct record_event *e)
{
	return time_ns(log, e->time) + duration_ns(log, record_event_wait(e)) +
	       duration_ns(log, record_event_kernel(e));
}

/* A process that was killed lived at least to the end of its last call. */
static int see_last_events(struct log *log, struct source *source,
			   const struct merge_ring *ring)
{
	uint64_t count = smaller(ring->head - merge_first(ring), LAST_EVENTS);
	struct log_process *p = &log->process;
	struct record_event event;
	uint64_t n, end, slot;
	int error;

	for (n = ring->head - count; n < ring->head; n++) {
		slot = merge_slot(ring, n);
		error = source_read(source, &event, sizeof(event),
				    ring->at + slot * sizeof(event));
		if (error)
			return error;
		if (!merge_is_whole(&event, n))
			continue;
		end = event_end_ns(log, &event);
		if (end > p->started_ns + p->duration_ns)
			p->duration_ns = end - p->started_ns;
	}
	return 0;
}

static bool unreadable(char why[WHY_BYTES], int error)
{
	return refuse(why, "cannot be read: %s", strerror(-error));
}

static uint64_t stripe_at(const struct log *log, uint32_t i)
{
	return log->stripes_at + i * (uint64_t)sizeof(struct record_stripe);
}

/* Reads a part of the stripe at `at`: 1; or 0 when nobody ever wrote to it,
 * and then it is left as it was; or -errno. */
static int read_part(struct source *source, uint64_t at,
		     struct record_stripe *stripe, size_t offset, size_t size)
{
	int error;

	if (source_hole(source, at + offset) >= size)
		return 0;
	error = source_read(source, (char *)stripe + offset, size, at + offset);
	return error ? error : 1;
}

static int read_figures(struct log *log, struct source *source, uint64_t at,
			struct record_stripe *stripe)
{
	struct log_process *p = &log->process;
	size_t offset = offsetof(struct record_stripe, wake);
	int got = read_part(source, at, stripe, offset, sizeof(stripe->wake));
	unsigned i;

	if (got > 0)
		hist_add_record(&p->wake, &stripe->wake, log->ns_per_tick);
	offset = offsetof(struct record_stripe, op);
	for (i = 0; i < OP_COUNT && got >= 0; i++) {
		got = read_part(source, at, stripe, offset,
				sizeof(stripe->op[i]));
		if (got > 0)
			add_op(log, &p->op[i], &stripe->op[i]);
		offset += sizeof(stripe->op[i]);
	}
	return got < 0 ? got : 0;
}

static int read_head(struct source *source, uint64_t at,
		     struct record_stripe *stripe)
{
	const size_t size = offsetof(struct record_stripe, wake);
	int got = read_part(source, at, stripe, 0, size);

	if (got == 0)
		memset(stripe, 0, size);
	return got < 0 ? got : 0;
}

static bool read_stripe(struct log *log, struct source *source, uint32_t i,
			struct record_stripe *stripe, char why[WHY_BYTES])
{
	uint64_t at = stripe_at(log, i);
	int error = read_head(source, at, stripe);
	struct merge_ring ring = ring_of(log, i, stripe);

	if (!error && !check_ring(log, &ring, why))
		return false;
	if (!error)
		error = read_figures(log, source, at, stripe);
	if (error)
		return unreadable(why, error);
	add_head(log, stripe);
	count_events(&log->process, &ring, stripe->lost_events);
	if (!log->process.exited)
		error = see_last_events(log, source, &ring);
	return error ? unreadable(why, error) : true;
}

/* `stripe` is read part by part: most of it is holes, which thousands of logs
 * have many of. */
static bool read_stripes(struct log *log, struct source *source,
			 char why[WHY_BYTES])
{
	struct record_stripe *stripe = xcalloc(1, sizeof(*stripe));
	bool sound = true;
	uint32_t i;

	for (i = 0; i < log->stripes && sound; i++)
		sound = read_stripe(log, source, i, stripe, why);
	free(stripe);
	return sound;
}

/* --- open, read, close --- */

/* A thread lives during its calls, and between them. */
static void add_call_times(struct log_process *p)
{
	for (unsigned i = 0; i < OP_COUNT; i++)
		p->thread_ns +=
			to_ns(p->op[i].wait.sum_ns + p->op[i].kernel.sum_ns);
}

static void count_without(struct log_process *p)
{
	uint64_t written =
		p->events_kept + p->events_overwritten + p->events_lost;
	uint64_t calls = 0;

	for (unsigned i = 0; i < OP_COUNT; i++)
		calls += p->op[i].count;
	p->events_without = calls > written ? calls - written : 0;
}

static int read_settings_version(struct source *source, uint64_t *version)
{
	return source_read(source, version, sizeof(*version),
			   offsetof(struct record_header, settings_version));
}

int log_read_header(struct source *source, struct record_header *h)
{
	enum { TRIES = 20 }; /* its writer may have died */
	uint64_t before, after;
	int error = 0;

	for (int i = 0; i < TRIES && !error; i++) {
		error = read_settings_version(source, &before);
		if (!error)
			error = source_read(source, h, sizeof(*h), 0);
		if (!error)
			error = read_settings_version(source, &after);
		if (!error && before == after && before % 2 == 0)
			break;
	}
	return error;
}

static bool read_log(struct log *log, struct source *source,
		     char why[WHY_BYTES])
{
	struct record_header h;
	int error = log_read_header(source, &h);

	if (error)
		return unreadable(why, error);
	if (source->size == 0)
		return refuse(why, "is empty");
	if (!check_identity(&h, source->size, why) ||
	    !check_constants(&h, why) || !check_layout(&h, source->size, why) ||
	    !find_rate(log, &h, why))
		return false;
	take_header(log, &h);
	if (!read_stripes(log, source, why))
		return false;
	/* The writer adds a thread's time in steps; one thread at least was
	 * there all the time. */
	add_call_times(&log->process);
	count_without(&log->process);
	if (log->process.thread_ns < log->process.duration_ns)
		log->process.thread_ns = log->process.duration_ns;
	return true;
}

struct log *log_open(const char *path, char why[WHY_BYTES])
{
	struct source source;
	const char *wrong = source_open(&source, path);
	struct log *log;
	bool sound;

	if (wrong) {
		refuse(why, "%s", wrong);
		return NULL;
	}
	log = xcalloc(1, sizeof(*log));
	log->path = xstrdup(path);
	log->device = source.device;
	log->inode = source.inode;
	sound = read_log(log, &source, why);
	/* Thousands of logs are open at a time; descriptors are few. */
	source_close(&source);
	if (sound)
		return log;
	log_close(log);
	return NULL;
}

/* A file of this very second without a header: its process is about to write
 * that, or just died. */
static bool is_being_made(const char *path)
{
	struct source source;
	struct timespec now;
	struct stat st;
	uint64_t magic = 0;
	bool unbegun;

	if (source_open(&source, path) != NULL)
		return false;
	unbegun = !source_read(&source, &magic, sizeof(magic), 0) &&
		  magic == 0 && fstat(source.fd, &st) == 0;
	source_close(&source);
	clock_gettime(CLOCK_REALTIME, &now);
	return unbegun && labs((long)(now.tv_sec - st.st_mtime)) <= 1;
}

struct log *log_open_new(const char *path, char why[WHY_BYTES])
{
	enum { TRIES = 40, STEP_NS = 5000000 };
	const struct timespec step = {0, STEP_NS};
	struct log *log = log_open(path, why);

	for (int i = 0; !log && i < TRIES; i++) {
		bool making = is_being_made(path);

		if (making)
			nanosleep(&step, NULL);
		log = log_open(path, why); /* or it was made in between */
		if (!making)
			break;
	}
	return log;
}

void log_close(struct log *log)
{
	struct log_process *p = &log->process;
	unsigned i;

	for (i = 0; i < OP_COUNT; i++)
		log_op_drop(&p->op[i]);
	hist_drop(&p->wake);
	free(log->path);
	free(log);
}

const struct log_process *log_process(const struct log *log)
{
	return &log->process;
}

const char *log_path(const struct log *log)
{
	return log->path;
}

const struct record_stacks *log_stacks(const struct log *log)
{
	return &log->stacks;
}

bool log_has_rings(const struct log *log)
{
	return log->ring_slots != 0;
}

uint32_t log_samples(const struct log *log)
{
	return (uint32_t)record_samples(&log->stacks);
}

bool log_is(const struct log *log, dev_t device, ino_t inode)
{
	return log->device == device && log->inode == inode;
}

struct log_event log_convert(const struct log *log,
			     const struct record_event *event)
{
	return (struct log_event){
		.raw = *event,
		.time_ns = time_ns(log, event->time),
		.wait_ns = duration_ns(log, record_event_wait(event)),
		.kernel_ns = duration_ns(log, record_event_kernel(event)),
	};
}

uint64_t log_time_ns(const struct log *log, uint64_t ticks)
{
	return time_ns(log, ticks);
}

/* --- does it live --- */

enum { STAT_STATE = 3, STAT_THREADS = 20, STAT_STARTED = 22 };

/* A field of /proc/PID/stat, from STAT_STATE on, in `line`.  NULL: there is
 * none, or no telling. */
static const char *read_stat(uint32_t pid, int number, char line[1024])
{
	char path[64], *field = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return NULL;
	if (fgets(line, 1024, f))
		field = strrchr(line, ')'); /* the name may hold anything */
	fclose(f);
	for (int i = 2; i < number && field; i++)
		field = strchr(field + 1, ' ');
	return field ? field + 1 : NULL;
}

bool log_pid_ended(uint32_t pid)
{
	char line[1024];
	const char *state = read_stat(pid, STAT_STATE, line), *threads;

	if (!state)
		return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
	if (*state != 'Z' && *state != 'X')
		return false;
	/* Its first thread may be gone alone. */
	threads = read_stat(pid, STAT_THREADS, line);
	return !threads || strtoul(threads, NULL, 10) <= 1;
}

uint64_t log_pid_started(uint32_t pid)
{
	char line[1024];
	const char *ticks = read_stat(pid, STAT_STARTED, line);

	return ticks ? strtoull(ticks, NULL, 10) *
			       (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK))
		     : 0;
}

/* False when it executes something else by now; true also when it may not be
 * asked. */
static bool executes(uint32_t pid, const char *exe)
{
	char path[64], now[1025] = "";
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	n = readlink(path, now, sizeof(now) - 1);
	/* ENOENT: of a first thread that ended before the others. */
	if (n < 0)
		return errno == EACCES || errno == EPERM || errno == ENOENT;
	return !strncmp(now, exe, strlen(exe));
}

bool log_process_runs(const struct log_process *p)
{
	const uint64_t slack = UINT64_C(1000000000);
	uint64_t started = log_pid_started(p->pid);
	uint64_t booted = clocks_ns(CLOCK_REALTIME) - clocks_ns(CLOCK_BOOTTIME);

	/* Not of an earlier boot, nor a later process of that number. */
	return !p->exited && started != 0 && p->started_unix_ns > booted &&
	       booted + started < p->started_unix_ns + slack &&
	       !log_pid_ended(p->pid) && executes(p->pid, p->exe);
}

void log_op_add(struct log_op *into, const struct log_op *from)
{
	unsigned i;

	into->count += from->count;
	into->errors += from->errors;
	into->bytes += from->bytes;
	into->gated += from->gated;
	for (i = 0; i < BYPASS_COUNT; i++)
		into->bypassed[i] += from->bypassed[i];
	hist_add(&into->wait, &from->wait);
	hist_add(&into->kernel, &from->kernel);
}

void log_op_drop(struct log_op *op)
{
	hist_drop(&op->wait);
	hist_drop(&op->kernel);
}

const char *log_bypass_name(unsigned reason)
{
	static const char *const names[BYPASS_COUNT] = {
		[BYPASS_REENTRY] = "reentry",
		[BYPASS_TIMEOUT] = "timeout",
		[BYPASS_LONG] = "long",
	};

	return reason < BYPASS_COUNT ? names[reason] : "unknown";
}

void log_setting(const char *list, const char *name, char *value, size_t size)
{
	size_t length = strlen(name), n;

	value[0] = '\0';
	for (; *list; list += strcspn(list, "\n"), list += *list == '\n') {
		if (strncmp(list, name, length) || list[length] != '=')
			continue;
		list += length + 1;
		n = strcspn(list, "\n");
		n = n < size ? n : size - 1;
		memcpy(value, list, n);
		value[n] = '\0';
		return;
	}
}

/* --- which lock is taken now --- */

char *log_lock_now(const struct log_process *p)
{
	const char *between = "";
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		die(EXIT_FAILED, "out of memory");
	for (unsigned op = 0; op < OP_COUNT; op++) {
		const char *name = knobs_lock_name(p->lock_now[op]);

		if (p->lock_now[op] == LOCK_none)
			continue;
		fprintf(out, "%s%s:%s", between, op_name(op),
			name ? name : "unknown");
		between = ",";
	}
	if (*between == '\0')
		fputs("none", out);
	fclose(out);
	return text;
}

bool log_lock_as_set(const struct log_process *p)
{
	static const char *const names[] = {"lock", "calls"};
	char value[sizeof(p->settings)];
	struct knobs knobs;

	knobs_init(&knobs);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		log_setting(p->settings, names[i], value, sizeof(value));
		if (*value)
			knob_find(names[i], strlen(names[i]))
				->parse(&knobs, value);
	}
	for (unsigned op = 0; op < OP_COUNT; op++)
		if (knobs_lock_of(&knobs, op) != p->lock_now[op])
			return false;
	return true;
}

const char *log_gap(const char *outcome)
{
	static const char *const whole[] = {
		"",
		"on",
		"off",
		"patched",
		"symbols only: the program has none",
	};

	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		if (!strcmp(outcome, whole[i]))
			return NULL;
	if (!strcmp(outcome, "symbols only: not asked for"))
		return "off (--hooks symbols)";
	return outcome;
}

bool log_gap_is_partial(const char *gap)
{
	return !strncmp(gap, "patched", 7) || !strncmp(gap, "on", 2);
}

/* --- events --- */

struct conversion {
	const struct log *log;
	int (*each)(void *context, const struct log_event *event);
	void *context;
};

static void (*watch)(uint64_t events);
static uint64_t unwatched; /* events since it was called */

void log_watch(void (*tick)(uint64_t events))
{
	watch = tick;
	unwatched = 0;
}

static void count_watched(void)
{
	if (++unwatched < WATCH_EACH)
		return;
	watch(unwatched);
	unwatched = 0;
}

static int convert(void *context, const struct record_event *event)
{
	const struct conversion *c = context;
	struct log_event out = log_convert(c->log, event);

	if (watch)
		count_watched();
	return c->each(c->context, &out);
}

/* The heads as they are now. */
static bool read_rings(struct log *log, struct source *source,
		       struct merge_ring *rings, char why[WHY_BYTES])
{
	struct record_stripe *stripe = xcalloc(1, sizeof(*stripe));
	struct log_process *p = &log->process;
	bool sound = true;
	uint32_t i;
	int error;

	p->events_kept = p->events_overwritten = p->events_lost = 0;
	for (i = 0; i < log->stripes && sound; i++) {
		error = read_head(source, stripe_at(log, i), stripe);
		if (error)
			sound = unreadable(why, error);
		rings[i] = ring_of(log, i, stripe);
		sound = sound && check_ring(log, &rings[i], why);
		count_events(p, &rings[i], stripe->lost_events);
	}
	free(stripe);
	return sound;
}

bool log_reopen(const struct log *log, struct source *source,
		char why[WHY_BYTES])
{
	const char *wrong = source_open(source, log->path);

	if (wrong)
		return refuse(why, "%s", wrong);
	if (log_is(log, source->device, source->inode))
		return true;
	source_close(source);
	return refuse(why, "was replaced while it was read");
}

static int read_events(struct log *log, struct source *source,
		       struct conversion *conversion, char why[WHY_BYTES])
{
	struct merge_ring rings[RECORD_MAX_STRIPES];
	/* A running program goes on: what the report says of events is of the
	 * time that its other figures are of. */
	const struct log_process then = log->process;
	struct merge_counts counts = {0};
	int stop, error;

	if (!read_rings(log, source, rings, why))
		return -1;
	stop = merge_events(source, rings, log->stripes, &counts, &error,
			    convert, conversion);
	log->process.events_torn = counts.torn;
	log->process.events_kept = then.events_kept;
	log->process.events_overwritten = then.events_overwritten;
	log->process.events_lost = then.events_lost;
	if (error)
		unreadable(why, error);
	return error && !stop ? -1 : stop;
}

int log_each_event(struct log *log,
		   int (*each)(void *context, const struct log_event *event),
		   void *context)
{
	struct conversion conversion = {log, each, context};
	char why[WHY_BYTES] = "";
	struct source source;
	int stop = -1;

	if (log_reopen(log, &source, why)) {
		stop = read_events(log, &source, &conversion, why);
		source_close(&source);
	}
	if (*why)
		warn("%s: %s", log->path, why);
	return stop;
}
