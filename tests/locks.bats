#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The lock locks: no two gated calls are in the kernel at the same time.

load helpers

setup() {
	new_logs
}

# Prints the number of pairs of neighbours, by entry into the kernel, of which
# the second entered before the first was out; of calls with a wait only, which
# under a lock are those that took it.
overlaps() {
	mmgate export --format csv "$LOGS" >"$BATS_TEST_TMPDIR/csv"
	"$PYTHON" - "$BATS_TEST_TMPDIR/csv" "$1" <<-'EOP'
		import csv, sys
		spans = []
		for r in csv.DictReader(open(sys.argv[1])):
		    if r["wait_ns"] == "" and sys.argv[2] != "none":
		        continue
		    start = int(r["time_ns"]) + int(r["wait_ns"] or 0)
		    spans.append((start, start + int(r["kernel_ns"])))
		spans.sort()
		slack = 3    # three times, each rounded to a ns
		last, count = 0, 0
		for start, end in spans:
		    count += start + slack < last
		    last = max(last, end)
		print(count, len(spans))
	EOP
}

# Each program with what it runs long enough to meet itself.
programs() {
	cat <<-ROWS
		$EXAMPLES/congestion -t 4 -n 1000 -c firstpage
		$EXAMPLES/protect_flip -t 4 -n 2000
		$EXAMPLES/remap -t 4 -n 50
		$SUBJECTS/mapper -t 4 -n 1000
	ROWS
}

@test "under an excluding lock no two gated calls are in the kernel at once" {
	while read -r lock; do
		while read -r program; do
			# shellcheck disable=SC2086 # words of a command
			run -0 gate "$lock" --log-size 256M $program
			run -0 overlaps "$lock"
			equal "${output% *}" 0 "overlaps under $lock: $program"
			holds "${output#* }" -gt 300 'gated events'
		done < <(programs)
	done < <(excluding_locks)
}

@test "without a lock calls do overlap, so the test above can tell" {
	# How often they meet is the scheduler's business; that they do is not.
	for _ in 1 2 3 4 5; do
		run -0 gate none --log-size 256M "$EXAMPLES/congestion" -t 4 \
			-n 2000 -c firstpage
		run -0 overlaps none
		[ "${output% *}" -gt 0 ] && return
	done
	equal "${output% *}" 'more than 0' 'overlaps under none'
}

@test "under every lock every call is gated and none bypassed" {
	while read -r lock; do
		while read -r program; do
			# shellcheck disable=SC2086 # words of a command
			run -0 gate "$lock" $program
			run -0 report '[n for n, o in c.items()
				if n in p[0]["settings"]["calls"].split(",")
				if o["gated"] != o["count"] or o["bypassed"]]'
			equal "$output" '[]' "not gated under $lock: $program"
			run -0 report 'p[0]["gate_opened"]'
			equal "$output" 0 'times that the gate opened'
		done < <(programs)
	done < <(gating_locks)
}

@test "under none nothing is gated, nothing waits and nothing is bypassed" {
	run -0 gate none "$SUBJECTS/mapper" -t 4 -n 100
	run -0 report '{(o["gated"], o["bypassed"], o["wait_ns"]["sum"])
		for o in c.values()}'
	equal "$output" '{(0, 0, 0)}'
	run -0 mmgate export --format csv "$LOGS"
	equal "$(tail -n +2 <<<"$output" | cut -d, -f13 | sort -u)" ''
}

@test "calls that hold long by nature pass, or are gated when asked to" {
	run -0 gate mutex "$EXAMPLES/congestion" -t 1 -n 1
	while read -r lock; do
		for long in bypass gate; do
			gate "$lock" --long $long "$PYTHON" -c '
import mmap
for i in range(3):
    mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x8000)
'
			run -0 report 'c["mmap"]["bypassed_by"]["long"]'
			[ $long = gate ] || expected=3
			[ $long = bypass ] || expected=0
			equal "$output" "$expected" "bypassed under $lock, $long"
		done
	done < <(gating_locks)
}

@test "calls over a GiB that go through its pages are long, others are not" {
	gate mutex --calls all "$PYTHON" -c '
import ctypes
libc = ctypes.CDLL(None)
mmap, mremap = libc.mmap, libc.mremap
mmap.restype = mremap.restype = ctypes.c_void_p
v, n, i = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
GiB, quiet = 1 << 30, 0x4022  # private, anonymous, no reserve
def call(f, *args):
    assert f(*args) not in (-1, 2**64 - 1), f
for length in GiB, GiB - 4096:
    at = mmap(v(), n(2 * GiB), 3, quiet, -1, n(0))
    for advice in 4, 8, 20, 0:  # DONTNEED, FREE, COLD, NORMAL
        call(libc.madvise, v(at), n(length), advice)
    call(libc.mprotect, v(at), n(length), 1)
    call(mremap, v(at), n(2 * GiB), n(2 * GiB - length), i(0))
'
	run -0 report '[c[op]["bypassed_by"]["long"]
		for op in ("madvise", "mprotect", "mremap")]'
	equal "$output" '[3, 0, 1]'
}

@test "a waiter that slept is in wake_ns" {
	while read -r lock; do
		run -0 gate "$lock" "$EXAMPLES/congestion" -t 8 -n 500 -c all
		run -0 report 'p[0]["wake_ns"]["count"] > 0 and
			p[0]["wake_ns"]["max"] > 0'
		equal "$output" True "$lock"
	done < <(gating_locks)
}

# Prints the most calls of the given ops (all when none is given) that were in
# the kernel at the same time.
most_at_once() {
	mmgate export --format csv "$LOGS" >"$BATS_TEST_TMPDIR/csv"
	"$PYTHON" - "$BATS_TEST_TMPDIR/csv" "$@" <<-'EOP'
		import csv, sys
		ends = []
		for r in csv.DictReader(open(sys.argv[1])):
		    if sys.argv[2:] and r["op"] not in sys.argv[2:]:
		        continue
		    start = int(r["time_ns"]) + int(r["wait_ns"] or 0)
		    # Each time is rounded to a ns.
		    ends += [(start + 2, 1), (start + int(r["kernel_ns"]), -1)]
		inside = most = 0
		for _, change in sorted(ends):
		    inside += change
		    most = max(most, inside)
		print(most)
	EOP
}

@test "limit:N lets N threads in, and no more" {
	for n in 1 2 3; do
		run -0 gate limit:$n --log-size 256M "$EXAMPLES/congestion" \
			-t 8 -n 400 -c firstpage
		run -0 most_at_once
		holds "$output" -le $n "inside under limit:$n"
		run -0 report 'c["mmap"]["gated"] == c["mmap"]["count"]'
		equal "$output" True "limit:$n gates"
	done
	run -0 report 'p[0]["settings"]["lock"]'
	equal "$output" limit:3
}

@test "under rw what excludes is alone" {
	run -0 gate rw --log-size 256M "$EXAMPLES/congestion" -t 4 -n 1000 \
		-c firstpage
	run -0 most_at_once mmap munmap
	equal "$output" 1 'mmap and munmap at once'
}

@test "under rw advice that the kernel shares is shared" {
	# One call of it stays in the kernel until the others are done.
	run "$SUBJECTS/holder" -a
	[ "$status" != 77 ] || skip 'userfaultfd is not allowed here'
	expected=$output
	for lock in rw mutex; do
		run -0 gate $lock --max-wait 500ms "$SUBJECTS/holder" -a
		equal "$output" "$expected" "$lock"
		run -0 report 'p[0]["gate_opened"]'
		expected_openings=0
		[ $lock = rw ] || expected_openings=1
		equal "$output" $expected_openings "openings under $lock"
	done
}

@test "each op may have its own lock" {
	run -0 gate munmap:mutex,madvise:limit:2,brk:none "$EXAMPLES/congestion" \
		-t 4 -n 200
	run -0 report '[c[n]["gated"] == (c[n]["count"] if g else 0)
		for n, g in (("mmap", 0), ("munmap", 1), ("madvise", 1))]'
	equal "$output" '[True, True, True]' 'who is gated'
	run -0 report 'p[0]["settings"]["lock"]'
	equal "$output" munmap:mutex,madvise:limit:2
	run -0 most_at_once munmap
	equal "$output" 1 'munmap at once'
	# An op that is named takes its lock whatever MMGATE_CALLS says.
	run -0 gate mmap:mutex --calls munmap "$EXAMPLES/congestion" -t 2 -n 20
	run -0 report '[c[n]["gated"] > 0 for n in ("mmap", "munmap")]'
	equal "$output" '[True, False]' 'calls beside a list of ops'
}

@test "ops that name the same lock share it, others do not" {
	run -0 gate mmap:mutex,munmap:mutex --log-size 256M \
		"$EXAMPLES/congestion" -t 4 -n 1000 -c firstpage
	run -0 most_at_once mmap munmap
	equal "$output" 1 'mmap and munmap at once'
}
