/* SPDX-License-Identifier: MIT */
/* Verdicts on runs that never were: each cause, and each remedy, on its own. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../tools/judge.h"
#include "check.h"
#include "make_log.h"

enum { SLOTS = 16384, US = 1000, MS = 1000000, KIB = 1024, MIB = 1 << 20 };

static const char *path;

/* --- a run --- */

struct run {
	struct make_log log;
	struct record_dir info;
	bool has_info;
	uint64_t end;
	uint64_t queue_ns;
	const char *kernel;
	struct verdict verdict;
};

static struct run begin(const char *settings, unsigned threads)
{
	struct run run = {.log = make_log_begin(path, 1, SLOTS, 1)};

	strcpy(run.log.header->settings, settings);
	run.log.header->threads = threads;
	return run;
}

/* One call of thread `tid`; others of its fields may be set before. */
static void call(struct run *run, struct record_event e, uint64_t at_ns,
		 uint64_t kernel_ns)
{
	uint64_t wait = record_event_wait(&e);
	bool gated = e.outcome == OUTCOME_GATED;

	e.time = MAKE_LOG_START_TICKS + at_ns;
	e.kernel_low = (uint32_t)kernel_ns;
	e.kernel_high = (uint16_t)(kernel_ns >> 32);
	e.weight = e.weight ? e.weight : 1;
	e.caller = e.caller ? e.caller : 0x1000u + e.op;
	e.layer = e.layer ? e.layer : CALLER_PROGRAM;
	make_log_event(&run->log, 0, e);
	make_log_count(&run->log, 0, e.op, gated ? wait : UINT64_MAX,
		       kernel_ns);
	if (at_ns + wait + kernel_ns > run->end)
		run->end = at_ns + wait + kernel_ns;
}

static struct record_event of(enum op op, uint32_t tid, uint64_t addr,
			      uint64_t length)
{
	return (struct record_event){
		.op = (uint8_t)op, .tid = tid, .addr = addr, .length = length};
}

/* A call of memory that gives this address. */
static struct record_event map(uint32_t tid, uint64_t addr, uint64_t length)
{
	struct record_event e = of(OP_MMAP, tid, 0, length);

	e.flags = MAP_PRIVATE | MAP_ANONYMOUS;
	e.fd = -1;
	e.result = (int64_t)addr;
	return e;
}

/* Ends the run after `lived_ns` of thread time, at least. */
static const struct verdict *judge(struct run *run, uint64_t lived_ns)
{
	struct verdict_facts facts = {.cpus = 4};
	struct digest *digest;
	struct log *log;
	char why[256];

	run->log.header->end =
		make_log_pair(&run->log, MAKE_LOG_START_TICKS + run->end + 1);
	make_log_stripe(&run->log, 0)->thread_ticks = lived_ns;
	make_log_close(&run->log);
	log = log_open(path, why);
	if (!log) {
		printf("# %s\n", why);
		exit(1);
	}
	facts.process = log_process(log);
	digest = digest_read(log, 0, UINT64_MAX);
	facts.digest = digest;
	facts.info = run->has_info ? &run->info : NULL;
	facts.queue_ns = (double)run->queue_ns;
	facts.kernel = run->kernel;
	run->verdict = judge_process(&facts);
	digest_free(digest);
	log_close(log);
	return &run->verdict;
}

static const struct verdict_item *find(const struct verdict_item *items,
				       size_t count, int id)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (items[i].id == id)
			return &items[i];
	return NULL;
}

static const struct verdict_item *cause(const struct verdict *v, int id)
{
	return find(v->cause, v->causes, id);
}

static const struct verdict_item *remedy(const struct verdict *v, int id)
{
	return find(v->remedy, v->remedies, id);
}

static void check_answer(enum verdict_answer expected, const struct verdict *v,
			 const char *what)
{
	if (!check_text(verdict_answer_name(expected),
			verdict_answer_name(v->answer), "answer: %s", what))
		printf("# %s\n", v->headline);
}

/* --- calls that meet and calls that do not --- */

/* Thread 1 holds for 100 us every ms; thread 2 comes into half of these, then
 * takes `crowded_ns`, and between them, then takes 5 us. */
static void meet(struct run *run, struct record_event holder,
		 struct record_event comer, uint64_t hold_ns,
		 uint64_t crowded_ns)
{
	unsigned i;

	for (i = 0; i < 1000; i++) {
		holder.tid = 1;
		comer.tid = 2;
		call(run, holder, (uint64_t)i * 10 * MS, hold_ns);
		if (i % 2)
			call(run, comer, (uint64_t)i * 10 * MS + 1 * US,
			     crowded_ns);
		call(run, comer, (uint64_t)i * 10 * MS + 8 * MS, 5 * US);
	}
}

static void test_lock(void)
{
	struct run run = begin("lock=none\n", 2);
	const struct verdict *v;

	meet(&run, of(OP_MUNMAP, 0, 0, 64 * KIB), of(OP_MPROTECT, 0, 0, 4096),
	     2 * MS, 2 * MS);
	v = judge(&run, 10000u * UINT64_C(1000000));
	check_answer(VERDICT_YES, v, "calls that meet others take longer");
	check_between(0.99e9, 1.0e9, v->lost.likely, "so long they waited");
	check_between(0.9e9, 1.0e9, v->lost.low, "with little doubt");
	check_true(v->lost.low <= v->lost.likely &&
			   v->lost.likely <= v->lost.high,
		   "in a range");
	check_true(cause(v, CAUSE_LOCK) &&
			   strstr(cause(v, CAUSE_LOCK)->text, "munmap from"),
		   "who was in the way is named");
	check_true(remedy(v, REMEDY_LOCK), "a lock is worth a try");
	verdict_drop(&run.verdict);
}

/* The ring has gone round: what it keeps is not the run. */
static void test_part(void)
{
	struct run run = begin("lock=none\n", 2);
	const struct verdict *v;
	unsigned i;

	make_log_stripe(&run.log, 0)->capacity = 1024;
	make_log_stripe(&run.log, 0)->populated = 1024;
	for (i = 0; i < 4000; i++)
		call(&run, of(OP_MUNMAP, 1 + i % 2, 0, 64 * KIB),
		     (uint64_t)i * MS,
		     i % 2 && i < 4000 - 1024 ? 900 * US : 5 * US);
	v = judge(&run, 4000u * UINT64_C(1000000));
	check_true(strstr(v->headline, "judged by the newest 25") &&
			   strstr(v->headline, "a larger --log-size"),
		   "what is told by a part is told so");
	check_between(1e9, 1.5e9, v->lost.high, "the rest may have waited");
	verdict_drop(&run.verdict);
}

/* Events were switched off for a while: nothing was overwritten. */
static void test_gap(void)
{
	struct run run = begin("lock=none\nevents=all\n", 2);
	const struct verdict *v;
	unsigned i;

	for (i = 0; i < 3000; i++)
		make_log_count(&run.log, 0, OP_MUNMAP, UINT64_MAX,
			       i % 2 ? 900 * US : 5 * US);
	for (i = 0; i < 1000; i++)
		call(&run, of(OP_MUNMAP, 1 + i % 2, 0, 64 * KIB),
		     (uint64_t)i * MS, 5 * US);
	run.log.header->control.answered = 2;
	v = judge(&run, 4000u * UINT64_C(1000000));
	check_true(strstr(v->headline, "judged by 25.0 % of the calls") &&
			   strstr(v->headline,
				  "events were not recorded all the time "
				  "(mmgate set)"),
		   "a gap has its reason");
	check_true(!strstr(v->headline, "--log-size") &&
			   !strstr(v->headline, "newest"),
		   "and no other");
	verdict_drop(&run.verdict);
}

static void test_no_lock(void)
{
	struct run run = begin("lock=none\n", 2);
	const struct verdict *v;

	meet(&run, of(OP_MUNMAP, 0, 0, 64 * KIB), of(OP_MPROTECT, 0, 0, 4096),
	     2 * MS, 5 * US);
	v = judge(&run, 5000u * UINT64_C(1000000));
	check_answer(VERDICT_NO, v, "calls that meet others cost the same");
	check_true(!cause(v, CAUSE_LOCK), "nobody waits for the lock");
	check_true(cause(v, CAUSE_WORK), "it is work");
	check_true(!remedy(v, REMEDY_LOCK), "and no lock is proposed");
	verdict_drop(&run.verdict);
}

/* A slow call makes others crowded, but has not waited itself. */
static void test_slow_calls(void)
{
	struct run run = begin("lock=none\n", 2);
	const struct verdict *v;
	unsigned i;

	for (i = 0; i < 2000; i++) {
		call(&run, of(OP_MUNMAP, 1, 0, 4096), (uint64_t)i * 10 * MS,
		     i % 10 ? 5 * US : 9 * MS);
		call(&run, of(OP_MUNMAP, 2, 0, 4096),
		     (uint64_t)i * 10 * MS + 1 * MS, i % 9 ? 5 * US : 4 * MS);
	}
	v = judge(&run, 20000u * UINT64_C(1000000));
	check_between(0, 0.1e9, v->lost.low, "slowness alone is no waiting");
	check_true(v->answer != VERDICT_YES, "nor a reason to blame the lock");
	verdict_drop(&run.verdict);
}

/* Eight threads are always inside: nobody comes in alone. */
static void test_crowd(void)
{
	struct run run = begin("lock=none\n", 8);
	const struct verdict *v;
	unsigned i, others;

	/* With n others inside it takes n + 1 turns of 10 us. */
	for (i = 0; i < 1000; i++)
		for (others = 0; others < 8; others++)
			if (others > 0 || i % 100 == 0)
				call(&run, of(OP_MPROTECT, others + 1, 0, 4096),
				     (uint64_t)i * MS + (others ? others : 1),
				     (others + 1) * 10 * US);
	v = judge(&run, 1000u * UINT64_C(1000000));
	check_answer(VERDICT_YES, v, "a price without a single one alone");
	check_between(0.7 * 0.27e9, 1.1 * 0.27e9, v->lost.likely,
		      "by how it grows with the crowd");
	check_true(v->lost.low <= v->lost.likely, "in its range");
	verdict_drop(&run.verdict);
}

/* Ten calls in a thousand came in alone, and were held up by something else. */
static void test_few_alone(void)
{
	struct run run = begin("lock=none\n", 2);
	const struct verdict *v;
	uint64_t at;
	unsigned i;

	for (i = 0; i < 990; i++) {
		at = (uint64_t)i * 10 * MS;
		call(&run, of(OP_MUNMAP, 1, 0, 64 * KIB), at, 2 * MS);
		call(&run, of(OP_MPROTECT, 2, 0, 4096), at + 1 * US,
		     i % 2 ? 5 * US : 2 * MS);
		if (i % 99 == 0)
			call(&run, of(OP_MPROTECT, 2, 0, 4096), at + 8 * MS,
			     1900 * US);
	}
	v = judge(&run, 5000u * UINT64_C(1000000));
	check_true(v->lost.low <= v->lost.likely &&
			   v->lost.likely <= v->lost.high,
		   "what is likely is in the range");
	check_true(cause(v, CAUSE_LOCK) && strstr(cause(v, CAUSE_LOCK)->text,
						  "all but 10 of 1.00 k"),
		   "what a few took alone is not told as a price");
	verdict_drop(&run.verdict);
}

/* Few came in alone, and one of these was held up by something else. */
static void test_outlier(void)
{
	struct run run = begin("lock=none\n", 2);
	const struct verdict *v;
	unsigned i;

	for (i = 0; i < 2000; i++) {
		call(&run, of(OP_MUNMAP, 1, 0, 64 * KIB), (uint64_t)i * 5 * MS,
		     2 * MS);
		call(&run, of(OP_MPROTECT, 2, 0, 4096),
		     (uint64_t)i * 5 * MS + 1 * US, i % 5 ? 5 * US : 1500 * US);
		if (i % 50 == 0)
			call(&run, of(OP_MPROTECT, 2, 0, 4096),
			     (uint64_t)i * 5 * MS + 3 * MS, 5 * US);
	}
	call(&run, of(OP_MPROTECT, 2, 0, 4096), i * UINT64_C(5) * MS, 200 * MS);
	v = judge(&run, 0);
	check_answer(VERDICT_PARTLY, v, "one slow call alone tells little");
	check_between(0, 0, v->lost.low, "it may be no waiting at all");
	check_between(0.2e9, 0.6e9, v->lost.likely, "and may be all of it");
	verdict_drop(&run.verdict);
}

/* Calls of many sizes, some of which were held up, whoever else was inside:
 * chance makes those beside others longer in one size and shorter in the next.
 */
static void test_chance(void)
{
	struct run run = begin("lock=none\n", 2);
	const struct verdict *v;
	uint64_t at = 0;
	unsigned i, k;

	for (k = 0; k < 20; k++)
		for (i = 0; i < 30; i++, at += i == 1 ? 2 * MS : 120 * US) {
			struct record_event e =
				of(OP_MPROTECT, 2, 0, UINT64_C(4096) << k);

			call(&run, of(OP_MUNMAP, 1, 0, 64 * KIB), at, 100 * US);
			call(&run, e, at + 1 * US,
			     i == 0 && k % 2 ? 900 * US : 5 * US);
			call(&run, e, at + (i == 0 ? 1 * MS : 110 * US),
			     i == 0 && k % 2 == 0 ? 900 * US : 5 * US);
		}
	v = judge(&run, 0);
	check_true(v->lost.low <= 0, "it may be no waiting");
	check_true(v->answer != VERDICT_PARTLY && v->answer != VERDICT_YES,
		   "and is not said to be");
	verdict_drop(&run.verdict);
}

/* A program that hardly makes calls, one of which lost its CPU. */
static void test_few_calls(void)
{
	struct run run = begin("lock=none\n", 2);
	const struct verdict *v;
	unsigned i;

	for (i = 0; i < 4; i++) {
		call(&run, of(OP_MUNMAP, 1, 0, 64 * KIB), (uint64_t)i * 20 * MS,
		     5 * MS);
		call(&run, of(OP_MPROTECT, 2, 0, 4096),
		     (uint64_t)i * 20 * MS + 1 * US, i == 1 ? 4 * MS : 5 * US);
		call(&run, of(OP_MPROTECT, 2, 0, 4096),
		     (uint64_t)i * 20 * MS + 8 * MS, 5 * US);
	}
	v = judge(&run, 20 * MS);
	check_true(v->lost.low <= 0 && v->lost.likely > 0.02 * 20 * MS,
		   "it may have waited");
	check_answer(VERDICT_NO, v, "a dozen calls tell nothing");
	verdict_drop(&run.verdict);
}

/* Advice that gives pages back goes side by side. */
static void test_shared(void)
{
	struct record_event zap = of(OP_MADVISE, 0, 0, 64 * KIB);
	struct run run = begin("lock=none\n", 2);
	const struct verdict *v;

	zap.arg = MADV_DONTNEED;
	meet(&run, zap, zap, 2 * MS, 2 * MS);
	v = judge(&run, 10000u * UINT64_C(1000000));
	check_answer(VERDICT_NO, v, "what shares the lock");
	check_between(0, 0, v->lost.likely, "does not wait for its like");
	verdict_drop(&run.verdict);
	run = begin("lock=none\n", 2);
	meet(&run, of(OP_MUNMAP, 0, 0, 64 * KIB), zap, 2 * MS, 2 * MS);
	v = judge(&run, 10000u * UINT64_C(1000000));
	check_answer(VERDICT_YES, v, "but for what excludes it");
	verdict_drop(&run.verdict);
}

/* Maps that take 600 us, with no other call there. */
static struct run sleepy(uint32_t flags, uint64_t switches)
{
	struct run run = begin("lock=none\n", 2);
	struct record_event e;
	unsigned i;

	for (i = 0; i < 1000; i++) {
		e = map(1 + i % 2, 0x100000, 64 * KIB);
		e.flags |= flags;
		call(&run, e, (uint64_t)i * MS, i % 3 ? 600 * US : 4 * US);
	}
	run.has_info = true;
	run.info.voluntary_switches = switches;
	return run;
}

/* What held the lock is no call: a page fault, fork(). */
static void test_sleeps(void)
{
	struct run run = sleepy(0, 2000);
	const struct verdict *v;

	v = judge(&run, 2000u * UINT64_C(1000000));
	check_answer(VERDICT_YES, v, "maps that slept");
	check_between(0.35e9, 0.45e9, v->lost.likely, "for so long");
	check_true(cause(v, CAUSE_LOCK) &&
			   strstr(cause(v, CAUSE_LOCK)->text, "page faults"),
		   "and for whom");
	verdict_drop(&run.verdict);
	run = sleepy(0, 20);
	v = judge(&run, 2000u * UINT64_C(1000000));
	check_answer(VERDICT_NO, v, "maps that had the CPU taken away");
	verdict_drop(&run.verdict);
	run = sleepy(MAP_FIXED, 2000);
	v = judge(&run, 2000u * UINT64_C(1000000));
	check_answer(VERDICT_NO, v, "maps over something have more to do");
	verdict_drop(&run.verdict);
}

static void test_one_thread(void)
{
	struct run run = begin("lock=none\n", 1);
	const struct verdict *v;
	unsigned i;

	for (i = 0; i < 1000; i++)
		call(&run, of(OP_MUNMAP, 1, 0, MIB), (uint64_t)i * MS,
		     900 * US);
	v = judge(&run, 0);
	check_answer(VERDICT_NO, v, "one thread");
	check_true(cause(v, CAUSE_ALONE) &&
			   strstr(v->headline, "one thread makes all"),
		   "it is said");
	check_between(0, 0, v->lost.high, "nothing can be lost");
	verdict_drop(&run.verdict);
}

/* What found no room in the log may be anything. */
static void test_unrecorded(void)
{
	const uint64_t lost[] = {10, 100};
	const struct verdict *v;
	unsigned i, n;

	for (n = 0; n < 2; n++) {
		struct run run = begin("lock=none\n", 1);

		for (i = 0; i < 1000; i++)
			call(&run, of(OP_MUNMAP, 1, 0, MIB), (uint64_t)i * MS,
			     900 * US);
		run.log.header->unrecorded = lost[n];
		v = judge(&run, 0);
		check_answer(n ? VERDICT_UNKNOWN : VERDICT_NO, v,
			     n ? "a tenth is lost" : "a hundredth is lost");
		check_true(!n || strstr(v->headline, "100 calls found no room"),
			   "it is said");
		verdict_drop(&run.verdict);
	}
}

/* And when it was all of them, no figure is one. */
static void test_all_unrecorded(void)
{
	struct run run = begin("lock=none\n", 4);
	const struct verdict *v;

	run.log.header->unrecorded = 100;
	v = judge(&run, 4000u * UINT64_C(1000000));
	check_answer(VERDICT_UNKNOWN, v, "no call has a figure");
	check_true(strstr(v->headline, "100 calls found no room"),
		   "it is said");
	check_u64(0, v->causes, "nothing is blamed");
	check_true(remedy(v, REMEDY_NOTHING), "and room is asked for");
	verdict_drop(&run.verdict);
}

static void test_above(void)
{
	struct run run = begin("lock=none\n", 4);
	const struct verdict *v;
	unsigned i;

	for (i = 0; i < 1000; i++)
		call(&run, of(OP_MUNMAP, 1 + i % 4, 0, 4096), (uint64_t)i * MS,
		     3 * US);
	v = judge(&run, 4000u * UINT64_C(1000000));
	check_answer(VERDICT_NO, v, "calls that take next to nothing");
	check_true(cause(v, CAUSE_ABOVE) && remedy(v, REMEDY_ABOVE),
		   "look above them");
	verdict_drop(&run.verdict);
}

/* --- what looks alike --- */

static void test_carriers(void)
{
	struct record_event collapse = of(OP_MADVISE, 0, 0, 2 * MIB);
	struct record_event populate = map(0, 0x10000, 8 * MIB);
	const struct {
		const char *what;
		struct record_event holder;
		int cause, remedy;
	} rows[] = {
		{"huge unmaps", of(OP_MUNMAP, 0, 0, UINT64_C(4) << 30),
		 CAUSE_HUGE, REMEDY_SPLIT},
		{"huge pages", collapse, CAUSE_THP, REMEDY_THP},
		{"MAP_POPULATE", populate, CAUSE_POPULATE, REMEDY_POPULATE},
	};
	struct record_event holder;
	const struct verdict *v;
	struct run run;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		run = begin("lock=none\n", 2);
		holder = rows[i].holder;
		if (holder.op == OP_MADVISE)
			holder.arg = 25; /* MADV_COLLAPSE */
		if (holder.op == OP_MMAP)
			holder.flags |= MAP_POPULATE;
		meet(&run, holder, of(OP_MPROTECT, 0, 0, 4096), 4 * MS, 4 * MS);
		v = judge(&run, 20000u * UINT64_C(1000000));
		check_answer(VERDICT_INDIRECT, v, rows[i].what);
		check_true(cause(v, rows[i].cause), "%s: named", rows[i].what);
		check_true(remedy(v, rows[i].remedy), "%s: with a remedy",
			   rows[i].what);
		check_true(!remedy(v, REMEDY_LOCK), "%s: no lock helps",
			   rows[i].what);
		verdict_drop(&run.verdict);
	}
}

/* Reservations that are hardly used: some of their unmaps lost the CPU. */
static void test_reserved(void)
{
	struct run run = begin("lock=none\n", 2);
	const struct verdict *v;
	uint64_t at, ns;
	unsigned i;

	for (i = 0; i < 1000; i++) {
		at = (uint64_t)i * 10 * MS;
		ns = i % 5 ? 20 * US : 4 * MS;
		call(&run, of(OP_MUNMAP, 1, 0, UINT64_C(4) << 30), at, ns);
		call(&run, of(OP_MPROTECT, 2, 0, 4096), at + 1 * US,
		     i % 5 ? 5 * US : ns);
		call(&run, of(OP_MPROTECT, 2, 0, 4096), at + 8 * MS, 5 * US);
	}
	v = judge(&run, 2000u * UINT64_C(1000000));
	check_answer(VERDICT_YES, v, "large and short unmaps in the way");
	check_true(!cause(v, CAUSE_HUGE) && !remedy(v, REMEDY_SPLIT),
		   "their size is not the cause");
	verdict_drop(&run.verdict);
}

static void test_shootdowns(void)
{
	struct run run = begin("lock=none\n", 5);
	struct record_event e = of(OP_MADVISE, 1, 0x7000, 16 * KIB);
	const struct verdict *v;
	unsigned i;

	e.arg = MADV_DONTNEED;
	for (i = 0; i < 5000; i++) {
		e.addr = 0x7000 + (uint64_t)i * MIB;
		call(&run, e, (uint64_t)i * 100 * US, 50 * US);
	}
	run.has_info = true;
	run.info.tlb_shootdowns = 15000;
	v = judge(&run, 2000u * UINT64_C(1000000));
	check_answer(VERDICT_NO, v, "one that interrupts four others");
	check_true(cause(v, CAUSE_SHOOTDOWN) &&
			   strstr(v->headline, "shoot-downs"),
		   "shoot-downs are named");
	check_true(remedy(v, REMEDY_CPUS) && !remedy(v, REMEDY_LOCK),
		   "fewer CPUs, and no lock");
	verdict_drop(&run.verdict);
}

static void test_reader(void)
{
	const uint64_t period = 100 * MS;
	struct run run = begin("lock=none\n", 2);
	const struct verdict *v;
	unsigned i;

	for (i = 0; i < 5000; i++)
		call(&run, of(OP_MUNMAP, 1 + i % 2, 0, 4096), (uint64_t)i * MS,
		     (uint64_t)i * MS % period == 0 ? 20 * MS : 3 * US);
	v = judge(&run, 10000u * UINT64_C(1000000));
	check_true(cause(v, CAUSE_READER) &&
			   strstr(cause(v, CAUSE_READER)->text, "100 ms"),
		   "stalls at equal intervals: a reader, and its period");
	check_true(v->answer != VERDICT_YES && remedy(v, REMEDY_READER),
		   "it is to be found, not the program's calls");
	verdict_drop(&run.verdict);
	/* Maps are known to wait for the lock. */
	run = begin("lock=none\n", 2);
	for (i = 0; i < 5000; i++)
		call(&run, map(1 + i % 2, 0x100000, 4096), (uint64_t)i * MS,
		     (uint64_t)i * MS % period == 0 ? 20 * MS : 3 * US);
	run.has_info = true;
	run.info.voluntary_switches = 1000;
	v = judge(&run, 10000u * UINT64_C(1000000));
	check_answer(VERDICT_INDIRECT, v, "the lock, but for a reader");
	check_true(strstr(v->headline, "readers of /proc"), "who is named");
	verdict_drop(&run.verdict);
	/* The same stalls at any time. */
	run = begin("lock=none\n", 2);
	for (i = 0; i < 5000; i++)
		call(&run, of(OP_MUNMAP, 1 + i % 2, 0, 4096), (uint64_t)i * MS,
		     i * i % 97 == 3 ? 20 * MS : 3 * US);
	v = judge(&run, 10000u * UINT64_C(1000000));
	check_true(!cause(v, CAUSE_READER), "at any time: none");
	verdict_drop(&run.verdict);
	/* What a thread does itself, and always takes so long. */
	run = begin("lock=none\n", 2);
	for (i = 0; i < 5000; i++)
		call(&run,
		     i % 100 ? of(OP_MUNMAP, 1, 0, 4096)
			     : of(OP_MUNMAP, 2, 0, 16 * MIB),
		     (uint64_t)i * MS, i % 100 ? 3 * US : 5 * MS);
	v = judge(&run, 10000u * UINT64_C(1000000));
	check_true(!cause(v, CAUSE_READER), "a job of the program's own: none");
	verdict_drop(&run.verdict);
	/* Seldom and short beside the run: worth a line, no headline. */
	run = begin("lock=none\n", 2);
	for (i = 0; i < 5000; i++)
		call(&run, of(OP_MUNMAP, 1 + i % 2, 0, 4096), (uint64_t)i * MS,
		     (uint64_t)i * MS % period == 0 ? 2 * MS : 3 * US);
	v = judge(&run, 100000u * UINT64_C(1000000));
	check_true(cause(v, CAUSE_READER) && !strstr(v->headline, "smaps"),
		   "a reader that costs next to nothing is no headline");
	verdict_drop(&run.verdict);
}

static void test_faults(void)
{
	struct run run = begin("lock=none\n", 4);
	const struct verdict *v;
	unsigned i;

	for (i = 0; i < 100; i++)
		call(&run, map(1 + i % 4, 0x100000, 64 * MIB),
		     (uint64_t)i * 10 * MS, 3 * US);
	run.has_info = true;
	run.info.system_ns = 3000u * UINT64_C(1000000);
	run.info.minor_faults = 1000000;
	v = judge(&run, 4000u * UINT64_C(1000000));
	check_answer(VERDICT_NO, v, "first touches");
	check_true(cause(v, CAUSE_FAULTS) && strstr(v->headline, "page faults"),
		   "page faults are named");
	check_true(remedy(v, REMEDY_PREFAULT) && !remedy(v, REMEDY_LOCK),
		   "fill first; no lock");
	verdict_drop(&run.verdict);
	/* Two thousand faults take no seconds. */
	run = begin("lock=none\n", 4);
	for (i = 0; i < 100; i++)
		call(&run, map(1 + i % 4, 0x100000, 64 * MIB),
		     (uint64_t)i * 10 * MS, 3 * US);
	run.has_info = true;
	run.info.system_ns = 3000u * UINT64_C(1000000);
	run.info.minor_faults = 2000;
	v = judge(&run, 4000u * UINT64_C(1000000));
	check_true(!cause(v, CAUSE_FAULTS) && !remedy(v, REMEDY_PREFAULT),
		   "time in other system calls is not that of faults");
	verdict_drop(&run.verdict);
}

/* One in five calls takes 4 ms, and no other is there. */
static struct run stalled(const char *kernel)
{
	struct run run = begin("lock=none\n", 2);
	unsigned i;

	for (i = 0; i < 1000; i++)
		call(&run, of(OP_MPROTECT, 1 + i % 2, 0, 4096),
		     (uint64_t)i * 10 * MS,
		     (i * 2654435761u >> 16) % 5 ? 5 * US : 4 * MS);
	run.has_info = true;
	run.info.minor_faults = 100000;
	run.info.voluntary_switches = 900;
	run.kernel = kernel;
	return run;
}

static void test_stalls(void)
{
	struct run run = stalled("5.10.0-28-amd64");
	const struct verdict *v;

	v = judge(&run, 2000u * UINT64_C(1000000));
	check_answer(VERDICT_PARTLY, v, "calls and page faults meet");
	check_true(cause(v, CAUSE_STALLS), "stalls that no call explains");
	check_true(remedy(v, REMEDY_KERNEL), "a newer kernel helps them");
	verdict_drop(&run.verdict);
	run = stalled("6.4.0");
	v = judge(&run, 2000u * UINT64_C(1000000));
	check_answer(VERDICT_NO, v, "page faults leave calls alone");
	check_true(cause(v, CAUSE_STALLS) &&
			   strstr(cause(v, CAUSE_STALLS)->text, "fork()"),
		   "stalls that have other reasons");
	check_true(!remedy(v, REMEDY_KERNEL), "the kernel is new enough");
	verdict_drop(&run.verdict);
	run = stalled(NULL);
	run.has_info = false;
	run.queue_ns = 8000u * UINT64_C(1000000);
	v = judge(&run, 10000u * UINT64_C(1000000));
	check_answer(VERDICT_NO, v, "threads without a CPU");
	check_true(cause(v, CAUSE_CPUS), "too few CPUs are named");
	verdict_drop(&run.verdict);
}

/* --- what is not known --- */

static void test_unknown(void)
{
	struct record_event e = of(OP_MUNMAP, 1, 0, 4096);
	const struct verdict *v;
	struct run run;
	unsigned i, k;

	run = begin("lock=none\nevents=every:10\n", 2);
	e.weight = 10;
	for (i = 0; i < 1000; i++) {
		e.tid = 1 + i % 2;
		call(&run, e, (uint64_t)i * MS, i % 3 ? 5 * US : 900 * US);
		/* The others that it stands for. */
		for (k = 1; k < 10; k++)
			make_log_count(&run.log, 0, OP_MUNMAP, UINT64_MAX,
				       i % 3 ? 5 * US : 900 * US);
	}
	v = judge(&run, 1000u * UINT64_C(1000000));
	check_answer(VERDICT_UNKNOWN, v, "a sample of calls");
	check_true(strstr(v->headline, "--events all"), "and what would tell");
	verdict_drop(&run.verdict);
	run = begin("lock=none\nevents=off\n", 2);
	for (i = 0; i < 1000; i++)
		make_log_count(&run.log, 0, OP_MUNMAP, UINT64_MAX,
			       i % 3 ? 5 * US : 900 * US);
	run.end = 1000u * MS;
	v = judge(&run, 2000u * UINT64_C(1000000));
	check_answer(VERDICT_UNKNOWN, v, "no events");
	check_between(0.25e9, 0.35e9, v->lost.high, "with a limit");
	verdict_drop(&run.verdict);
	run = begin("lock=none\nevents=all\n", 2);
	run.log.header->ring_slots = 0;
	make_log_stripe(&run.log, 0)->capacity = 0;
	make_log_stripe(&run.log, 0)->populated = 0;
	for (i = 0; i < 1000; i++)
		make_log_count(&run.log, 0, OP_MUNMAP, UINT64_MAX,
			       i % 3 ? 5 * US : 900 * US);
	run.end = 1000u * MS;
	v = judge(&run, 2000u * UINT64_C(1000000));
	check_answer(VERDICT_UNKNOWN, v, "no room for events");
	check_true(strstr(v->headline, "a larger --log-size") &&
			   !strstr(v->headline, "--events"),
		   "a larger log is advised, not events");
	verdict_drop(&run.verdict);
	run = begin("lock=none\n", 0);
	v = judge(&run, 0);
	check_answer(VERDICT_NO, v, "nothing at all");
	verdict_drop(&run.verdict);
}

/* --- the gate --- */

static void test_gate(void)
{
	struct run run = begin("lock=mutex\n", 2);
	struct record_event holder = of(OP_MUNMAP, 1, 0, 64 * KIB);
	struct record_event waiter = of(OP_MMAP, 2, 0, 64 * KIB);
	const struct verdict *v;
	unsigned i;

	holder.outcome = waiter.outcome = OUTCOME_GATED;
	holder.caller = 0xabc;
	for (i = 0; i < 1000; i++) {
		call(&run, holder, (uint64_t)i * MS, 500 * US);
		waiter.wait_low = 400 * US;
		call(&run, waiter, (uint64_t)i * MS + 100 * US, 5 * US);
	}
	v = judge(&run, 1000u * UINT64_C(1000000));
	check_answer(VERDICT_UNKNOWN, v, "waiting at the gate");
	check_true(strstr(v->headline, "own gate (lock=mutex)") &&
			   strstr(v->headline, "--lock none"),
		   "the kernel's lock is not blamed for the gate's");
	check_true(cause(v, CAUSE_GATE) &&
			   strstr(cause(v, CAUSE_GATE)->text,
				  "munmap from 0xabc held it (100 %"),
		   "who held the lock is named");
	check_true(!remedy(v, REMEDY_LOCK) && remedy(v, REMEDY_NO_LOCK),
		   "there is a lock already");
	verdict_drop(&run.verdict);
}

/* --- remedies --- */

static void pairs(struct run *run, uint8_t layer, uint64_t length,
		  uint32_t other)
{
	struct record_event e;
	uint64_t addr, at;
	unsigned i;

	for (i = 0; i < 1000; i++) {
		at = (uint64_t)i * 100 * US;
		addr = UINT64_C(0x7f0000000000) + (uint64_t)(i % 7) * MIB;
		e = map(1, addr, length);
		e.layer = layer;
		call(run, e, at, 20 * US);
		e = of(OP_MUNMAP, other, addr, length);
		e.layer = layer;
		call(run, e, at + 50 * US, 30 * US);
	}
}

static void test_pairs(void)
{
	const struct verdict *v;
	struct run run;

	run = begin("lock=none\n", 2);
	pairs(&run, CALLER_PROGRAM, 256 * KIB, 1);
	v = judge(&run, 100 * MS);
	check_true(remedy(v, REMEDY_REUSE) && !remedy(v, REMEDY_MALLOC),
		   "a thread's own pairs: use them again");
	verdict_drop(&run.verdict);
	run = begin("lock=none\n", 2);
	pairs(&run, CALLER_LIBC, 256 * KIB, 1);
	v = judge(&run, 100 * MS);
	check_true(remedy(v, REMEDY_MALLOC) && !remedy(v, REMEDY_REUSE),
		   "libc's pairs: malloc's threshold");
	check_true(remedy(v, REMEDY_MALLOC) &&
			   strstr(remedy(v, REMEDY_MALLOC)->text,
				  "mmap_threshold=524288:"),
		   "which is given");
	verdict_drop(&run.verdict);
	run = begin("lock=none\n", 2);
	pairs(&run, CALLER_LIBC, 40 * MIB, 1);
	v = judge(&run, 100 * MS);
	check_true(remedy(v, REMEDY_MALLOC) &&
			   !strstr(remedy(v, REMEDY_MALLOC)->text, "TUNABLES"),
		   "beyond its limit no setting of malloc's is given");
	verdict_drop(&run.verdict);
	run = begin("lock=none\nevents=slow:1ms\n", 2);
	pairs(&run, CALLER_PROGRAM, 256 * KIB, 2);
	v = judge(&run, 100 * MS);
	check_true(!remedy(v, REMEDY_REUSE),
		   "where some calls are not known, pairs are none");
	verdict_drop(&run.verdict);
	run = begin("lock=none\n", 2);
	pairs(&run, CALLER_PROGRAM, 256 * KIB, 2);
	v = judge(&run, 100 * MS);
	check_true(remedy(v, REMEDY_REUSE) &&
			   strstr(remedy(v, REMEDY_REUSE)->text, "by another"),
		   "unmapped by another: a larger pool");
	verdict_drop(&run.verdict);
}

static void test_decay(void)
{
	struct run run = begin("lock=none\n", 2);
	struct record_event e = of(OP_MADVISE, 1, 0x10000, 64 * KIB);
	const struct verdict *v;
	unsigned i;

	e.arg = MADV_DONTNEED;
	for (i = 0; i < 1000; i++)
		call(&run, e, (uint64_t)i * 100 * US, 50 * US);
	v = judge(&run, 100 * MS);
	check_true(remedy(v, REMEDY_DECAY) &&
			   strstr(remedy(v, REMEDY_DECAY)->text, "99.9 %"),
		   "pages given back over and over: later");
	verdict_drop(&run.verdict);
}

/* Which a thread does at its end, with a stack that libc keeps for the next. */
static void test_kept_stacks(void)
{
	struct run run = begin("lock=none\n", 2);
	struct record_event map = of(OP_MMAP, 1, 0, 8 * MIB);
	struct record_event e = of(OP_MADVISE, 2, 0x10000, 7 * MIB);
	const struct verdict *v;
	unsigned i;

	map.result = 0x10000;
	map.arg = PROT_NONE;
	map.flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK;
	map.layer = CALLER_LIBC;
	call(&run, map, 0, 5 * US);
	e.arg = MADV_DONTNEED;
	e.layer = CALLER_LIBC;
	for (i = 1; i < 1000; i++)
		call(&run, e, (uint64_t)i * 100 * US, 50 * US);
	v = judge(&run, 100 * MS);
	check_true(!remedy(v, REMEDY_DECAY), "no setting of malloc's helps");
	verdict_drop(&run.verdict);
}

static void test_batch(void)
{
	struct run run = begin("lock=none\n", 2);
	struct record_event e = of(OP_MADVISE, 1, 0, 160 * KIB);
	const struct verdict *v;
	unsigned i;

	e.arg = MADV_DONTNEED;
	e.caller = 0xfeed;
	for (i = 0; i < 7000; i++) {
		e.addr = (uint64_t)i * 256 * KIB;
		call(&run, e, (uint64_t)i * 15 * US, 14 * US);
	}
	v = judge(&run, 200 * MS);
	check_true(remedy(v, REMEDY_BATCH) &&
			   strstr(remedy(v, REMEDY_BATCH)->text,
				  "7.00 k madvise calls, 1.07 GiB in 105 ms, "
				  "from 0xfeed"),
		   "a burst is one thing: calls, bytes, time and place");
	verdict_drop(&run.verdict);
	run = begin("lock=none\n", 2);
	for (i = 0; i < 7000; i++) {
		e = of(OP_MPROTECT, 1, 0x10000, 4096);
		e.arg = i % 2 ? PROT_READ : PROT_NONE;
		call(&run, e, (uint64_t)i * 15 * US, 14 * US);
	}
	v = judge(&run, 200 * MS);
	check_true(!remedy(v, REMEDY_BATCH), "to and fro is no burst");
	verdict_drop(&run.verdict);
}

static void test_small_files(void)
{
	struct run run = begin("lock=none\n", 2);
	struct record_event e;
	const struct verdict *v;
	uint64_t at;
	unsigned i;

	for (i = 0; i < 1000; i++) {
		at = (uint64_t)i * 100 * US;
		e = map(1, 0x7f0000000000, 16 * KIB);
		e.flags = MAP_PRIVATE;
		e.fd = 3;
		call(&run, e, at, 20 * US);
		call(&run, of(OP_MUNMAP, 1, 0x7f0000000000, 16 * KIB),
		     at + 50 * US, 20 * US);
	}
	v = judge(&run, 100 * MS);
	check_true(remedy(v, REMEDY_READ), "small files: read() them");
	check_true(!remedy(v, REMEDY_REUSE), "they cannot be used again");
	verdict_drop(&run.verdict);
}

static void test_names(void)
{
	int i;

	for (i = 0; i < CAUSE_COUNT; i++)
		if (!verdict_cause_name(i))
			check_true(false, "cause %d has no name", i);
	for (i = 0; i < REMEDY_COUNT; i++)
		if (!verdict_remedy_name(i))
			check_true(false, "remedy %d has no name", i);
}

int main(void)
{
	path = make_log_path();
	test_lock();
	test_part();
	test_gap();
	test_no_lock();
	test_slow_calls();
	test_crowd();
	test_few_alone();
	test_few_calls();
	test_outlier();
	test_chance();
	test_shared();
	test_sleeps();
	test_one_thread();
	test_unrecorded();
	test_all_unrecorded();
	test_above();
	test_carriers();
	test_reserved();
	test_shootdowns();
	test_reader();
	test_faults();
	test_stalls();
	test_unknown();
	test_gate();
	test_pairs();
	test_decay();
	test_kept_stacks();
	test_batch();
	test_small_files();
	test_names();
	return check_done();
}
