#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What report and export make of logs, good and bad.

load helpers

setup() {
	count_symbols_only
	new_logs
}

make_logs() { # two processes, mapper and early
	gate mutex "$SUBJECTS/mapper" -t 2 -n 100 -e "$SUBJECTS/early" \
		>/dev/null
}

log_of() { # IMAGE: its file
	local pid started

	read -r pid started < <(report \
		"' '.join(str(v) for e in p if e['image'] == '$1'
			for v in (e['pid'], e['started']))")
	echo "$LOGS/$pid-$started.mmgate"
}

# Bytes at an offset: poke FILE OFFSET '\1\2'
poke() {
	# shellcheck disable=SC2059 # the bytes
	printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

@test "the json report has every field of the contract" {
	make_logs
	mmgate report --format json "$LOGS" >"$BATS_TEST_TMPDIR/json"
	"$PYTHON" -m json.tool "$BATS_TEST_TMPDIR/json" >/dev/null
	run -0 "$PYTHON" - "$BATS_TEST_TMPDIR/json" <<-'EOP'
		import json, sys, time
		d = json.load(open(sys.argv[1]))
		assert d["version"] == 1
		assert len(d["processes"]) == 2
		total = 0
		for e in d["processes"]:
		    for f in ("pid", "image", "comm", "exe", "started", "duration_ns",
		              "settings", "hooks", "calls", "wake_ns", "events", "sites"):
		        assert f in e, f
		    assert abs(e["started"] / 1e9 - time.time()) < 600
		    assert 0 < e["duration_ns"] < 600e9
		    assert e["exe"].endswith("/" + e["image"])
		    assert e["settings"].items() >= {"lock": "mutex",
		        "place": "kernel", "calls": "mmap,munmap,mprotect,madvise",
		        "hooks": "symbols", "events": "all"}.items()
		    assert e["hooks"]["symbols"] is True
		    assert e["hooks"]["libc"].startswith("symbols only: ") \
		        or e["hooks"]["libc"].startswith("off"), e["hooks"]
		    for f in "kept", "overwritten":
		        assert isinstance(e["events"][f], int)
		    for name, o in e["calls"].items():
		        total += o["count"]
		        for f in "count", "errors", "bytes", "gated", "bypassed":
		            assert isinstance(o[f], int), (name, f)
		        for h in o["wait_ns"], o["kernel_ns"], e["wake_ns"]:
		            for f in "sum", "p50", "p90", "p99", "p999", "max":
		                assert isinstance(h[f], int), (name, f)
		            assert h["p50"] <= h["p90"] <= h["p99"] <= h["p999"], h
		            assert h["p999"] <= h["max"] <= h["sum"], h
		assert d["total"]["calls"] == total
		# Ops without calls are left out.
		assert sorted(d["processes"][1]["calls"]) == ["mmap", "munmap"]
	EOP
}

@test "the csv has the columns of the contract, a line a call, oldest first" {
	make_logs
	mmgate export --format csv "$LOGS" >"$BATS_TEST_TMPDIR/csv"
	equal "$(head -1 "$BATS_TEST_TMPDIR/csv")" "time_ns,pid,tid,op,addr,\
length,arg,flags,fd,offset,result,error,wait_ns,kernel_ns,caller,stack"
	# 3 calls a loop in mapper, 3 maps and unmaps in early
	equal "$(wc -l <"$BATS_TEST_TMPDIR/csv")" $((1 + 2 * 300 + 6))
	equal "$(awk -F, 'NF != 16' "$BATS_TEST_TMPDIR/csv")" ''
	for pid in $(tail -n +2 "$BATS_TEST_TMPDIR/csv" | cut -d, -f2 | sort -u)
	do
		awk -F, -v p="$pid" '$2 == p { print $1 }' \
			"$BATS_TEST_TMPDIR/csv" >"$BATS_TEST_TMPDIR/times"
		sort -nc "$BATS_TEST_TMPDIR/times"
	done
}

@test "the text report fits a screen and names what it shows" {
	make_logs
	run -0 mmgate report "$LOGS"
	for part in mapper early mutex mmap munmap mprotect wait kernel p99 max
	do
		contains "$output" "$part"
	done
	# Two processes; what the verdict has to say depends on the machine.
	rest=$(awk 'beyond && NF; /^$/ { beyond = 1 }' <<<"$output")
	holds "$(wc -l <<<"$rest")" -le 48 lines
	holds "$(wc -l <<<"$output")" -le 90 'lines with the verdict'
	equal "$(awk 'length > 120' <<<"$output")" '' 'long lines'
	equal "$(LC_ALL=C grep -c $'\t' <<<"$output")" 0 tabs
}

@test "the text report names only gaps that are there" {
	make_logs
	run -0 mmgate report "$LOGS"
	contains "$output" 'thread stacks): off (--hooks symbols)'
	lacks "$output" 'not asked for'
	mmgate run --quiet --hooks all -o "$LOGS" -- "$SUBJECTS/mapper" ||
		skip 'no --hooks all in this build'
	run -0 mmgate report "$LOGS"
	lacks "$output" 'the program has none'
}

@test "the text report says why calls went without the lock" {
	gate mutex "$SUBJECTS/handlers" protect
	run -0 report 'c["mprotect"]["bypassed_by"]["reentry"]'
	count=$output
	run -0 mmgate report "$LOGS"
	contains "$output" "went without the lock: $count reentry"
}

@test "the text report tells what runs from what was killed" {
	mkfifo "$BATS_TEST_TMPDIR/go"
	out=$BATS_TEST_TMPDIR/out
	"$BUILD/mmgate" run --quiet -o "$LOGS" -- "$SUBJECTS/mapper" -p \
		<"$BATS_TEST_TMPDIR/go" >"$out" 3>&- &
	run=$!
	exec 9>"$BATS_TEST_TMPDIR/go"
	eventually grep -q half "$out"
	run -0 mmgate report "$LOGS"
	contains "$output" 'so far, still running, 1 thread made calls'
	lacks "$output" 'last sign of life'
	report 'p[0]["pid"]' >"$BATS_TEST_TMPDIR/pid"
	kill -KILL "$(cat "$BATS_TEST_TMPDIR/pid")"
	wait "$run" || true
	run -0 mmgate report "$LOGS"
	contains "$output" ' to its last sign of life, 1 thread made calls'
	contains "$output" 'it was killed, called _exit or'
	lacks "$output" 'still running'
	exec 9>&-
}

@test "a process can be chosen by its name" {
	make_logs
	mmgate report --process early --format json "$LOGS" \
		>"$BATS_TEST_TMPDIR/json"
	contains "$(cat "$BATS_TEST_TMPDIR/json")" '"early"'
	lacks "$(cat "$BATS_TEST_TMPDIR/json")" '"mapper"'
}

@test "-o writes the report into a file" {
	make_logs
	run -0 mmgate report --format json "$LOGS"
	printed=$output
	run -0 mmgate report --format json -o "$BATS_TEST_TMPDIR/file" "$LOGS"
	equal "$output" ''
	equal "$(cat "$BATS_TEST_TMPDIR/file")" "$printed"
}

# Each kind of bad log, made of a good one: name, then what damages $log.
damages() {
	cat <<-'ROWS'
		empty : >"$log"
		short head -c 100 "$log" >"$log.x" && mv "$log.x" "$log"
		cut truncate -s -4096 "$log"
		half truncate -s 50000 "$log"
		foreign head -c 100000 /dev/urandom >"$log"
		text yes text | head -c 100000 >"$log"
		newer poke "$log" 8 '\377'
		unfinished poke "$log" 0 '\0\0\0\0\0\0\0\0'
		stripes poke "$log" 40 '\377\377\377\377'
		offset poke "$log" 48 '\377\377\377\377\377\377\377\377'
		ring poke "$log" 44 '\377\377\377\177'
		clock poke "$log" 76 '\11'
		directory rm "$log" && mkdir "$log"
		link rm "$log" && ln -s /etc/passwd "$log"
		fifo rm "$log" && mkfifo "$log"
	ROWS
}

@test "a bad log is one line and exit 1, and the others are reported" {
	make_logs
	log=$(log_of early)
	[ -e "$log" ]
	cp -R "$LOGS" "$LOGS.good"
	while read -r name damage; do
		rm -rf "$LOGS"
		cp -R "$LOGS.good" "$LOGS"
		eval "$damage"
		for command in 'report --format json' report \
			'export --format csv' 'export --format jsonl'; do
			# shellcheck disable=SC2086 # words of a command
			run --separate-stderr timeout 10 "$BUILD/mmgate" \
				$command "$LOGS"
			equal "$status" 1 "$command of a log that is $name"
			equal "${#stderr_lines[@]}" 1 \
				"lines of $command of a log that is $name"
			contains "$stderr" "$log"
			contains "$output" "mmap"
		done
	done < <(damages)
}

@test "a log with random bytes anywhere never crashes the reader" {
	make_logs
	log=$(log_of mapper)
	"$PYTHON" - "$BUILD/mmgate" "$LOGS" "$log" <<-'EOP'
		import os, random, subprocess, sys
		tool, logs, log = sys.argv[1:]
		fd = os.open(log, os.O_RDWR)
		size = os.fstat(fd).st_size
		rng = random.Random(4711)
		for i in range(20):
		    # In place: a log is large, and mostly holes.
		    good = {}
		    for _ in range(rng.choice((1, 8, 300))):
		        at = rng.randrange(rng.choice((304, 8192, size)))
		        good.setdefault(at, os.pread(fd, 1, at))
		        os.pwrite(fd, bytes([rng.randrange(256)]), at)
		    for words in (("report", "--format", "json"), ("report",),
		                  ("export", "--format", "csv")):
		        r = subprocess.run([tool, *words, logs], timeout=20,
		                           capture_output=True)
		        assert r.returncode in (0, 1), (i, words, r)
		        assert len(r.stderr.splitlines()) <= 2, (i, words, r.stderr)
		    for at, byte in good.items():
		        os.pwrite(fd, byte, at)
	EOP
}

@test "no directory, and one without logs, are one line and exit 1" {
	run -1 --separate-stderr mmgate report "$LOGS"
	equal "${#stderr_lines[@]}" 1
	contains "$stderr" "$LOGS"
	mkdir "$LOGS"
	run -1 --separate-stderr mmgate report "$LOGS"
	equal "${#stderr_lines[@]}" 1
	run -1 --separate-stderr mmgate export --format csv "$LOGS"
	equal "${#stderr_lines[@]}" 1
}

@test "names with strange bytes do no harm to a terminal or to json" {
	strange=$BATS_TEST_TMPDIR/$'e\033[31mvil"\\\377'
	cp "$SUBJECTS/mapper" "$strange"
	gate mutex "$strange" >/dev/null
	run -0 mmgate report "$LOGS"
	lacks "$output" $'\033'
	mmgate report --format json "$LOGS" >"$BATS_TEST_TMPDIR/json"
	"$PYTHON" -m json.tool "$BATS_TEST_TMPDIR/json" >/dev/null
}

@test "what is not built yet is refused with that reason" {
	make_logs
	for words in top 'top 1'; do
		# shellcheck disable=SC2086 # words of a command
		run -2 --separate-stderr mmgate $words
		equal "${#stderr_lines[@]}" 1
		contains "$stderr" 'not in this version'
	done
}
