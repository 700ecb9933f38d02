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

export BATS_TEST_TIMEOUT=400

PATH=$PATH:/usr/sbin:/sbin

setup() {
	new_logs
	mkdir "$LOGS"
	DISK=$BATS_TEST_TMPDIR/disk
	PLAIN=$("$SUBJECTS/mapper" -t 4 -n 400)
	child=
	GROUP=
}

teardown() {
	if [ -n "$child" ]; then
		kill -KILL "$child" 2>/dev/null || :
	fi
	if [ -d "$DISK" ]; then
		umount "$DISK/all" 2>/dev/null || :
		umount "$DISK" 2>/dev/null || :
	fi
	if [ -n "$GROUP" ]; then
		rmdir "$GROUP"
	fi
}

# logged CMD...: under one lock, with a log in $LOGS
logged() {
	under "$ONE_LOCK" "$@"
}

# under LOCK CMD...: with a log in $LOGS
under() {
	local lock=$1

	shift
	env LD_PRELOAD="$LIBRARY" MMGATE_LOCK="$lock" MMGATE_LOG="$LOGS" "$@"
}

# poor WHAT... -- CMD...: the same on a system that lacks WHAT (see refuse.c)
poor() {
	local what=()

	while [ "$1" != -- ]; do
		what+=("$1")
		shift
	done
	shift
	"$SUBJECTS/refuse" "${what[@]}" -- env LD_PRELOAD="$LIBRARY" \
		MMGATE_LOCK="$ONE_LOCK" MMGATE_LOG="$LOGS" "$@"
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
	mount -t "$1" -o "${2:-rw}" mmgate "$DISK" ||
		skip "cannot mount $1 ${2-} here"
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
	begin_half "$@" "$SUBJECTS/mapper" -t 4 -n 400
}

finish_half() {
	end_half
	equal "$(cat "$BATS_TEST_TMPDIR/out")" "half
$PLAIN"
	equal "$(cat "$BATS_TEST_TMPDIR/err")" '' stderr
}

# The munmap calls of the subject, to which libc adds none for 4 threads.
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

@test "on a full disk what lay in the program's stacks does not stay either" {
	need "${CC:-cc}"
	cat >"$BATS_TEST_TMPDIR/secret.c" <<-'EOC'
		#include <string.h>
		#include <sys/mman.h>
		int main(void)
		{
			char secret[2048];
			int i;

			for (i = 0; i < 2000; i++) {
				memset(secret, 'a' + i % 26, sizeof(secret));
				memcpy(secret + 512, "S3cr3t" "W0rd", 10);
				munmap(mmap(0, 4096, 3, 34, -1, 0), 4096);
				__asm__ volatile("" ::"r"(secret) : "memory");
			}
			return 0;
		}
	EOC
	"${CC:-cc}" -o "$BATS_TEST_TMPDIR/secret" "$BATS_TEST_TMPDIR/secret.c"
	memory_disk tmpfs size=1m
	for raw in --keep-raw ''; do
		rm -rf "${DISK:?}"/*
		run -0 mmgate run --quiet $raw --stacks every:1 \
			--stack-size 16K -o "$DISK/logs" -- \
			"$BATS_TEST_TMPDIR/secret"
		run grep -c -a S3cr3tW0rd "$DISK"/logs/*.mmgate
		[ -z "$raw" ] || holds "$output" -gt 0 'copies with it'
	done
	equal "$output" 0 'copies with it'
	run -0 mmgate report "$DISK/logs"
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
	run -0 "$SUBJECTS/mapper" -t 4 -n 2000
	without=$output
	while read -r lock; do
		rm -f "$LOGS"/*
		env LD_PRELOAD="$LIBRARY" MMGATE_LOCK="$lock" \
			MMGATE_MAX_WAIT=20ms MMGATE_LOG="$LOGS" \
			"$SUBJECTS/mapper" -t 4 -n 2000 \
			>"$BATS_TEST_TMPDIR/out" 3>&- &
		child=$!
		for _ in 1 2 3; do
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
		equal "$output" 8000 "$lock"
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
		# Once: who is stopped in a wait, is so for less than seconds.
		run -0 report '(p[0]["gate_opened"],
			5e8 <= c["madvise"]["kernel_ns"]["max"] < 2e9)'
		equal "$output" '(1, True)' "$lock"
	done < <(serial_locks)
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
		rm -f "$LOGS"/* "$BATS_TEST_TMPDIR/go" "$BATS_TEST_TMPDIR/out"
		mkfifo "$BATS_TEST_TMPDIR/go"
		env LD_PRELOAD="$LIBRARY" MMGATE_LOCK="$lock" \
			MMGATE_MAX_WAIT=3s MMGATE_LOG="$LOGS" \
			"$SUBJECTS/holder" -p <"$BATS_TEST_TMPDIR/go" \
			>"$BATS_TEST_TMPDIR/out" 3>&- &
		child=$!
		exec 9>"$BATS_TEST_TMPDIR/go"
		eventually grep -sq held "$BATS_TEST_TMPDIR/out" # not a barrier
		eventually three_wait
		kill -STOP "$child"
		eventually in_state "$child" T
		echo >&9
		exec 9>&-
		sleep 4 # the stop
		kill -CONT "$child"
		wait "$child"
		child=
		equal "$(cat "$BATS_TEST_TMPDIR/out")" $'held\nheld: 1\nothers are done'
		run -0 report 'p[0]["gate_opened"]'
		equal "$output" 0 "openings under $lock"
	done < <(serial_locks)
}

@test "a filter that kills at any other system call has nothing to kill" {
	need strace
	strace -fn -o "$BATS_TEST_TMPDIR/calls" "$SUBJECTS/sandbox" ||
		skip 'strace may not trace here, or no filter can be set'
	# What the program makes itself, and what the library may after its
	# start: the wrapped calls, futex, gettid, readlink and fstat.
	asm=$BATS_TEST_TMPDIR/asm
	echo '#include <asm/unistd.h>' | cc -E -dM -x c - >"$asm"
	mapfile -t allowed < <(
		sed -n '/PR_SET_NO_NEW_PRIVS/,$p' "$BATS_TEST_TMPDIR/calls" |
			sed -n 's/^[0-9]* *\[ *\([0-9]*\)\] .*/\1/p'
		for name in mmap munmap mprotect madvise mremap brk \
			pkey_mprotect futex gettid readlink readlinkat fstat \
			newfstatat statx; do
			sed -n "s/^#define __NR_$name \\([0-9]*\\)$/\\1/p" "$asm"
		done
	)
	mapfile -t allowed < <(printf '%s\n' "${allowed[@]}" | sort -nu)
	run -0 "$SUBJECTS/sandbox" "${allowed[@]}"
	equal "$output" 'all done'
	# It does kill: by SIGSYS.
	run "$SUBJECTS/sandbox" -s "${allowed[@]}"
	equal "$status" 159
	while read -r lock; do
		for hooks in symbols libc all; do
			rm -f "$LOGS"/*
			MMGATE_HOOKS=$hooks run -0 --separate-stderr \
				under "$lock" "$SUBJECTS/sandbox" "${allowed[@]}"
			equal "$output" 'all done' "$lock, $hooks"
			equal "$stderr" '' stderr
			# With room for events got on the way.
			run -0 report '(c["mprotect"]["count"] >= 2000,
				p[0]["events"]["kept"] >= 8000)'
			equal "$output" '(True, True)' "$lock, $hooks"
		done
	done < <(locks)
}

@test "before Linux 4.14 all calls pass, nothing is recorded, and one line says so" {
	while read -r lock; do
		unharmed env MMGATE_LOCK="$lock" MMGATE_LOG="$LOGS" \
			"$SUBJECTS/refuse" wipe -- env LD_PRELOAD="$LIBRARY" \
			"$SUBJECTS/mapper" -t 4 -n 400
		one_line 'this kernel cannot wipe memory in a forked child'
		equal "$(ls "$LOGS")" '' logs
		run -0 --separate-stderr env MMGATE_LOCK="$lock" \
			"$SUBJECTS/refuse" wipe -- env LD_PRELOAD="$LIBRARY" \
			"$SUBJECTS/forks" 50
		equal "$output" 'children: 50' "$lock"
	done < <(locks)
}

# in_namespace SCRIPT: what it mounts is seen by nobody else
in_namespace() {
	is_root || skip 'needs root, to mount'
	need unshare
	unshare -m true || skip 'no mount namespaces here'
	run -0 --separate-stderr unshare -m bash -c "$1" namespace
}

@test "where code may not be changed it is changed as debuggers do, or symbols must do" {
	for what in statx protect 'statx protect'; do
		rm -f "$LOGS"/*
		# shellcheck disable=SC2086 # words
		unharmed poor $what -- "$SUBJECTS/mapper" -t 4 -n 400
		equal "$stderr" '' "stderr without $what"
		run -0 unmaps
		equal "$output" 1600 "without $what"
		run -0 report 'p[0]["hooks"]["libc"]'
		equal "$output" patched "without $what"
	done
	export LOGS SUBJECTS LIBRARY
	rm -f "$LOGS"/*
	in_namespace 'umount -l /proc && "$SUBJECTS/refuse" protect -- env \
		LD_PRELOAD="$LIBRARY" MMGATE_LOCK="$ONE_LOCK" \
		MMGATE_LOG="$LOGS" "$SUBJECTS/mapper" -t 4 -n 400'
	equal "$output" "$PLAIN"
	equal "$stderr" '' stderr
	run -0 unmaps
	equal "$output" 1600
	run -0 report 'p[0]["hooks"]["libc"]'
	contains "$output" 'symbols only: '
	contains "$output" 'this system forbids changing code'
}

@test "without /proc the program runs, is recorded, and run says no more than usual" {
	export LOGS SUBJECTS LIBRARY BUILD
	for how in 'umount -l /proc' 'mount -t tmpfs none /proc'; do
		rm -rf "$LOGS"
		mkdir "$LOGS"
		while read -r lock; do
			in_namespace "$how && LD_PRELOAD=\$LIBRARY \
				MMGATE_LOCK=$lock MMGATE_LOG=\$LOGS \
				\"\$SUBJECTS/mapper\" -t 4 -n 400"
			equal "$output" "$PLAIN" "$lock, $how"
			equal "$stderr" '' stderr
		done < <(locks)
		run -0 unmaps
		equal "$output" "$(locks | sed 's/.*/1600/' | paste -sd' ')"
		in_namespace "$how && \"\$BUILD/mmgate\" run --quiet \
			-o \"\$LOGS\" -- \"\$SUBJECTS/mapper\" -t 4 -n 400"
		equal "$output" "$PLAIN" "run, $how"
		equal "$stderr" '' stderr
		run -0 unmaps
		equal "$output" 1600
	done
}

@test "where the kernel does not trust the time-stamp counter, or does not say, times are its own" {
	export LOGS SUBJECTS LIBRARY
	clock=/sys/devices/system/clocksource/clocksource0/current_clocksource
	[ -r $clock ] || skip 'the clock source cannot be read here anyway'
	echo hpet >"$BATS_TEST_TMPDIR/hpet"
	for how in "mount --bind '$BATS_TEST_TMPDIR/hpet' $clock" \
		'mount -t tmpfs none /sys'; do
		rm -f "$LOGS"/*
		in_namespace "$how && LD_PRELOAD=\$LIBRARY \
			MMGATE_LOCK=$ONE_LOCK MMGATE_LOG=\$LOGS \
			\"\$SUBJECTS/mapper\" -t 4 -n 400"
		equal "$output" "$PLAIN" "$how"
		equal "$stderr" '' stderr
		run -0 unmaps
		equal "$output" 1600
		times_are_sound
	done
}

# Each event lies within the run, by CLOCK_MONOTONIC of now, plus $1 ns.
times_are_sound() {
	mmgate export --format csv "$LOGS" >"$BATS_TEST_TMPDIR/csv"
	"$PYTHON" - "$BATS_TEST_TMPDIR/csv" "${1-0}" <<-'EOP'
		import csv, sys, time
		now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + int(sys.argv[2])
		rows = list(csv.DictReader(open(sys.argv[1])))
		assert len(rows) >= 4800, len(rows)
		for r in rows:
		    start = int(r["time_ns"])
		    end = start + int(r["wait_ns"] or 0) + int(r["kernel_ns"])
		    assert now - 300e9 < start <= end <= now, (start, end, now)
	EOP
}

@test "in a time namespace times are the namespace's" {
	is_root || skip 'needs root, to set a clock'
	need unshare
	unshare -T --monotonic 1000000 --fork true ||
		skip 'no time namespaces here'
	unharmed unshare -T --monotonic 1000000 --fork env \
		LD_PRELOAD="$LIBRARY" MMGATE_LOCK="$ONE_LOCK" \
		MMGATE_LOG="$LOGS" "$SUBJECTS/mapper" -t 4 -n 400
	equal "$stderr" '' stderr
	run -0 unmaps
	equal "$output" 1600
	times_are_sound 1000000000000000
}

# same_at_the_limit CMD...: the subject that maps all that is allowed
same_at_the_limit() {
	run --separate-stderr "$@" "$SUBJECTS/many_mappings"
	[ "$status" != 77 ] || skip 'more can be mapped here than the test tries'
	equal "$status" 0
	without=$output
	count=${stderr%% *}
	while read -r lock; do
		rm -f "$LOGS"/*
		run -0 --separate-stderr "$@" env LD_PRELOAD="$LIBRARY" \
			MMGATE_LOCK="$lock" MMGATE_LOG="$LOGS" \
			MMGATE_FOLLOW=fork "$SUBJECTS/many_mappings"
		equal "$output" "$without" "$lock"
		# The last line is the subject's.
		holds $((count - ${stderr_lines[-1]%% *})) -le "$most_fewer" \
			"mappings fewer under $lock"
		run -0 report '[o["errors"] for n, o in
			sorted(p[0]["calls"].items()) if n == "mmap"][0] > 0'
		equal "$output" True
	done < <(locks)
}

@test "at vm.max_map_count calls fail as without the library, and the child has no log" {
	[ "$(cat /proc/sys/vm/max_map_count)" -le 300000 ] ||
		skip 'more can be mapped here than the test tries'
	most_fewer=20
	same_at_the_limit
	run -0 report 'len(p)'
	equal "$output" 1 logs
}

@test "at the end of RLIMIT_AS calls fail as without the library" {
	# The log may have a sixteenth of it.
	most_fewer=$((300000 / 16 / 12 + 100))
	same_at_the_limit bash -c 'ulimit -v 300000 && exec "$@"' limit
}

@test "limits that come while the program runs find nothing to limit" {
	need prlimit
	# Its own output is shorter than a page.
	for limit in --nofile=3 --fsize=4096 --memlock=0 --nofile=0; do
		rm -rf "$BATS_TEST_TMPDIR/go" "${LOGS:?}"/*
		# Not by a function, whose child the program would be.
		start_half env LD_PRELOAD="$LIBRARY" MMGATE_LOCK="$ONE_LOCK" \
			MMGATE_LOG="$LOGS"
		prlimit --pid "$child" "$limit"
		finish_half
		run -0 unmaps
		equal "$output" 1600 "$limit"
	done
}

@test "with no descriptor to be had a forked child goes without a log" {
	need "$PYTHON"
	cat >"$BATS_TEST_TMPDIR/children.py" <<-'EOP'
		import mmap, os, resource, sys
		os.closerange(3, 256)
		resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2)
		for i in range(3):
		    if os.fork() == 0:
		        mmap.mmap(-1, 4096)
		        os._exit(i)
		    print(os.wait()[1] >> 8)
	EOP
	for limit in 3 8; do
		rm -f "$LOGS"/*
		MMGATE_FOLLOW=fork run -0 --separate-stderr logged "$PYTHON" \
			"$BATS_TEST_TMPDIR/children.py" $limit
		equal "$output" $'0\n1\n2'
		equal "$stderr" '' stderr
		run -0 report 'sum(e["epoch"] == 2 for e in p)'
		[ $limit = 3 ] || expected=3
		[ $limit = 8 ] || expected=0
		equal "$output" "$expected" "children's logs with $limit"
	done
}

@test "a directory that cannot be written to is said in one line, with the reason" {
	memory_disk tmpfs
	mount -o remount,ro "$DISK"
	unharmed logged "$SUBJECTS/mapper" -t 4 -n 400
	one_line 'read-only file system'
	for dir in "$DISK" "$DISK/new"; do
		run -2 --separate-stderr mmgate run -o "$dir" -- true
		one_line 'Read-only file system'
	done
	umount "$DISK"
	LOGS=/dev/null
	unharmed logged "$SUBJECTS/mapper" -t 4 -n 400
	one_line 'not a directory'
	LOGS=$BATS_TEST_TMPDIR/logs
	be_nobody "$LOGS"
	chmod 755 "$LOGS"
	unharmed "${NOBODY[@]}" env LD_PRELOAD="$LIBRARY" \
		MMGATE_LOG="$LOGS" "$SUBJECTS/mapper" -t 4 -n 400
	one_line 'permission denied'
	# A relative one, in a directory that is gone.
	mkdir "$BATS_TEST_TMPDIR/gone"
	cd "$BATS_TEST_TMPDIR/gone"
	rmdir "$BATS_TEST_TMPDIR/gone"
	LOGS=here unharmed logged "$SUBJECTS/mapper" -t 4 -n 400
	one_line 'no such directory'
}

@test "a log whose file system is unmounted while the program runs does no harm" {
	memory_disk tmpfs
	start_half logged
	umount -l "$DISK"
	finish_half
}

@test "a log in an overlay is a log" {
	memory_disk tmpfs size=80m
	mkdir "$DISK"/{upper,work,lower,all}
	mount -t overlay overlay -o "lowerdir=$DISK/lower" \
		-o "upperdir=$DISK/upper,workdir=$DISK/work" "$DISK/all" ||
		skip 'cannot mount an overlay here'
	LOGS=$DISK/all
	start_half logged
	fill
	finish_half
	run -0 unmaps
	umount "$DISK/all"
	equal "$output" 1600
}

@test "a quota is respected: figures go on, and fewer events are kept" {
	memory_disk tmpfs usrquota,usrquota_block_hardlimit=700k
	be_nobody "$DISK"
	unharmed "${NOBODY[@]}" env LD_PRELOAD="$LIBRARY" \
		MMGATE_LOCK="$ONE_LOCK" MMGATE_LOG="$DISK" \
		"$SUBJECTS/mapper" -t 4 -n 400
	equal "$stderr" '' stderr
	run -0 unmaps
	equal "$output" 1600
	run -0 report 'p[0]["limits"] != ""'
	equal "$output" True
}

# A control group with so many bytes for the test's programs: $GROUP.
memory_group() { # BYTES
	local root limit name=mmgate-test-$$

	is_root || skip 'needs root, to make a control group'
	for root in /sys/fs/cgroup /sys/fs/cgroup/memory; do
		[ -e "$root/cgroup.procs" ] || continue
		grep -qs memory "$root/cgroup.subtree_control" ||
			[ -e "$root/memory.limit_in_bytes" ] || continue
		mkdir "$root/$name" 2>/dev/null || continue
		GROUP=$root/$name
		limit=memory.max
		[ -e "$GROUP/$limit" ] || limit=memory.limit_in_bytes
		echo "$1" >"$GROUP/$limit"
		return
	done
	skip 'no control group for memory can be made here'
}

@test "in a small control group for memory a log on a disk is no burden" {
	case $(stat -fc %T "$LOGS") in
	tmpfs | ramfs | btrfs) skip 'the tests are not on a disk' ;;
	esac
	memory_group 6M
	run -0 bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$GROUP" \
		"$SUBJECTS/mapper" -t 4 -n 1500
	without=$output
	while read -r lock; do
		rm -f "$LOGS"/*
		run -0 bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' \
			"$GROUP" env LD_PRELOAD="$LIBRARY" \
			MMGATE_LOCK="$lock" MMGATE_LOG="$LOGS" \
			"$SUBJECTS/mapper" -t 4 -n 1500
		equal "$output" "$without" "$lock"
		run -0 unmaps
		equal "$output" 6000 "$lock"
	done < <(locks)
}

@test "a small stack is enough: the smallest that does without us, and 16 KiB" {
	for kib in 16 32 64 128; do
		run bash -c 'ulimit -s "$0" && exec env "$@"' $kib \
			"$SUBJECTS/mapper" -t 4 -n 400
		[ "$status" != 0 ] || break
	done
	equal "$output" "$PLAIN"
	while read -r lock; do
		rm -f "$LOGS"/*
		unharmed bash -c 'ulimit -s "$0" && exec env "$@"' \
			$((kib + 16)) LD_PRELOAD="$LIBRARY" \
			MMGATE_LOCK="$lock" MMGATE_LOG="$LOGS" \
			"$SUBJECTS/mapper" -t 4 -n 400
		equal "$stderr" '' "stderr with $kib KiB"
		run -0 unmaps
		equal "$output" 1600
	done < <(locks)
}

@test "a large environment and long arguments pass" {
	# As much as the kernel takes: 2 MiB in all, 128 KiB at a time.
	cat >"$BATS_TEST_TMPDIR/large.py" <<-'EOP'
		import os, subprocess, sys
		extra = {"BIG%d" % i: "x" * 120000 for i in range(8)}
		extra |= {"V%d" % i: "1" for i in range(20000)}
		env = extra | {k: v for k, v in os.environ.items()}
		env |= dict(word.split("=", 1) for word in sys.argv[2:])
		show = "import os, sys; print(len(sys.argv[1]), sum(len(k) + " \
		    "len(v) for k, v in os.environ.items() if k[0] in 'BV'))"
		sys.exit(subprocess.run([sys.executable, "-c", show, "a" * 65536],
		                        env=env).returncode)
	EOP
	run -0 "$PYTHON" "$BATS_TEST_TMPDIR/large.py" 0
	without=$output
	contains "$without" '65536 1'
	while read -r lock; do
		run -0 --separate-stderr "$PYTHON" \
			"$BATS_TEST_TMPDIR/large.py" 0 LD_PRELOAD="$LIBRARY" \
			MMGATE_LOCK="$lock" MMGATE_LOG="$LOGS"
		equal "$output" "$without" "$lock"
		equal "$stderr" '' stderr
	done < <(locks)
	run -0 report 'len(p)'
	equal "$output" "$(locks | wc -l)"
	# By run, whose own environment it is.
	LOGS=$LOGS.run
	run -0 gate "$ONE_LOCK" "$PYTHON" "$BATS_TEST_TMPDIR/large.py" 0
	equal "$output" "$without"
}
