/* SPDX-License-Identifier: MIT */
/* The rows over time, from the sampler's hands into the reader's. */
#include <fcntl.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../tools/die.h"
#include "../../tools/rows.h"
#include "../../tools/sampler.h"
#include "check.h"
#include "make_log.h"

static const char *directory, *log_path;
static char *rows_path;

/* --- buckets --- */

static void test_buckets(void)
{
	static uint32_t buckets[ROWS_BUCKETS];
	double worst = 0, ns, got;
	unsigned i, misplaced = 0;

	for (i = 0; i < ROWS_BUCKETS; i++)
		misplaced += rows_bucket(rows_bucket_floor(i)) != i;
	check_u64(0, misplaced, "a bucket begins with its least value");
	check_u64(0, rows_bucket(127.9), "what is below is in the first");
	check_u64(ROWS_BUCKETS - 1, rows_bucket(1e300), "the last has no end");
	check_u64(0, rows_bucket(-1), "no time is none");
	for (ns = 200; ns < 5e9; ns *= 1.01) {
		memset(buckets, 0, sizeof(buckets));
		buckets[rows_bucket(ns)] = 1;
		got = rows_percentile(buckets, 0.5);
		if (got / ns - 1 > worst)
			worst = got / ns - 1;
		if (1 - got / ns > worst)
			worst = 1 - got / ns;
	}
	check_between(0, 0.25, worst, "a percentile is within 25 %%");
	buckets[ROWS_BUCKETS / 2] = 1000;
	ns = rows_bucket_floor(ROWS_BUCKETS / 2);
	check_between(0, 1.25, rows_percentile(buckets, 0.99) / ns,
		      "of many equal ones too");
	memset(buckets, 0, sizeof(buckets));
	check_u64(0, (uint64_t)rows_percentile(buckets, 0.99), "none of none");
}

/* --- a process of our own number, so that it lives --- */

static uint64_t unix_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct make_log begin_log(bool alive)
{
	struct make_log log = make_log_begin(log_path, 1, 0, 1);
	char exe[1024] = "";

	log.header->fresh[0] = make_log_pair(&log, 50000);
	log.header->pid = alive ? (uint32_t)getpid() : 999999999;
	log.header->started = unix_ns();
	if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0)
		strcpy(log.header->exe, exe);
	return log;
}

static void add_calls(struct make_log *log, unsigned count)
{
	for (; count > 0; count--)
		make_log_count(log, 0, OP_MUNMAP, 500, 4000);
	make_log_stripe(log, 0)->op[OP_MUNMAP].errors++;
}

static struct rows read_rows(void)
{
	struct rows rows;
	char why[256];

	if (!rows_read(&rows, directory, why))
		printf("# %s\n", *why ? why : "no rows");
	return rows;
}

static uint64_t sum_counts(const struct rows *rows)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < rows->count; i++)
		sum += rows_sum(&rows->row[i]).count;
	return sum;
}

static bool are_seamless(const struct rows *rows)
{
	size_t i;

	for (i = 1; i < rows->count; i++)
		if (rows->row[i].from_ns !=
		    rows->row[i - 1].from_ns + rows->row[i - 1].span_ns)
			return false;
	return true;
}

static int open_directory(void)
{
	unlink(rows_path);
	return open(directory, O_RDONLY | O_DIRECTORY);
}

static void test_a_life(void)
{
	struct make_log log = begin_log(true);
	int fd = open_directory();
	struct sampler *s = sampler_new(fd, directory);
	struct rows rows;
	struct rows_op sum;

	add_calls(&log, 10);
	sampler_tick(s);
	add_calls(&log, 5);
	sampler_tick(s);
	sampler_tick(s);
	add_calls(&log, 7);
	check_int(0, sampler_end(s), "a sampler ends well");
	rows = read_rows();
	check_u64(4, rows.count, "a row a tick and one for the end");
	check_u64(10, rows.row[0].op[OP_MUNMAP].count,
		  "the first has what was");
	check_u64(5, rows.row[1].op[OP_MUNMAP].count, "the next what came");
	check_u64(0, rows.row[2].op[OP_MUNMAP].count, "or that nothing came");
	check_u64(7, rows.row[3].op[OP_MUNMAP].count, "the last the rest");
	check_u64(1, rows.row[1].op[OP_MUNMAP].errors, "errors too");
	check_u64(20000, rows.row[1].op[OP_MUNMAP].kernel_ns, "and times");
	check_u64(2500, rows.row[1].op[OP_MUNMAP].wait_ns, "and waits");
	sum = rows_sum(&rows.row[1]);
	check_between(3000, 5000, rows_percentile(sum.kernel, 0.5),
		      "with a percentile");
	check_true(are_seamless(&rows), "no time between rows is left out");
	check_u64(1, rows.row[0].processes, "the process was seen alive");
	check_text("test_rows",
		   rows_name(&rows, (uint32_t)getpid(), (uint32_t)getpid()),
		   "its thread has a name");
	check_true(!rows_name(&rows, 1, 12345), "another has none");
	check_true(rows.cpus > 0 && *rows.kernel, "the machine is described");
	rows_drop(&rows);
	make_log_close(&log);
	close(fd);
}

static void test_ended_once(void)
{
	struct make_log log = begin_log(false);
	int fd = open_directory();
	struct sampler *s = sampler_new(fd, directory);
	struct rows rows;

	add_calls(&log, 3);
	make_log_close(&log);
	sampler_tick(s);
	sampler_tick(s);
	sampler_end(s);
	rows = read_rows();
	check_u64(3, sum_counts(&rows), "what has ended counts once");
	check_u64(0, rows.missed, "and nothing was missed");
	rows_drop(&rows);
	close(fd);
}

static void test_long_run(void)
{
	struct make_log log = begin_log(true);
	int fd = open_directory(), i;
	struct sampler *s = sampler_new(fd, directory);
	struct rows rows;
	struct stat st;

	for (i = 0; i < 3 * ROWS_MAX; i++) {
		add_calls(&log, 2);
		sampler_tick(s);
	}
	sampler_end(s);
	rows = read_rows();
	check_between(ROWS_MAX / 2, ROWS_MAX, (double)rows.count,
		      "rows merge when they are many");
	check_u64(6 * ROWS_MAX, sum_counts(&rows), "nothing gets lost by it");
	check_true(are_seamless(&rows), "nor time");
	check_u64(8, rows.row[0].op[OP_MUNMAP].count, "each is of four ticks");
	stat(rows_path, &st);
	check_true(st.st_size < 3 << 19, "the file stays small");
	rows_drop(&rows);
	make_log_close(&log);
	close(fd);
}

static void test_trouble(void)
{
	struct rlimit old, small = {8192, 8192};
	int fd = open_directory();
	struct sampler *s;

	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	s = sampler_new(fd, directory);
	sampler_tick(s);
	sampler_tick(s);
	check_int(EFBIG, sampler_end(s), "what cannot be written is said");
	check_true(access(rows_path, F_OK) != 0, "and leaves no half file");
	setrlimit(RLIMIT_FSIZE, &old);
	s = sampler_new(fd, directory);
	sampler_tick(s);
	sampler_end(s);
	s = sampler_new(fd, directory);
	sampler_tick(s);
	check_int(EEXIST, sampler_end(s), "what is there is left alone");
	close(fd);
}

/* --- files that lie --- */

static void write_at(size_t at, const void *bytes, size_t size)
{
	int fd = open(rows_path, O_WRONLY);

	if (pwrite(fd, bytes, size, (off_t)at) != (ssize_t)size)
		perror(rows_path);
	close(fd);
}

static void make_rows(void)
{
	struct make_log log = begin_log(true);
	int fd = open_directory();
	struct sampler *s = sampler_new(fd, directory);

	add_calls(&log, 1);
	sampler_tick(s);
	add_calls(&log, 1);
	sampler_tick(s);
	sampler_end(s);
	make_log_close(&log);
	close(fd);
}

static void test_lies(void)
{
	static const struct {
		const char *what;
		size_t at;
		uint64_t value;
	} lies[] = {
		{"another magic", 0, 1},
		{"another version", offsetof(struct rows_header, version), 9},
		{"rows of another size",
		 offsetof(struct rows_header, row_bytes), 8},
		{"more rows than there can be",
		 offsetof(struct rows_header, rows), UINT32_MAX},
		{"more threads than there can be",
		 offsetof(struct rows_header, threads), UINT32_MAX},
	};
	char why[256];
	struct rows rows;
	uint32_t value;
	size_t i;

	for (i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		make_rows();
		value = (uint32_t)lies[i].value;
		write_at(lies[i].at, &value, sizeof(value));
		check_true(!rows_read(&rows, directory, why) && *why,
			   "%s is refused with a reason", lies[i].what);
	}
	make_rows();
	value = 77;
	write_at(ROWS_AT + sizeof(struct rows_row) + 8, &value, sizeof(value));
	rows = read_rows();
	check_u64(2, rows.count, "a row that was half written is left out");
	rows_drop(&rows);
	make_rows();
	check_true(!truncate(rows_path, ROWS_AT + 100), "a file is cut");
	check_true(!rows_read(&rows, directory, why), "and has no row");
	unlink(rows_path);
	check_true(!rows_read(&rows, directory, why) && !*why,
		   "no file is no trouble");
	check_true(!symlink("/etc/passwd", rows_path), "a link is made");
	check_true(!rows_read(&rows, directory, why), "and not followed");
}

int main(void)
{
	directory = make_log_directory();
	log_path = make_log_path();
	rows_path = xasprintf("%s/" ROWS_NAME, directory);
	test_a_life();
	test_buckets();
	test_ended_once();
	test_long_run();
	test_trouble();
	test_lies();
	free(rows_path);
	return check_done();
}
