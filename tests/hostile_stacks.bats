#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A copy of a stack never faults and never reads what is not the thread's.

load helpers

setup() {
	new_logs
	mkdir "$LOGS"
}

# copied WHAT: every call of it with its stack, as far as a thousand a second.
copied() {
	LD_PRELOAD=$LIBRARY MMGATE_LOG=$LOGS MMGATE_STACKS=every:1 \
		MMGATE_STACK_SIZE=64K "$SUBJECTS/edges" "$1" 500
}

@test "stacks that end at holes, guards and moving neighbours" {
	for kind in top neighbour signal tiny twin below; do
		run -0 copied "$kind"
		equal "$output" 'done' "$kind"
	done
	# The counts are of calls, whether they were copied or not.
	run -0 report "sum(e['stacks']['samples'] >= 64 for e in p)"
	equal "$output" 6 'programs with samples'
}

@test "the smallest and the largest copies" {
	for size in 1K 4100 64K; do
		run -0 env LD_PRELOAD="$LIBRARY" MMGATE_LOG="$LOGS" \
			MMGATE_STACKS=every:1,slow:0 MMGATE_STACK_SIZE=$size \
			"$SUBJECTS/edges" tiny 50
		equal "$output" 'done' "$size"
	done
	run -0 report "sum(e['stacks']['samples'] >= 16 for e in p)"
	equal "$output" 3 'programs with samples'
}

@test "forked children go on with their parent's modules" {
	MMGATE_FOLLOW=fork LD_PRELOAD=$LIBRARY MMGATE_LOG=$LOGS \
		MMGATE_STACKS=every:1 "$PYTHON" -c 'import os
if os.fork() == 0:
    held = [bytearray(1 << 20) for i in range(3)]
    os._exit(0)
os.wait()'
	mmgate report --format json "$LOGS" >"$BATS_TEST_TMPDIR/json"
	run -0 report "[e['stacks']['samples'] > 0 and e['stacks']['unresolved']
		for e in p if e['epoch'] == 2]"
	[ "$(mmgate doctor | grep -c 'stacks are not resolved')" = 1 ] ||
		equal "$output" '[0]'
}

@test "a log without room for stacks has none, and says so" {
	run -0 env LD_PRELOAD="$LIBRARY" MMGATE_LOG="$LOGS" \
		MMGATE_LOG_SIZE=256K MMGATE_STACKS=every:1 \
		MMGATE_STACK_SIZE=64K "$SUBJECTS/edges" tiny 50
	equal "$output" 'done'
	run -0 report "(p[0]['stacks']['samples'], p[0]['limits'])"
	contains "$output" '(0, '
	contains "$output" 'no room for stacks'
}

@test "no more than a thousand copies are made in a second" {
	run -0 env LD_PRELOAD="$LIBRARY" MMGATE_LOG="$LOGS" \
		MMGATE_LOG_SIZE=1G MMGATE_STACKS=slow:0,every:1 \
		MMGATE_STACK_SIZE=1K "$SUBJECTS/edges" tiny 20000
	run -0 report "p[0]['stacks']['samples'] <=
		1000 * (1 + p[0]['duration_ns'] / 1e9)"
	equal "$output" True
	# What a second has no room for has no weight either.
	run -0 report "0.6 < sum(s['count'] for s in p[0]['sites']) /
		sum(o['count'] for o in c.values()) < 1.4"
	equal "$output" True
}
