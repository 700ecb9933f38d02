/* SPDX-License-Identifier: MIT */
/* Why calls are not in a log one by one, by what is known of a process. */
#include <stdlib.h>

#include "../../tools/gaps.h"
#include "check.h"

static const struct row {
	const char *what;
	const char *settings, *limits;
	uint64_t kept, overwritten, lost, without;
	bool no_rings, was_set;
	const char *why;     /* gaps_why() */
	const char *unasked; /* gaps_unasked() */
	bool newest;
} rows[] = {
	{.what = "all are there", .settings = "events=all\n", .kept = 100},
	{.what = "nothing was called", .settings = "events=all\n"},
	{.what = "a ring went round",
	 .settings = "events=all\n",
	 .kept = 50,
	 .overwritten = 50,
	 .why = "older ones were overwritten (a larger --log-size keeps more)",
	 .newest = true},
	{.what = "the directory is full",
	 .settings = "events=all\n",
	 .limits = "MMGATE_LOG_TOTAL is reached: fewer events are kept",
	 .kept = 50,
	 .overwritten = 50,
	 .why = "older ones were overwritten (a larger --log-total keeps more)",
	 .newest = true},
	{.what = "the disk is full",
	 .settings = "events=all\n",
	 .limits = "no space left for the log: fewer events are kept",
	 .kept = 50,
	 .lost = 50,
	 .why = "50 found no room (more free space keeps more)"},
	{.what = "set, and nothing forgotten",
	 .settings = "events=all\n",
	 .kept = 40,
	 .without = 60,
	 .was_set = true,
	 .why = "events were not recorded all the time (mmgate set)",
	 .unasked = "events were not recorded all the time (mmgate set)"},
	{.what = "set, and a ring went round",
	 .settings = "events=off\n",
	 .kept = 40,
	 .overwritten = 30,
	 .without = 30,
	 .was_set = true,
	 .why = "events were switched off while it ran (mmgate set), and older "
		"ones were overwritten (a larger --log-size keeps more)",
	 .unasked = "events were switched off while it ran (mmgate set)"},
	{.what = "a few calls between two looks",
	 .settings = "events=all\n",
	 .kept = 1000,
	 .without = 9},
	{.what = "no room for any",
	 .settings = "events=all\n",
	 .without = 100,
	 .no_rings = true,
	 .why = "the log has no room for single events (a larger --log-size "
		"keeps them)",
	 .unasked = "the log has no room for single events (a larger "
		    "--log-size keeps them)"},
	{.what = "no room for any, by a limit",
	 .settings = "events=every:4\n",
	 .limits = "the log is limited to 256 KiB by RLIMIT_FSIZE; it has no "
		   "room for single events",
	 .without = 100,
	 .no_rings = true,
	 .why = "the log has no room for single events (a larger limit of "
		"file sizes (ulimit -f) keeps them)",
	 .unasked = "the log has no room for single events (a larger limit of "
		    "file sizes (ulimit -f) keeps them)"},
	{.what = "asked for none",
	 .settings = "events=off\n",
	 .without = 100,
	 .no_rings = true,
	 .why = "events are off (--events all keeps them)"},
	{.what = "asked for slow ones",
	 .settings = "events=slow:1ms\n",
	 .kept = 1,
	 .without = 999,
	 .why = "only slow calls are recorded one by one (events is slow:1ms; "
		"--events all keeps each)"},
	{.what = "slow ones by set",
	 .settings = "events=slow:1ms\n",
	 .kept = 500,
	 .without = 500,
	 .was_set = true,
	 .why = "only slow calls are recorded one by one (events is slow:1ms; "
		"events=all keeps each)",
	 .unasked = "only slow calls are recorded one by one (events is "
		    "slow:1ms; events=all keeps each)"},
	{.what = "asked for some",
	 .settings = "events=every:10\n",
	 .kept = 100,
	 .without = 900,
	 .why = "only some calls are recorded one by one (events is every:10; "
		"--events all keeps each)"},
	{.what = "a log that does not say",
	 .settings = "lock=none\n",
	 .without = 100,
	 .why = "events were not recorded all the time",
	 .unasked = "events were not recorded all the time"},
};

static void test(const struct row *row)
{
	struct log_process *p = calloc(1, sizeof(*p));
	char *why, *unasked;

	if (!p)
		exit(1);
	strcpy(p->settings, row->settings);
	strcpy(p->limits, row->limits ? row->limits : "");
	p->events_kept = row->kept;
	p->events_overwritten = row->overwritten;
	p->events_lost = row->lost;
	p->events_without = row->without;
	p->has_rings = !row->no_rings;
	p->was_set = row->was_set;
	why = gaps_why(p);
	unasked = gaps_unasked(p);
	check_text(row->why, why, "why: %s", row->what);
	check_text(row->unasked, unasked, "unasked: %s", row->what);
	check_u64(row->newest, gaps_is_newest(p), "newest: %s", row->what);
	free(why);
	free(unasked);
	free(p);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		test(&rows[i]);
	return check_done();
}
