/* SPDX-License-Identifier: MIT */
#include "sampler.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "clocks.h"
#include "die.h"
#include "log.h"
#include "rows.h"
#include "stats.h"

enum {
	KNOWN_FIRST = 64, /* a power of two */
	LIVE_MOST = 4096, /* logs whose figures are kept to compare with */
};

/* Of CPU time: for the logs of a tick, for the threads, and at the end. */
#define LOG_BUDGET_NS UINT64_C(8000000)
#define TASK_BUDGET_NS UINT64_C(3000000)
#define END_BUDGET_NS UINT64_C(300000000)

/* A log whose process goes on: its figures at the last look. */
struct live {
	char *name;
	uint32_t pid;
	bool runs;
	size_t skip; /* threads that were looked at in this round */
	uint64_t minor, major, user_ns, system_ns;
	struct rows_op *op[OP_COUNT]; /* NULL: no call so far */
};

/* Names of logs, as hashes, that are not to be looked at anew. */
struct known {
	uint64_t *hash; /* 0: free */
	size_t count, room;
};

struct thread {
	struct rows_thread is;
	uint32_t seen; /* number of the tick */
};

struct sampler {
	int fd, file;
	const char *path;
	int error;
	struct known known;
	struct live **live;
	size_t live_count, next_live, next_task;
	struct timespec scanned; /* the directory, as it was */
	struct thread *thread;
	size_t thread_count;
	uint32_t ticks, ticks_per_row, ticks_in_row;
	uint64_t last_ns, shootdowns;
	struct rows_row now; /* the difference since the last tick */
	struct rows_row *row;
	bool begun; /* there is a whole header in the file */
	struct rows_header header;
};

static uint64_t spent_ns(void)
{
	return clocks_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* What a counter grew by; one that went back is another one's. */
static uint64_t grown(uint64_t *last, uint64_t now)
{
	uint64_t by = now > *last ? now - *last : 0;

	*last = now;
	return by;
}

/* --- which logs there are --- */

static uint64_t hash_of(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return hash | 1;
}

static bool known_add(struct known *known, uint64_t hash);

static void known_grow(struct known *known)
{
	struct known larger = {
		.room = known->room ? 2 * known->room : KNOWN_FIRST,
	};
	size_t i;

	larger.hash = xcalloc(larger.room, sizeof(*larger.hash));
	for (i = 0; i < known->room; i++)
		if (known->hash[i])
			known_add(&larger, known->hash[i]);
	free(known->hash);
	*known = larger;
}

/* False when it was there. */
static bool known_add(struct known *known, uint64_t hash)
{
	size_t i;

	if (2 * known->count >= known->room)
		known_grow(known);
	for (i = hash; known->hash[i & (known->room - 1)]; i++)
		if (known->hash[i & (known->room - 1)] == hash)
			return false;
	known->hash[i & (known->room - 1)] = hash;
	known->count++;
	return true;
}

static bool is_log(const char *name)
{
	const char *end = strrchr(name, '.');

	return end && end > name && !strcmp(end, RECORD_SUFFIX);
}

static void add_live(struct sampler *s, const char *name)
{
	struct live *live;

	if (!known_add(&s->known, hash_of(name)))
		return;
	if (s->live_count == LIVE_MOST) {
		s->header.missed++;
		return;
	}
	live = xcalloc(1, sizeof(*live));
	live->name = xstrdup(name);
	s->live[s->live_count++] = live;
}

static void drop_live(struct sampler *s, size_t at)
{
	struct live *live = s->live[at];
	unsigned i;

	for (i = 0; i < OP_COUNT; i++)
		free(live->op[i]);
	free(live->name);
	free(live);
	s->live[at] = s->live[--s->live_count];
}

/* Looks for new names, if the directory has changed. */
static void scan(struct sampler *s)
{
	struct dirent *entry;
	struct stat st;
	DIR *names;
	int fd;

	if (fstat(s->fd, &st) != 0 ||
	    !memcmp(&st.st_mtim, &s->scanned, sizeof(s->scanned)))
		return;
	fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	names = fd == -1 ? NULL : fdopendir(fd);
	if (!names) {
		if (fd != -1)
			close(fd);
		return;
	}
	s->scanned = st.st_mtim;
	while ((entry = readdir(names)))
		if (is_log(entry->d_name))
			add_live(s, entry->d_name);
	closedir(names);
}

/* --- the figures of a log --- */

/* A program may write to its log what it likes. */
static uint64_t whole_ns(double ns)
{
	return ns > 0 ? (uint64_t)fmin(ns, 0x1p62) : 0;
}

static void add_buckets(uint32_t *to, uint32_t *last, const struct hist *h)
{
	uint32_t now[ROWS_BUCKETS] = {0};
	unsigned i;

	rows_add_hist(now, h);
	for (i = 0; i < ROWS_BUCKETS; i++) {
		/* A counter of 32 bits may have gone round. */
		to[i] += now[i] - last[i];
		last[i] = now[i];
	}
}

static void add_op(struct rows_op *to, struct rows_op *last,
		   const struct log_op *now)
{
	to->count += grown(&last->count, now->count);
	to->errors += grown(&last->errors, now->errors);
	to->wait_ns += grown(&last->wait_ns, whole_ns(now->wait.sum_ns));
	to->kernel_ns += grown(&last->kernel_ns, whole_ns(now->kernel.sum_ns));
	add_buckets(to->wait, last->wait, &now->wait);
	add_buckets(to->kernel, last->kernel, &now->kernel);
}

static void add_log(struct sampler *s, struct live *live,
		    const struct log_process *p)
{
	unsigned i;

	for (i = 0; i < OP_COUNT; i++) {
		if (p->op[i].count == 0)
			continue;
		if (!live->op[i])
			live->op[i] = xcalloc(1, sizeof(*live->op[i]));
		add_op(&s->now.op[i], live->op[i], &p->op[i]);
	}
}

/* A mapping keeps its file open for writing.  Unlike a look for the process
 * this sees other pid namespaces too. */
static bool is_written(const struct sampler *s, const struct live *live)
{
	int file = openat(s->fd, live->name,
			  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool written;

	if (file == -1)
		return false;
	written = fcntl(file, F_SETLEASE, F_RDLCK) != 0 && errno == EAGAIN;
	close(file);
	return written;
}

static bool read_log(struct sampler *s, struct live *live)
{
	char *path = xasprintf("%s/%s", s->path, live->name);
	char why[256];
	struct log *log = log_open(path, why);

	free(path);
	/* It may be on its way: its process makes it, or has no second time
	 * to measure its clock by. */
	if (!log)
		return false;
	live->pid = log_process(log)->pid;
	live->runs = log_process_runs(log_process(log));
	add_log(s, live, log_process(log));
	log_close(log);
	return true;
}

/* True when there is nothing more to come of it. */
static bool look_at_log(struct sampler *s, struct live *live)
{
	if (!read_log(s, live) || live->runs || is_written(s, live))
		return false;
	/* What came between that and its end. */
	read_log(s, live);
	return true;
}

/* In turn, as many as the time allows. */
static void look_at_logs(struct sampler *s, uint64_t budget_ns)
{
	uint64_t end = spent_ns() + budget_ns;
	size_t left = s->live_count, at;

	for (; left > 0 && spent_ns() < end; left--) {
		at = s->next_live < s->live_count ? s->next_live : 0;
		s->next_live = at + 1;
		if (look_at_log(s, s->live[at])) {
			drop_live(s, at);
			s->next_live = at;
		}
	}
}

/* --- processes and their threads --- */

static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd == -1 ? -1 : read(fd, text, size - 1);

	if (fd != -1)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Field `number` of /proc/PID/stat, counted from the state, which is 3. */
static uint64_t stat_field(const char *state, int number)
{
	for (int i = 3; i < number && state; i++) {
		state = strchr(state, ' ');
		state = state ? state + 1 : NULL;
	}
	return state ? strtoull(state, NULL, 10) : 0;
}

static void look_at_process(struct sampler *s, struct live *live)
{
	uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	char path[64], text[1024], *state;

	snprintf(path, sizeof(path), "/proc/%u/stat", live->pid);
	if (!read_text(path, text, sizeof(text)))
		return;
	state = strrchr(text, ')'); /* the name may hold anything */
	if (!state || state[1] != ' ')
		return;
	state += 2;
	s->now.minor_faults += grown(&live->minor, stat_field(state, 10));
	s->now.major_faults += grown(&live->major, stat_field(state, 12));
	s->now.user_ns +=
		grown(&live->user_ns, stat_field(state, 14) * tick_ns);
	s->now.system_ns +=
		grown(&live->system_ns, stat_field(state, 15) * tick_ns);
	s->now.processes++;
	s->now.threads += (uint32_t)stat_field(state, 20);
}

/* Those that were not seen of late make room. */
static void forget_threads(struct sampler *s)
{
	size_t kept = 0, i;

	for (i = 0; i < s->thread_count; i++)
		if (s->ticks - s->thread[i].seen < 2)
			s->thread[kept++] = s->thread[i];
	s->thread_count = kept;
}

static struct thread *find_thread(struct sampler *s, uint32_t pid, uint32_t tid)
{
	struct thread *t;
	size_t i;

	for (i = 0; i < s->thread_count; i++) {
		t = &s->thread[i];
		if (t->is.tid == tid && t->is.pid == pid)
			return t;
	}
	if (s->thread_count == ROWS_THREADS)
		forget_threads(s);
	if (s->thread_count == ROWS_THREADS)
		return NULL;
	t = &s->thread[s->thread_count++];
	*t = (struct thread){.is = {.pid = pid, .tid = tid}};
	return t;
}

static uint64_t status_number(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void take_name(struct rows_thread *t, const char *text)
{
	static const char head[] = "Name:\t";
	size_t length;

	if (strncmp(text, head, sizeof(head) - 1))
		return;
	text += sizeof(head) - 1;
	length = strcspn(text, "\n");
	memset(t->name, 0, sizeof(t->name));
	memcpy(t->name, text,
	       length < sizeof(t->name) ? length : sizeof(t->name));
}

/* "time on a CPU, time in its queue, slices" */
static void look_at_queue(struct sampler *s, struct rows_thread *t)
{
	char path[64], text[128], *second;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/schedstat", t->pid,
		 t->tid);
	if (!read_text(path, text, sizeof(text)))
		return;
	second = strchr(text, ' ');
	if (second)
		s->now.queue_ns +=
			grown(&t->queue_ns, strtoull(second, NULL, 10));
}

static void look_at_thread(struct sampler *s, uint32_t pid, uint32_t tid)
{
	char path[64], text[4096];
	struct thread *t;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/status", pid, tid);
	if (!read_text(path, text, sizeof(text)))
		return;
	t = find_thread(s, pid, tid);
	if (!t)
		return;
	t->seen = s->ticks;
	take_name(&t->is, text);
	s->now.voluntary_switches +=
		grown(&t->is.voluntary_switches,
		      status_number(text, "\nvoluntary_ctxt_switches:\t"));
	s->now.involuntary_switches +=
		grown(&t->is.involuntary_switches,
		      status_number(text, "\nnonvoluntary_ctxt_switches:\t"));
	look_at_queue(s, &t->is);
}

/* From where the time ran out at the last tick. */
static void look_at_threads(struct sampler *s, struct live *live, uint64_t end)
{
	struct dirent *entry = NULL;
	size_t at = 0, skip = live->skip;
	char path[64];
	DIR *tasks;

	live->skip = 0;
	snprintf(path, sizeof(path), "/proc/%u/task", live->pid);
	tasks = opendir(path);
	if (!tasks)
		return;
	while (spent_ns() < end && (entry = readdir(tasks))) {
		if (!isdigit((unsigned char)*entry->d_name) || at++ < skip)
			continue;
		look_at_thread(s, live->pid,
			       (uint32_t)strtoul(entry->d_name, NULL, 10));
	}
	if (entry)
		live->skip = at;
	closedir(tasks);
}

static void look_at_tasks(struct sampler *s)
{
	uint64_t end = spent_ns() + TASK_BUDGET_NS;
	size_t left = s->live_count;
	struct live *live;

	for (; left > 0 && spent_ns() < end; left--) {
		if (s->next_task >= s->live_count)
			s->next_task = 0;
		live = s->live[s->next_task++];
		if (!live->runs)
			continue;
		look_at_process(s, live);
		look_at_threads(s, live, end);
	}
}

/* --- the file --- */

/* Nothing more once something was not written: the header comes last. */
static void put(struct sampler *s, const void *from, size_t size, off_t at)
{
	ssize_t n;

	if (s->error != 0)
		return;
	n = pwrite(s->file, from, size, at);
	if (n != (ssize_t)size)
		s->error = n < 0 ? errno : ENOSPC;
}

static void put_rows(struct sampler *s, uint32_t first)
{
	uint32_t i;

	for (i = first; i < s->header.rows; i++)
		s->row[i].check = rows_check(&s->row[i]);
	put(s, s->row + first, (s->header.rows - first) * sizeof(*s->row),
	    (off_t)(ROWS_AT + first * sizeof(*s->row)));
}

static void put_threads(struct sampler *s)
{
	struct rows_thread *threads =
		xcalloc(s->thread_count, sizeof(*threads));
	size_t i;

	for (i = 0; i < s->thread_count; i++)
		threads[i] = s->thread[i].is;
	put(s, threads, s->thread_count * sizeof(*threads), ROWS_HEADER_BYTES);
	s->header.threads = (uint32_t)s->thread_count;
	free(threads);
}

/* Each two become one, and so it goes on with rows twice as long. */
static void halve(struct sampler *s)
{
	uint32_t i;

	for (i = 0; i < ROWS_MAX / 2; i++) {
		s->row[i] = s->row[2 * i];
		rows_join(&s->row[i], &s->row[2 * i + 1]);
	}
	s->header.rows = ROWS_MAX / 2;
	s->ticks_per_row *= 2;
}

static void keep_row(struct sampler *s)
{
	struct rows_row *last = &s->row[s->header.rows - (s->header.rows > 0)];
	uint32_t first;

	if (s->header.rows > 0 && s->ticks_in_row < s->ticks_per_row) {
		rows_join(last, &s->now);
		s->ticks_in_row++;
		put_rows(s, s->header.rows - 1);
		return;
	}
	first = s->header.rows;
	if (s->header.rows == ROWS_MAX) {
		halve(s);
		first = 0;
	}
	s->row[s->header.rows++] = s->now;
	s->ticks_in_row = 1;
	put_rows(s, first);
}

/* --- ticks --- */

static void begin_row(struct sampler *s)
{
	uint64_t now = clocks_now();

	memset(&s->now, 0, sizeof(s->now));
	s->now.from_ns = s->last_ns;
	s->now.span_ns = now - s->last_ns;
	s->last_ns = now;
	s->now.tlb_shootdowns = grown(&s->shootdowns, stats_tlb_shootdowns());
}

static void end_row(struct sampler *s)
{
	keep_row(s);
	put_threads(s);
	put(s, &s->header, sizeof(s->header), 0);
	s->begun |= s->error == 0;
}

void sampler_tick(struct sampler *s)
{
	if (s->error != 0)
		return;
	s->ticks++;
	begin_row(s);
	scan(s);
	look_at_logs(s, LOG_BUDGET_NS);
	look_at_tasks(s);
	end_row(s);
}

static void free_all(struct sampler *s)
{
	while (s->live_count > 0)
		drop_live(s, 0);
	if (s->file != -1)
		close(s->file);
	free(s->known.hash);
	free(s->live);
	free(s->thread);
	free(s->row);
	free(s);
}

int sampler_end(struct sampler *s)
{
	uint64_t end = spent_ns() + END_BUDGET_NS;
	int error;

	if (s->error == 0) {
		begin_row(s);
		scan(s);
		for (; s->live_count > 0 && spent_ns() < end; drop_live(s, 0))
			look_at_log(s, s->live[0]);
		s->header.missed += s->live_count;
		end_row(s);
	}
	error = s->error;
	if (!s->begun && s->file != -1)
		unlinkat(s->fd, ROWS_NAME, 0);
	free_all(s);
	return error;
}

/* The command inherits ours. */
static uint32_t cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		return (uint32_t)CPU_COUNT(&set);
	return (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
}

static void take_kernel(struct rows_header *h)
{
	struct utsname name;

	if (uname(&name) == 0)
		memcpy(h->kernel, name.release,
		       strnlen(name.release, sizeof(h->kernel)));
}

struct sampler *sampler_new(int fd, const char *path)
{
	struct sampler *s = xcalloc(1, sizeof(*s));

	s->fd = fd;
	s->path = path;
	s->file = openat(fd, ROWS_NAME,
			 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			 0600);
	s->error = s->file == -1 ? errno : 0;
	s->live = xcalloc(LIVE_MOST, sizeof(struct live *));
	s->thread = xcalloc(ROWS_THREADS, sizeof(*s->thread));
	s->row = xcalloc(ROWS_MAX, sizeof(*s->row));
	s->ticks_per_row = 1;
	s->last_ns = clocks_now();
	s->shootdowns = stats_tlb_shootdowns();
	s->header = (struct rows_header){
		.magic = ROWS_MAGIC,
		.version = ROWS_VERSION,
		.row_bytes = sizeof(struct rows_row),
		.thread_bytes = sizeof(struct rows_thread),
		.op_count = OP_COUNT,
		.bucket_count = ROWS_BUCKETS,
		.cpus = cpus(),
	};
	take_kernel(&s->header);
	return s;
}
