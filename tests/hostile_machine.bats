#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A machine that has no room, no rights or no time: the program does not
# notice, and what was not recorded is said in one line.
#
# log.bats has the plain cases: a small tmpfs, limits on files, descriptors,
# locked memory and address space at the start, a log that is unlinked or moved.
#
# What has no test here, and why:
#   steps of the clock        deadlines and times come from CLOCK_MONOTONIC and
#                             the time-stamp counter, which no step reaches;
#                             CLOCK_REALTIME only names the log and dates it
#   rdtsc made deadly (prctl PR_SET_TSC) before a program starts: glibc's loader
#                             reads the counter itself, and so does the vDSO
#   9p, NFS, ceph             need a server; what matters of them, no fallocate,
#                             is simulated
#   kernels before 5.14, 4.14 and 4.11: simulated, their calls are refused

load helpers

PATH=$PATH:/usr/sbin:/sbin

setup() {
	new_logs
	mkdir "$LOGS"
	DISK=$BATS_TEST_TMPDIR/disk
	PLAIN=$("$SUBJECTS/mapper" -t 4 -n 400)
	child=
}

teardown() {
	if [ -n "$child" ]; then
		kill -KILL "$child" 2>/dev/null || :
	fi
	if [ -d "$DISK" ]; then
		umount "$DISK" 2>/dev/null || :
	fi
}

# logged CMD...: under a lock, with a log in $LOGS
logged() {
	env LD_PRELOAD="$LIBRARY" MMGATE_LOCK=mutex MMGATE_LOG="$LOGS" "$@"
}

# poor WHAT... -- CMD...: the same on a system that lacks WHAT (see deny.c)
poor() {
	local what=()

	while [ "$1" != -- ]; do
		what+=("$1")
		shift
	done
	shift
	"$SUBJECTS/deny" "${what[@]}" -- env LD_PRELOAD="$LIBRARY" \
		MMGATE_LOCK=mutex MMGATE_LOG="$LOGS" "$@"
}

# unharmed CMD...: prints and ends as PLAIN did; its stderr is in $stderr
unharmed() {
	run -0 --separate-stderr "$@"
	equal "$output" "$PLAIN" 'output'
}

# one_line PART: that is all that was said
one_line() {
	equal "${#stderr_lines[@]}" 1 'lines on stderr'
	contains "$stderr" "$1"
}

# A memory file system in $DISK, for the logs.
memory_disk() { # TYPE [OPTIONS]
	is_root || skip 'needs root, to mount a file system'
	mkdir -p "$DISK"
	mount -t "$1" -o "${2:-rw}" mmgate "$DISK" || skip "cannot mount $1 here"
	LOGS=$DISK
}

# One in a file.
disk() { # TYPE SIZE
	is_root || skip 'needs root, to mount a file system'
	need "mkfs.$1"
	mkdir -p "$DISK"
	truncate -s "$2" "$DISK.img"
	"mkfs.$1" -q "$DISK.img" >/dev/null 2>&1
	mount -o loop -t "$1" "$DISK.img" "$DISK" ||
		skip "cannot mount $1 from a file here"
	LOGS=$DISK
}

# Takes what room there is in $DISK.
fill() {
	head -c 1G /dev/zero >"$DISK/fill" 2>/dev/null || :
	head -c 1M /dev/zero >"$DISK/rest" 2>/dev/null || :
}

# Starts the subject and leaves it waiting after its first half.
start_half() { # CMD...
	mkfifo "$BATS_TEST_TMPDIR/go"
	"$@" "$SUBJECTS/mapper" -t 4 -n 400 -p <"$BATS_TEST_TMPDIR/go" \
		>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	child=$!
	exec 9>"$BATS_TEST_TMPDIR/go"
	eventually grep -q half "$BATS_TEST_TMPDIR/out"
}

finish_half() {
	echo >&9
	exec 9>&-
	wait "$child"
	child=
	equal "$(cat "$BATS_TEST_TMPDIR/out")" "half
$PLAIN"
	equal "$(cat "$BATS_TEST_TMPDIR/err")" '' stderr
}

# The munmap calls of the subject, which libc makes none of.
unmaps() {
	report '" ".join(str(e["calls"]["munmap"]["count"]) for e in p
		if e["image"] == "mapper")'
}

@test "a disk that is full at the start is said, and used once it has room" {
	memory_disk tmpfs size=64k
	fill
	for _ in 1 2; do
		unharmed logged "$SUBJECTS/mapper" -t 4 -n 400
		one_line 'no space left'
	done
	rm "$DISK/fill" "$DISK/rest"
	mount -o remount,size=10m "$DISK"
	unharmed logged "$SUBJECTS/mapper" -t 4 -n 400
	equal "$stderr" '' stderr
	run -0 unmaps
	equal "$output" 1600
	# What somebody else put there is left as it is.
	echo mine >"$DISK/run.info"
	unharmed logged "$SUBJECTS/mapper" -t 4 -n 400
	one_line "its run.info is not mmgate's"
	equal "$(cat "$DISK/run.info")" mine
}

@test "before Linux 5.14 the whole log has its space from the start, or there is none" {
	unharmed poor populate -- "$SUBJECTS/mapper" -t 4 -n 400
	equal "$stderr" '' stderr
	run -0 unmaps
	equal "$output" 1600
	log=$(echo "$LOGS"/*.mmgate)
	holds "$(du -k "$log" | cut -f1)" -ge \
		$(($(stat -c %s "$log") / 1024)) 'KiB on disk'
	# Room for the first page, but not for all: no log, and nothing is left
	# of the try, in the directory or in its allowance.
	memory_disk tmpfs size=10m
	unharmed poor populate -- "$SUBJECTS/mapper" -t 4 -n 400
	one_line 'no space left'
	equal "$(ls "$DISK")" run.info
	allocated=$(od -A n -t d8 -j 16 -N 8 "$DISK/run.info")
	equal $((allocated)) 0 'bytes that no log can use any more'
	# A smaller one fits.
	MMGATE_LOG_SIZE=4M unharmed poor populate -- \
		"$SUBJECTS/mapper" -t 4 -n 400
	equal "$stderr" '' stderr
	run -0 unmaps
	equal "$output" 1600
}

@test "a file system without fallocate serves as long as the kernel can do without" {
	memory_disk ramfs
	unharmed logged "$SUBJECTS/mapper" -t 4 -n 400
	equal "$stderr" '' stderr
	run -0 unmaps
	equal "$output" 1600
	rm "$DISK"/*
	unharmed poor populate -- "$SUBJECTS/mapper" -t 4 -n 400
	one_line 'cannot set space aside'
	equal "$(ls "$DISK")" run.info
	umount "$DISK"
	LOGS=$BATS_TEST_TMPDIR/logs
	unharmed poor populate fallocate -- "$SUBJECTS/mapper" -t 4 -n 400
	one_line 'cannot set space aside'
}

# 64 KiB is what Linux before 5.16 gives every user.
@test "a user who may lock little memory has a log, and may lock as much as without" {
	be_nobody "$LOGS"
	limited() { # KIB CMD...
		local kib=$1

		shift
		bash -c 'ulimit -l "$1" && shift && exec "$@"' limit "$kib" \
			"${NOBODY[@]}" "$@"
	}
	for kib in 0 64 512 2048 4096 8192; do
		rm -f "$LOGS"/*
		unharmed limited $kib env LD_PRELOAD="$LIBRARY" \
			MMGATE_LOG="$LOGS" "$SUBJECTS/mapper" -t 4 -n 400
		equal "$stderr" '' "stderr with $kib KiB"
		run -0 unmaps
		equal "$output" 1600
		run -0 limited $kib "$SUBJECTS/lock_memory"
		without=$output
		run -0 limited $kib env LD_PRELOAD="$LIBRARY" \
			MMGATE_LOG="$LOGS" "$SUBJECTS/lock_memory"
		equal "$output" "$without" "with $kib KiB"
	done
}

# What is stored after it was written back may need new room on some.
@test "a disk that fills up while the program runs does no harm" {
	for type in ext4 xfs; do
		disk $type 320M
		start_half logged
		sync -f "$DISK/run.info"
		fill
		sync -f "$DISK/run.info"
		finish_half
		run -0 unmaps
		equal "$output" 1600 "$type"
		umount "$DISK"
		rm "$BATS_TEST_TMPDIR/go" "$DISK.img"
	done
}

@test "a file system that may have no room for a later store holds no log" {
	disk btrfs 128M
	unharmed logged "$SUBJECTS/mapper" -t 4 -n 400
	one_line 'it is on btrfs, where a full disk would end the program'
	equal "$(ls "$DISK")" ''
	# run refuses before it starts anything, also to make a directory.
	for dir in "$DISK" "$DISK/new"; do
		run -2 --separate-stderr mmgate run -o "$dir" -- \
			"$SUBJECTS/mapper" -t 4 -n 400
		equal "$output" '' output
		one_line 'is on btrfs'
		contains "$stderr" /dev/shm
		equal "$(ls "$DISK")" ''
	done
}

# in_state PID LETTER: as /proc has it
in_state() {
	grep -q "^State:.$2" "/proc/$1/status"
}

@test "a process that is stopped and continued works as before" {
	run -0 "$SUBJECTS/mapper" -t 4 -n 8000
	without=$output
	while read -r lock; do
		rm -f "$LOGS"/*
		env LD_PRELOAD="$LIBRARY" MMGATE_LOCK="$lock" \
			MMGATE_MAX_WAIT=20ms MMGATE_LOG="$LOGS" \
			"$SUBJECTS/mapper" -t 4 -n 8000 \
			>"$BATS_TEST_TMPDIR/out" 3>&- &
		child=$!
		for _ in 1 2 3 4 5; do
			kill -STOP "$child" 2>/dev/null || break
			eventually in_state "$child" '[TZ]'
			sleep 0.05 # the stop, longer than MMGATE_MAX_WAIT
			kill -CONT "$child"
			sleep 0.05 # it runs
		done
		wait "$child"
		child=
		equal "$(cat "$BATS_TEST_TMPDIR/out")" "$without" "$lock"
		run -0 unmaps
		equal "$output" 32000 "$lock"
	done < <(locks)
}

# Without the library the one in the kernel does not keep the others from work.
try_holder() {
	run "$SUBJECTS/holder"
	[ "$status" != 77 ] || skip 'userfaultfd is not allowed here'
	equal "$output" $'others are done\nheld: 1'
}

@test "a holder that stays in the kernel costs the others one longest wait" {
	try_holder
	while read -r lock; do
		rm -f "$LOGS"/*
		run -0 env LD_PRELOAD="$LIBRARY" MMGATE_LOCK="$lock" \
			MMGATE_MAX_WAIT=500ms MMGATE_LOG="$LOGS" \
			"$SUBJECTS/holder"
		equal "$output" $'others are done\nheld: 1' "$lock"
		run -0 report '(p[0]["gate_opened"],
			c["madvise"]["kernel_ns"]["max"] // 500000000)'
		equal "$output" '(1, 1)' "$lock"
	done < <(excluding_locks)
}

# Threads of a process that sleep in futex.
sleepers() {
	grep -l "^$(sed -n 's/^#define __NR_futex \([0-9]*\)/\1/p' \
		"$BATS_TEST_TMPDIR/numbers") " "/proc/$1"/task/*/syscall | wc -l
}

three_wait() {
	[ "$(sleepers "$child")" = 3 ]
}

@test "the time that a process is stopped is nobody's wait for the lock" {
	try_holder
	need cc
	echo '#include <asm/unistd.h>' | cc -E -dM -x c - \
		>"$BATS_TEST_TMPDIR/numbers"
	[ -r /proc/self/syscall ] || skip 'the kernel does not say where threads are'
	while read -r lock; do
		rm -f "$LOGS"/* "$BATS_TEST_TMPDIR/go"
		mkfifo "$BATS_TEST_TMPDIR/go"
		env LD_PRELOAD="$LIBRARY" MMGATE_LOCK="$lock" \
			MMGATE_MAX_WAIT=2s MMGATE_LOG="$LOGS" \
			"$SUBJECTS/holder" -p <"$BATS_TEST_TMPDIR/go" \
			>"$BATS_TEST_TMPDIR/out" 3>&- &
		child=$!
		exec 9>"$BATS_TEST_TMPDIR/go"
		eventually three_wait
		kill -STOP "$child"
		eventually in_state "$child" T
		echo >&9
		exec 9>&-
		sleep 3 # the stop
		kill -CONT "$child"
		wait "$child"
		child=
		equal "$(cat "$BATS_TEST_TMPDIR/out")" $'held: 1\nothers are done'
		run -0 report 'p[0]["gate_opened"]'
		equal "$output" 0 "openings under $lock"
	done < <(excluding_locks)
}
