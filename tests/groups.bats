#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# report --by thread and --by size.

load helpers

setup() {
	count_symbols_only
	new_logs
}

groups() { # BY: the rows
	mmgate report --by "$1" --format json "$LOGS" \
		>"$BATS_TEST_TMPDIR/groups.json"
	"$PYTHON" - "$BATS_TEST_TMPDIR/groups.json" "$2" <<-'EOP'
		import json, sys
		p = json.load(open(sys.argv[1]))["processes"][0]
		g, c = p["groups"], p["calls"]
		print(eval("(" + sys.argv[2] + ")"))
	EOP
}

@test "threads and sizes add up to all calls, and to their time" {
	gate mutex "$SUBJECTS/mapper" -t 4 -n 100 >/dev/null
	for by in thread size; do
		run -0 groups "$by" 'sum(r["count"] for r in g) ==
			sum(o["count"] for o in c.values())'
		equal "$output" True "counts by $by"
		run -0 groups "$by" 'all(abs(sum(r[k] for r in g) -
			sum(o[k]["sum"] for o in c.values())) <
			1000 + sum(o["count"] for o in c.values())
			for k in ("wait_ns", "kernel_ns"))'
		equal "$output" True "times by $by"
		run -0 groups "$by" 'sorted(g, key=lambda r: -r["wait_ns"] -
			r["kernel_ns"]) == g'
		equal "$output" True "order by $by"
	done
	# 4 threads in each half, each half of its loops of three calls.
	run -0 groups thread '[r["count"] for r in g]'
	equal "$output" '[150, 150, 150, 150, 150, 150, 150, 150]'
	run -0 groups size '[(r["size"], r["count"]) for r in g]'
	equal "$output" "[('32.0 KiB to 64.0 KiB', 1200)]"
}

@test "the text has a line for each thread, and for each size" {
	gate none "$SUBJECTS/mapper" -t 3 -n 100 >/dev/null
	run -0 mmgate report --by thread "$LOGS"
	contains "$output" 'of the calls that are in the log one by one:'
	equal "$(grep -c ' (mapper)$\|^ *[0-9.]* %.* [0-9]*$' <<<"$output")" 6
	run -0 mmgate report --by size "$LOGS"
	contains "$output" '32.0 KiB to 64.0 KiB'
}

@test "without all events samples tell of threads and sizes" {
	gate none "$SUBJECTS/mapper" -t 2 -n 300 >/dev/null
	mmgate run --quiet --events off --stacks every:1 --hooks symbols \
		-o "$LOGS" -- "$SUBJECTS/mapper" -t 2 -n 300
	run -0 mmgate report --by thread "$LOGS"
	lacks "$output" 'one by one'
}
