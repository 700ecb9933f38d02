#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# `mmgate set`: other settings while the program runs.

load helpers
load set

setup() {
	new_logs
	count_symbols_only
}

# changes GATED NAME=VALUE...: set while 8 threads call; then of 100 rounds of
# each, 3200 calls, so many are gated, and none is lost.
changes() {
	local gated=$1 before_calls before_gated

	shift
	go
	run -0 set_ "$PID" "$@"
	halt
	before_calls=$(calls count)
	before_gated=$(calls gated)
	rounds 100
	equal "$(($(calls count) - before_calls))" 3200 "calls: $*"
	equal "$(($(calls gated) - before_gated))" "$gated" "gated: $*"
}

@test "the lock changes while eight threads call, and no call is lost" {
	begin --lock none
	changes 0 lock=none
	while read -r lock; do
		changes 3200 "lock=$lock"
	done < <(gating_locks)
	changes 800 lock=madvise:mutex
	changes 1600 lock=mmap:spin,munmap:mutex
	changes 800 lock=mutex calls=mprotect
	changes 3200 lock=fifo calls=all
	changes 0 lock=none
	ends
	# Each of its rounds is four calls.
	equal "$(calls count)" "$((4 * ${LINE#rounds: }))" 'calls in all'
	run -0 report 'p[0]["gate_opened"], c["mmap"]["bypassed"]'
	equal "$output" '(0, 0)'
}

@test "set says what it was and what it is, and the report what it is" {
	begin --lock none
	go
	run -0 set_ "$PID" lock=mutex max-wait=2s long=bypass
	contains "$output" 'lock: none -> mutex'
	contains "$output" 'max_wait: 1s -> 2s'
	contains "$output" 'long: bypass, as before'
	equal "$(in_force lock)" mutex
	run -0 report 'p[0]["lock_now"]["mmap"], p[0]["lock_now"]["brk"],
		p[0]["lock_changes"]'
	equal "$output" "('mutex', 'none', 1)"
	run -0 mmgate report "$LOGS"
	contains "$output" 'lock now: mmap:mutex,munmap:mutex,mprotect:mutex,madvise:mutex (1 change)'
	halt
	ends
}

@test "without values set lists what can change, and what it is" {
	begin --lock spin --max-wait 3s
	run -0 set_ "$PID"
	for name in lock calls long delay max_wait events stacks; do
		equal "$(grep -c "^$name=" <<<"$output")" 1 "$name"
	done
	lacks "$output" 'hooks='
	contains "$output" 'lock=spin'
	contains "$output" 'max_wait=3s'
	ends
}

@test "a list that cannot be written is an error" {
	begin --lock spin
	for to in '&-' /dev/full; do
		run -1 --separate-stderr bash -c "\"\$@\" >$to" to \
			"$BUILD/mmgate" set "$PID" --dir "$LOGS"
		contains "$stderr" 'cannot write to standard output'
	done
	ends
}

@test "a change of a lock is an event, in jsonl" {
	begin --lock none --log-size 1G # the first one is there still
	go
	run -0 set_ "$PID" lock=madvise:mutex
	run -0 set_ "$PID" lock=madvise:fifo
	run -0 set_ "$PID" events=off
	halt
	ends
	run -0 mmgate export --format jsonl "$LOGS"
	run -0 grep -o '"event":"lock changed".*' <<<"$output"
	equal "$output" '"event":"lock changed","op":"madvise","from":"none","to":"mutex"}
"event":"lock changed","op":"madvise","from":"mutex","to":"fifo"}'
	run -0 mmgate export --format csv "$LOGS"
	equal "$(cut -d, -f4 <<<"$output" | sort -u | xargs)" \
		'madvise mmap mprotect munmap op' 'csv has calls only'
}

@test "events go off and on again" {
	local kept

	begin --lock none --log-size 256M
	go
	run -0 set_ "$PID" events=off
	halt
	kept=$(report 'p[0]["events"]["kept"] + p[0]["events"]["overwritten"]')
	rounds 100
	equal "$(report 'p[0]["events"]["kept"] + p[0]["events"]["overwritten"]')" \
		"$kept" 'events while they are off'
	go
	run -0 set_ "$PID" events=all
	halt
	kept=$(report 'p[0]["events"]["kept"] + p[0]["events"]["overwritten"]')
	rounds 100
	equal "$(report 'p[0]["events"]["kept"] + p[0]["events"]["overwritten"]')" \
		$((kept + 3200)) 'events while they are on'
	ends
}

@test "stacks go off and on again" {
	begin --lock none --stacks every:2
	rounds 100
	go
	run -0 set_ "$PID" stacks=off
	halt
	run -0 mmgate report "$LOGS"
	contains "$output" 'stacks were switched off while it ran (mmgate set)'
	rounds 100
	go
	run -0 set_ "$PID" stacks=every:64
	contains "$output" 'stacks: off -> every:64'
	halt
	rounds 100
	ends
}

@test "a delay is spent, at least as long as it says" {
	local began

	begin --lock none
	go
	run -0 set_ "$PID" delay=madvise:2ms
	halt
	began=${EPOCHREALTIME/./}
	rounds 50
	holds $((${EPOCHREALTIME/./} - began)) -ge 100000 'us for 50 delays'
	go
	run -0 set_ "$PID" delay=none
	contains "$output" 'delay: madvise:2ms -> none'
	halt
	ends
}

@test "auto begins when it is asked for, as often as that is" {
	begin --lock mutex
	go
	for _ in 1 2 3; do
		run -0 set_ "$PID" lock=auto
		equal "$(in_force lock)" auto
		run -0 set_ "$PID" events=off
		run -0 set_ "$PID" lock=none
		run -0 set_ "$PID" lock=mutex events=all
	done
	run -0 set_ "$PID" lock=auto
	halt
	run -0 mmgate report "$LOGS"
	contains "$output" '(auto, '
	ends
	equal "$(calls count)" "$((4 * ${LINE#rounds: }))" 'calls in all'
}

@test "a stopped program follows when it goes on" {
	begin --lock mutex
	go
	kill -STOP "$PID"
	run -3 --separate-stderr set_ "$PID" lock=none
	contains "$stderr" 'no call since'
	run -0 set_ "$PID"
	contains "$output" 'lock=mutex'
	contains "$output" 'asked for: none'
	kill -CONT "$PID"
	eventually in_force_is lock none
	halt
	ends
}

in_force_is() {
	[ "$(in_force "$1")" = "$2" ]
}

@test "requests that stand are followed together" {
	begin --lock mutex
	go
	halt
	run -3 set_ "$PID" lock=none
	run -3 set_ "$PID" events=off lock=spin
	run -0 set_ "$PID"
	contains "$output" 'asked for: spin'
	contains "$output" 'asked for: off'
	rounds 1
	equal "$(in_force lock)" spin
	run -0 set_ "$PID"
	contains "$output" 'events=off'
	lacks "$output" 'asked for'
	ends
}

@test "two sets at a time are both followed" {
	local first second

	begin --lock none
	go
	for _ in 1 2 3 4 5; do
		set_ "$PID" lock=mutex &
		first=$!
		set_ "$PID" max_wait=7s &
		second=$!
		wait "$first"
		wait "$second"
		run -0 set_ "$PID"
		contains "$output" 'lock=mutex'
		contains "$output" 'max_wait=7s'
		run -0 set_ "$PID" lock=none max_wait=1s
	done
	halt
	ends
}

@test "threads behind a held lock get through when its holder does" {
	run "$SUBJECTS/holder"
	[ "$status" != 77 ] || skip 'no userfaultfd here'
	mkfifo "$BATS_TEST_TMPDIR/go"
	gate mutex --max-wait 60s "$SUBJECTS/holder" -p \
		<"$BATS_TEST_TMPDIR/go" >"$BATS_TEST_TMPDIR/out" 3>&- &
	run=$!
	exec {go}>"$BATS_TEST_TMPDIR/go"
	eventually has_log
	PID=$(newest)
	# All of them wait, so nobody is there to follow.
	eventually sleeps_three
	run -3 set_ "$PID" lock=none
	echo >&"$go"
	wait "$run"
	equal "$(cat "$BATS_TEST_TMPDIR/out")" $'held\nheld: 1\nothers are done'
	equal "$(in_force lock)" none
	run -0 report 'p[0]["gate_opened"], p[0]["lock_now"]["madvise"]'
	equal "$output" "(0, 'none')"
}

has_log() {
	compgen -G "$LOGS/*.mmgate" >/dev/null
}

# Three threads are in a futex that is not their end.
sleeps_three() {
	[ "$(cat "/proc/$PID/task/"*/wchan | grep -o futex | wc -l)" -ge 3 ]
}

@test "what cannot change is refused with the reason" {
	begin --lock none --events off --stacks off
	while read -r name value reason; do
		run -2 --separate-stderr set_ "$PID" "$name=$value"
		contains "$stderr" "$reason"
		equal "${#stderr_lines[@]}" 1 "lines on stderr for $name"
	done <<-'ROWS'
		hooks all cannot change while the program runs: code
		place thread cannot change while the program runs: arenas
		log /tmp cannot change while the program runs: the log
		log-size 1G cannot change while the program runs: the log
		stack_size 1K cannot change while the program runs: the log
		follow fork cannot change while the program runs: it is looked at
		lokc mutex did you mean lock?
		lock mutexx accepted: none, mutex
		lock limit:0 accepted: none, mutex
		delay mmap:11ms at most 10ms
		max_wait 0s accepted: a duration
	ROWS
	run -2 --separate-stderr set_ "$PID" lock
	contains "$stderr" 'NAME=VALUE'
	run -2 --separate-stderr set_ "$PID" lock=mutex lock=spin
	contains "$stderr" 'set: lock is given twice'
	run -2 --separate-stderr set_ nobody lock=none
	contains "$stderr" 'number of a process'
	run -1 --separate-stderr set_ "$PID" events=all
	contains "$stderr" 'no room for single events'
	run -1 --separate-stderr set_ "$PID" stacks=every:64
	contains "$stderr" 'no room for these stacks'
	# Nothing was done, nothing stands.
	rounds 10
	run -0 set_ "$PID"
	lacks "$output" 'asked for'
	ends
}

@test "no such process, no such log, an ended process: one line each" {
	begin --lock none
	run -1 --separate-stderr set_ 4194305 lock=none
	contains "$stderr" 'there is no process 4194305'
	run -1 --separate-stderr set_ $$ lock=none
	contains "$stderr" "no log of process $$"
	contains "$stderr" --dir
	run -1 --separate-stderr mmgate set "$PID" lock=none --dir /nowhere
	contains "$stderr" '/nowhere'
	ends
	run -1 --separate-stderr set_ "$PID" lock=none
	contains "$stderr" 'has ended'
	equal "${#stderr_lines[@]}" 1 'lines on stderr'
}

@test "another user's program is not changed" {
	is_root || skip 'needs root, to be another user'
	begin --lock none
	be_nobody "$LOGS"
	run -1 --separate-stderr "${NOBODY[@]}" "$BUILD/mmgate" set "$PID" \
		lock=mutex --dir "$LOGS"
	contains "$stderr" "another user's"
	ends
	equal "$(in_force lock)" none
}

@test "a library of another version is not asked" {
	begin --lock none
	"$PYTHON" - "$LOGS/$PID"-*.mmgate <<-'EOP'
		import sys
		with open(sys.argv[1], "r+b") as f:
		    f.seek(8)
		    f.write(b"\1")
	EOP
	run -1 --separate-stderr set_ "$PID" lock=none
	contains "$stderr" 'an older mmgate'
	rounds 1
	ends
}

@test "garbage in the place of a request is refused, and does no harm" {
	begin --lock none
	go
	run -0 set_ "$PID" lock=mutex
	run -0 "$PYTHON" - "$LOGS/$PID"-*.mmgate <<-'EOP'
		import random, struct, sys, time
		f = open(sys.argv[1], "r+b", buffering=0)
		text = b"lock=mutex\n"
		at = f.read(8192).index(text + b"\0\0\0\0", 5000) - 16

		def check(serial, text):
		    x = serial ^ 0x6d6d6774
		    for b in text:
		        x = (x ^ b) * 16777619 & 0xffffffff
		    return x

		def ask(serial, text, sound):
		    f.seek(at + 12)
		    f.write(struct.pack("<I", check(serial, text) ^ (not sound)))
		    f.write(text)
		    f.seek(at)
		    f.write(struct.pack("<I", serial))
		    while True:
		        f.seek(at)
		        _, answered, refused, _ = struct.unpack("<4I", f.read(16))
		        if answered == serial:
		            return refused
		        time.sleep(0.001)

		random.seed(1)
		serial = 0
		for i in range(40):
		    serial = random.randrange(1, 2**32)
		    noise = bytes(random.randrange(256) for _ in range(496))
		    assert ask(serial, noise, True) == 1
		    assert ask(serial ^ 1, noise, False) == 1
		for bad in [b"lock=", b"lock", b"=", b"\n", b"hooks=all\n",
		            b"log=/tmp\n", b"lock=limit:0\n", b"events=every:0",
		            b"delay=mmap:9s\n", b"lock=none\ncolour=red\n",
		            b"stacks=every:4294967296\n", b"max_wait=0s\n"]:
		    serial += 7
		    assert ask(serial & 0x7fffffff | 1, bad.ljust(496, b"\0"), True) == 1, bad
		    serial = serial & 0x7fffffff | 1
		# Whole, but not ended.
		assert ask(5, b"lock=none\n".ljust(496, b"x"), True) == 1
		# A sound one without a change.
		assert ask(6, bytes(496), True) == 0
	EOP
	equal "$(in_force lock)" mutex
	run -0 set_ "$PID" lock=none
	contains "$output" 'lock: mutex -> none'
	halt
	ends
	equal "$(calls count)" "$((4 * ${LINE#rounds: }))" 'calls in all'
}

@test "a forked child begins with its parent's settings and has its own" {
	begin --lock none --follow fork
	parent=$PID
	go
	run -0 set_ "$PID" lock=mutex max_wait=3s
	halt
	echo fork >&"$TO"
	get 'child: *'
	PID=${LINE#child: }
	rounds 10
	equal "$(calls gated)" 324
	run -0 set_ "$PID"
	contains "$output" 'lock=mutex'
	contains "$output" 'max_wait=3s'
	contains "$output" 'lock now: mmap:mutex,'
	go
	run -0 set_ "$PID" lock=none
	halt
	run -3 set_ "$parent" max_wait=4s
	echo end >&"$TO"
	get 'rounds: *'
	PID=$parent
	equal "$(in_force lock)" mutex "the parent's lock"
	rounds 1
	run -0 set_ "$PID"
	contains "$output" 'max_wait=4s'
	ends
	run -0 report '[(e["epoch"], e["settings"]["lock"]) for e in p]'
	equal "$output" "[(1, 'mutex'), (2, 'none')]"
}

@test "the directory is the usual one, or any other" {
	mkdir "$BATS_TEST_TMPDIR/here"
	cd "$BATS_TEST_TMPDIR/here"
	LOGS=mmgate.out
	begin --lock none
	go
	run -0 mmgate set "$PID" lock=mutex
	cd /
	run -0 mmgate set --dir "$BATS_TEST_TMPDIR/here/mmgate.out" "$PID" \
		lock=spin
	contains "$output" 'lock: mutex -> spin'
	halt
	ends
}
