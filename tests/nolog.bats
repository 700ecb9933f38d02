#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Processes and calls that no log has room for: nobody takes the figures for the
# whole run.

# Each test is a subshell; bats sets stderr and stderr_lines.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers

setup() {
	count_symbols_only
	new_logs
	DISK=$BATS_TEST_TMPDIR/disk
}

teardown() {
	if [ -d "$DISK" ]; then
		umount "$DISK" 2>/dev/null || :
	fi
}

# A memory file system in $DISK.
small_disk() { # SIZE
	is_root || skip 'needs root, to mount a file system'
	mkdir "$DISK"
	mount -t tmpfs -o "size=$1" mmgate "$DISK" || skip 'may not mount here'
}

# totals NAME...: of the report
totals() {
	report "\" \".join(str(d['total'][n]) for n in '$*'.split())"
}

# logs: how many there are
logs() {
	find "$LOGS" -name '*.mmgate' | wc -l
}

# harm OFFSET BYTES: as if the library had said so in each log.
harm() {
	local log

	for log in "$LOGS"/*.mmgate; do
		# shellcheck disable=SC2059 # an escape
		printf "$2" | dd of="$log" bs=1 seek="$1" conv=notrunc \
			2>/dev/null
	done
}

# shellcheck disable=SC2016 # the inner shell's
many='for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		"$0" -n 1500
	done'

@test "processes beyond the total are counted, and said wherever figures are" {
	run -0 --separate-stderr mmgate run --log-total 256K -o "$LOGS" -- \
		sh -c "$many" "$SUBJECTS/mapper"
	said=$stderr
	missing=$(totals without_log)
	holds "$missing" -gt 1 'processes without a log'
	# None is missing from both: the shell is one more.
	equal $(($(logs) + missing)) 21
	contains "$said" "not covered: $missing processes got no log, and their"
	contains "$said" 'of the first: MMGATE_LOG_TOTAL, which is 256K, is used up'
	equal "$(grep -c 'got no log' <<<"$said")" 1
	run -0 report 'd["total"]["without_log_why"]'
	contains "$output" MMGATE_LOG_TOTAL
	run -0 --separate-stderr mmgate report "$LOGS"
	contains "${lines[0]}" "Incomplete: $missing processes got no log, and"
	equal "$stderr" '' stderr
	run -0 mmgate report --format html "$LOGS"
	contains "$output" "$missing processes got no log"
	run -0 mmgate report "$LOGS" --diff "$LOGS"
	equal "$(grep -c "incomplete: $missing processes" <<<"$output")" 2
	run -0 --separate-stderr mmgate export --format csv -o /dev/null "$LOGS"
	contains "$stderr" "note: $missing processes got no log"
	holds "$(du -k "$LOGS" | cut -f1)" -le $((256 + 8)) 'KiB on disk'
}

@test "a run whose processes all have logs says nothing of it" {
	run -0 --separate-stderr mmgate run -o "$LOGS" -- sh -c "$many" \
		"$SUBJECTS/mapper"
	lacks "$stderr" 'got no log'
	equal "$(logs) $(totals without_log unrecorded)" '21 0 0'
	run -0 mmgate report "$LOGS"
	lacks "$output" Incomplete
	# Nobody knows, when what they share is gone.
	rm "$LOGS/run.info"
	equal "$(totals without_log)" None
}

@test "forked children without a log are counted, by the bare library too" {
	mkdir "$LOGS"
	run -0 --separate-stderr env LD_PRELOAD="$LIBRARY" MMGATE_LOG="$LOGS" \
		MMGATE_LOG_TOTAL=256K MMGATE_FOLLOW=fork "$SUBJECTS/forks" 40
	missing=$(totals without_log)
	holds "$missing" -gt 0 'children without a log'
	equal $(($(logs) + missing)) 41
}

@test "processes that a full disk leaves without a log are counted" {
	small_disk 1m
	LOGS=$DISK/logs
	# shellcheck disable=SC2016 # the inner shell's
	run -0 --separate-stderr mmgate run -o "$LOGS" -- sh -c '
		head -c 2M /dev/zero >"$1/fill" 2>/dev/null
		"$0" -n 10; "$0" -n 10; : >"$1/fill"; "$0" -n 10' \
		"$SUBJECTS/mapper" "$DISK"
	contains "$stderr" 'not covered: 2 processes got no log'
	contains "$stderr" 'no space left'
	equal "$(totals without_log)" 2
	run -0 mmgate report "$LOGS"
	contains "$output" 'Incomplete: 2 processes got no log'
}

@test "a directory without any log says how many processes got none, and why" {
	small_disk 64k
	LOGS=$DISK/logs
	mmgate run --quiet -o "$LOGS" -- true
	rm "$LOGS"/*.mmgate
	head -c 1M /dev/zero >"$DISK/fill" 2>/dev/null || :
	run -0 --separate-stderr env LD_PRELOAD="$LIBRARY" MMGATE_LOG="$LOGS" \
		"$SUBJECTS/mapper" -n 10
	contains "$stderr" 'no space left'
	run -1 --separate-stderr mmgate report "$LOGS"
	equal "${#stderr_lines[@]}" 1 "$stderr"
	contains "$stderr" 'holds no log (*.mmgate): 1 process got no log'
	contains "$stderr" 'no space left'
}

@test "a log with room for its head alone: calls are counted as not known, not as 0" {
	# A page for run.info, three for the log's head: none is left.
	small_disk 20k
	LOGS=$DISK
	run -0 env LD_PRELOAD="$LIBRARY" MMGATE_HOOKS=symbols \
		MMGATE_LOG="$LOGS" "$SUBJECTS/mapper" -t 4 -n 100
	equal "$(totals calls unrecorded without_log)" '0 1200 0'
	run -0 report 'd["verdict"]["answer"]'
	equal "$output" unknown
	run -0 mmgate report "$LOGS"
	contains "${lines[0]}" 'Verdict: cannot tell whether the address-space'
	contains "$output" '1.20 k calls found no room in the log'
	contains "$output" 'no figures: its calls found no room in the log'
	contains "$output" 'give the log room first'
	lacks "$output" 'no calls'
	lacks "$output" 'all 0 calls'
	run -0 mmgate report --format html "$LOGS"
	lacks "$output" 'no process made a call'
	run -0 mmgate report "$LOGS" --diff "$LOGS"
	contains "$output" 'incomplete: 1.20 k calls found no room in a log'
}

@test "the summary does not call it 0 calls when none found room" {
	mkdir "$LOGS"
	# shellcheck disable=SC2016 # the inner shell's
	run -0 --separate-stderr mmgate run -o "$LOGS" -- sh -c '"$0" -n 0
		for log in "$1"/*.mmgate; do
			printf "\\3" | dd of="$log" bs=1 seek=200 conv=notrunc
		done 2>/dev/null' "$SUBJECTS/mapper" "$LOGS"
	equal "$(totals calls)" 0
	# Those of the shell and of mapper; dd's own may say so too.
	contains "$stderr" 'no figures of calls: '
	contains "$stderr" 'calls found no room in a log'
	lacks "$stderr" 'mmgate: 0 calls'
	equal "$(grep -c 'found no room' <<<"$stderr")" 1
}

@test "of two processes the one that lost more calls is judged" {
	gate none sh -c '"$0" -n 100; exit 0' "$SUBJECTS/mapper" >/dev/null
	# The shell has no figures and lost a few calls: mapper's verdict stands.
	shell=$(report '[e["pid"] for e in p if e["image"] != "mapper"][0]')
	for log in "$LOGS/$shell"-*.mmgate; do
		printf '\5' | dd of="$log" bs=1 seek=200 conv=notrunc 2>/dev/null
	done
	run -0 report '[e["image"] for e in p
		if e["pid"] == d["verdict"]["pid"]][0]'
	equal "$output" mapper
	# It lost very many.
	for log in "$LOGS/$shell"-*.mmgate; do
		printf '\0\0\0\1' | dd of="$log" bs=1 seek=200 conv=notrunc \
			2>/dev/null
	done
	run -0 report '(d["verdict"]["pid"], d["verdict"]["answer"])'
	equal "$output" "($shell, 'unknown')"
	run -0 mmgate report "$LOGS"
	contains "$output" 'more calls are in no figure'
}

# limited KIB CMD...: files may be so large; what is said goes to $said, its
# status to $status.
limited() {
	local kib=$1

	shift
	# A file, as in a service: the library writes no line there, which the
	# limit could make deadly.
	status=0
	bash -c 'ulimit -f "$0" && exec "$@"' "$kib" "$@" 3>&- \
		>"$BATS_TEST_TMPDIR/said" 2>&1 || status=$?
	said=$(<"$BATS_TEST_TMPDIR/said")
}

@test "a limit on files too small for a log is said with its name, value and need" {
	limited 100 "$BUILD/mmgate" run -o "$LOGS" -- "$SUBJECTS/mapper" -n 10
	contains "$said" 'no log: RLIMIT_FSIZE (ulimit -f) is 100 KiB, and the sm'
	contains "$said" "mapper itself: the log is limited to 100 KiB by RLIMIT_F"
	contains "$said" '(ulimit -f), and takes 164 KiB at least; raise that limit'
	lacks "$said" 'line above'
	run -1 --separate-stderr mmgate report "$LOGS"
	contains "$stderr" 'are in no figure: the log is limited to 100 KiB'
	# That of a part of the run.
	# shellcheck disable=SC2016 # the inner shell's
	mmgate run -o "$LOGS" -- sh -c '(ulimit -f 4; "$0" -n 10); "$0" -n 10' \
		"$SUBJECTS/mapper" >"$BATS_TEST_TMPDIR/said" 2>&1
	said=$(<"$BATS_TEST_TMPDIR/said")
	contains "$said" 'not covered: 1 process got no log, and its calls are in'
	contains "$said" 'KiB by RLIMIT_FSIZE (ulimit -f), and takes 164 KiB at l'
	equal "$(totals without_log)" 1
	lacks "$said" 'no log: RLIMIT'
}

@test "no run.info is made or extended beyond a limit on files" {
	mkdir "$LOGS"
	# A child of the shell is ended by SIGXFSZ, if by anything.
	for kib in 0 1 3; do
		limited $kib env LD_PRELOAD="$LIBRARY" MMGATE_LOG="$LOGS" \
			sh -c 'exit 3'
		equal "$status $(ls "$LOGS")" '3 '
	done
	: >"$LOGS/run.info"
	limited 3 env LD_PRELOAD="$LIBRARY" MMGATE_LOG="$LOGS" \
		sh -c 'exit 3'
	equal "$status $(stat -c %s "$LOGS/run.info")" '3 0'
	limited 4 env LD_PRELOAD="$LIBRARY" MMGATE_LOG="$LOGS" \
		sh -c 'exit 3'
	equal "$status $(stat -c %s "$LOGS/run.info")" '3 4096'
	equal "$(logs)" 0
}

@test "doctor's figure for the smallest log is the true one" {
	limited 100 "$BUILD/mmgate" doctor
	equal "$status" 1
	contains "$said" 'RLIMIT_FSIZE         100 KiB: too little for a log'
	contains "$said" 'FAILED               no program can have a log: RLIMIT_FS'
	contains "$said" 'left no log: the log is limited to 100 KiB by RLIMIT_FSI'
	need=$(sed -n 's/.*the smallest log needs \([0-9]*\) KiB.*/\1/p' <<<"$said")
	holds "$need" -gt 100 'KiB that a log needs'
	mkdir "$LOGS"
	limited $((need - 1)) env LD_PRELOAD="$LIBRARY" MMGATE_LOG="$LOGS" \
		"$SUBJECTS/mapper" -n 10
	equal "$(logs)" 0
	limited "$need" env LD_PRELOAD="$LIBRARY" MMGATE_LOG="$LOGS" \
		"$SUBJECTS/mapper" -n 10
	equal "$(totals calls unrecorded without_log)" '30 0 1'
	limited "$need" "$BUILD/mmgate" doctor
	contains "$said" "RLIMIT_FSIZE         $need KiB: a log takes $need KiB"
	lacks "$said" 'can have a log'
	contains "$said" "no self-test: its log has no room for single events"
}
