/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "judge.h"
#include "study.h"

static double cost_of(const struct log_process *p)
{
	double cost = 0;
	unsigned i;

	for (i = 0; i < OP_COUNT; i++)
		cost += p->op[i].wait.sum_ns + p->op[i].kernel.sum_ns;
	return cost;
}

/* What calls that found no room would have cost is not known; so that they
 * count for something: a microsecond each. */
static double weight_of(const struct log_process *p)
{
	return cost_of(p) + 1000 * (double)p->unrecorded;
}

/* The run's own figures are this process's when it made most of the calls. */
static bool stands_for_all(const struct log_dir *dir, const struct log *log)
{
	double all = 0;
	size_t i;

	if (dir->has_info && dir->info.unlogged > 0)
		return false;
	for (i = 0; i < dir->count; i++)
		all += weight_of(log_process(dir->logs[i]));
	return weight_of(log_process(log)) >= 0.9 * all;
}

static bool is_whole(const struct window *window)
{
	return window->since_ns == 0 && window->until_ns == UINT64_MAX;
}

static double queue_ns(const struct rows *rows)
{
	double sum = 0;
	size_t i;

	for (i = 0; rows && i < rows->count; i++)
		sum += (double)rows->row[i].queue_ns;
	return sum;
}

/* --- names --- */

/* The site that most of such calls' time is from; NULL: no sample of them. */
static const struct sites_row *site_of(const struct sites *sites, unsigned op,
				       uint64_t address)
{
	double *ns = xcalloc(sites->count, sizeof(*ns));
	const struct sites_row *site = NULL;
	size_t i, most = 0;

	for (i = 0; i < sites->sample_count; i++) {
		const struct log_event *e = &sites->samples[i].event;
		size_t at = sites->stacks[sites->samples[i].stack].site;

		if (e->raw.caller != address || e->raw.op != op)
			continue;
		ns[at] += sites->samples[i].wait_ns +
			  sites->samples[i].kernel_ns +
			  sites->samples[i].weight;
		most = ns[at] > ns[most] ? at : most;
		site = &sites->list[most];
	}
	free(ns);
	return site;
}

char *study_site(const struct sites_row *site)
{
	return xasprintf("%s%s%s", site->name, site->via ? " via " : "",
			 site->via ? site->via : "");
}

char *study_name(struct sites *sites, unsigned op, uint64_t address,
		 uint64_t time_ns)
{
	const struct sites_row *site = site_of(sites, op, address);
	const struct sites_frame *const *frames;

	if (site)
		return study_site(site);
	if (address == 0)
		return xstrdup("an unknown place");
	if (sites_frames_at(sites, address, time_ns, true, &frames) > 0)
		return xstrdup(frames[0]->name);
	return xasprintf("0x%llx", (unsigned long long)address);
}

static char *name_caller(void *context, const struct crowd_caller *caller)
{
	return study_name(context, caller->op, caller->address,
			  caller->first_ns);
}

/* --- all of them --- */

static void look_into(struct study *s, const struct log_dir *dir,
		      struct images *images, const struct rows *rows,
		      const struct window *window)
{
	bool alone = stands_for_all(dir, s->log);
	struct verdict_facts facts = {
		.process = s->process,
		.info = alone && is_whole(window) && dir->has_info &&
					dir->info.finished == 1
				? &dir->info
				: NULL,
		.cpus = rows ? rows->cpus : 0,
		.kernel = rows && *rows->kernel ? rows->kernel : NULL,
		.queue_ns = alone ? queue_ns(rows) : 0,
		.windowed = !is_whole(window),
	};

	s->digest = digest_read(s->log, window->since_ns, window->until_ns);
	s->sites = sites_open_part(s->log, images, window->since_ns,
				   window->until_ns);
	crowd_join(s->digest->crowd, name_caller, s->sites);
	facts.digest = s->digest;
	facts.name = name_caller;
	facts.context = s->sites;
	s->verdict = judge_process(&facts);
}

/* Keeps the dearest, in order. */
static void consider(struct studies *studies, const struct log_process *p,
		     struct log *log)
{
	double weight = weight_of(p);
	size_t at = studies->count;

	if (weight <= 0)
		return;
	while (at > 0 && weight_of(studies->of[at - 1].process) < weight)
		at--;
	if (at == STUDY_MOST)
		return;
	if (studies->count < STUDY_MOST)
		studies->count++;
	memmove(&studies->of[at + 1], &studies->of[at],
		(studies->count - 1 - at) * sizeof(*studies->of));
	studies->of[at] = (struct study){.process = p, .log = log};
}

/* One without a figure is that only when it is the larger one. */
static bool is_worse(const struct study *a, const struct study *b)
{
	const struct verdict *v = &a->verdict, *w = &b->verdict;
	bool bad = v->answer != VERDICT_NO, other = w->answer != VERDICT_NO;

	if (cost_of(a->process) <= 0 || cost_of(b->process) <= 0)
		return weight_of(a->process) > weight_of(b->process);
	return bad != other ? bad : bad && v->lost.likely > w->lost.likely;
}

struct studies studies_of(const struct log_dir *dir,
			  const struct log_process *const *processes,
			  struct log *const *logs, size_t count,
			  struct images *images, const struct rows *rows,
			  const struct window *window)
{
	struct studies studies = {.count = 0};
	size_t i, worst = 0;

	for (i = 0; i < count; i++)
		consider(&studies, processes[i], logs[i]);
	for (i = 0; i < studies.count; i++) {
		look_into(&studies.of[i], dir, images, rows, window);
		if (is_worse(&studies.of[i], &studies.of[worst]))
			worst = i;
	}
	studies.worst = worst;
	return studies;
}

void studies_drop(struct studies *studies)
{
	size_t i;

	for (i = 0; i < studies->count; i++) {
		verdict_drop(&studies->of[i].verdict);
		digest_free(studies->of[i].digest);
		sites_close(studies->of[i].sites);
	}
	studies->count = 0;
}

const struct study *studies_find(const struct studies *studies,
				 const struct log_process *process)
{
	size_t i;

	for (i = 0; i < studies->count; i++)
		if (studies->of[i].process == process)
			return &studies->of[i];
	return NULL;
}

const struct study *studies_worst(const struct studies *studies)
{
	return studies->count > 0 ? &studies->of[studies->worst] : NULL;
}
