/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "causes.h"
#include "remedies.h"
#include "units.h"

static void add_remedy(struct verdict *v, enum verdict_remedy id, double ns,
		       char *text)
{
	v->remedy[v->remedies++] = (struct verdict_item){id, ns, text};
}

enum { MOST_THRESHOLD = 32 << 20 }; /* glibc's limit */

static uint64_t threshold_for(double bytes)
{
	uint64_t threshold = 128 * 1024;

	while ((double)threshold < 2 * bytes && threshold < MOST_THRESHOLD)
		threshold *= 2;
	return threshold;
}

static void try_malloc(struct verdict *v, const struct sums *s,
		       double malloc_ns)
{
	const struct habits *h = sums_habits(s);
	double bytes = sums_ratio(h->malloc_pairs.bytes,
				  (double)h->malloc_pairs.count);
	unsigned long long threshold = threshold_for(bytes);

	if (sums_matters(s, malloc_ns) && bytes >= MOST_THRESHOLD)
		add_remedy(v, REMEDY_MALLOC, malloc_ns,
			   sums_say("keep large buffers in the program, or use "
				    "another allocator: libc mapped and "
				    "unmapped %s blocks of %s on average, and "
				    "maps each of 32 MiB and more anew "
				    "whatever its settings",
				    units_count(h->malloc_pairs.count),
				    units_bytes(bytes)));
	else if (sums_matters(s, malloc_ns))
		add_remedy(
			v, REMEDY_MALLOC, malloc_ns,
			sums_say("let malloc keep the memory: libc mapped and "
				 "unmapped %s blocks of %s on average for "
				 "malloc "
				 "and free; GLIBC_TUNABLES=glibc.malloc.mmap_"
				 "threshold=%llu:glibc.malloc.trim_threshold=%"
				 "llu",
				 units_count(h->malloc_pairs.count),
				 units_bytes(bytes), threshold, 4 * threshold));
}

static void try_reuse(struct verdict *v, const struct sums *s)
{
	const struct habits *h = sums_habits(s);
	double malloc_ns = sums_scaled(s, &h->malloc_pairs);
	double own = sums_scaled(s, &h->repeated) - malloc_ns;

	try_malloc(v, s, malloc_ns);
	if (sums_matters(s, own))
		add_remedy(
			v, REMEDY_REUSE, own,
			sums_say("keep mappings and use them again: %s times a "
				 "thread mapped memory of a size that it had "
				 "mapped and unmapped before",
				 units_count(h->repeated.count)));
	if (sums_matters(s, sums_scaled(s, &h->crossed)) &&
	    sums_scaled(s, &h->crossed) > malloc_ns)
		add_remedy(
			v, REMEDY_REUSE, sums_scaled(s, &h->crossed),
			sums_say("keep a larger pool of mappings: %s mappings "
				 "of one thread were unmapped by another",
				 units_count(h->crossed.count)));
}

static void try_decay(struct verdict *v, const struct sums *s)
{
	const struct habits *h = sums_habits(s);
	double ns = sums_scaled(s, &h->zaps_again);

	/* A thread that ends gives its stack back. */
	if (!sums_matters(s, ns) ||
	    h->of_kind[KIND_MAP_STACK].count > h->zaps.count / 4)
		return;
	add_remedy(
		v, REMEDY_DECAY, ns,
		sums_say(
			"give memory back later: %s of the madvise(DONTNEED) "
			"calls gave back a range that had been used again "
			"since "
			"the last time; a decay time of the allocator "
			"(jemalloc: dirty_decay_ms) or a higher trim threshold "
			"(glibc: MALLOC_TRIM_THRESHOLD_) avoids them",
			units_percent(sums_ratio((double)h->zaps_again.count,
						 (double)h->zaps.count))));
}

static void try_stacks(struct verdict *v, const struct sums *s)
{
	const struct habits *h = sums_habits(s);
	double ns =
		sums_scaled(s, &h->stacks) + sums_kind_ns(s, KIND_MAP_STACK);

	if (!sums_matters(s, ns))
		return;
	add_remedy(
		v, REMEDY_STACKS, ns,
		sums_say(
			"keep threads, or more of their stacks: %s stacks were "
			"mapped for new threads",
			units_count(h->of_kind[KIND_MAP_STACK].count)));
}

static void try_batch(struct verdict *v, const struct sums *s)
{
	const struct habits *h = sums_habits(s);
	double ns = sums_scaled(s, &h->bursts) * 0.9;
	struct crowd_caller caller = {.op = h->burst.op,
				      .address = h->burst.caller,
				      .first_ns = h->burst.begin_ns};
	char *name;

	if (!sums_matters(s, ns) || h->burst.count < 64)
		return;
	name = sums_name(s, &caller);
	add_remedy(
		v, REMEDY_BATCH, ns,
		sums_say("one call in place of many: %s calls followed a like "
			 "call of the same thread at once; the longest row: %s "
			 "%s calls, %s in %s, from %s",
			 units_count(h->bursts.count),
			 units_count(h->burst.count), op_name(h->burst.op),
			 units_bytes(h->burst.bytes),
			 units_time((double)h->burst.ns), name));
	free(name);
}

static void try_read(struct verdict *v, const struct sums *s)
{
	const struct habits *h = sums_habits(s);
	double ns = sums_scaled(s, &h->small_files);

	if (!sums_matters(s, ns))
		return;
	add_remedy(
		v, REMEDY_READ, ns,
		sums_say(
			"read() small files in place of mapping them: %s files "
			"of %s on average were mapped and unmapped, which took "
			"longer than a copy would",
			units_count(h->small_files.count),
			units_bytes(sums_ratio(h->small_files.bytes,
					       (double)h->small_files.count))));
}

static void try_for_causes(struct verdict *v)
{
	static const struct {
		enum verdict_cause cause;
		enum verdict_remedy remedy;
		const char *text;
	} rows[] = {
		{CAUSE_HUGE, REMEDY_SPLIT,
		 "unmap very large areas in parts, or in a thread that nobody "
		 "waits for; madvise(DONTNEED) first leaves the lock to others "
		 "meanwhile"},
		{CAUSE_POPULATE, REMEDY_POPULATE,
		 "fill pages where nobody waits: at start-up, in smaller "
		 "steps, or by touching them after the call"},
		{CAUSE_THP, REMEDY_THP,
		 "look at /sys/kernel/mm/transparent_hugepage/defrag and "
		 "khugepaged; advise and collapse less often"},
		{CAUSE_READER, REMEDY_READER,
		 "find who reads this process's /proc/PID/smaps (a monitoring "
		 "agent, or the program itself), and make it read statm, or "
		 "seldom"},
		{CAUSE_FAULTS, REMEDY_PREFAULT,
		 "fill memory before the threads touch it "
		 "(MADV_POPULATE_WRITE), give each thread memory of its own, "
		 "or use huge pages"},
	};
	const struct verdict_item *cause;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		cause = causes_get(v, rows[i].cause);
		if (cause)
			add_remedy(v, rows[i].remedy, cause->ns,
				   sums_say("%s", rows[i].text));
	}
}

static void try_cpus(struct verdict *v, const struct sums *s)
{
	double per_call, ns;

	if (s->facts->process->threads <= 1 ||
	    !sums_shootdowns(s, &per_call, &ns))
		return;
	add_remedy(
		v, REMEDY_CPUS, ns / 2,
		sums_say(
			"fewer CPUs (taskset), or fewer and larger calls: TLB "
			"shoot-downs need none where the threads share a CPU"));
}

static bool is_bad(const struct verdict *v)
{
	return v->answer == VERDICT_YES || v->answer == VERDICT_PARTLY;
}

static void try_lock(struct verdict *v, const struct sums *s)
{
	bool none = !strcmp(s->lock, "none") || !*s->lock;

	if (none && is_bad(v))
		add_remedy(
			v, REMEDY_LOCK, v->lost.likely / 4,
			sums_say(
				"a lock at the gate: `mmgate run --lock mutex "
				"-- CMD`, and spin; it helps some programs and "
				"harms others, so measure both ways"));
	else if (!none && s->gate > SUMS_MUCH * s->lived)
		add_remedy(
			v, REMEDY_NO_LOCK, s->gate_shared,
			sums_say("measure without the lock (--lock none)%s",
				 s->gate_shared > s->gate / 2
					 ? ", or with --calls "
					   "mmap,munmap,mprotect: the kernel "
					   "runs madvise side by side"
					 : ""));
}

static void try_place(struct verdict *v, const struct sums *s)
{
	const struct habits *h = sums_habits(s);
	char place[16];

	log_setting(s->facts->process->settings, "place", place, sizeof(place));
	if (!strcmp(place, "thread") || !is_bad(v) ||
	    h->neighbours.count < 100 ||
	    (double)h->neighbours.count <
		    SUMS_HABIT * (double)h->of_kind[KIND_MAP].count)
		return;
	add_remedy(
		v, REMEDY_PLACE, v->lost.likely / 5,
		sums_say(
			"an address range per thread (--place thread): %s of "
			"the mappings lie side by side with another thread's, "
			"where the kernel makes one of them, with one lock for "
			"their page faults",
			units_percent(sums_ratio(
				(double)h->neighbours.count,
				(double)h->of_kind[KIND_MAP].count))));
}

static void try_kernel(struct verdict *v, const struct sums *s)
{
	const char *kernel = s->facts->kernel;
	const struct verdict_item *cause = causes_get(v, CAUSE_STALLS);

	if (!cause || !kernel || !sums_faults_meet_calls(s))
		return;
	add_remedy(v, REMEDY_KERNEL, cause->ns,
		   sums_say("a kernel of 6.4 or newer (this one is %s): there "
			    "page faults take a lock of their own mapping, "
			    "and seldom that of the whole address space",
			    kernel));
}

static void try_nothing(struct verdict *v, const struct sums *s)
{
	if (sums_is_blind(s))
		add_remedy(v, REMEDY_NOTHING, 0,
			   sums_say("give the log room first: a larger "
				    "--log-total, or -o where there is space"));
	else if (causes_get(v, CAUSE_ABOVE))
		add_remedy(
			v, REMEDY_ABOVE, 0,
			sums_say("nothing here: look above the system calls"));
	else
		add_remedy(v, REMEDY_NOTHING, 0,
			   sums_say("nothing that these figures show"));
}

void remedies_find(struct verdict *v, const struct sums *s)
{
	/* Where some calls are not known, an unmap may belong to another
	 * mapping than the last that is known at its address. */
	if (s->facts->digest && s->facts->digest->part == DIGEST_ALL) {
		try_reuse(v, s);
		try_decay(v, s);
		try_read(v, s);
		try_place(v, s);
	}
	if (s->facts->digest) {
		try_stacks(v, s);
		try_batch(v, s);
	}
	try_for_causes(v);
	try_kernel(v, s);
	try_cpus(v, s);
	try_lock(v, s);
	if (v->remedies == 0)
		try_nothing(v, s);
	qsort(v->remedy, v->remedies, sizeof(*v->remedy), verdict_by_ns);
}
