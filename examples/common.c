/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 65536
#define MAX_ITERATIONS UINT64_C(1000000000000)
#define MAX_SECONDS 1000000
#define NS_PER_S 1000000000

/* The kernel's numbers: its headers are not part of every libc. */
enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };

static const char *const mutex_names[] = {"plain", "each", NULL};

static const struct common_spec *spec;
static struct common_options options;
static void (*run_work)(struct common_worker *worker);
static pthread_barrier_t start_barrier;
static _Atomic uint64_t start_ns;
static void (*run_main)(struct common_worker *worker);
static _Atomic bool main_done;

/*
 * word: 0 free; 1 held; 2 held, someone may sleep.  Only a holder writes 0;
 * only a waiter writes 2.  A woken waiter competes with running threads.
 */
static struct {
	alignas(COMMON_LINE_BYTES) _Atomic uint32_t word;
} mutex;
static bool mutex_used;

static void say(const char *format, va_list args)
	__attribute__((format(printf, 1, 0)));

/* One write(2), so that lines of different threads do not mix. */
static void say(const char *format, va_list args)
{
	char line[512];
	int head = snprintf(line, sizeof(line), "%s: ", spec->name);
	size_t room = sizeof(line) - (size_t)head - 1;
	int body = vsnprintf(line + head, room, format, args);
	size_t used = (size_t)head;

	used += (size_t)body < room ? (size_t)body : room - 1;
	line[used++] = '\n';
	if (write(STDERR_FILENO, line, used) < 0)
		return;
}

void common_fail(const char *format, ...)
{
	static atomic_flag spoken = ATOMIC_FLAG_INIT;
	va_list args;

	while (atomic_flag_test_and_set(&spoken))
		pause();
	va_start(args, format);
	say(format, args);
	va_end(args);
	exit(1);
}

void common_refuse(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	exit(2);
}

static int flush_output(void)
{
	if (fflush(stdout) || ferror(stdout))
		common_fail("cannot write to standard output: %s",
			    strerror(errno));
	return 0;
}

static void print_help(void)
{
	const char *mutex_usage = spec->mutex ? " [-m MUTEX]" : "";
	const char *mutex_options =
		spec->mutex
			? "  -m MUTEX     the mutex in the source:\n"
			  "               plain: none (default)\n"
			  "               each: a futex mutex held over each "
			  "single call\n"
			: "";

	printf("usage: %s [-t THREADS] [-n LOOPS | -d SECONDS]%s%s\n\n"
	       "%s\n"
	       "  -t THREADS   number of threads, 1 to %d (default %u)\n"
	       "  -n LOOPS     loops of each thread (default %" PRIu64 ")\n"
	       "  -d SECONDS   loop for this long instead; decimals allowed\n"
	       "%s%s"
	       "  -h           this text\n\n"
	       "Example: %s %s\n",
	       spec->name, spec->usage, mutex_usage, spec->about, MAX_THREADS,
	       spec->threads, spec->iterations, spec->options, mutex_options,
	       spec->name, spec->example);
}

uint64_t common_number(int letter, const char *value, uint64_t least,
		       uint64_t most)
{
	bool digits = *value && !value[strspn(value, "0123456789")];
	uint64_t count;

	errno = 0;
	count = strtoull(value, NULL, 10);
	if (!digits || errno || count < least || count > most)
		common_refuse("-%c '%s': give a number from %" PRIu64
			      " to %" PRIu64,
			      letter, value, least, most);
	return count;
}

static uint64_t parse_seconds(int letter, const char *value)
{
	bool digits = !value[strspn(value, "0123456789.")];
	char *end;
	double ns = strtod(value, &end) * NS_PER_S;

	if (!digits || *end || !(ns >= 1 && ns <= 1.0 * MAX_SECONDS * NS_PER_S))
		common_refuse("-%c '%s': give seconds above 0, at most %d, "
			      "for example 2.5",
			      letter, value, MAX_SECONDS);
	return (uint64_t)ns;
}

unsigned int common_choice(int letter, const char *value,
			   const char *const *names)
{
	char list[128] = "";
	unsigned int i;

	for (i = 0; names[i]; i++) {
		if (!strcmp(value, names[i]))
			return i;
		if (i)
			strncat(list, ", ", sizeof(list) - strlen(list) - 1);
		strncat(list, names[i], sizeof(list) - strlen(list) - 1);
	}
	common_refuse("-%c '%s': give one of %s", letter, value, list);
}

static void parse_option(int letter)
{
	switch (letter) {
	case 't':
		options.threads = (unsigned int)common_number('t', optarg, 1,
							      MAX_THREADS);
		break;
	case 'n':
		options.iterations =
			common_number('n', optarg, 1, MAX_ITERATIONS);
		break;
	case 'd':
		options.duration_ns = parse_seconds('d', optarg);
		break;
	case 'h':
		print_help();
		exit(flush_output());
	case ':':
		common_refuse("-%c needs a value, see %s -h", optopt,
			      spec->name);
	case '?':
		common_refuse("unknown option -%c, see %s -h", optopt,
			      spec->name);
	case 'm':
		if (spec->mutex) {
			mutex_used = common_choice('m', optarg, mutex_names);
			break;
		}
		/* fall through */
	default:
		spec->option(letter, optarg);
	}
}

const struct common_options *common_start(const struct common_spec *program,
					  int argc, char **argv)
{
	char letters[32];
	int letter;

	spec = program;
	options.threads = spec->threads;
	snprintf(letters, sizeof(letters), ":t:n:d:h%s%s", spec->letters,
		 spec->mutex ? "m:" : "");
	while ((letter = getopt(argc, argv, letters)) != -1)
		parse_option(letter);
	if (optind < argc)
		common_refuse("unexpected argument '%s', see %s -h",
			      argv[optind], spec->name);
	if (options.iterations && options.duration_ns)
		common_refuse("-n and -d exclude each other, give one");
	if (!options.iterations && !options.duration_ns)
		options.iterations = spec->iterations;
	return &options;
}

uint64_t common_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

size_t common_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void wait_for_start(struct common_worker *worker)
{
	uint64_t none = 0;

	pthread_barrier_wait(&start_barrier);
	atomic_compare_exchange_strong(&start_ns, &none, common_now_ns());
	worker->started = true;
}

static bool is_due(const struct common_worker *worker)
{
	if (run_main && worker->index < options.threads)
		return !main_done;
	if (options.duration_ns)
		return common_now_ns() - start_ns < options.duration_ns;
	return worker->done < options.iterations;
}

bool common_more(struct common_worker *worker)
{
	if (!worker->started) {
		wait_for_start(worker);
		return true;
	}
	worker->done++;
	if (is_due(worker))
		return true;
	worker->end_ns = common_now_ns();
	return false;
}

static void *run_worker(void *worker)
{
	run_work(worker);
	return NULL;
}

static void start_threads(pthread_t *threads, struct common_worker *workers)
{
	for (unsigned int i = 0; i < options.threads; i++) {
		int error;

		workers[i] = (struct common_worker){.index = i};
		error = pthread_create(&threads[i], NULL, run_worker,
				       &workers[i]);
		if (error)
			common_fail("cannot start thread %u of %u (%s), "
				    "give fewer with -t",
				    i + 1, options.threads, strerror(error));
	}
}

static uint64_t join_threads(pthread_t *threads, struct common_worker *workers,
			     uint64_t *ops)
{
	uint64_t end_ns = 0;

	*ops = 0;
	for (unsigned int i = 0; i < options.threads; i++) {
		pthread_join(threads[i], NULL);
		*ops += workers[i].done;
		if (workers[i].end_ns > end_ns)
			end_ns = workers[i].end_ns;
	}
	return end_ns;
}

static double seconds_between(struct timeval before, struct timeval after)
{
	return (double)(after.tv_sec - before.tv_sec) +
	       (double)(after.tv_usec - before.tv_usec) / 1e6;
}

static void set_costs(struct common_usage *usage, const struct rusage *before,
		      const struct rusage *after)
{
	usage->user_s = seconds_between(before->ru_utime, after->ru_utime);
	usage->system_s = seconds_between(before->ru_stime, after->ru_stime);
	usage->faults = (uint64_t)(after->ru_minflt - before->ru_minflt +
				   after->ru_majflt - before->ru_majflt);
	usage->voluntary = (uint64_t)(after->ru_nvcsw - before->ru_nvcsw);
	usage->involuntary = (uint64_t)(after->ru_nivcsw - before->ru_nivcsw);
}

/* Main is the last worker when it has work of its own. */
static void run_beside(struct common_usage *usage)
{
	struct common_worker self = {.index = options.threads};

	if (!run_main) {
		pthread_barrier_wait(&start_barrier);
		return;
	}
	run_main(&self);
	main_done = true;
	usage->ops = self.done;
	usage->elapsed_s = (double)(self.end_ns - start_ns) / NS_PER_S;
}

static void run_all(struct common_worker *workers, pthread_t *threads,
		    struct common_usage *usage)
{
	struct rusage before, after;
	uint64_t end_ns, ops;

	start_threads(threads, workers);
	getrusage(RUSAGE_SELF, &before);
	run_beside(usage);
	end_ns = join_threads(threads, workers, &ops);
	getrusage(RUSAGE_SELF, &after);
	set_costs(usage, &before, &after);
	if (run_main) {
		usage->beside = ops;
		return;
	}
	usage->ops = ops;
	usage->elapsed_s = (double)(end_ns - start_ns) / NS_PER_S;
}

void common_run(void (*work)(struct common_worker *worker),
		struct common_usage *usage)
{
	size_t count = options.threads;
	struct common_worker *workers;
	pthread_t *threads = calloc(count, sizeof(*threads));

	/* aligned, so that no two threads' counters share a cache line */
	workers = aligned_alloc(COMMON_LINE_BYTES, count * sizeof(*workers));
	if (!workers || !threads)
		common_fail("no memory for %zu threads, give fewer with -t",
			    count);
	*usage = (struct common_usage){0};
	run_work = work;
	start_ns = 0;
	pthread_barrier_init(&start_barrier, NULL, options.threads + 1);
	run_all(workers, threads, usage);
	pthread_barrier_destroy(&start_barrier);
	free(workers);
	free(threads);
}

void common_run_beside(void (*work)(struct common_worker *worker),
		       void (*main_work)(struct common_worker *worker),
		       struct common_usage *usage)
{
	run_main = main_work;
	common_run(work, usage);
}

void common_use_mutex(void)
{
	mutex_used = true;
}

void common_enter_call(void)
{
	uint32_t seen = 0;
	int kept = errno;

	if (!mutex_used || atomic_compare_exchange_strong_explicit(
				   &mutex.word, &seen, 1, memory_order_acquire,
				   memory_order_relaxed))
		return;
	while (atomic_exchange_explicit(&mutex.word, 2, memory_order_acquire))
		syscall(SYS_futex, &mutex.word, FUTEX_WAIT_PRIVATE, 2, NULL,
			NULL, 0);
	errno = kept;
}

void common_leave_call(void)
{
	int kept = errno;

	if (!mutex_used ||
	    atomic_exchange_explicit(&mutex.word, 0, memory_order_release) != 2)
		return;
	syscall(SYS_futex, &mutex.word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = kept;
}

const char *common_size(void)
{
	static char text[80];
	const char *plural = options.threads == 1 ? "" : "s";

	if (options.duration_ns)
		snprintf(text, sizeof(text), "%u thread%s, %g seconds",
			 options.threads, plural,
			 (double)options.duration_ns / NS_PER_S);
	else
		snprintf(text, sizeof(text),
			 "%u thread%s, %" PRIu64 " loops each", options.threads,
			 plural, options.iterations);
	return text;
}

void common_print_usage(const struct common_usage *usage)
{
	printf("%10s %10s %10s %12s %12s %12s\n"
	       "%10.3f %10.3f %10.3f %12" PRIu64 " %12" PRIu64 " %12" PRIu64
	       "\n",
	       "elapsed s", "user s", "system s", "page faults", "voluntary",
	       "involuntary", usage->elapsed_s, usage->user_s, usage->system_s,
	       usage->faults, usage->voluntary, usage->involuntary);
}

int common_finish(uint64_t ops, double elapsed_s)
{
	printf("ops_per_second: %.2f\n", (double)ops / elapsed_s);
	return flush_output();
}
