/* SPDX-License-Identifier: MIT */
#include "machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Ticks are too coarse for less. */
static const double least_s = 1;

/* In this order; guests are in the first two. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

bool machine_parse(const char *line, struct machine *machine)
{
	double t[COLUMNS];

	if (strncmp(line, "cpu ", 4) != 0)
		return false;
	if (sscanf(line, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &t[USER],
		   &t[NICE], &t[SYSTEM], &t[IDLE], &t[IOWAIT], &t[IRQ],
		   &t[SOFTIRQ], &t[STEAL]) != COLUMNS)
		return false;
	machine->busy = t[USER] + t[NICE] + t[SYSTEM] + t[IRQ] + t[SOFTIRQ];
	machine->stolen = t[STEAL];
	machine->all = machine->busy + t[IDLE] + t[IOWAIT] + t[STEAL];
	return true;
}

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static double used_by(int who)
{
	struct rusage usage;

	if (getrusage(who, &usage) != 0)
		return 0;
	return seconds(&usage.ru_utime) + seconds(&usage.ru_stime);
}

void machine_look(struct machine *m)
{
	FILE *f = fopen("/proc/stat", "re");
	double rate = (double)sysconf(_SC_CLK_TCK);
	char line[512];

	*m = (struct machine){0};
	if (f == NULL)
		return;
	if (fgets(line, sizeof(line), f) != NULL && machine_parse(line, m)) {
		m->all /= rate;
		m->busy /= rate;
		m->stolen /= rate;
		m->ours = used_by(RUSAGE_SELF) + used_by(RUSAGE_CHILDREN);
	}
	fclose(f);
}

void machine_add(struct machine *sum, const struct machine *from,
		 const struct machine *to)
{
	sum->all += to->all - from->all;
	sum->busy += to->busy - from->busy;
	sum->stolen += to->stolen - from->stolen;
	sum->ours += to->ours - from->ours;
}

static double part(const struct machine *sum, double of)
{
	return sum->all >= least_s && of > 0 ? of / sum->all : 0;
}

double machine_others(const struct machine *sum)
{
	return part(sum, sum->busy - sum->ours);
}

double machine_stolen(const struct machine *sum)
{
	return part(sum, sum->stolen);
}
