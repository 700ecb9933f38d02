#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The verdict of the report, on programs whose cause is known.

load helpers

setup() {
	new_logs_in_memory
}

teardown() {
	drop_logs
}

record() { # WORDS...: their verdict as it is in json
	mmgate run --quiet -o "$LOGS" -- "$@"
	report '"\n".join([d["verdict"]["answer"]] +
		["cause " + c["cause"] for c in d["verdict"]["causes"]] +
		["remedy " + r["remedy"] for r in d["verdict"]["remedies"]])' \
		>"$BATS_TEST_TMPDIR/verdict"
}

answer() {
	head -1 "$BATS_TEST_TMPDIR/verdict"
}

says() { # LINE
	grep -qFx "$1" "$BATS_TEST_TMPDIR/verdict" || {
		echo "no '$1' in the verdict:" >&2
		cat "$BATS_TEST_TMPDIR/verdict" >&2
		return 1
	}
}

# A lost CPU in a run as short as these may look like much of it: judged wrongly
# is who is so three times.
innocent() { # LINE WORDS...
	local line=$1

	shift
	for _ in 1 2 3; do
		record "$@"
		[ "$(answer)" != no ] || ! says "$line" 2>/dev/null || return 0
	done
	equal "$(answer)" no "$*"
	says "$line"
}

@test "one thread cannot wait for another" {
	for kind in one protect; do
		innocent 'cause one thread' "$SUBJECTS/alike" "$kind"
	done
}

@test "calls that take next to no time are not the problem" {
	innocent 'cause above' "$SUBJECTS/alike" above
}

@test "first touches of memory are not blamed on the lock" {
	innocent 'cause above' "$SUBJECTS/alike" touch
}

@test "pages that one thread gives back are not blamed on the lock" {
	innocent 'remedy decay' "$SUBJECTS/alike" zap
}

@test "what fills pages inside the call is named" {
	record "$SUBJECTS/alike" populate
	says 'cause populate'
	says 'remedy populate'
}

@test "what collapses huge pages is named" {
	run -0 "$SUBJECTS/alike" collapse
	equal "$output" 'done' || skip 'this kernel cannot collapse pages'
	record "$SUBJECTS/alike" collapse
	says 'cause huge pages'
	says 'remedy huge pages'
}

@test "mappings that come and go on one thread are to be kept" {
	record "$SUBJECTS/alike" one
	says 'remedy reuse'
	# malloc is told by its own name.
	record "$EXAMPLES/malloc_churn" -t 2 -n 300
	if [ "$(report 'p[0]["hooks"]["libc"]')" = patched ]; then
		says 'remedy malloc'
		run ! says 'remedy reuse'
	fi
}

@test "the verdict comes first in the text, with its evidence and what to do" {
	mmgate run --quiet -o "$LOGS" -- "$SUBJECTS/alike" one
	run -0 mmgate report "$LOGS"
	equal "${lines[0]}" "Verdict: no, the address-space lock is not the \
problem: one thread makes all calls."
	contains "${lines[1]}" '  - one thread made all '
	contains "$output" 'What to try, the most promising first:'
	contains "$output" '  1. keep mappings and use them again'
}

@test "without events the verdict is a limit, or a no" {
	for _ in 1 2 3; do
		mmgate run --quiet --events off -o "$LOGS" -- \
			"$SUBJECTS/alike" above
		run -0 report 'd["verdict"]["answer"],
			d["verdict"]["lost_ns"]["likely"]'
		[ "$output" != "('no', 0)" ] || break # a lost CPU is in all three
	done
	equal "$output" "('no', 0)"
}

@test "of several processes the worst has the verdict" {
	mmgate run --quiet -o "$LOGS" -- bash -c \
		"'$SUBJECTS/early' >/dev/null; '$SUBJECTS/alike' one; \
		'$SUBJECTS/early' >/dev/null"
	run -0 mmgate report "$LOGS"
	contains "${lines[0]}" 'Verdict on alike (pid '
	run -0 report 'd["verdict"]["pid"] == [e["pid"] for e in p
		if e["image"] == "alike"][0]'
	equal "$output" True
	run -0 report 'len([e for e in p if e["verdict"]])'
	holds "$output" -ge 2 'processes with a verdict of their own'
}
