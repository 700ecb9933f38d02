#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Each wrapped call does what it does without the library, and is logged as it
# was made.

load helpers

setup() {
	count_symbols_only
	new_logs
	"$SUBJECTS/calls" "$BATS_TEST_TMPDIR/plain.trace" \
		>"$BATS_TEST_TMPDIR/plain"
}

# The columns that the subject predicts.
logged() {
	mmgate export --format csv "$LOGS" | tail -n +2 | cut -d, -f4-12
}

# Addresses that the kernel chose differ from run to run.
without_choices() {
	sed 's/,0x7[0-9a-f]*,0$/,CHOSEN,0/' "$1"
}

@test "every call gives the same result and errno under each lock" {
	while read -r lock; do
		for calls in mmap,munmap,mprotect,madvise all; do
			bare "$lock" env MMGATE_CALLS=$calls \
				"$SUBJECTS/calls" "$BATS_TEST_TMPDIR/trace" \
				>"$BATS_TEST_TMPDIR/out"
			same "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/out"
		done
	done < <(locks)
}

@test "every call is in the log with its arguments, result and error" {
	while read -r lock; do
		gate "$lock" --calls all "$SUBJECTS/calls" \
			"$BATS_TEST_TMPDIR/trace" >"$BATS_TEST_TMPDIR/out"
		same "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/out"
		logged >"$BATS_TEST_TMPDIR/logged"
		same "$BATS_TEST_TMPDIR/trace" "$BATS_TEST_TMPDIR/logged"
	done < <(locks)
}

@test "the subject's own prediction does not depend on the library" {
	gate none "$SUBJECTS/calls" "$BATS_TEST_TMPDIR/trace" >/dev/null
	without_choices "$BATS_TEST_TMPDIR/plain.trace" >"$BATS_TEST_TMPDIR/a"
	without_choices "$BATS_TEST_TMPDIR/trace" >"$BATS_TEST_TMPDIR/b"
	same "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b"
}

@test "the kernel agrees with the log about the program's calls" {
	need strace
	strace -o "$BATS_TEST_TMPDIR/strace" -e trace=madvise \
		"$SUBJECTS/calls" "$BATS_TEST_TMPDIR/trace" >/dev/null ||
		skip 'strace may not trace here'
	gate mutex "$SUBJECTS/calls" "$BATS_TEST_TMPDIR/trace" >/dev/null
	run -0 report 'c["madvise"]["count"]'
	equal "$output" "$(grep -c '^madvise(' "$BATS_TEST_TMPDIR/strace")"
}

@test "errors and bytes are exact: bytes of successes only" {
	gate mutex --calls all "$SUBJECTS/calls" "$BATS_TEST_TMPDIR/trace" \
		>/dev/null
	while IFS=, read -r op count errors bytes; do
		run -0 report "'{count},{errors},{bytes}'.format(**c['$op'])"
		equal "$output" "$count,$errors,$bytes" "$op"
	done < <(awk -F, '
		{ count[$1]++ }
		$9 != 0 { errors[$1]++ }
		$9 == 0 { bytes[$1] += $3 }
		END { for (op in count) printf "%s,%d,%d,%d\n", op, count[op], \
			errors[op], bytes[op] }' "$BATS_TEST_TMPDIR/trace")
}

@test "a program may map before all constructors and after all destructors" {
	while read -r lock; do
		run -0 bare "$lock" "$SUBJECTS/early"
		equal "${lines[*]}" 'early: 3 of 3 last: mapped'
		run -0 gate "$lock" "$SUBJECTS/early"
		equal "${lines[*]}" 'early: 3 of 3 last: mapped'
		# The resolver ran before the library's start: not counted.
		run -0 report 'c["mmap"]["count"]'
		equal "$output" 3
	done < <(locks)
}

@test "csv and jsonl hold the same calls" {
	gate mutex --calls all "$SUBJECTS/calls" "$BATS_TEST_TMPDIR/trace" \
		>/dev/null
	mmgate export --format jsonl "$LOGS" >"$BATS_TEST_TMPDIR/jsonl"
	run -0 "$PYTHON" - "$BATS_TEST_TMPDIR/jsonl" <<-'EOP'
		import json, sys
		for line in open(sys.argv[1]):
		    print(json.loads(line)["op"])
	EOP
	equal "$output" "$(logged | cut -d, -f1)"
}
