#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What `run` keeps over time, and windows of a run.

load helpers

setup() {
	count_symbols_only
	new_logs
}

teardown() {
	[ -z "${child-}" ] || kill "$child" 2>/dev/null || true
}

rows_at_least() { # COUNT
	[ "$(report 'len(d["rows"] or [])')" -ge "$1" ]
}

run_half() { # WORDS OF run...
	begin_half "$BUILD/mmgate" run "$@" -o "$LOGS" -- "$SUBJECTS/mapper" \
		-t 2 -n 200
}

@test "rows over time add up to the histograms" {
	run_half --quiet --lock mutex
	# One that begins when all of the first half was done.
	before=$(report 'len(d["rows"] or [])')
	eventually rows_at_least $((before + 2))
	end_half
	run -0 report 'len(d["rows"]) >= 3'
	equal "$output" True
	run -0 report '{n: sum(r["calls"].get(n, {}).get("count", 0)
		for r in d["rows"]) == o["count"] for n, o in c.items()}'
	equal "$output" "{'mmap': True, 'munmap': True, 'mprotect': True}"
	# Half of the calls came before the row in which nothing happened.
	run -0 report 'any(sum(r["calls"].get("mmap", {}).get("count", 0)
		for r in d["rows"][:i]) == 200 for i in range(len(d["rows"])))'
	equal "$output" True
	run -0 report 'all(abs(sum(r["calls"].get(n, {}).get(k, 0)
		for r in d["rows"]) - c[n][k]["sum"]) < 100
		for n in c for k in ("wait_ns", "kernel_ns"))'
	equal "$output" True
	run -0 report 'all(b["time_ns"] == a["time_ns"] + a["span_ns"]
		for a, b in zip(d["rows"], d["rows"][1:]))'
	equal "$output" True
}

@test "calls of processes that come and go are in the rows once each" {
	mmgate run --quiet -o "$LOGS" -- bash -c "for i in {1..20}; do
		'$SUBJECTS/mapper' -n 20; done" >/dev/null
	run -0 report 'sum(r["calls"].get("munmap", {}).get("count", 0)
		for r in d["rows"]) == sum(e["calls"].get("munmap",
		{}).get("count", 0) for e in p)'
	equal "$output" True
	holds "$(report 'len(p)')" -ge 20 processes
}

@test "a window has the calls that began in it" {
	run_half --quiet
	eventually rows_at_least 2
	half=$("$PYTHON" -c 'import time; print(time.monotonic_ns())')
	origin=$(report 'd["origin_ns"]')
	end_half
	at=$((half - origin))ns
	run -0 mmgate report "$LOGS" --format json --until "$at"
	equal "$("$PYTHON" -c 'import json, sys
d = json.load(sys.stdin)
print([o["count"] for n, o in sorted(d["processes"][0]["calls"].items())])' \
		<<<"$output")" '[200, 200, 200]' 'calls of the first half'
	equal "$(mmgate report "$LOGS" --format json | grep -c '"window": null')" 1
	run -0 mmgate report "$LOGS" --format json --since "$at"
	contains "$output" '"told_by": "the events of that time'
	contains "$output" '"calls": 600'
	run -0 mmgate report "$LOGS" --since "$at"
	contains "$output" 'From '
	contains "$output" ' after the start, by the events of that time:'
	run -0 mmgate report "$LOGS" --format json --since -3600s
	contains "$output" '"calls": 1200'
}

@test "a window that cannot be is refused in one line" {
	gate none "$SUBJECTS/mapper" >/dev/null
	for words in '--since 5' '--since -x' '--until 1parsec' '--since=' \
		'--since 2s --until 1s'; do
		# shellcheck disable=SC2086 # words of a command
		run -2 --separate-stderr mmgate report $words "$LOGS"
		equal "${#stderr_lines[@]}" 1 "$words"
	done
	run -1 --separate-stderr mmgate report --since 360000s "$LOGS"
	equal "${#stderr_lines[@]}" 1
	contains "$stderr" 'after the end'
}

@test "a part of a run is not told where single calls do not tell it" {
	gate none --events off "$SUBJECTS/mapper" >/dev/null
	run -1 --separate-stderr mmgate report --since 0s "$LOGS"
	equal "$output" ''
	equal "${#stderr_lines[@]}" 1
	contains "$stderr" 'events are off (--events all keeps them)'
	gate none --log-size 256K "$SUBJECTS/mapper" >/dev/null
	run -1 --separate-stderr mmgate report --since 0s "$LOGS"
	contains "$stderr" 'a larger --log-size keeps them'
	gate none --events slow:1ns "$SUBJECTS/mapper" >/dev/null
	run -0 mmgate report --since 0s "$LOGS"
	contains "$output" 'which are of the slow calls alone'
	run -0 mmgate report --since 0s --format html "$LOGS"
	contains "$output" 'of the slow calls alone'
}

@test "options that would have no effect are refused" {
	gate none "$SUBJECTS/mapper" >/dev/null
	for words in "--diff $LOGS --by size" "--diff $LOGS --worst 3" \
		'--format html --by thread' "--format html --diff $LOGS"; do
		# shellcheck disable=SC2086 # words of a command
		run -2 --separate-stderr mmgate report $words "$LOGS"
		equal "$output" '' "$words"
		equal "${#stderr_lines[@]}" 1 "$words"
	done
}

@test "a limit on file sizes costs the rows, and nothing else" {
	run -0 --separate-stderr bash -c "ulimit -f 190; exec '$BUILD/mmgate' \
		run --lock mutex -o '$LOGS' -- '$SUBJECTS/mapper'"
	contains "$stderr" 'note: no figures over time: cannot write'
	contains "$stderr" run.rows
	run -0 report 'c["mmap"]["count"], d["rows"]'
	equal "$output" '(100, None)'
}

@test "a strange run.rows is one line, and the rest is reported" {
	gate none "$SUBJECTS/mapper" >/dev/null
	rows=$LOGS/run.rows
	printf 'x' | dd of="$rows" bs=1 conv=notrunc 2>/dev/null
	run -0 --separate-stderr mmgate report "$LOGS"
	equal "${#stderr_lines[@]}" 1
	contains "$stderr" "$rows: is not of mmgate"
	contains "$output" munmap
	while read -r make; do
		rm -rf "$rows"
		eval "$make"
		run -0 timeout 20 "$BUILD/mmgate" report "$LOGS"
		contains "$output" munmap
	done <<-'ROWS'
		true
		: >"$rows"
		mkdir "$rows"
		mkfifo "$rows"
		ln -s /dev/zero "$rows"
		head -c 300000 /dev/urandom >"$rows"
		truncate -s 1T "$rows"
	ROWS
}

@test "rows of a run that was killed before its first are none, without a word" {
	gate none "$SUBJECTS/mapper" >/dev/null
	for make in ': >"$rows"' 'rm "$rows"; truncate -s 300000 "$rows"'; do
		rows=$LOGS/run.rows
		eval "$make"
		run -0 --separate-stderr mmgate report "$LOGS"
		equal "$stderr" ''
		contains "$output" munmap
	done
}

@test "a directory with rows is replaced like any of mmgate's" {
	for _ in 1 2 3; do
		gate none "$SUBJECTS/mapper" >/dev/null
		[ -e "$LOGS/run.rows" ]
	done
	[ -e "$LOGS.old/run.rows" ]
}
