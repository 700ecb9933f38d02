/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clocks.h"
#include "units.h"
#include "utf8.h"

enum { BAR = 24, WHAT = 24 };

void progress_begin(struct progress *progress, size_t total)
{
	*progress = (struct progress){
		.on = isatty(STDERR_FILENO) == 1,
		.total = total,
		.started_ns = clocks_now(),
	};
}

static void tell_left(const struct progress *p, char *left, size_t size)
{
	double each = (double)(clocks_now() - p->started_ns) / (double)p->done;

	snprintf(left, size, "about %s left",
		 units_time(each * (double)(p->total - p->done)));
}

void progress_step(struct progress *progress, const char *what)
{
	size_t filled = BAR * progress->done / progress->total;
	char bar[BAR + 1], clean[WHAT + 1], left[64] = "";

	if (!progress->on)
		return;
	memset(bar, '.', BAR);
	memset(bar, '#', filled);
	bar[BAR] = '\0';
	utf8_clean(clean, what, WHAT, 0);
	if (progress->done > 0)
		tell_left(progress, left, sizeof(left));
	fprintf(stderr, "\r\033[K[%s] %zu/%zu %s %s", bar, progress->done,
		progress->total, clean, left);
	progress->done++;
}

void progress_end(struct progress *progress)
{
	if (progress->on)
		fputs("\r\033[K", stderr);
}
