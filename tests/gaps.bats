#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Calls that have no event: the reason is the true one, and what is advised was
# not given already.

load helpers
load set

setup() {
	new_logs
	count_symbols_only
}

# The report's text, its lines not folded.
text() {
	output=$(mmgate report "$@" "$LOGS" | tr -s ' \n' ' ')
}

# With the events of about a third of the calls: the rest were made after they
# were set to VALUE.
third() { # VALUE
	begin --lock none --log-size 1G
	go
	run -0 set_ "$PID" "events=$1"
	halt
	rounds $((${LINE#rounds: } / 4 + 1))
	ends
}

@test "events that were switched off are not said to be overwritten" {
	third off
	run -0 report '(p[0]["events"]["overwritten"],
		p[0]["events"]["without"] > p[0]["events"]["kept"],
		p[0]["events"]["why"])'
	equal "$output" "(0, True, 'events were switched off while it ran (mmgate set)')"
	run -0 report 'd["verdict"]["headline"]'
	contains "$output" '; judged by '
	contains "$output" ': events were switched off while it ran (mmgate set)'
	lacks "$output" newest
	lacks "$output" log-size
	text
	contains "$output" ' calls have none: events were switched off while it ran'
	lacks "$output" log-size
}

@test "neither are events that were off for a while" {
	begin --lock none --log-size 1G
	go
	run -0 set_ "$PID" events=off
	halt
	rounds $((${LINE#rounds: } / 4 + 1))
	go
	run -0 set_ "$PID" events=all
	halt
	ends
	run -0 report 'd["verdict"]["headline"]'
	contains "$output" ': events were not recorded all the time (mmgate set)'
	lacks "$output" log-size
}

@test "nor are those of slow calls only" {
	third slow:10s
	run -0 report 'p[0]["events"]["why"]'
	equal "$output" 'only slow calls are recorded one by one (events is slow:10s; events=all keeps each)'
	text
	contains "$output" 'only slow calls are recorded one by one'
	lacks "$output" log-size
	lacks "$output" '--events all'
}

@test "a window says that not all of its calls have an event" {
	third off
	text --since 0s
	contains "$output" 'by the events of that time; not all calls have one: events were switched off'
	mmgate report --since 0s --format html -o "$BATS_TEST_TMPDIR/page" \
		"$LOGS"
	contains "$(<"$BATS_TEST_TMPDIR/page")" \
		'by the events of that time; not all calls have one: events were'
}

@test "a log too small for events asks for a larger one, not for events" {
	run -0 --separate-stderr mmgate run --events all --log-size 256K \
		-o "$LOGS" -- "$SUBJECTS/mapper" -t 4
	reason='the log has no room for single events (a larger --log-size keeps them)'
	contains "$stderr" "calls of mapper without an event: 1.20 k: $reason"
	run -0 report '(p[0]["events"], p[0]["settings"]["events"])'
	equal "$output" "({'kept': 0, 'overwritten': 0, 'lost': 0, 'without': 1200, 'why': '$reason'}, 'all')"
	text --worst 3
	contains "$output" "so none is the worst: $reason"
	contains "$output" "events: 1.20 k calls have none: $reason"
	lacks "$output" '--events'
	mmgate report --format html -o "$BATS_TEST_TMPDIR/page" "$LOGS"
	contains "$(<"$BATS_TEST_TMPDIR/page")" "logs: $reason."
	lacks "$(<"$BATS_TEST_TMPDIR/page")" '--events'
	# Who asked for none is told nothing.
	run -0 --separate-stderr mmgate run --events off -o "$LOGS" -- \
		"$SUBJECTS/mapper"
	lacks "$stderr" 'without an event'
	text
	lacks "$output" 'calls have none'
}

@test "a limit of the system is not answered with a larger log" {
	run -0 --separate-stderr bash -c "ulimit -f 256; exec '$BUILD/mmgate' \
		run -o '$LOGS' -- '$SUBJECTS/mapper' -t 4"
	contains "$stderr" 'room for single events (a larger limit of file sizes (ulimit -f) keeps them)'
	text
	contains "$output" 'a larger limit of file sizes (ulimit -f) keeps them'
	lacks "$output" log-size
}

@test "a report in json has the same keys, whatever there is to say" {
	keys() {
		report '(sorted(d), sorted(p[0]), sorted(p[0]["events"]),
			sorted(p[0]["stacks"]), sorted(p[0]["settings"]))'
	}
	gate none "$SUBJECTS/mapper" -t 2 >/dev/null
	all=$(keys)
	gate none --log-size 256K "$SUBJECTS/mapper" -t 2 >/dev/null
	equal "$(keys)" "$all" 'a small log'
	gate none --events off --stacks off "$SUBJECTS/mapper" -n 0 >/dev/null
	equal "$(keys)" "$all" 'no calls'
	mkdir "$LOGS.bare"
	MMGATE_LOG=$LOGS.bare bare none "$SUBJECTS/mapper" >/dev/null
	LOGS=$LOGS.bare
	equal "$(keys)" "$all" 'without run'
	run -0 report '(d["run"], d["rows"])'
	equal "$output" '(None, None)'
}
