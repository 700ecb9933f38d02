#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A forked child finds every lock free, whoever held it.

load helpers

export BATS_TEST_TIMEOUT=400

setup() {
	new_logs
}

# FORKS is the number for all locks together, unless tests may take long.
count=${FORKS:-10000}
[ "$LONG_TESTS" = 1 ] || count=$(part_of "$count")

@test "each of 10,000 children can map, allocate and start a thread" {
	# Children are gated too, without a log each.
	while read -r lock; do
		run -0 bare "$lock" env MMGATE_FOLLOW=fork \
			"$SUBJECTS/forks" "$count"
		equal "$output" "children: $count" "$lock"
	done < <(locks)
}

@test "each of 100 children that are not followed can map, allocate and start a thread" {
	while read -r lock; do
		run -0 gate "$lock" "$SUBJECTS/forks" 100
		equal "$output" 'children: 100'
		run -0 report 'len(p)'
		equal "$output" 1 'logs: forked children have none'
	done < <(locks)
}

@test "a child that is followed has a log of its own, one epoch on" {
	count_symbols_only
	while read -r lock; do
		run -0 gate "$lock" --follow fork "$SUBJECTS/forks" 20
		run -0 report 'sorted((e["epoch"], e["ppid"] == p[0]["pid"])
			for e in p) == [(1, False)] + [(2, True)] * 20'
		equal "$output" True
		# The child's, and its thread's.
		run -0 report '{e["calls"]["mmap"]["count"] for e in p[1:]}'
		equal "$output" '{2}'
	done < <(locks)
}

@test "a handler that forks inside the gate and maps leaves both processes well" {
	while read -r lock; do
		for follow in exec fork; do
			rm -rf "$LOGS"
			run -0 gate "$lock" --follow $follow --log-total 8M \
				"$SUBJECTS/fork_handler" 1000
			equal "$output" 'children that ended badly: 0'
		done
		# No child interrupts a call that it made itself.
		run -0 report 'sum(o["bypassed_by"]["reentry"]
			for e in p[1:] for o in e["calls"].values())'
		equal "$output" 0 "calls of children that went around $lock"
	done < <(locks)
}
