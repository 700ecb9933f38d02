/* SPDX-License-Identifier: MIT */
/*
 * Locks with real threads and the real futex.  The schedules are few beside
 * those of tests/models; what is checked here is time and the kernel.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "clock.h"
#include "lock.h"
#include "locks.h"

#define LONG_NS UINT64_C(60000000000)
#define SHORT_NS UINT64_C(50000000)

enum { ROUNDS = 20000, SLEEPERS = 8 };

static struct lock lock;
static _Atomic uint32_t slots[LOCK_SLOTS];
static const struct lock_kind *kind;
static volatile uint64_t counter;
static _Atomic uint64_t failures, slept, wake_longest;

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void start(pthread_t *threads, int count, void *(*body)(void *))
{
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, body, NULL) != 0) {
			perror("pthread_create");
			exit(1);
		}
}

static void finish(const pthread_t *threads, int count)
{
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static void fresh(const struct lock_kind *which)
{
	memset((void *)&lock, 0, sizeof(lock));
	for (int i = 0; i < LOCK_SLOTS; i++)
		slots[i] = 0;
	lock_slots = slots;
	lock_permits = 1;
	kind = which;
	counter = 0;
	failures = slept = wake_longest = 0;
}

/* The kernel's letter for what a thread does. */
static char state_of(const char *tid)
{
	char path[64], line[256] = "", *name_end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", tid);
	f = fopen(path, "r");
	if (f == NULL)
		return '?';
	if (fgets(line, sizeof(line), f) == NULL)
		line[0] = '\0';
	fclose(f);
	name_end = strrchr(line, ')');
	return name_end != NULL && name_end[1] == ' ' ? name_end[2] : '?';
}

static int count_sleepers(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	int count = 0;

	if (tasks == NULL) {
		perror("/proc/self/task");
		exit(1);
	}
	while ((task = readdir(tasks)) != NULL)
		count +=
			task->d_name[0] != '.' && state_of(task->d_name) == 'S';
	closedir(tasks);
	return count;
}

/* Waits until so many threads sleep on the lock. */
static void let_sleep(int threads)
{
	while (count_sleepers() != threads)
		sched_yield();
}

static void note_wake(uint64_t wake)
{
	uint64_t longest = wake_longest;

	if (wake == 0)
		return;
	slept++;
	while (wake > longest &&
	       !atomic_compare_exchange_weak(&wake_longest, &longest, wake))
		;
}

/* As the gate does it. */
static int take_or_wait(struct lock_wait *wait)
{
	return kind->take(&lock, false) ? 0 : kind->acquire(&lock, wait);
}

static void *count_up(void *unused)
{
	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		struct lock_wait wait = {.limit_ns = LONG_NS};

		if (take_or_wait(&wait) != 0)
			failures++;
		counter = counter + 1;
		kind->release(&lock, false);
		note_wake(wait.wake);
	}
	return NULL;
}

static void check_counting(const struct lock_kind *which)
{
	int count = 4 * (int)sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t threads[64];

	count = count > 64 ? 64 : count;
	fresh(which);
	start(threads, count, count_up);
	finish(threads, count);
	check_u64(0, failures, "%s: nobody times out", which->name);
	check_u64((uint64_t)count * ROUNDS, counter,
		  "%s: no count is lost among %d threads", which->name, count);
	check_true(kind->take(&lock, false), "%s: free at the end",
		   which->name);
	check_true(wake_longest < LONG_NS, "%s: wake-ups took less than all",
		   which->name);
}

static int try_it(uint64_t limit_ns, double *took)
{
	struct lock_wait wait = {.limit_ns = limit_ns};
	double before = seconds();
	int result = take_or_wait(&wait);

	*took = seconds() - before;
	return result;
}

static void check_time_out(const struct lock_kind *which)
{
	double took;

	fresh(which);
	check_int(0, try_it(SHORT_NS, &took), "%s: free, at once", which->name);
	check_int(-ETIMEDOUT, try_it(SHORT_NS, &took), "%s: held, times out",
		  which->name);
	/* Late by what a busy machine needs to start a thread. */
	check_between(0.0499, 2, took, "%s: after its limit", which->name);
	check_int(-ETIMEDOUT, try_it(1000, &took), "%s: held, short limit",
		  which->name);
	check_true(!kind->take(&lock, false), "%s: held, not taken",
		   which->name);
	kind->release(&lock, false);
	check_true(kind->take(&lock, false), "%s: free again, taken",
		   which->name);
	kind->release(&lock, false);
	check_int(0, try_it(SHORT_NS, &took), "%s: free again", which->name);
}

static void check_free_release(const struct lock_kind *which)
{
	double took;

	fresh(which);
	kind->release(&lock, false);
	kind->release(&lock, false);
	check_int(0, try_it(SHORT_NS, &took),
		  "%s: free after releases too many", which->name);
	check_int(-ETIMEDOUT, try_it(SHORT_NS, &took), "%s: and held then",
		  which->name);
}

static _Atomic int results[SLEEPERS];
static _Atomic int arrived;

static void *sleep_on_it(void *unused)
{
	struct lock_wait wait = {.limit_ns = LONG_NS};
	int result = take_or_wait(&wait);

	(void)unused;
	note_wake(wait.wake);
	if (result == 0)
		kind->release(&lock, false);
	results[arrived++] = result;
	return NULL;
}

static void check_abandonment(const struct lock_kind *which)
{
	pthread_t threads[SLEEPERS];
	double took, before;
	int dead = 0;

	fresh(which);
	arrived = 0;
	try_it(LONG_NS, &took);
	start(threads, SLEEPERS, sleep_on_it);
	let_sleep(SLEEPERS);
	before = seconds();
	kind->abandon(&lock);
	finish(threads, SLEEPERS);
	for (int i = 0; i < SLEEPERS; i++)
		dead += results[i] == -EOWNERDEAD;
	check_int(SLEEPERS, dead, "%s: abandoned, all sleepers hear of it",
		  which->name);
	check_between(0, 10, seconds() - before, "%s: and soon", which->name);
	check_int(-EOWNERDEAD, try_it(LONG_NS, &took),
		  "%s: abandoned, for newcomers too", which->name);
	kind->release(&lock, false); /* the former holder, late */
	check_true(try_it(LONG_NS, &took) != -ETIMEDOUT,
		   "%s: abandoned and released late, nobody waits",
		   which->name);
}

static void check_wake_stamp(const struct lock_kind *which)
{
	pthread_t threads[SLEEPERS];
	uint64_t left = 0;
	double took;

	fresh(which);
	arrived = 0;
	try_it(LONG_NS, &took);
	start(threads, SLEEPERS, sleep_on_it);
	let_sleep(SLEEPERS);
	kind->release(&lock, false);
	finish(threads, SLEEPERS);
	for (int i = 0; i < SLEEPERS; i++)
		check_true(results[i] == 0, "%s: sleeper %d gets it",
			   which->name, i);
	check_between(1, SLEEPERS, (double)slept,
		      "%s: threads that slept and measured", which->name);
	for (int i = 0; i < LOCK_STAMPS; i++)
		left += lock.woken[i] != 0;
	/* A waker that is scheduled away behind its stamp may then wake a
	 * thread that fell asleep later: rare. */
	check_between(0, 2, (double)left, "%s: stamps that nobody claimed",
		      which->name);
}

/* One release, one sleeper, one stamp. */
static void check_one_stamp(const struct lock_kind *which)
{
	pthread_t thread;
	double took;

	fresh(which);
	arrived = 0;
	try_it(LONG_NS, &took);
	start(&thread, 1, sleep_on_it);
	let_sleep(1);
	kind->release(&lock, false);
	finish(&thread, 1);
	check_u64(1, slept, "%s: a sleeper measures its wake-up", which->name);
	check_between(1, 2e9, (double)wake_longest,
		      "%s: in ns, as long as one takes", which->name);
}

static void *note_turn(void *number)
{
	struct lock_wait wait = {.limit_ns = LONG_NS};

	if (take_or_wait(&wait) != 0)
		failures++;
	results[arrived++] = *(const int *)number;
	kind->release(&lock, false);
	return NULL;
}

/* Who asked first gets it first, and none that comes later in between. */
static void check_order(void)
{
	pthread_t threads[SLEEPERS];
	int numbers[SLEEPERS];
	double took;

	fresh(&lock_fifo);
	arrived = 0;
	try_it(LONG_NS, &took);
	for (int i = 0; i < SLEEPERS; i++) {
		numbers[i] = i;
		if (pthread_create(&threads[i], NULL, note_turn, &numbers[i]) !=
		    0) {
			perror("pthread_create");
			exit(1);
		}
		let_sleep(i + 1);
	}
	kind->release(&lock, false);
	check_true(!kind->take(&lock, false) || arrived == SLEEPERS,
		   "fifo: who comes now does not pass those who wait");
	finish(threads, SLEEPERS);
	for (int i = 0; i < SLEEPERS; i++)
		check_int(i, results[i], "fifo: turn %d", i);
	check_u64(0, failures, "fifo: nobody times out");
}

static _Atomic bool interrupted, go_on;

static void interrupt_wait(int signal)
{
	(void)signal;
	interrupted = true;
	while (!go_on)
		sched_yield();
}

/* A waiter that a handler keeps until the lock was given up, and a fresh one
 * has come round to its slot. */
static void check_late_leaver(void)
{
	const uint32_t stranger = (LOCK_SLOTS + 1) << 2 | 1;
	pthread_t thread;
	double took;

	fresh(&lock_fifo);
	arrived = 0;
	interrupted = go_on = false;
	signal(SIGUSR1, interrupt_wait);
	try_it(LONG_NS, &took); /* ticket 0, and the other one's is 1 */
	start(&thread, 1, sleep_on_it);
	let_sleep(1);
	pthread_kill(thread, SIGUSR1);
	while (!interrupted)
		sched_yield();
	kind->abandon(&lock);
	slots[1] = stranger;
	go_on = true;
	finish(&thread, 1);
	check_int(-EOWNERDEAD, results[0], "fifo: who leaves late leaves");
	check_u64(stranger, slots[1], "fifo: and leaves another's slot alone");
}

/* N get in, one more does not, until one of them leaves. */
static void check_limit(void)
{
	double took;

	fresh(&lock_limit);
	lock_permits = 3;
	for (int i = 0; i < 3; i++)
		check_int(0, try_it(LONG_NS, &took), "limit: %d of 3", i + 1);
	check_int(-ETIMEDOUT, try_it(SHORT_NS, &took), "limit: a fourth");
	kind->release(&lock, false);
	check_int(0, try_it(LONG_NS, &took), "limit: it after one left");
	lock_permits = 4;
	check_int(0, try_it(LONG_NS, &took), "limit: the limit may grow");
	lock_permits = 2;
	kind->release(&lock, false);
	kind->release(&lock, false);
	check_int(-ETIMEDOUT, try_it(SHORT_NS, &took), "limit: and shrink");
}

static void check_sharing(void)
{
	struct lock_wait shared = {.shared = true, .limit_ns = SHORT_NS};
	double took;

	fresh(&lock_rw);
	check_true(kind->take(&lock, true), "rw: one shares");
	check_true(kind->take(&lock, true), "rw: another one shares");
	check_int(-ETIMEDOUT, try_it(SHORT_NS, &took), "rw: one excludes");
	kind->release(&lock, true);
	kind->release(&lock, true);
	check_int(0, try_it(SHORT_NS, &took), "rw: it does, when they left");
	check_int(-ETIMEDOUT, kind->acquire(&lock, &shared),
		  "rw: then nobody shares");
	kind->release(&lock, false);
	check_true(kind->take(&lock, true), "rw: until it leaves");

	fresh(&lock_rw);
	kind->take(&lock, false);
	kind->release(&lock, true);
	check_true(!kind->take(&lock, true),
		   "rw: a share too many that is given back lets nobody in");
	kind->release(&lock, false);
	check_int(0, try_it(SHORT_NS, &took), "rw: nor keeps anybody out");
}

/* none: everybody passes, always. */
static void check_none(void)
{
	double took;

	fresh(&lock_none);
	check_int(0, try_it(1, &took), "none: at once");
	check_int(0, try_it(1, &took), "none: and again");
	kind->release(&lock, false);
	check_u64(0, lock.word, "none: leaves the word alone");
}

/* A waiter sleeps, and so perhaps asks, when this part of its limit is gone. */
static void sleep_after(double gone)
{
	struct lock_wait wait = {.limit_ns = LONG_NS};

	wait.deadline_ns = clock_monotonic() + LONG_NS -
			   (uint64_t)(gone * (double)LONG_NS);
	lock_sleep(&lock, lock.word + 1, &wait);
}

/* Of so many releases, those that keep the lock; *row: most of them in a row.
 */
static int count_kept(int releases, double asked_between, int *row)
{
	int kept = 0, now = 0;

	*row = 0;
	for (int i = 0; i < releases; i++) {
		now = lock_reserves(&lock) ? now + 1 : 0;
		kept += now != 0;
		if (now > *row)
			*row = now;
		sleep_after(asked_between);
	}
	return kept;
}

static void check_half(double asked_between, const char *name)
{
	int row;

	check_between(450, 550, count_kept(1000, asked_between, &row),
		      "%s: every other", name);
	check_between(1, 8, row, "%s: in a row", name);
}

/* Whoever stands at one place of a queue of any length gets his turn. */
static void check_no_step(void)
{
	for (unsigned step = 1; step <= 70; step++) {
		unsigned kept = 0;

		fresh(&lock_mutex);
		for (unsigned i = 0; i < 32 * step; i++) {
			sleep_after(0.04);
			kept += lock_reserves(&lock) && i % step == 0;
		}
		check_between(4, 28, kept, "kept at each release number %u",
			      step);
	}
}

/* The longer somebody waited the more releases keep the lock for sleepers. */
static void check_reservations(void)
{
	const double fresh_wait = 0.01, starved = 0.04, urgent = 0.1;
	int row;

	fresh(&lock_mutex);
	check_int(0, count_kept(100, fresh_wait, &row), "nobody starves");
	sleep_after(starved);
	check_between(40, 60, count_kept(100, fresh_wait, &row), "one starved");
	check_half(starved, "many starve");
	sleep_after(urgent);
	check_int(100, count_kept(100, starved, &row), "one is urgent");
	check_between(100, 300, count_kept(1000, fresh_wait, &row),
		      "nobody asks again: it ends");
	check_half(starved, "as at first");
	check_no_step();
}

static void check_list(void)
{
	static const char *const names[] = {
#define LOCK(name, help) #name,
#include "locks.def"
	};

	for (int id = 0; id < LOCK_COUNT; id++)
		check_text(names[id], locks_kind((enum lock_id)id)->name,
			   "lock number %d", id);
	locks_init();
	check_between(1, 4096, lock_cpus, "CPUs");
}

int main(void)
{
	check_list();
	check_none();
	for (int id = 0; id < LOCK_COUNT; id++) {
		const struct lock_kind *which = locks_kind((enum lock_id)id);

		if (which == &lock_none)
			continue;
		check_counting(which);
		check_time_out(which);
		check_free_release(which);
		check_abandonment(which);
		check_wake_stamp(which);
		check_one_stamp(which);
	}
	check_order();
	check_late_leaver();
	check_limit();
	check_sharing();
	check_reservations();
	return check_done();
}
