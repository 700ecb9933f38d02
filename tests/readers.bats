#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Readers of logs in hostile places: what is in a directory, what it is called,
# and where a log ends.  tests/fuzz has what is in a log.

# All readers of thousands of logs, each up to three times.
export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-400}

load helpers

setup() {
	new_logs
}

teardown() {
	# bats cannot remove what nobody may read.
	chmod -R u+rwx "$BATS_TEST_TMPDIR" 2>/dev/null || true
}

make_log() { # one log, of mapper, in $LOG
	gate mutex "$SUBJECTS/mapper" -t 2 -n 700 >/dev/null
	LOG=$(echo "$LOGS"/*.mmgate)
}

# Each command that reads logs, with its options.
readers() {
	cat <<-'ROWS'
		report
		report --format json
		export --format csv
		export --format jsonl
	ROWS
}

# clean TEXT WHAT: it has no control character but the ends of lines
clean() {
	local bad

	bad=$(LC_ALL=C tr -d '\n -~\200-\377' <<<"$1" | od -An -c | head -3)
	equal "$bad" '' "control characters in $2"
	lacks "$1" $'\302\233'
}

# each_reader LINES STATUS [WRAPPER...]: every reader of $LOGS ends so
each_reader() {
	local complaints=$1 expected=$2 words

	shift 2
	while read -r words; do
		# shellcheck disable=SC2086 # words of a command
		run --separate-stderr timeout 20 "$@" "$BUILD/mmgate" $words \
			"$LOGS"
		equal "$status" "$expected" "status of $words: $stderr"
		equal "${#stderr_lines[@]}" "$complaints" \
			"lines of $words: $stderr"
		clean "$stderr" "errors of $words"
		clean "$output" "$words"
	done < <(readers)
}

# copies FROM COUNT: as many logs, sparse as the first, of other processes
copies() {
	"$PYTHON" - "$@" <<-'EOP'
		import os, struct, sys
		path, count = sys.argv[1], int(sys.argv[2])
		fd = os.open(path, os.O_RDONLY)
		size = os.fstat(fd).st_size
		parts, at = [], 0
		while at < size:
		    try:
		        at = os.lseek(fd, at, os.SEEK_DATA)
		    except OSError:
		        break
		    end = os.lseek(fd, at, os.SEEK_HOLE)
		    parts.append((at, os.pread(fd, end - at, at)))
		    at = end
		pid, = struct.unpack_from("I", parts[0][1], 64)
		started, = struct.unpack_from("Q", parts[0][1], 80)
		for i in range(1, count + 1):
		    name = f"{pid + i}-{started + i}.mmgate"
		    out = os.open(os.path.join(os.path.dirname(path), name),
		                  os.O_WRONLY | os.O_CREAT, 0o600)
		    os.ftruncate(out, size)
		    for at, part in parts:
		        os.pwrite(out, part, at)
		    os.pwrite(out, struct.pack("I", pid + i), 64)
		    os.pwrite(out, struct.pack("Q", started + i), 80)
		    os.close(out)
	EOP
}

# cost WORDS...: "STATUS SECONDS MIB" of a reader: CPU time and peak memory.  A
# virtual machine counts the time that it was stopped for: the least of three,
# once it is a second.
cost() {
	"$PYTHON" - "$BUILD/mmgate" "$@" <<-'EOP'
		import os, subprocess, sys
		def once():
		    reader = subprocess.Popen(sys.argv[1:],
		                              stdout=subprocess.DEVNULL)
		    _, status, used = os.wait4(reader.pid, 0)
		    return (os.waitstatus_to_exitcode(status),
		            int(used.ru_utime + used.ru_stime),
		            used.ru_maxrss // 1024)
		best = once()
		for _ in range(2):
		    if best[1] >= 1:
		        best = min(best, once(), key=lambda figures: figures[1])
		print(*best)
	EOP
}

each_reader_is_cheap() {
	local words code seconds mib

	while read -r words; do
		# shellcheck disable=SC2086 # words of a command
		read -r code seconds mib < <(cost $words "$LOGS")
		equal "$code" 0 "status of $words"
		# It is about 2, and what grows with their square takes minutes.
		holds "$seconds" -lt 10 "seconds of $words"
		holds "$mib" -lt 400 "MiB of $words"
	done < <(readers)
}

@test "a report of 3,000 logs takes a few seconds, little memory and few descriptors" {
	gate mutex "$SUBJECTS/early" >/dev/null
	copies "$(echo "$LOGS"/*.mmgate)" 3000
	ulimit -Sn 32
	each_reader_is_cheap
	run -0 report 'len(p), len({e["pid"] for e in p})'
	equal "$output" '(3001, 3001)'
}

@test "3,000 broken logs are 3,000 lines and one exit status" {
	make_log
	"$PYTHON" - "$LOGS" <<-'EOP'
		import sys
		for i in range(3000):
		    open(f"{sys.argv[1]}/{i}-1.mmgate", "wb").write(b"x" * (i % 9))
	EOP
	each_reader 3000 1
}

@test "what is no log is named in one line each, and nothing waits for it" {
	make_log
	mkdir "$LOGS/directory.mmgate"
	mkfifo "$LOGS/fifo.mmgate"
	ln -s "$LOG" "$LOGS/link.mmgate"
	ln -s "$LOGS/fifo.mmgate" "$LOGS/link-to-fifo.mmgate"
	ln -s nowhere "$LOGS/dangling.mmgate"
	ln -s loop.mmgate "$LOGS/loop.mmgate"
	: >"$LOGS/empty.mmgate"
	head -c 5000 /dev/urandom >"$LOGS/noise.mmgate"
	"$PYTHON" -c 'import socket, sys, os
os.chdir(sys.argv[1])
socket.socket(socket.AF_UNIX).bind("socket.mmgate")' "$LOGS"
	each_reader 9 1
	contains "$output" '"munmap"'
	for name in directory fifo link link-to-fifo dangling loop empty noise \
		socket; do
		contains "$stderr" "/$name.mmgate: "
	done
}

@test "a log that may not be read is one line" {
	make_log
	copies "$LOG" 1
	chmod 000 "$LOG"
	if is_root; then
		need setpriv
		each_reader 1 1 setpriv --bounding-set \
			-dac_override,-dac_read_search
	else
		each_reader 1 1
	fi
	contains "$stderr" "$LOG: "
}

@test "names in the directory cannot end a line or steer a terminal" {
	make_log
	broken=0
	for name in $'two\nlines' $'\033[31mred' $'\033]0;title\007' $'\r' \
		$'\302\233c1' $'\233eight' $'\377\376' '%s%n' '-rf' '--help' \
		' ' "$(printf '%0248d' 0)"; do
		: >"$LOGS/$name.mmgate"
		broken=$((broken + 1))
	done
	# These are not logs by their names.
	: >"$LOGS/.mmgate"
	: >"$LOGS/mmgate"
	: >"$LOGS/x.mmgate.gz"
	each_reader "$broken" 1
	contains "$output" '"munmap"'
}

@test "a good log with a strange name in a directory with one is read" {
	strange=$LOGS/$'d\n\033[31m'
	make_log
	mkdir "$strange"
	mv "$LOG" "$strange"/$'l\n\033[31m.mmgate'
	LOGS=$strange
	each_reader 0 0
	: >"$strange/1-1.mmgate"
	each_reader 1 1
	contains "$stderr" 'd??[31m/1-1.mmgate: '
}

@test "a strange run.info is passed over, which one line says" {
	make_log
	info=$LOGS/run.info
	cp "$info" "$BATS_TEST_TMPDIR/info"
	while read -r expected damage; do
		rm -rf "$info"
		eval "$damage"
		each_reader "$expected" 0
		if [ "$expected" = 1 ]; then
			contains "$stderr" "$info: "
		fi
	done <<-'ROWS'
		0 :
		1 : >"$info"
		1 head -c 100 "$BATS_TEST_TMPDIR/info" >"$info"
		1 head -c 4096 /dev/zero >"$info"
		1 head -c 4096 /dev/urandom >"$info"
		1 mkfifo "$info"
		1 mkdir "$info"
		1 ln -s /dev/zero "$info"
		0 cp "$BATS_TEST_TMPDIR/info" "$info"; truncate -s 1T "$info"
	ROWS
}

# of_format NUMBER: run.info as another version of mmgate would have written it
of_format() {
	# shellcheck disable=SC2059 # an escape
	printf "\\x$1\\0\\0\\0" | dd of="$LOGS/run.info" bs=1 seek=8 \
		conv=notrunc 2>/dev/null
}

@test "a run.info of another format is named, with both formats, and the logs are read" {
	make_log
	calls=$(report 'd["total"]["calls"]')
	while read -r number text; do
		of_format "$number"
		each_reader 1 0
		contains "$stderr" "$LOGS/run.info: was written by $text mmgate"
		contains "$stderr" "(format $((16#$number)), this one reads "
		run -0 --separate-stderr report '(d["total"]["calls"],
			d["total"]["without_log"], d["run"])'
		equal "$output" "($calls, None, None)"
		run -0 --separate-stderr mmgate report "$LOGS"
		contains "$output" "got no log is not known, as run.info was wri"
		run -0 --separate-stderr mmgate report --format html "$LOGS"
		equal "${#stderr_lines[@]}" 1 "$stderr"
		contains "$output" 'got no log is not known'
		run -0 --separate-stderr mmgate report "$LOGS" --diff "$LOGS"
		equal "${#stderr_lines[@]}" 2 "$stderr"
		contains "$output" 'incomplete: whether'
	done <<-'ROWS'
		63 a newer
		01 an older
	ROWS
	# The library does not write beside what it does not know.
	run -0 --separate-stderr env LD_PRELOAD="$LIBRARY" MMGATE_LOG="$LOGS" \
		"$SUBJECTS/mapper" -n 1
	equal "${#stderr_lines[@]}" 1 "$stderr"
	contains "$stderr" 'its run.info is of another mmgate (format 1, this li'
}

@test "the command in run.info cannot steer a terminal" {
	make_log
	printf 'e\n\033[31m\302\233vil\0' | dd of="$LOGS/run.info" bs=1 seek=248 \
		conv=notrunc 2>/dev/null
	each_reader 0 0
	run -0 mmgate report "$LOGS"
	equal "$(grep -cFx 'e??[31m??vil' <<<"$output")" 1
}

@test "a run into a directory with a strange run.info is refused at once" {
	for make in mkfifo mkdir 'ln -s /dev/zero' touch; do
		rm -rf "$LOGS"
		mkdir "$LOGS"
		$make "$LOGS/run.info"
		run -2 --separate-stderr timeout 20 "$BUILD/mmgate" run \
			-o "$LOGS" true
		equal "${#stderr_lines[@]}" 1 "$stderr"
		contains "$stderr" "$LOGS has something in it"
	done
}

@test "a log that ends anywhere is one line that says so" {
	make_log
	copies "$LOG" 1
	"$PYTHON" - "$BUILD/mmgate" "$LOGS" "$LOG" <<-'EOP'
		import os, struct, subprocess, sys
		tool, logs, log = sys.argv[1:]
		good = open(log, "rb").read()
		event, stripe, stripes, slots, at, rings = struct.unpack_from(
		    "IIIIQQ", good, 32)
		size = len(good)
		assert event == 96 and stripes >= 1 and slots > 1
		ends = [0, 1, 7, 8, 9, 12, 264, 4095, 4096, 8191, 8192, 8193,
		        at + 8, at + 4096, at + 16384, at + 16384 + 5 * 4096,
		        at + stripe - 1, at + stripe, at + stripe * stripes - 1,
		        rings, rings + 1, rings + event, rings + 10 * event + 50,
		        rings + slots * event - 1, rings + slots * event,
		        size // 2, size - event, size - 1]
		for end in sorted({e for e in ends if e < size}):
		    open(log, "wb").write(good[:end])
		    for words in (("report",), ("report", "--format", "json"),
		                  ("export", "--format", "csv"),
		                  ("export", "--format", "jsonl")):
		        r = subprocess.run([tool, *words, logs], timeout=20,
		                           capture_output=True, text=True)
		        lines = r.stderr.splitlines()
		        what = (end, words, r.returncode, lines)
		        assert r.returncode == 1 and len(lines) == 1, what
		        assert log + ": is " in lines[0], what
		        assert "munmap" in r.stdout, what
		        word = "empty" if end == 0 else "truncated"
		        assert word in lines[0], what
		# Beyond its end there may be anything.
		open(log, "wb").write(good + b"\xff" * 4096)
		r = subprocess.run([tool, "report", logs], capture_output=True)
		assert r.returncode == 0 and not r.stderr, r
	EOP
}

# As large as the file system allows, and all of it holes.
@test "a log whose rings are claimed to be full and are holes is read at once" {
	make_log
	"$PYTHON" - "$LOG" <<-'EOP'
		import os, struct, sys
		fd = os.open(sys.argv[1], os.O_RDWR)
		head = os.pread(fd, 8192, 0)
		event, stripe, stripes, slots, at, rings = struct.unpack_from(
		    "IIIIQQ", head, 32)
		for bits in range(31, 12, -1):
		    size = rings + stripes * (event << bits)
		    try:
		        os.ftruncate(fd, size)
		        break
		    except OSError:
		        pass
		os.pwrite(fd, struct.pack("Q", size), 16)
		os.pwrite(fd, struct.pack("I", 1 << bits), 44)
		for i in range(stripes):
		    os.pwrite(fd, struct.pack("QQQ", 1 << 63, 1 << bits, 1 << bits),
		              at + i * stripe)
	EOP
	each_reader_is_cheap
}

@test "no directory of logs: one line, whatever it is instead and is called" {
	cd "$BATS_TEST_TMPDIR"
	: >file
	mkfifo fifo
	mkdir empty
	ln -s nowhere link
	for name in file fifo empty link $'no\nsuch\033[31m' '' /dev/null \
		"$(printf '%0300d' 0)"; do
		LOGS=$name
		each_reader 1 1
	done
}

@test "words of a command line come back clean" {
	make_log
	evil=$'e\n\033[31m\302\233vil'
	for words in report 'report --format' 'report --by' 'report --x' \
		'export --format' run\ --lock run\ --log-size run\ -x doctor\ --x; do
		# shellcheck disable=SC2086 # words of a command
		run --separate-stderr "$BUILD/mmgate" $words"=$evil"
		equal "${#stderr_lines[@]}" 1 "$stderr"
		clean "$stderr" "errors of $words"
		holds "$status" -ne 0 "status of $words"
	done
	run -1 --separate-stderr "$BUILD/mmgate" report --process "$evil" \
		"$LOGS"
	clean "$stderr" 'errors of --process'
	contains "$stderr" 'e??[31m??vil'
}

@test "the stranger in a directory that would be replaced is named cleanly" {
	make_log
	make_log # the first is now DIR.old
	: >"$LOGS.old"/$'e\n\033[31mvil'
	run -2 --separate-stderr mmgate run -o "$LOGS" true
	equal "${#stderr_lines[@]}" 1
	clean "$stderr" errors
	contains "$stderr" 'e??[31mvil'
}

@test "doctor shows settings, files and interpreters cleanly" {
	script=$BATS_TEST_TMPDIR/$'e\033[31mvil'
	printf '#!/no/such\033[31m\302\233 x\n' >"$script"
	chmod +x "$script"
	run -1 --separate-stderr env MMGATE_ONLY=$'a\033[31m' \
		MMGATE_LOCK=$'\033[31m\177' $'MMGATE_X\033=1' \
		"$BUILD/mmgate" doctor "$script"
	clean "$output" output
	clean "$stderr" errors
	contains "$output" 'e?[31mvil'
	contains "$output" 'a?[31m'
}

@test "a program that claims to need 65,000 libraries is judged at once" {
	"$PYTHON" - "$BUILD/mmgate" "$BATS_TEST_TMPDIR/program" <<-'EOP'
		import os, struct, sys
		own = open(sys.argv[1], "rb").read(64)
		def header(kind, at, size):
		    return struct.pack("<IIQQQQQQ", kind, 5, at, at, at, size, size, 8)
		loader = b"/bin/sh\0"  # it is there, no more is asked of it
		needed = struct.pack("<qQ", 1, 1) * 65535
		at = 64 + 56 * 3
		dynamic = at + len(loader)
		with open(sys.argv[2], "wb") as f:
		    f.write(own[:20] + struct.pack("<IQQQIHHHHHH", 1, 0, 64, 0, 0,
		                                   64, 56, 3, 0, 0, 0))
		    f.write(header(1, 0, dynamic + len(needed)))
		    f.write(header(3, at, len(loader)))
		    f.write(header(2, dynamic, len(needed)))
		    f.write(loader + needed)
		os.chmod(sys.argv[2], 0o700)
	EOP
	read -r code seconds mib < <(cost run --dry-run \
		"$BATS_TEST_TMPDIR/program")
	equal "$code" 0
	holds "$seconds" -lt 2
	holds "$mib" -lt 50
}
