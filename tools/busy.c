/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <unistd.h>

#include "busy.h"
#include "clocks.h"
#include "units.h"

#define PATIENCE_NS UINT64_C(1000000000)
#define PAUSE_NS UINT64_C(200000000)

static struct {
	uint64_t total, done;
	uint64_t started_ns, shown_ns; /* 0: not yet */
} busy;

static void show(uint64_t now)
{
	double part = (double)busy.done / (double)busy.total;
	double spent = (double)(now - busy.started_ns);

	if (part > 1)
		part = 1;
	busy.shown_ns = now;
	fprintf(stderr, "\r\033[Kreading events: %.0f %%, about %s left",
		100 * part, units_time(spent * (1 - part) / part));
}

static void tick(uint64_t events)
{
	uint64_t now = clocks_now();

	busy.done += events;
	if (now - busy.started_ns >= PATIENCE_NS &&
	    now - busy.shown_ns >= PAUSE_NS)
		show(now);
}

void busy_begin(uint64_t events)
{
	busy.total = events;
	busy.done = busy.shown_ns = 0;
	busy.started_ns = clocks_now();
	if (events > 0 && isatty(STDERR_FILENO) == 1)
		log_watch(tick);
}

void busy_end(void)
{
	log_watch(NULL);
	if (busy.shown_ns > 0)
		fputs("\r\033[K", stderr);
	busy.shown_ns = 0;
}

uint64_t busy_events(const struct log_dir *dir)
{
	uint64_t events = 0;
	size_t i;

	for (i = 0; i < dir->count; i++)
		events += log_process(dir->logs[i])->events_kept;
	return events;
}
