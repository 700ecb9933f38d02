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
	contains "$output" 'by thread, as far as the calls are in the log one by one:'
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

# Do the rows add up to all calls?
adds_up='[sum(r[k] for r in g) == sum(o[k] for o in c.values())
	for k in ("count", "errors", "bytes")] == [True] * 3'

@test "every one of fourteen hundred threads has a row, and text sums the rest" {
	gate none "$SUBJECTS/mapper" -t 700 -n 2 >/dev/null
	run -0 groups thread 'len(g), {(r["count"], r["rest"]) for r in g}'
	equal "$output" '(1400, {(3, False)})'
	run -0 groups thread "$adds_up"
	equal "$output" True
	run -0 mmgate report --by thread "$LOGS"
	# 40 have a line of their own.
	equal "$(grep -c '[0-9] %.* 1360 more$' <<<"$output")" 1
	contains "$(grep ' 1360 more$' <<<"$output")" ' 4.08 k '
	rm "$LOGS/run.rows" # some threads' names
	mmgate report --format html -o "$BATS_TEST_TMPDIR/page" "$LOGS"
	run -0 grep -o '<li>1.35 k more: [0-9.]* k calls' \
		"$BATS_TEST_TMPDIR/page"
	equal "$output" '<li>1.35 k more: 4.05 k calls'
}

@test "calls that the log forgot have a row of their own" {
	gate none --log-size 512K "$SUBJECTS/mapper" -t 4 -n 4000 >/dev/null
	for by in thread size; do
		run -0 groups "$by" "$adds_up"
		equal "$output" True "sums by $by"
		run -0 groups "$by" "(g[-1]['$by'], g[-1]['rest'],
			g[-1]['max_ns'], any(r['rest'] for r in g[:-1]))"
		equal "$output" "('not in the log one by one', True, None, False)"
		run -0 mmgate report --by "$by" "$LOGS"
		contains "$output" ' not in the log one by one'
	done
}

@test "a failed call gives a thread no bytes" {
	gate none "$PYTHON" -c '
import ctypes, mmap
libc = ctypes.CDLL(None)
for i in range(5):
    libc.munmap(ctypes.c_void_p(1), ctypes.c_size_t(1 << 30))
'
	run -0 groups thread "$adds_up"
	equal "$output" True
	run -0 groups thread 'sum(r["errors"] for r in g)'
	holds "$output" -ge 5 errors
}

@test "each of many processes is grouped by its own calls" {
	mmgate run --quiet --hooks symbols --stacks off -o "$LOGS" -- \
		bash -c "for i in {1..12}; do '$SUBJECTS/mapper' -n 10
		done >/dev/null"
	mmgate report --by thread --format json "$LOGS" \
		>"$BATS_TEST_TMPDIR/json"
	run -0 "$PYTHON" -c 'import json, sys
p = json.load(open(sys.argv[1]))["processes"]
print([sum(r["count"] for r in e["groups"]) for e in p
	if e["image"] == "mapper"])' "$BATS_TEST_TMPDIR/json"
	equal "$output" "[$(printf '30, %.0s' {1..11})30]"
}

# Slowly, so that calls of each thread have their stacks copied.
@test "samples of more groups than are shown have a line for the rest" {
	mmgate run --quiet --events off --stacks every:1 --hooks symbols \
		--delay mmap:10ms,munmap:10ms,madvise:10ms \
		-o "$LOGS" -- "$SUBJECTS/mapper" -t 30 -n 2 >/dev/null
	run -0 mmgate report --by thread "$LOGS"
	equal "$(grep -c '[0-9] %.* 20 more$' <<<"$output")" 1
}

# Slowly, so that each call has its stack copied.
@test "sites beyond those that are shown are summed up" {
	local i many=$BATS_TEST_TMPDIR/many sites

	need "${CC:-cc}"
	{
		printf '#include <%s.h>\n' sys/mman unistd
		for i in {1..220}; do
			echo "__attribute__((noinline)) static void f$i(void) {" \
				"mmap(0, 4096, 1, 34, -1, 0); usleep(3000);" \
				'__asm__ volatile("" ::: "memory"); }'
		done
		echo 'int main(void) {'
		printf 'f%d();\n' {1..220}
		echo 'return 0; }'
	} >"$many.c"
	"${CC:-cc}" -g -O1 -Wno-all -o "$many" "$many.c"
	mmgate run --quiet --stacks every:1 --hooks symbols -o "$LOGS" -- "$many"
	sites=$(report 'len(p[0]["sites"])')
	holds "$sites" -ge 220 sites
	run -0 mmgate report "$LOGS"
	equal "$(grep -c "[0-9] %.* $((sites - 8)) more\$" <<<"$output")" 1 text
	run -0 mmgate report "$LOGS" --diff "$LOGS"
	equal "$(grep -c "x1.00  $((sites - 12)) more\$" <<<"$output")" 1 diff
	mmgate report --format html -o "$BATS_TEST_TMPDIR/page" "$LOGS"
	run -0 grep -c "<td class=name>$((sites - 200)) more</td>" \
		"$BATS_TEST_TMPDIR/page"
}
