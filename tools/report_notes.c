/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "gaps.h"
#include "report_notes.h"
#include "units.h"

static void note_wake(const struct log_process *p, FILE *out)
{
	if (p->wake.count == 0)
		return;
	fprintf(out,
		"  %s waits slept; from wake-up to running again: p50 %s, p99 "
		"%s, max %s\n",
		units_count(p->wake.count),
		units_time(hist_percentile(&p->wake, 0.5)),
		units_time(hist_percentile(&p->wake, 0.99)),
		units_time(p->wake.max_ns));
}

static void note_events(const struct log_process *p, FILE *out)
{
	char *why = gaps_unasked(p);

	if (why)
		fprintf(out, "  events: %s calls have none: %s\n",
			units_count(p->events_without), why);
	if (p->events_overwritten > 0)
		fprintf(out,
			"  events: the newest %s are kept, %s older ones were "
			"overwritten (%s keeps more)\n",
			units_count(p->events_kept),
			units_count(p->events_overwritten), gaps_more_room(p));
	if (p->events_lost > 0)
		fprintf(out,
			"  events: there was no room for %s (%s keeps more)\n",
			units_count(p->events_lost), gaps_more_room(p));
	free(why);
}

static void note_bypassed(const struct log_process *p, FILE *out)
{
	const char *between = "  went without the lock:";
	uint64_t bypassed;
	unsigned reason, i;

	for (reason = 0; reason < BYPASS_COUNT; reason++) {
		bypassed = 0;
		for (i = 0; i < OP_COUNT; i++)
			bypassed += p->op[i].bypassed[reason];
		if (bypassed == 0)
			continue;
		fprintf(out, "%s %s %s", between, units_count(bypassed),
			log_bypass_name(reason));
		between = ",";
	}
	if (*between == ',')
		fputc('\n', out);
}

static void note_gate(const struct log_process *p, FILE *out)
{
	char max_wait[64];

	if (p->opened == 0)
		return;
	log_setting(p->settings, "max_wait", max_wait, sizeof(max_wait));
	fprintf(out,
		"  the gate opened %s times: a wait reached max_wait%s%s, and "
		"calls passed unlocked for a while\n",
		units_count(p->opened), *max_wait ? "=" : "", max_wait);
}

/* What goes unseen when a layer is not hooked. */
static const char *layer_calls(const char *layer)
{
	static const struct {
		const char *layer, *calls;
	} names[] = {
		{"libc", "libc's own calls (malloc, thread stacks)"},
		{"ld.so", "the loader's own calls (dlopen)"},
		{"syscall", "calls by syscall()"},
		{"inline", "system calls in the program's own code"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(layer, names[i].layer))
			return names[i].calls;
	return layer;
}

/* `hooks` has a line "layer=outcome" for each layer. */
void report_gaps(const struct log_process *p, FILE *out)
{
	char hooks[sizeof(p->hooks)], *line, *outcome, *rest = hooks;
	const char *gap;

	memcpy(hooks, p->hooks, sizeof(hooks));
	while ((line = strsep(&rest, "\n"))) {
		outcome = strchr(line, '=');
		gap = outcome ? log_gap(outcome + 1) : NULL;
		if (!gap)
			continue;
		*outcome = '\0';
		fprintf(out, "  %s: %s: %s\n",
			log_gap_is_partial(gap) ? "not all seen" : "not seen",
			layer_calls(line), gap);
	}
}

void report_notes(const struct log_process *p, FILE *out)
{
	note_wake(p, out);
	note_bypassed(p, out);
	note_gate(p, out);
	note_events(p, out);
	if (*p->limits)
		fprintf(out, "  limited: %s\n", p->limits);
	if (p->second_libc > 0)
		fprintf(out, "  not seen: the calls of a second copy of libc, "
			     "which the program opened (dlmopen)\n");
	if (p->unrecorded > 0)
		fprintf(out,
			"  incomplete: %s calls found no room in the log\n",
			units_count(p->unrecorded));
	if (p->clamped > 0)
		fprintf(out, "  %s times were negative and count as 0\n",
			units_count(p->clamped));
}
