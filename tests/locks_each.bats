#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Ops with a lock each: what holds for one lock holds for several at a time, and
# whoever is torn away inside one holds up the ops of that one alone.

export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-500} # of two runs

load helpers

EACH=mmap:mutex,munmap:fifo,mprotect:rw,madvise:limit:2,mremap:spin,brk:fifo

setup() {
	new_logs
}

# as_gated CMD...: the same comes out without the library and with it.
as_gated() {
	run -0 timeout 200 "$@"
	expected=$(grep -v '^longest_ms' <<<"$output")
	run -0 timeout 200 "$BUILD/mmgate" run --quiet --lock "$EACH" \
		"${OPTIONS[@]}" -o "$LOGS" "$@"
	equal "$(grep -v '^longest_ms' <<<"$output")" "$expected" "$*"
}

@test "every call does what it does without, and its own lock is taken" {
	count_symbols_only
	"$SUBJECTS/calls" "$BATS_TEST_TMPDIR/trace" >"$BATS_TEST_TMPDIR/plain"
	gate "$EACH" "$SUBJECTS/calls" "$BATS_TEST_TMPDIR/trace" \
		>"$BATS_TEST_TMPDIR/out"
	same "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/out"
	mmgate export --format csv "$LOGS" | tail -n +2 | cut -d, -f4-12 \
		>"$BATS_TEST_TMPDIR/logged"
	same "$BATS_TEST_TMPDIR/trace" "$BATS_TEST_TMPDIR/logged"
	run -0 report '[n for n, o in c.items()
		if (o["gated"] + o["bypassed"] == o["count"])
		!= (n in "mmap munmap mprotect madvise mremap brk".split())]'
	equal "$output" "[]" "ops whose lock is not the one asked for"
}

@test "a handler's calls go around all locks while its thread is inside one" {
	OPTIONS=()
	as_gated "$SUBJECTS/interrupts" 100
	run -0 report '[sum(o["bypassed_by"]["reentry"] for o in c.values()) > 0,
		[n for n, o in c.items()
			if o["gated"] and o["count"] != o["gated"] + o["bypassed"]],
		p[0]["gate_opened"]]'
	equal "$output" '[True, [], 0]'
}

@test "children of every kind find all locks free" {
	OPTIONS=(--hooks symbols --follow fork)
	for kind in fork rawclone handler vfork clonevm; do
		as_gated "$SUBJECTS/children" "$kind" 20
		run -0 report 'sum(e["calls"].get("mremap",
			{"count": 0})["count"] for e in p)'
		equal "$output" 20 "$kind"
	done
	OPTIONS=(--follow fork --log-total 8M)
	as_gated "$SUBJECTS/fork_handler" 300
	run -0 bare "$EACH" env MMGATE_FOLLOW=fork "$SUBJECTS/forks" 500
	equal "$output" 'children: 500'
}

@test "jumps out of calls and cancelled threads do not stop others" {
	for wait in 2ms 1s; do
		OPTIONS=(--max-wait "$wait")
		as_gated "$SUBJECTS/stops" jump 20
		as_gated "$SUBJECTS/stops" cancel 20
	done
}

@test "a call that stays in the kernel holds up the ops of its own lock alone" {
	run "$SUBJECTS/held" vfork 0
	[ "$status" != 77 ] || skip 'no seccomp filter with answers here'
	# An mprotect that never ends, while others map and unmap.
	OPTIONS=(--hooks symbols --max-wait 10s)
	as_gated "$SUBJECTS/held" vfork 0
	run -0 report '[p[0]["gate_opened"], c["mmap"]["gated"] >= 200]'
	equal "$output" '[0, True]'
}
