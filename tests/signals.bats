#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Signal handlers, jumps out of them and vfork children do not hang the gate.

load helpers

setup() {
	count_symbols_only
	new_logs
}

@test "a handler that calls mprotect in the middle of a call goes around the lock" {
	while read -r lock; do
		run -0 gate "$lock" "$SUBJECTS/handlers" protect
		equal "$output" 'interrupted: 200'
		run -0 report 'c["mprotect"]["count"]'
		equal "$output" 400
		# Most interrupts are taken when the kernel returns, that is
		# between the two ends of the gate.
		run -0 report 'c["mprotect"]["bypassed_by"]["reentry"]'
		if [ "$lock" = none ]; then
			equal "$output" 0
		elif always_gates "$lock"; then
			holds "$output" -ge 20 "re-entries under $lock"
			run -0 report 'c["mprotect"]["gated"] +
				c["mprotect"]["bypassed"]'
			equal "$output" 400
		fi
	done < <(locks)
}

@test "a handler that forks leaves parent and child alone" {
	while read -r lock; do
		run -0 gate "$lock" --follow fork "$SUBJECTS/handlers" fork
		equal "$output" 'interrupted: 200'
		run -0 report '(len(p), {e["calls"]["mmap"]["count"]
			for e in p[1:]})'
		equal "$output" '(201, {1})' "$lock"
	done < <(locks)
}

@test "children of vfork share the gate and give it back" {
	while read -r lock; do
		run -0 gate "$lock" "$SUBJECTS/handlers" vfork
		equal "$output" 'interrupted: 200'
		run -0 report '(len(p), p[0]["gate_opened"])'
		equal "$output" '(1, 0)' "$lock"
	done < <(locks)
}

@test "after a jump out of a handler the gate opens and the program goes on" {
	while read -r lock; do
		lost=0
		for _ in {1..100}; do
			run -0 gate "$lock" --max-wait 2ms \
				"$SUBJECTS/handlers" jump
			equal "$output" 'interrupted: 20'
			opened=$(report 'p[0]["gate_opened"]')
			run -0 mmgate export --format jsonl "$LOGS"
			events=$(grep -c '"event":"gate opened"' <<<"$output" ||
				:)
			# The handler may jump away between the two, seldom.
			[ "$opened" != 0 ] || continue
			[ $((2 * events)) -lt "$opened" ] || break
			lost=$((lost + 1))
			[ "$lost" -lt 3 ] || break
		done
		holds "$opened" -ge 1 "openings under $lock"
		# It is said: in the report, and as an event.
		run -0 mmgate report "$LOGS"
		contains "$output" opened
		holds $((2 * events)) -ge "$opened" "events under $lock"
		holds "$events" -le "$opened" "events under $lock"
		run -0 report 'sum(o["bypassed_by"]["timeout"]
			for o in c.values()) > 0'
		equal "$output" True
	done < <(serial_locks)
}

# Whether a jump leaves the lock held, with others waiting, is chance.
@test "the summary of run says that the gate opened" {
	lock=$(excluding_locks | head -1)
	for _ in {1..100}; do
		run -0 mmgate run --lock "$lock" --max-wait 2ms -o "$LOGS" -- \
			"$SUBJECTS/handlers" jump
		[[ $output != *'the gate opened'* ]] || return 0
	done
	contains "$output" 'the gate opened'
}
