#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# No call is lost and none is counted twice, whatever ends the program.

load helpers

setup() {
	count_symbols_only
	new_logs
}

counts() {
	report '[c[n]["count"] for n in ("mmap", "madvise", "munmap")]'
}

@test "a loop of one mmap, two madvise and one munmap is counted as that" {
	while read -r lock; do
		gate "$lock" "$EXAMPLES/congestion" -t 16 -n 50 -c firstpage \
			>"$BATS_TEST_TMPDIR/out"
		contains "$(tail -1 "$BATS_TEST_TMPDIR/out")" ops_per_second:
		run -0 counts
		equal "$output" '[800, 1600, 800]' "$lock"
	done < <(locks)
}

@test "the same, when the program ends by _exit" {
	while read -r lock; do
		gate "$lock" "$EXAMPLES/congestion" -t 16 -n 50 -c firstpage -x \
			>/dev/null
		run -0 counts
		equal "$output" '[800, 1600, 800]' "$lock"
	done < <(locks)
}

@test "the same, without the command" {
	while read -r lock; do
		rm -rf "$LOGS"
		mkdir "$LOGS"
		bare "$lock" env MMGATE_LOG="$LOGS" "$EXAMPLES/congestion" \
			-t 16 -n 50 -c firstpage >/dev/null
		run -0 counts
		equal "$output" '[800, 1600, 800]' "$lock"
	done < <(locks)
}

@test "every event is kept while the ring has room, and counts what it drops" {
	gate mutex "$SUBJECTS/mapper" -t 4 -n 100
	run -0 report '(p[0]["events"]["kept"], p[0]["events"]["overwritten"])'
	equal "$output" '(1200, 0)'
	gate mutex --log-size 1M "$SUBJECTS/mapper" -t 4 -n 20000
	# A busy machine may make the gate open, which is an event too.
	run -0 report 'p[0]["events"]["kept"] + p[0]["events"]["overwritten"]
		- p[0]["gate_opened"]'
	equal "$output" 240000
	run -0 report 'p[0]["events"]["overwritten"] > 0'
	equal "$output" True
	run -0 report '[c[n]["count"] for n in sorted(c)]'
	equal "$output" '[80000, 80000, 80000]'
}

# Loops that the program counted as finished in the file that it shares.
progress() {
	"$PYTHON" - "$1" <<-'EOP'
		import struct, sys
		data = open(sys.argv[1], "rb").read()
		print(sum(struct.unpack_from("<Q", data, i)[0]
		          for i in range(0, len(data), 64)))
	EOP
}

is_working() {
	[ -s "$1" ] && [ "$(progress "$1")" -gt 100 ]
}

@test "a program killed in the middle has every finished call in its log" {
	while read -r lock; do
		file=$BATS_TEST_TMPDIR/progress
		rm -rf "$file" "$LOGS"
		mkdir "$LOGS"
		env LD_PRELOAD="$LIBRARY" MMGATE_LOCK="$lock" \
			MMGATE_LOG="$LOGS" "$EXAMPLES/congestion" -t 8 \
			-n 1000000 -c firstpage -p "$file" >/dev/null 3>&- &
		child=$!
		eventually is_working "$file"
		kill -KILL $child
		status=0
		wait "$child" || status=$?
		equal "$status" 137
		loops=$(progress "$file")
		holds "$loops" -gt 100 'finished loops'
		for op in mmap munmap; do
			run -0 report "c['$op']['count']"
			holds "$output" -ge "$loops" "$op under $lock"
			# Each thread may have been in one more loop.
			holds "$output" -le $((loops + 8 + 1)) "$op under $lock"
		done
		run -0 report 'c["madvise"]["count"]'
		holds "$output" -ge $((2 * loops)) "madvise under $lock"
		# The newest events are whole: as many as the histograms say.
		run -0 report 'p[0]["events"]["kept"] +
			p[0]["events"]["overwritten"] +
			8 >= sum(o["count"] for o in c.values())'
		equal "$output" True
	done < <(locks)
}

@test "a program killed under run is reported with 137 and its calls" {
	while read -r lock; do
		run -137 gate "$lock" "$SUBJECTS/mapper" -t 4 -n 100 -k
		contains "$output" sum:
		run -0 report '[c[n]["count"] for n in sorted(c)]'
		equal "$output" '[400, 400, 400]'
	done < <(locks)
}

@test "a program that executes another has both in the report, by start" {
	while read -r lock; do
		run -0 gate "$lock" "$SUBJECTS/mapper" -t 4 -n 100 \
			-e "$SUBJECTS/early"
		run -0 report '[(e["image"], e["calls"]["mmap"]["count"])
			for e in p]'
		equal "$output" "[('mapper', 400), ('early', 3)]"
		run -0 report 'p[0]["pid"] == p[1]["pid"]'
		equal "$output" True
	done < <(locks)
}

@test "sums, maxima and percentiles of a histogram agree with its events" {
	gate mutex "$SUBJECTS/mapper" -t 4 -n 500
	mmgate export --format csv "$LOGS" >"$BATS_TEST_TMPDIR/csv"
	mmgate report --format json "$LOGS" >"$BATS_TEST_TMPDIR/json"
	run -0 "$PYTHON" - "$BATS_TEST_TMPDIR/csv" "$BATS_TEST_TMPDIR/json" \
		<<-'EOP'
		import csv, json, sys
		rows = list(csv.DictReader(open(sys.argv[1])))
		calls = json.load(open(sys.argv[2]))["processes"][0]["calls"]
		for op, o in calls.items():
		    for name in "wait_ns", "kernel_ns":
		        v = sorted(int(r[name]) for r in rows if r["op"] == op)
		        h = o[name]
		        slack = len(v)      # each was rounded to a ns
		        assert len(v) == o["count"], (op, name)
		        assert abs(sum(v) - h["sum"]) <= slack, (op, name, sum(v), h)
		        assert abs(v[-1] - h["max"]) <= 1, (op, name, v[-1], h)
		        for key, share in ("p50", .5), ("p90", .9), ("p99", .99):
		            at = share * len(v)
		            low, high = v[max(int(at) - 2, 0)], v[min(int(at) + 2, len(v) - 1)]
		            assert low * .983 - 20 <= h[key] <= high * 1.017 + 20, \
		                (op, name, key, h[key], low, high)
		EOP
}
