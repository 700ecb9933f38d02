/* SPDX-License-Identifier: MIT */
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "TLB:  123  456   TLB shootdowns": one number a CPU. */
static uint64_t sum_numbers(const char *s)
{
	uint64_t sum = 0;

	for (;;) {
		char *end;
		uint64_t n = strtoull(s, &end, 10);

		if (end == s)
			return sum;
		sum += n;
		s = end;
	}
}

uint64_t stats_tlb_shootdowns(void)
{
	FILE *f = fopen("/proc/interrupts", "re");
	char *line = NULL;
	size_t room = 0;
	uint64_t sum = 0;

	if (f == NULL)
		return 0;
	while (getline(&line, &room, f) > 0) {
		const char *name = line + strspn(line, " ");

		if (strncmp(name, "TLB:", 4) == 0)
			sum = sum_numbers(name + 4);
	}
	free(line);
	fclose(f);
	return sum;
}

static uint64_t timeval_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_usec * 1000;
}

void stats_take_usage(struct record_dir *info, const struct rusage *usage)
{
	info->user_ns = timeval_ns(&usage->ru_utime);
	info->system_ns = timeval_ns(&usage->ru_stime);
	info->voluntary_switches = (uint64_t)usage->ru_nvcsw;
	info->involuntary_switches = (uint64_t)usage->ru_nivcsw;
	info->minor_faults = (uint64_t)usage->ru_minflt;
	info->major_faults = (uint64_t)usage->ru_majflt;
	info->peak_rss_bytes = (uint64_t)usage->ru_maxrss * 1024;
}

static void add_op(struct stats_total *total, const struct log_op *op)
{
	total->calls += op->count;
	total->errors += op->errors;
	total->gated += op->gated;
	for (int i = 0; i < BYPASS_COUNT; i++)
		total->bypassed[i] += op->bypassed[i];
	total->wait_ns += op->wait.sum_ns;
	total->kernel_ns += op->kernel.sum_ns;
}

struct stats_total stats_sum(const struct log_dir *dir)
{
	struct stats_total total = {0};

	for (size_t i = 0; i < dir->count; i++) {
		const struct log_process *p = log_process(dir->logs[i]);

		for (int op = 0; op < OP_COUNT; op++)
			add_op(&total, &p->op[op]);
		total.opened += p->opened;
		total.unrecorded += p->unrecorded;
		total.second_libc += p->second_libc;
		total.events_overwritten += p->events_overwritten;
		total.events_lost += p->events_lost;
		total.thread_ns += (double)p->thread_ns;
	}
	return total;
}
