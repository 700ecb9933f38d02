#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# mmgate run: it starts the program, stays out of its way, and keeps its status.

load helpers

setup() {
	count_symbols_only
	new_logs
	cd "$BATS_TEST_TMPDIR" || return
}

quiet_run() {
	mmgate run --quiet -o "$LOGS" "$@"
}

@test "the exit status is the program's" {
	for status in 0 1 2 37 125 255; do
		run "-$status" quiet_run -- sh -c "exit $status"
	done
}

@test "the exit status is 128 + N when signal N ended the program" {
	for signal in TERM:143 KILL:137 USR1:138; do
		run "-${signal#*:}" quiet_run -- \
			sh -c "kill -${signal%:*} \$\$"
	done
}

@test "126 and 127 mean what they mean with env" {
	echo 'echo no' >script
	run -126 --separate-stderr quiet_run -- ./script
	contains "$stderr" ./script
	run -127 --separate-stderr quiet_run -- ./nothing-there
	contains "$stderr" ./nothing-there
	run -127 --separate-stderr quiet_run -- nothing-on-the-path
	[ ! -e "$LOGS" ]
}

@test "wrong usage is exit 2 with one line, and nothing is made" {
	run -2 --separate-stderr quiet_run
	equal "${#stderr_lines[@]}" 1
	run -2 --separate-stderr quiet_run --
	run -2 --separate-stderr quiet_run --no-such-option -- true
	run -2 --separate-stderr quiet_run --dry-run=yes -- true
	run -2 --separate-stderr mmgate run -o
	[ ! -e "$LOGS" ]
}

@test "an option that lacks its value does not take the -- for one" {
	cd "$BATS_TEST_TMPDIR"
	for words in 'run -o' 'run --lock' 'run --log-size' 'compare --config' \
		'compare -n' 'tune --budget' 'tune -o' 'report --worst' \
		'report -o' 'export --format' 'set --dir'; do
		# shellcheck disable=SC2086 # words of a command
		run -2 --separate-stderr mmgate $words -- true
		equal "$stderr" \
			"mmgate: ${words% *}: ${words#* } wants a value before the --"
	done
	run -2 --separate-stderr mmgate report somewhere -o --
	equal "$stderr" 'mmgate: report: -o wants a value before the --'
	[ ! -e ./-- ]
}

@test "a bad value is told by the option that has it" {
	run -2 --separate-stderr mmgate run --lock limit:0 -- true
	contains "$stderr" '--lock: MMGATE_LOCK=limit:0: not understood'
	contains "$stderr" 'limit:N (1 to 10000)'
	run -2 --separate-stderr env MMGATE_LOCK=limit:0 "$BUILD/mmgate" run -- true
	lacks "$stderr" '--lock:'
}

@test "a program without a loader is refused with 125, and --force runs it" {
	cat >hello.c <<-'EOC'
		#include <stdio.h>
		int main(void) { puts("hello"); return 3; }
	EOC
	${CC:-cc} -static -o hello hello.c 2>/dev/null ||
		skip 'no static libc here'
	run -125 --separate-stderr quiet_run -- ./hello
	equal "$output" ''
	contains "$stderr" static
	[ ! -e "$LOGS" ]
	run -3 quiet_run --force -- ./hello
	equal "$output" hello
}

@test "a program of the other ELF class is refused with 125" {
	cp "$(type -P true)" other
	printf '\1' | dd of=other bs=1 seek=4 conv=notrunc 2>/dev/null
	run -125 --separate-stderr quiet_run -- ./other
	equal "${#stderr_lines[@]}" 1
	[ ! -e "$LOGS" ]
}

@test "a setuid program is refused with 125" {
	is_root || skip 'needs root, to make a file of another user'
	cp "$(type -P true)" raised
	chown 65534 raised
	chmod 4755 raised
	run -125 --separate-stderr quiet_run -- ./raised
	contains "$stderr" set
	[ ! -e "$LOGS" ]
}

@test "a script goes through the gate with its interpreter" {
	printf '#!/bin/sh\nexec "%s" -n 10\n' "$SUBJECTS/mapper" >script
	chmod +x script
	run -0 quiet_run -- ./script
	contains "$output" sum:
	run -0 report '[e["calls"]["mmap"]["count"] for e in p
		if e["image"] == "mapper"]'
	equal "$output" '[10]'
}

@test "a signal that run gets alone is passed on" {
	cat >trapper <<-'EOS'
		#!/bin/sh
		trap 'echo got; exit 5' TERM
		echo ready
		while :; do sleep 0.05; done
	EOS
	chmod +x trapper
	"$BUILD/mmgate" run --quiet -o "$LOGS" -- ./trapper >out 3>&- &
	child=$!
	eventually grep -q ready out
	kill -TERM "$child"
	status=0
	wait "$child" || status=$?
	equal "$status" 5
	equal "$(cat out)" 'ready
got'
}

@test "stdin and stdout pass as they are" {
	head -c 300000 /dev/urandom >data
	quiet_run -- cat <data >copy
	same data copy
	quiet_run -- "$SUBJECTS/mapper" </dev/null >/dev/null
}

@test "quiet prints nothing; without it the summary is on stderr alone" {
	run -0 --separate-stderr quiet_run --lock mutex -- \
		"$SUBJECTS/mapper" -t 2
	equal "$stderr" ''
	plain=$output
	run -0 --separate-stderr mmgate run --lock mutex -o "$LOGS" -- \
		"$SUBJECTS/mapper" -t 2
	equal "$output" "$plain"
	for part in '600 calls' 'at the gate' 'in the kernel' \
		'context switches' 'not covered' "mmgate report $LOGS"; do
		contains "$stderr" "$part"
	done
	# Each line says whose it is.
	equal "$(grep -cv '^mmgate: ' <<<"$stderr")" 0
}

summary_of() { # OPTION... -- CMD...: what run says
	{ mmgate run -o "$LOGS" "$@" >/dev/null || true; } 2>&1
}

@test "the summary says how the program ended, if not well" {
	contains "$(summary_of -- sh -c 'exit 5')" 'exit status 5'
	contains "$(summary_of -- sh -c 'kill -ABRT $$')" \
		'ended by signal 6 (Aborted)'
	said=$(summary_of -- true)
	lacks "$said" 'exit status'
	lacks "$said" 'ended by'
}

@test "the summary says which lock calls waited for, or that there was none" {
	said=$(summary_of -- "$SUBJECTS/mapper")
	contains "$said" 'no lock at the gate'
	lacks "$said" together
	said=$(summary_of --lock mutex -- "$SUBJECTS/mapper")
	contains "$said" ' at the gate (lock=mutex)'
	contains "$said" ' waited '
	said=$(summary_of -- sh -c '"$0"; MMGATE_LOCK=spin "$0"' \
		"$SUBJECTS/mapper")
	contains "$said" '(lock=several)'
}

@test "the summary says why calls went without the lock" {
	said=$(summary_of --lock mutex -- "$PYTHON" -c '
import mmap
for i in range(3):
    mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x8000)
')
	contains "$said" '3 calls went without the lock (3 long)'
}

# harm OFFSET BYTES: as if the library had said so in its log.
harm='"$0" >/dev/null; for log in "$1"/*-*.mmgate; do
	printf "$3" | dd of="$log" bs=1 seek="$2" conv=notrunc 2>/dev/null
done'

@test "the summary says what the figures do not hold" {
	said=$(summary_of -- sh -c "$harm" "$SUBJECTS/mapper" "$LOGS" 200 '\3')
	contains "$said" 'calls found no room in a log: figures are incomplete'
	said=$(summary_of -- sh -c "$harm" "$SUBJECTS/mapper" "$LOGS" 208 '\1')
	contains "$said" 'not covered: the calls of a second copy of libc'
	said=$(summary_of -- sh -c 'for log in "$0"/*-*.mmgate; do
			printf no 1<>"$log"
		done' "$LOGS")
	contains "$said" '1 log could not be read'
	lacks "$said" 'at the gate'
	said=$(summary_of -- "$SUBJECTS/mapper")
	lacks "$said" incomplete
	lacks "$said" 'second copy'
}

@test "the summary speaks of a limit only when it cost something" {
	limited() {
		(ulimit -f 4096 && summary_of "$@" -- "$SUBJECTS/mapper" \
			-n "$number")
	}
	number=10
	lacks "$(limited)" RLIMIT
	number=8000
	said=$(limited)
	contains "$said" 'logs are limited to 4096 KiB by RLIMIT_FSIZE'
	contains "$said" 'events were overwritten'
	equal "$(grep -c RLIMIT <<<"$said")" 1
	said=$(limited --events off)
	lacks "$said" RLIMIT
	lacks "$said" overwritten
}

@test "what the summary advises can be pasted" {
	printf '#!/bin/sh\nprintf "%%s\\n" "$2"\n' >mmgate
	chmod +x mmgate
	for name in plain 'a b' "it's" $'bell\a\e[31m' $'no\nline' \
		$'not\377utf8' '$HOME' 'ünï'; do
		LOGS=$BATS_TEST_TMPDIR/$name
		advice=$(summary_of -- true | sed -n 's/^mmgate: next: //p')
		lacks "$advice" $'\e'
		equal "$(PATH=.:$PATH bash -c "$advice")" "$LOGS"
	done
}

@test "a program that left no log: the summary does not guess" {
	said=$(summary_of -- env -i sh -c :)
	lacks "$said" 'lost LD_PRELOAD'
	said=$(summary_of --skip 'sh,dash,bash' -- sh -c :)
	contains "$said" 'MMGATE_ONLY or MMGATE_SKIP leaves it alone'
	said=$(summary_of -- sh -c 'rm -f "$0"/*' "$LOGS")
	contains "$said" 'it left no log; a line above may say why, or `mmgate'
}

@test "the program inherits no descriptor and no signal state of run's" {
	cat >state.py <<-'EOP'
		import os, signal
		print(sorted(f for f in os.listdir("/proc/self/fd")))
		print([s for s in open("/proc/self/status")
		       if s.startswith(("SigBlk", "SigIgn", "SigCgt"))])
	EOP
	"$PYTHON" state.py >plain 3>&-
	quiet_run -- "$PYTHON" state.py >with 3>&-
	same plain with
}

@test "what else is preloaded stays, behind the library" {
	echo 'int other_there = 1;' >other.c
	${CC:-cc} -shared -fPIC -o other.so other.c
	LD_PRELOAD=$PWD/other.so run -0 quiet_run -- \
		sh -c 'echo "$LD_PRELOAD"'
	equal "$output" "$LIBRARY:$PWD/other.so"
	LD_PRELOAD="$PWD/other.so $LIBRARY" run -0 quiet_run -- \
		sh -c 'echo "$LD_PRELOAD"'
	equal "$output" "$LIBRARY:$PWD/other.so"
}

@test "a sanitizer's runtime comes before the library" {
	printf 'int main(void) { return 0; }\n' >program.c
	gcc -fsanitize=address -o program program.c 2>/dev/null ||
		skip 'no address sanitizer here'
	ldd program | grep -q libasan || skip 'its runtime is not shared'
	run -0 quiet_run -- ./program
	run -0 mmgate run --dry-run -o "$LOGS" -- ./program
	preload=$(grep ^LD_PRELOAD= <<<"$output")
	contains "${preload%libmmgate.so*}" libasan
}

@test "dry-run shows what it would set, and makes and starts nothing" {
	run -0 mmgate run --dry-run --lock mutex --max-wait 5ms -o "$LOGS" -- \
		touch started
	contains "$output" MMGATE_LOCK=mutex
	contains "$output" MMGATE_MAX_WAIT=5ms
	contains "$output" "LD_PRELOAD=$LIBRARY"
	contains "$output" "$LOGS"
	[ ! -e "$LOGS" ]
	[ ! -e started ]
}

@test "an earlier directory of logs becomes DIR.old, and replaces that one" {
	for number in 1 2 3; do
		quiet_run -- "$SUBJECTS/mapper" -n $((number * 10)) >/dev/null
	done
	run -0 report 'c["mmap"]["count"]'
	equal "$output" 30
	LOGS=$LOGS.old
	run -0 report 'c["mmap"]["count"]'
	equal "$output" 20
	equal "$(echo logs*)" 'logs logs.old'
}

@test "a directory with foreign files is refused and left alone" {
	mkdir "$LOGS"
	echo mine >"$LOGS/thesis"
	run -2 --separate-stderr quiet_run -- touch started
	equal "${#stderr_lines[@]}" 1
	contains "$stderr" "$LOGS"
	equal "$(ls "$LOGS")" thesis
	[ ! -e started ]
}

@test "a DIR.old that is not mmgate's is never replaced" {
	quiet_run -- true
	mkdir "$LOGS.old"
	echo mine >"$LOGS.old/thesis"
	run -2 --separate-stderr quiet_run -- touch started
	equal "$(cat "$LOGS.old/thesis")" mine
	[ ! -e started ]
	rm -r "$LOGS.old"
	quiet_run -- true
	echo mine >"$LOGS.old/thesis"
	run -2 --separate-stderr quiet_run -- touch started
	equal "$(cat "$LOGS.old/thesis")" mine
}

@test "an empty directory is used" {
	mkdir "$LOGS"
	quiet_run -- "$SUBJECTS/mapper" >/dev/null
	run -0 report 'c["mmap"]["count"]'
	equal "$output" 100
	[ ! -e "$LOGS.old" ]
}

@test "a file in the way, or no parent, is refused before the program starts" {
	echo mine >file
	run -2 --separate-stderr mmgate run --quiet -o file -- touch started
	run -2 --separate-stderr mmgate run --quiet -o none/logs -- touch started
	equal "$(cat file)" mine
	[ ! -e none ]
	[ ! -e started ]
}

@test "a directory whose run still goes on is refused" {
	mkfifo go
	"$BUILD/mmgate" run --quiet -o "$LOGS" -- "$SUBJECTS/mapper" -p \
		<go >out 3>&- &
	child=$!
	exec 9>go
	eventually grep -q half out
	run -2 --separate-stderr quiet_run -- true
	contains "$stderr" 'in use'
	echo >&9
	exec 9>&-
	wait "$child"
	run -0 report 'c["mmap"]["count"]'
	equal "$output" 100
}

@test "of two runs with one directory one is refused, or each has its own" {
	begin() { # NAME: says what it is, and how it ended
		local status=0

		"$BUILD/mmgate" run --quiet -o "$LOGS" -- \
			env "$SUBJECTS/mapper" -n "$1" >/dev/null 2>"err.$1" ||
			status=$?
		echo "$status" >"status.$1"
	}
	for try in 1 2 3 4 5 6 7 8 9 10; do
		# New, empty, or with an earlier run in it.
		rm -rf "$LOGS" "$LOGS.old"
		case $((try % 3)) in
		1) mkdir "$LOGS" ;;
		2) quiet_run -- true ;;
		esac
		begin 10 3>&- &
		one=$!
		begin 20 3>&- &
		wait "$one" "$!"
		ended=$(cat status.10 status.20 | sort -n | tr '\n' ' ')
		case $ended in
		'0 0 ') dirs=("$LOGS" "$LOGS.old") ;;
		'0 2 ') dirs=("$LOGS") ;;
		*) cat err.10 err.20 && false ;;
		esac
		first=$LOGS
		for LOGS in "${dirs[@]}"; do
			run -0 report '[e["calls"]["mmap"]["count"] for e in p
				if e["image"] == "mapper"] in ([10], [20])'
			equal "$output" True "logs of one run only: $ended"
		done
		LOGS=$first
		if [ "$ended" = '0 2 ' ]; then
			contains "$(cat err.10 err.20)" 'in use by a run that'
		fi
	done
}

@test "a run within a run cannot have its directory" {
	for ((try = 0; try < 5; try++)); do
		run -2 --separate-stderr quiet_run -- "$BUILD/mmgate" run \
			--quiet -o "$LOGS" -- touch started
		equal "${#stderr_lines[@]}" 1
		contains "$stderr" 'in use by a run that still goes on'
		[ ! -e started ]
	done
	[ ! -e "$LOGS.old/started" ]
}

@test "a killed run leaves no lock behind" {
	quiet_run -- sh -c 'kill -KILL $PPID; sleep 0.2' || true
	eventually quiet_run -- true
}

@test "logs that a program left behind still uses are not moved away" {
	mkfifo go half
	quiet_run -- sh -c '"$0" -p <go >out 2>&1 3>&- & read -r _ <half' \
		"$SUBJECTS/mapper" 3>&- &
	run=$!
	exec 9>go
	eventually grep -q half out
	echo >half
	wait "$run"
	for dir in "$LOGS" "$LOGS.old"; do
		run -2 --separate-stderr quiet_run -- touch started
		equal "${#stderr_lines[@]}" 1
		contains "$stderr" "$dir is in use: processes of that run"
		[ "$dir" != "$LOGS" ] || mv "$LOGS" "$LOGS.old"
		"$BUILD/mmgate" report "$LOGS.old" >/dev/null 2>&1 || true
		[ -e "$LOGS" ] || cp -r "$LOGS.old" "$LOGS"
	done
	echo >&9
	exec 9>&-
	eventually grep -q sum: out
	eventually quiet_run -- true
}

@test "whatever becomes of the directory meanwhile, the status is the program's" {
	for harm in 'mv "$0" moved' 'rm -r "$0"' 'mv "$0" moved; mkdir "$0"' \
		'chmod 0 "$0"' 'rm "$0"/*'; do
		rm -rf "$LOGS" moved
		run -5 --separate-stderr mmgate run -o "$LOGS" -- \
			sh -c "$harm; exit 5" "$LOGS"
		contains "$stderr" 'ran '
		equal "$(grep -cv '^mmgate: ' <<<"$stderr")" 0
	done
	rm -rf "$LOGS" moved
	run -5 --separate-stderr mmgate run -o "$LOGS" -- \
		sh -c 'mv "$0" moved; exit 5' "$LOGS"
	contains "$stderr" 'was moved or removed'
}

@test "a relative directory is where run was started, wherever the program goes" {
	run -0 mmgate run --quiet -o here -- sh -c 'cd / && "$0"' \
		"$SUBJECTS/mapper"
	LOGS=here
	run -0 report '[e["image"] for e in p]'
	contains "$output" mapper
}

@test "without -o the logs are in mmgate.out, and report finds them there" {
	run -0 mmgate run --quiet -- "$SUBJECTS/mapper"
	run -0 mmgate report
	contains "$output" mapper
	[ -d mmgate.out ]
}

@test "a limit on files is refused by its name, and keeps its signal" {
	# What is said goes through a pipe, which no limit stops.
	run -2 bash -o pipefail -c '(ulimit -f 0 && exec "$@") 2>&1 | cat' \
		limit "$BUILD/mmgate" run -o "$LOGS" -- touch started
	equal "${#lines[@]}" 1
	contains "$output" RLIMIT_FSIZE
	[ ! -e "$LOGS" ]
	[ ! -e started ]
	# What is already there stays where it is.
	quiet_run -- true
	run -2 bash -c 'ulimit -f 0 && exec "$@"' limit \
		"$BUILD/mmgate" run -o "$LOGS" -- true
	[ ! -e "$LOGS.old" ]
	# The program is ended by it as ever, also when run may not write its
	# summary.
	status=0
	bash -c 'ulimit -f 4 && exec "$@"' limit "$BUILD/mmgate" run -o "$LOGS" \
		-- sh -c 'dd if=/dev/zero of=big bs=9000 count=2 2>/dev/null
			kill -l $?' >out 2>&1 3>&- || status=$?
	equal "$(grep -cx XFSZ out)" 1
	status=0
	head -c 4096 /dev/zero >full
	bash -c 'ulimit -f 4 && exec "$@"' limit "$BUILD/mmgate" run -o "$LOGS" \
		-- sh -c 'exit 5' 2>>full 3>&- || status=$?
	equal "$status" 5
}

@test "few descriptors are named as the cause" {
	few() { # NUMBER: run with so many
		bash -c 'ulimit -n $0 && exec "$@"' "$1" "$BUILD/mmgate" run \
			-o "$LOGS" -- true 3>&- 2>&1 || true
	}
	contains "$(few 4)" "$LIBRARY cannot be read: Too many open files"
	quiet_run -- true
	for number in 4 5 6; do
		said=$(few $number)
		contains "$said" 'Too many open files'
		lacks "$said" 'is not a directory'
		lacks "$said" 'ELF'
	done
}

@test "a link to nowhere and an empty command are refused by name" {
	ln -s nowhere "$LOGS"
	run -2 --separate-stderr quiet_run -- touch started
	equal "${#stderr_lines[@]}" 1
	contains "$stderr" 'is a symbolic link to nowhere, which is not there'
	rm "$LOGS"
	run -127 --separate-stderr quiet_run -- ''
	equal "$stderr" 'mmgate: the command is empty'
	[ ! -e "$LOGS" ]
	[ ! -e started ]
}

@test "a library whose path cannot be preloaded is refused" {
	mkdir 'a place'
	cp "$BUILD/mmgate" "$LIBRARY" 'a place/'
	run -2 --separate-stderr 'a place/mmgate' run -o "$LOGS" -- true
	contains "$stderr" 'a place'
	[ ! -e "$LOGS" ]
}

@test "run may be run under run" {
	run -0 quiet_run --lock mutex -- "$BUILD/mmgate" run --quiet -o inner \
		--lock spin -- "$SUBJECTS/mapper"
	LOGS=inner
	run -0 report '[(e["image"], e["settings"]["lock"]) for e in p]'
	equal "$output" "[('mapper', 'spin')]"
}

@test "follow none is for the started process alone" {
	run -0 quiet_run --follow none -- sh -c '"$0"; :' "$SUBJECTS/mapper"
	run -0 report '[e["image"] for e in p]'
	lacks "$output" mapper
	run -0 quiet_run --follow none -- "$SUBJECTS/mapper" -e "$SUBJECTS/early"
	run -0 report '[e["image"] for e in p]'
	equal "$output" "['mapper', 'early']"
}

@test "every command has a help text with an example" {
	run -0 mmgate help
	commands=$(sed -n 's/^  \([a-z]*\)  .*/\1/p' <<<"$output")
	contains "$commands" run
	contains "$commands" report
	for command in $commands; do
		run -0 mmgate help "$command"
		contains "$output" "usage: mmgate $command"
		contains "$output" Example
		help=$output
		run -0 mmgate "$command" --help
		equal "$output" "$help"
	done
}

@test "the version is one line; an unknown command is exit 2" {
	run -0 mmgate --version
	equal "${#lines[@]}" 1
	run -2 --separate-stderr mmgate reprot
	contains "$stderr" 'did you mean report'
	run -2 mmgate
}

@test "output that cannot be written is an error" {
	quiet_run -- "$SUBJECTS/mapper" >/dev/null
	for command in report 'report --format json' 'export --format csv'; do
		# shellcheck disable=SC2086 # words of a command
		run ! bash -c '"$@" >/dev/full' full "$BUILD/mmgate" \
			$command "$LOGS"
	done
}

@test "a standard output that is closed or full is an error, where something is printed" {
	local pair='--config lock=none --config bare'

	quiet_run -- "$SUBJECTS/mapper" >/dev/null
	for command in "report $LOGS" "report --format json $LOGS" \
		"report --format html $LOGS" "report $LOGS --diff $LOGS" \
		"export --format csv $LOGS" "export --format jsonl $LOGS" \
		"export --format folded $LOGS" "export --format chrome $LOGS" \
		"export --format prometheus $LOGS" help 'help run' 'run --help' \
		--help --version doctor 'run --dry-run -- true' \
		"compare -n 1 --warmup 0 $pair -- true" \
		'tune --budget 10s -- true'; do
		for to in '&-' /dev/full; do
			# shellcheck disable=SC2086 # words of a command
			run -1 --separate-stderr bash -c "\"\$@\" >$to" to \
				"$BUILD/mmgate" $command
			equal "$(grep -c 'cannot write to standard output' \
				<<<"$stderr")" 1 "$command to $to: $stderr"
			lacks "$stderr" Success
		done
	done
	run -3 bash -c '"$@" >&-' closed "$BUILD/mmgate" run --quiet \
		-o "$LOGS" -- sh -c 'exit 3'
}

@test "nothing is measured where the result could not be written" {
	cd "$BATS_TEST_TMPDIR"
	for command in 'compare --config lock=none --config bare' tune; do
		# shellcheck disable=SC2086 # words of a command
		run -1 --separate-stderr bash -c '"$@" >&-' closed \
			"$BUILD/mmgate" $command -- touch ran
		equal "$stderr" 'mmgate: cannot write to standard output: Bad file descriptor'
	done
	[ ! -e ran ]
}

@test "doctor passes here and says what it checked" {
	run -0 mmgate doctor
	contains "$output" kernel
	contains "$output" MMGATE_LOCK
	run -0 mmgate doctor -- "$SUBJECTS/mapper"
}
