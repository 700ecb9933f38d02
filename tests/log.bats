#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Whatever happens to the log, the program does not notice.

load helpers

setup() {
	count_symbols_only
	new_logs
	mkdir "$LOGS"
	PLAIN=$("$SUBJECTS/mapper" -t 4 -n 400)
}

teardown() {
	rm -rf "${place-}"
	if [ -d "$BATS_TEST_TMPDIR/small" ]; then
		umount "$BATS_TEST_TMPDIR/small" 2>/dev/null || :
	fi
}

logged() { # LOCK CMD...: with a log in $LOGS
	local lock=$1

	shift
	env LD_PRELOAD="$LIBRARY" MMGATE_LOCK="$lock" MMGATE_LOG="$LOGS" "$@"
}

# Starts the subject and leaves it waiting after its first half.
start_half() {
	begin_half logged mutex "$SUBJECTS/mapper" -t 4 -n 400
}

finish_half() {
	end_half
	equal "$(cat "$BATS_TEST_TMPDIR/out")" "half
$PLAIN"
	equal "$(cat "$BATS_TEST_TMPDIR/err")" '' stderr
}

@test "the log is up to date while the program runs" {
	start_half
	run -0 report '[c[n]["count"] for n in sorted(c)]'
	equal "$output" '[800, 800, 800]'
	finish_half
	run -0 report '[c[n]["count"] for n in sorted(c)]'
	equal "$output" '[1600, 1600, 1600]'
}

@test "a log that is unlinked while the program runs does no harm" {
	start_half
	rm -r "$LOGS"
	finish_half
}

@test "a directory that is renamed while the program runs takes its logs along" {
	start_half
	mv "$LOGS" "$LOGS.elsewhere"
	finish_half
	LOGS=$LOGS.elsewhere
	run -0 report 'c["mmap"]["count"]'
	equal "$output" 1600
}

@test "a log that fills its file system while the program runs does no harm" {
	is_root || skip 'needs root, to mount a small file system'
	mkdir "$BATS_TEST_TMPDIR/small"
	mount -t tmpfs -o size=700k mmgate "$BATS_TEST_TMPDIR/small" ||
		skip 'may not mount here'
	LOGS=$BATS_TEST_TMPDIR/small
	run -0 "$SUBJECTS/mapper" -t 8 -n 4000
	without=$output
	# Figures are complete, unless a thread had its first call when all was
	# full; then the log says how many they lack.
	for _ in 1 2 3; do
		rm -f "$LOGS"/*
		run -0 --separate-stderr logged mutex "$SUBJECTS/mapper" \
			-t 8 -n 4000
		equal "$output" "$without"
		equal "$stderr" '' stderr
		run -0 report 'sum(o["count"] for o in c.values()) +
			p[0]["unrecorded"]'
		equal "$output" 96000
		run -0 report '[c[n]["count"] for n in sorted(c)]'
		[ "$output" != '[32000, 32000, 32000]' ] || break
	done
	equal "$output" '[32000, 32000, 32000]'
	# Of the events the newest are kept.
	run -0 report 'p[0]["events"]["kept"] < 96000'
	equal "$output" True
	# Nothing more fits; the next program goes without a log and says so.
	run -0 --separate-stderr logged mutex "$SUBJECTS/mapper" -t 4 -n 400
	equal "$output" "$PLAIN"
	equal "${#stderr_lines[@]}" 1 'lines on stderr'
	contains "$stderr" 'no space left'
}

@test "a directory that is not there is said in one line, and that is all" {
	rmdir "$LOGS"
	run -0 --separate-stderr logged mutex "$SUBJECTS/mapper" -t 4 -n 400
	equal "$output" "$PLAIN"
	equal "${#stderr_lines[@]}" 1 'lines on stderr'
	contains "$stderr" "$LOGS"
	[ ! -e "$LOGS" ]
}

@test "a limit on file sizes is respected, and no SIGXFSZ comes" {
	limited() { # KIB: stdout is a pipe
		bash -c 'ulimit -f "$1" && shift && exec "$@"' limit "$1" \
			env LD_PRELOAD="$LIBRARY" MMGATE_LOCK=mutex \
			MMGATE_LOG="$LOGS" "$SUBJECTS/mapper" -t 4 -n 400
	}
	for kib in 0 100 500 4000; do
		rm -f "$LOGS"/*
		# stderr is a file here, which a line of ours could make too
		# long, so there is none.
		run -0 --separate-stderr limited $kib
		equal "$output" "$PLAIN"
		equal "$stderr" '' stderr
	done
	run -0 report '(c["mmap"]["count"], "RLIMIT_FSIZE" in p[0]["limits"])'
	equal "$output" '(1600, True)'
	run -0 limited 100
	contains "$output" 'by RLIMIT_FSIZE'
}

@test "a limit on the address space is left to the program" {
	run -0 --separate-stderr bash -c 'ulimit -v "$1" && shift && exec "$@"' \
		limit 120000 env LD_PRELOAD="$LIBRARY" MMGATE_LOCK=mutex \
		MMGATE_PLACE=kernel MMGATE_LOG="$LOGS" \
		"$SUBJECTS/mapper" -t 4 -n 400
	equal "$output" "$PLAIN"
	equal "$stderr" '' stderr
	run -0 report '(c["mmap"]["count"], "RLIMIT_AS" in p[0]["limits"])'
	equal "$output" '(1600, True)'
}

@test "a program may lock as much memory as without the library" {
	# Where nobody, too, may read and write.
	place=$(mktemp -d "${TMPDIR:-/tmp}/mmgate-test.XXXXXX")
	cp "$LIBRARY" "$SUBJECTS/lockall" "$place"
	chmod 777 "$place"
	words=()
	if is_root; then
		need setpriv
		words=(setpriv --reuid 65534 --clear-groups
			--bounding-set=-all --inh-caps=-all)
	fi
	run -0 bash -c 'ulimit -l 8192 && exec "$@"' limit "${words[@]}" \
		"$place/lockall"
	equal "$output" 'mlockall: 0, errno 0'
	run -0 bash -c 'ulimit -l 8192 && exec "$@"' limit "${words[@]}" \
		env LD_PRELOAD="$place/libmmgate.so" MMGATE_LOG="$place" \
		"$place/lockall"
	equal "$output" 'mlockall: 0, errno 0'
	LOGS=$place
	run -0 report '["RLIMIT_MEMLOCK" in e["limits"] for e in p
		if e["image"] == "lockall"]'
	equal "$output" '[True]'
}

@test "with one descriptor free the log still opens, and gives it back" {
	run -0 --separate-stderr bash -c 'exec 3>&- && ulimit -n 4 &&
		exec "$@"' limit env LD_PRELOAD="$LIBRARY" MMGATE_LOCK=mutex \
		MMGATE_LOG="$LOGS" "$SUBJECTS/mapper" -t 4 -n 400
	equal "$output" "$PLAIN"
	equal "$stderr" '' stderr
	run -0 report 'c["mmap"]["count"]'
	equal "$output" 1600
}

@test "closed standard descriptors stay closed, and output goes where it went" {
	logged mutex "$SUBJECTS/mapper" -t 4 -n 400 <&- 2>&- \
		>"$BATS_TEST_TMPDIR/out"
	equal "$(cat "$BATS_TEST_TMPDIR/out")" "$PLAIN"
	# The subject's puts fails just as it does without the library.
	run -0 bash -c '"$@" <&- >&- 2>&-' closed "$SUBJECTS/mapper" -n 10
	run -0 bash -c '"$@" <&- >&- 2>&-' closed env LD_PRELOAD="$LIBRARY" \
		MMGATE_LOG="$LOGS" "$SUBJECTS/mapper" -n 10
	run -0 report '[e["calls"]["mmap"]["count"] for e in p
		if e["image"] == "mapper"]'
	equal "$output" '[1600, 10]'
}

@test "the library holds no descriptor" {
	run -0 bash -c 'ls /proc/self/fd' 3>&-
	without=$output
	run -0 bash -c 'LD_PRELOAD=$1 MMGATE_LOG=$2 ls /proc/self/fd' fds \
		"$LIBRARY" "$LOGS" 3>&-
	equal "$output" "$without"
}

@test "a short-lived child costs at most 256 KiB" {
	run -0 logged mutex "$SUBJECTS/early"
	run -0 logged mutex "$PYTHON" -c 'import json'
	# With stacks too, of a call of each sort.
	run -0 env MMGATE_STACKS=every:20,slow:1ns LD_PRELOAD="$LIBRARY" \
		MMGATE_LOG="$LOGS" "$SUBJECTS/early"
	run -0 report 'max(e["stacks"]["samples"] for e in p) > 1'
	equal "$output" True
	for file in "$LOGS"/*.mmgate; do
		kib=$(du -k "$file" | cut -f1)
		holds "$kib" -le 256 "KiB on disk"
		holds "$kib" -gt 0 "KiB on disk"
	done
}

@test "run trims the logs of processes that are gone" {
	run -0 gate mutex "$SUBJECTS/mapper" -n 10
	kib=$(du -k "$LOGS"/*.mmgate | cut -f1)
	holds "$kib" -le 96 'KiB on disk'
	run -0 report 'c["mmap"]["count"]'
	equal "$output" 10
}

@test "all logs together stay below the total" {
	run -0 --separate-stderr env LD_PRELOAD="$LIBRARY" MMGATE_LOG="$LOGS" \
		MMGATE_LOG_TOTAL=1M bash -c '
		for i in 1 2 3 4 5 6 7 8 9 10; do "$0" -t 4 -n 400; done' \
		"$SUBJECTS/mapper"
	equal "$output" "$(for _ in {1..10}; do echo "$PLAIN"; done)"
	kib=$(du -k "$LOGS" | cut -f1)
	holds "$kib" -le $((1024 + 8)) 'KiB on disk'
	contains "$stderr" MMGATE_LOG_TOTAL
	# Each log is whole, or says that it is not.
	run -0 report '[e["calls"] for e in p if e["image"] == "mapper" and
		e["calls"].get("mmap", {"count": 0})["count"] != 1600 and
		not e["limits"]]'
	equal "$output" '[]'
	run -0 report 'sum(e["calls"]["mmap"]["count"] == 1600 for e in p
		if e["image"] == "mapper" and "mmap" in e["calls"]) > 0'
	equal "$output" True
}

@test "one process's log stays below its cap" {
	MMGATE_LOG_SIZE=1M run -0 logged mutex "$SUBJECTS/mapper" -t 8 -n 4000
	for file in "$LOGS"/*.mmgate; do
		holds "$(stat -c %s "$file")" -le 1048576 "size of $file"
	done
	run -0 report '[e["calls"]["mmap"]["count"] for e in p
		if e["image"] == "mapper"]'
	equal "$output" '[32000]'
}

@test "10,000 threads cost the program its log and no more than 1 MiB" {
	run "$SUBJECTS/memory" 10000
	[ "$status" != 77 ] || skip 'fewer than 10,000 threads may run here'
	equal "$status" 0
	without=${lines[0]#*: }
	run -0 logged mutex "$SUBJECTS/memory" 10000
	with=${lines[0]#*: }
	holds $((with - without)) -le 1024 'KiB more'
	run -0 report '(p[-1]["threads"], c["munmap"]["count"])'
	equal "$output" '(10000, 10000)'
	holds "$(du -k "$LOGS" | cut -f1)" -le 65600 'KiB of log'
}

@test "logs are for their owner only, and never go through a link" {
	(umask 0 && logged mutex true)
	for file in "$LOGS"/*; do
		equal "$(stat -c %a "$file")" 600 "$file"
	done
	rm "$LOGS"/*
	echo precious >"$BATS_TEST_TMPDIR/victim"
	ln -s "$BATS_TEST_TMPDIR/victim" "$LOGS/run.info"
	run -0 --separate-stderr logged mutex "$SUBJECTS/mapper" -t 4 -n 400
	equal "$output" "$PLAIN"
	contains "$stderr" 'symbolic link'
	equal "$(cat "$BATS_TEST_TMPDIR/victim")" precious
}

@test "after its start the library makes no system calls of its own, but for place=thread" {
	need strace
	strace -f -o "$BATS_TEST_TMPDIR/plain" "$SUBJECTS/mapper" -t 1 -n 200 \
		>/dev/null || skip 'strace may not trace here'
	# From the first thread on; by name, with their numbers.
	tally() {
		# MADV_POPULATE_WRITE is the log's: space for more events.
		sed -n '/ clone3*(/,$p' "$1" | grep -vE ' MADV_POPULATE|, 0x17' |
			sed -n \
			's/^[0-9]* *\([a-z0-9_]*\)(.*/\1/p' |
			grep -vxE 'futex|gettid' | sort | uniq -c
	}
	tally "$BATS_TEST_TMPDIR/plain" >"$BATS_TEST_TMPDIR/kernel"
	# It looks for room once, and each thread has an anchor.
	awk '$2 == "mmap" { $1 += 2 } $2 == "munmap" { $1++ }
		{ printf "%7d %s\n", $1, $2 }' "$BATS_TEST_TMPDIR/kernel" \
		>"$BATS_TEST_TMPDIR/thread"
	for place in kernel thread; do
		rm -f "$LOGS"/*
		logged mutex strace -f -o "$BATS_TEST_TMPDIR/gated" \
			-E LD_PRELOAD="$LIBRARY" -E MMGATE_PLACE=$place \
			"$SUBJECTS/mapper" -t 1 -n 200 >/dev/null
		tally "$BATS_TEST_TMPDIR/gated" >"$BATS_TEST_TMPDIR/b"
		same "$BATS_TEST_TMPDIR/$place" "$BATS_TEST_TMPDIR/b"
	done
}

@test "a ring gets its memory once, though many threads write to it" {
	need strace
	strace -f -o "$BATS_TEST_TMPDIR/trace" true ||
		skip 'strace may not trace here'
	strace -f -e trace=madvise -o "$BATS_TEST_TMPDIR/trace" \
		-E LD_PRELOAD="$LIBRARY" -E MMGATE_LOG="$LOGS" \
		"$SUBJECTS/mapper" -t 8 -n 2000 >/dev/null
	grep -q EINVAL "$BATS_TEST_TMPDIR/trace" &&
		skip 'the kernel is too old to give a part'
	run -0 report 'p[0]["events"]["kept"] // 1024'
	chunks=$output
	[ "$chunks" -ge 40 ]
	# Longer where pages are larger than 4 KiB may be.
	run awk -F ', ' '/MADV_POPULATE_WRITE|, 0x17/ && $2 >= 98304 { n++ }
		END { print n }' "$BATS_TEST_TMPDIR/trace"
	holds "$output" -ge $((chunks - 2)) "calls for $chunks chunks"
	holds "$output" -le $((chunks * 5 / 4)) "calls for $chunks chunks"
}

@test "memory for stacks comes for many at once: each time waits for the lock" {
	need strace
	strace -f -o "$BATS_TEST_TMPDIR/trace" true ||
		skip 'strace may not trace here'
	MMGATE_LOG="$LOGS" strace -f -e trace=madvise \
		-o "$BATS_TEST_TMPDIR/trace" \
		-E LD_PRELOAD="$LIBRARY" -E MMGATE_STACKS=every:1 \
		"$SUBJECTS/mapper" -t 1 -n 100 >/dev/null
	run -0 report 'p[0]["stacks"]["samples"]'
	samples=$output
	[ "$samples" -ge 60 ]
	run grep -cE 'MADV_POPULATE_WRITE|, 0x17' "$BATS_TEST_TMPDIR/trace"
	[ "$output" -gt 0 ]
	[ "$output" -lt $((samples / 2)) ]
}
