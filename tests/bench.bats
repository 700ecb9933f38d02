#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The benchmark's tables; what they hold is not the subject.

load helpers

setup() {
	BENCH=$ROOT/tools/scripts/bench
	export BENCH_ROUNDS=1 BENCH_SECONDS=0.01
	# bench.md goes beside the programs: a place of this test's.
	mkdir "$BATS_TEST_TMPDIR/build"
	ln -s "$BUILD"/{mmgate,libmmgate.so,examples,tests} \
		"$BATS_TEST_TMPDIR/build"
	MARKS=('<!-- make bench-readme: from here -->'
		'<!-- make bench-readme: to here -->')
}

@test "the cost of looking names the tools that are not installed" {
	run -0 --separate-stderr env PATH="$BATS_TEST_TMPDIR" "$PYTHON" \
		"$BENCH" "$BATS_TEST_TMPDIR/build" looking
	equal "$stderr" ''
	contains "${lines[0]}" "$(date -u +%F)"
	for tool in 'strace -c' 'perf trace -s' 'ltrace -c' 'bpftrace'; do
		contains "$(grep -F "| $tool" <<<"$output")" '| not installed'
	done
	equal "$(grep -cE '^\| mmgate, .*\| [0-9]+ \[' <<<"$output")" \
		"$(grep -c '^| mmgate, ' <<<"$output")"
	equal "$(cat "$BATS_TEST_TMPDIR/build/bench.md")" "$output"
}

@test "a tool that fails has the reason in its row" {
	printf '#!/bin/sh\necho "no rights" >&2\nexit 1\n' \
		>"$BATS_TEST_TMPDIR/strace"
	chmod +x "$BATS_TEST_TMPDIR/strace"
	run -0 env PATH="$BATS_TEST_TMPDIR" "$PYTHON" "$BENCH" \
		"$BATS_TEST_TMPDIR/build" looking
	contains "$output" 'does not work here: '
	contains "$output" 'no rights'
}

# [long]: each program some twenty times.
@test "[long] each example is a row and each lock a column" {
	takes_long
	run -0 "$BENCH" "$BATS_TEST_TMPDIR/build" examples history
	for source in "$ROOT"/examples/*.c; do
		source=$(basename "$source" .c)
		case $source in common | spread) continue ;; esac
		contains "$output" "| \`$source"
	done
	columns=$(grep 'loops a second' <<<"$output")
	while read -r lock; do
		contains "$columns" "| $lock"
		equal "$(grep -cE "^\| here: gate: $lock(:[0-9]+)? +\|" \
			<<<"$output")" 3 "$lock"
	done < <(excluding_locks)
}

@test "the README takes the tables between its marks, and keeps the rest" {
	readme=$BATS_TEST_TMPDIR/README
	printf 'before\n\n%s\nold\n%s\n\nafter\n' "${MARKS[@]}" >"$readme"
	printf '| a |\n' >"$BATS_TEST_TMPDIR/new"
	for _ in 1 2; do
		"$BENCH" --readme "$readme" "$BATS_TEST_TMPDIR/new"
		equal "$(cat "$readme")" "$(printf \
			'before\n\n%s\n\n| a |\n\n%s\n\nafter' "${MARKS[@]}")"
	done
}

@test "a README without marks, or no tables, is one line and left as it is" {
	readme=$BATS_TEST_TMPDIR/README
	printf 'before\n%s\nafter\n' "${MARKS[0]}" >"$readme"
	cp "$readme" "$readme.was"
	printf '| a |\n' >"$BATS_TEST_TMPDIR/new"
	run -1 "$BENCH" --readme "$readme" "$BATS_TEST_TMPDIR/new"
	equal "${#lines[@]}" 1
	contains "$output" "${MARKS[1]}"
	run -1 "$BENCH" --readme "$readme" "$BATS_TEST_TMPDIR/missing"
	equal "${#lines[@]}" 1
	contains "$output" 'run make bench first'
	same "$readme" "$readme.was"
}

@test "the README of this tree has the marks" {
	for mark in "${MARKS[@]}"; do
		equal "$(grep -cF -- "$mark" "$ROOT/README.md")" 1 "$mark"
	done
}

@test "a bad number of rounds, section or build is one line" {
	for args in 'no-such-build' 'build everything' '--help'; do
		read -ra words <<<"$args"
		run -1 "$BENCH" "${words[@]}"
		equal "${#lines[@]}" 1 "$args"
	done
	BENCH_ROUNDS=many run -1 "$BENCH" build
	equal "${#lines[@]}" 1
	contains "$output" BENCH_ROUNDS
}
