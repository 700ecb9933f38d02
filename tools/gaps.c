/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "gaps.h"
#include "units.h"

/* Of the calls: so many are worth no word. */
static const double few = 0.01;

/* Of all calls. */
struct shares {
	double without, overwritten, lost;
};

static struct shares shares_of(const struct log_process *p)
{
	double without = (double)p->events_without;
	double overwritten = (double)p->events_overwritten;
	double lost = (double)p->events_lost;
	double all = without + overwritten + lost + (double)p->events_kept;

	if (all == 0)
		return (struct shares){0, 0, 0};
	return (struct shares){without / all, overwritten / all, lost / all};
}

bool gaps_is_newest(const struct log_process *p)
{
	struct shares s = shares_of(p);

	return s.without <= few && s.lost <= few && s.overwritten > 0;
}

/* By what the library said of it. */
const char *gaps_more_room(const struct log_process *p)
{
	static const struct {
		const char *limit, *remedy;
	} rows[] = {
		{"MMGATE_LOG_TOTAL", "a larger --log-total"},
		{"no space left", "more free space"},
		{"RLIMIT_FSIZE", "a larger limit of file sizes (ulimit -f)"},
		{"RLIMIT_AS", "a larger limit of memory (ulimit -v)"},
		{"RLIMIT_MEMLOCK", "a larger limit of locked memory (ulimit "
				   "-l)"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (strstr(p->limits, rows[i].limit))
			return rows[i].remedy;
	return "a larger --log-size";
}

/* What `events` is.  Logs have it; where it lacks it is as by default. */
static void setting(const struct log_process *p, char value[64])
{
	log_setting(p->settings, "events", value, 64);
	if (!*value)
		strcpy(value, "all");
}

/* Of calls that no event was written for. */
static char *why_without(const struct log_process *p)
{
	const char *advice = p->was_set ? "events=all" : "--events all";
	char events[64];

	setting(p, events);
	if (!p->has_rings && strcmp(events, "off") != 0)
		return xasprintf("the log has no room for single events (%s "
				 "keeps them)",
				 gaps_more_room(p));
	if (!p->has_rings)
		return xasprintf("events are off (--events all keeps them)");
	if (!strcmp(events, "off"))
		return xasprintf("events were switched off while it ran "
				 "(mmgate set)");
	if (!strncmp(events, "slow:", 5))
		return xasprintf("only slow calls are recorded one by one "
				 "(events is %s; %s keeps each)",
				 events, advice);
	if (!strncmp(events, "every:", 6))
		return xasprintf("only some calls are recorded one by one "
				 "(events is %s; %s keeps each)",
				 events, advice);
	return xasprintf("events were not recorded all the time%s",
			 p->was_set ? " (mmgate set)" : "");
}

/* Did the settings that it was started with ask for it? */
static bool is_asked_for(const struct log_process *p)
{
	char events[64];

	setting(p, events);
	return !p->has_rings ? !strcmp(events, "off")
			     : !p->was_set && strcmp(events, "all") != 0;
}

char *gaps_never(const struct log_process *p)
{
	return shares_of(p).without > few ? why_without(p) : NULL;
}

char *gaps_unasked(const struct log_process *p)
{
	return is_asked_for(p) ? NULL : gaps_never(p);
}

static void append(char **text, char *more)
{
	char *old = *text;

	*text = old ? xasprintf("%s, and %s", old, more) : xstrdup(more);
	free(old);
	free(more);
}

char *gaps_why(const struct log_process *p)
{
	struct shares s = shares_of(p);
	char *why = gaps_never(p);

	if (s.overwritten > few)
		append(&why, xasprintf("older ones were overwritten (%s keeps "
				       "more)",
				       gaps_more_room(p)));
	if (s.lost > few)
		append(&why, xasprintf("%s found no room (%s keeps more)",
				       units_count(p->events_lost),
				       gaps_more_room(p)));
	return why;
}
