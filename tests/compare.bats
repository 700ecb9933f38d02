#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# mmgate compare: configurations beside each other.  Programs here print the
# number that they are measured by, so nothing depends on time.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	# Prints what the lock is worth, and notes each run.  With so many
	# digits the intervals are as exact as the numbers.
	cat >rate <<-'EOS'
		#!/bin/sh
		echo "${MMGATE_LOCK-bare}" >>runs
		case ${MMGATE_LOCK-bare} in
		mutex) rate=200 ;;
		spin) rate=50 ;;
		*) rate=100 ;;
		esac
		echo "rate: 1"
		echo "rate: $rate.000000000000 per second"
	EOS
	chmod +x rate
}

rates() {
	mmgate compare --metric '^rate: ([0-9.]+)' "$@"
}

@test "the ratio, its interval and the verdict are against the first" {
	run -0 --separate-stderr rates -n 3 --format json --config lock=none \
		--config lock=mutex --config lock=spin --config bare -- ./rate
	equal "$stderr" ''
	equal "$(json '[x["config"] for x in c]')" \
		"['lock=none', 'lock=mutex', 'lock=spin', 'bare']"
	equal "$(json '[x["verdict"] for x in c]')" \
		"['baseline', 'faster', 'slower', 'no difference']"
	equal "$(json '[x["ratio"] for x in c]')" '[1, 2, 0.5, 1]'
	equal "$(json '[x["ratio_ci95"] for x in c]')" \
		'[[1, 1], [2, 2], [0.5, 0.5], [1, 1]]'
	equal "$(json '[x["median"] for x in c]')" '[100, 200, 50, 100]'
	equal "$(json 'c[1]["values"]')" '[200, 200, 200]'
	equal "$(json '(d["version"], d["rounds"], d["noise"])')" '(1, 3, 0)'
	equal "$(json 'd["metric"]')" '^rate: ([0-9.]+)'
}

@test "each configuration has what its runs cost" {
	run -0 mmgate compare -n 2 --format json --config lock=none \
		--config bare -- "$SUBJECTS/mapper" -n 10
	equal "$(json 'd["metric"]')" wall
	equal "$(json '[all(x["cpu_s"] > 0 and x["median"] > 0 and
		x["peak_rss_bytes"] > 100000 and x["page_faults"] > 0 and
		x["voluntary_switches"] >= 0 and x["involuntary_switches"] >= 0
		for x in c)]')" '[True]'
}

@test "less is better for times, and for a number with --lower" {
	run -0 rates --lower -n 2 --format json --config lock=none \
		--config lock=mutex -- ./rate
	equal "$(json '(c[1]["ratio"], c[1]["verdict"])')" "(0.5, 'slower')"
	cat >busy <<-'EOS'
		#!/bin/sh
		[ "${MMGATE_LOCK-}" = mutex ] && sleep 0.3
		exit 0
	EOS
	chmod +x busy
	run -0 mmgate compare -n 3 --format json --config lock=none \
		--config lock=mutex -- ./busy
	equal "$(json 'c[1]["ratio"] < 0.9')" True
}

@test "every round runs every configuration once, behind the warm-up" {
	run -0 rates -n 4 --warmup 2 --config lock=none --config lock=mutex \
		--config bare -- ./rate
	equal "$(wc -l <runs)" 18
	# Whatever the order: no round has one of them twice.
	while read -r a && read -r b && read -r c; do
		equal "$(printf '%s\n' "$a" "$b" "$c" | sort | xargs)" \
			'bare mutex none'
	done <runs
	rm runs
	run -0 rates -n 1 --warmup 0 --config bare --config bare -- ./rate
	equal "$(wc -l <runs)" 2
}

@test "the order of the rounds is not always the same" {
	run -0 rates -n 40 --warmup 0 --config lock=none --config lock=mutex \
		-- ./rate
	equal "$(paste - - <runs | sort -u | wc -l)" 2
}

@test "events and stacks are off, and there is no log" {
	printf '#!/bin/sh\nenv\necho "rate: 1"\n' >show
	chmod +x show
	mkdir logs
	MMGATE_LOG=$PWD/logs MMGATE_EVENTS=all run -0 rates -n 1 --warmup 0 \
		--config lock=none --config lock=spin -- ./show
	equal "$(ls logs)" ''
	cat >check <<-'EOS'
		#!/bin/sh
		[ "$MMGATE_EVENTS $MMGATE_STACKS ${MMGATE_LOG-unset}" = \
			'off off unset' ] || exit 9
		case $LD_PRELOAD in *libmmgate.so) ;; *) exit 8 ;; esac
		echo rate: 1
	EOS
	chmod +x check
	MMGATE_LOG=$PWD/logs MMGATE_EVENTS=all run -0 rates -n 1 --warmup 0 \
		--config lock=none --config 'lock=spin calls=munmap' -- ./check
}

@test "the warm-up has a log of its own, and leaves none" {
	printf '#!/bin/sh\necho "rate: 1"; echo "${MMGATE_LOG-none}" >>runs\n' >show
	chmod +x show
	run -0 rates -n 2 --warmup 2 --config lock=none --config bare -- ./show
	equal "$(grep -vc none runs)" 1
	[ ! -e "$(grep -v none runs)" ]
}

@test "a configuration that the library never got into is an error" {
	run -1 --separate-stderr rates -n 1 --config bare \
		--config 'lock=mutex only=another' -- ./rate
	contains "$stderr" 'lock=mutex only=another: the library never got'
	contains "$stderr" 'mmgate doctor'
	equal "$output" ''
}

@test "bare is without the library, and keeps other preloads" {
	printf '#!/bin/sh\n[ -z "${LD_PRELOAD-}" ] || exit 7\n' >none
	printf '#!/bin/sh\n[ "$LD_PRELOAD" = libm.so.6 ] || exit 7\n' >other
	chmod +x none other
	run -0 mmgate compare -n 1 --config bare --config bare -- ./none
	LD_PRELOAD=$LIBRARY run -0 "$BUILD/mmgate" compare -n 1 --config bare \
		--config bare -- ./none
	[ -e /lib/x86_64-linux-gnu/libm.so.6 ] || skip 'no libm.so.6 here'
	LD_PRELOAD=$LIBRARY:libm.so.6 run -0 "$BUILD/mmgate" compare -n 1 \
		--config bare --config bare -- ./other
}

@test "settings come from the environment, and the configuration goes first" {
	printf '#!/bin/sh\necho "rate: 1"; echo $MMGATE_LOCK $MMGATE_CALLS >>runs\n' \
		>show
	chmod +x show
	MMGATE_LOCK=spin MMGATE_CALLS=mmap run -0 rates -n 1 --warmup 0 \
		--config max-wait=2s --config lock=mutex -- ./show
	equal "$(sort runs | xargs)" 'mutex mmap spin mmap'
}

@test "cpus limits a configuration to so many CPUs, or to these" {
	printf '#!/bin/sh\necho "rate: $(nproc)"\n' >cpus
	chmod +x cpus
	all=$(nproc)
	first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	run -0 rates -n 1 --format json --config bare --config 'bare cpus=1' \
		--config "lock=none cpus=$first-$first" -- ./cpus
	equal "$(json '[x["median"] for x in c]')" "[$all, 1, 1]"
}

@test "a run that fails is an error with its configuration and its output" {
	cat >fail <<-'EOS'
		#!/bin/sh
		echo 'so far so good'
		[ "$MMGATE_LOCK" = none ] && exit 0
		printf 'no \033[31mluck\n' >&2
		exit 3
	EOS
	chmod +x fail
	run -1 --separate-stderr mmgate compare -n 2 --config lock=none \
		--config lock=mutex -- ./fail
	equal "$output" ''
	contains "$stderr" 'lock=mutex: exit status 3'
	contains "$stderr" 'so far so good'
	contains "$stderr" 'no ?[31mluck'
	run -1 --separate-stderr mmgate compare -n 2 --config lock=spin \
		--config bare -- sh -c '[ -z "$LD_PRELOAD" ] || kill -SEGV $$'
	contains "$stderr" 'lock=spin: ended by signal 11'
}

@test "a program that stops is not waited for" {
	run -1 --separate-stderr mmgate compare -n 1 --config lock=none \
		--config bare -- sh -c 'kill -STOP $$'
	contains "$stderr" 'stopped by signal'
}

@test "--check-output refuses an output that differs" {
	cat >differ <<-'EOS'
		#!/bin/sh
		echo 'the same'
		echo "lock ${MMGATE_LOCK-}"
		echo "rate: $$"
		date +%N >&2
	EOS
	chmod +x differ
	run -1 --separate-stderr rates -n 2 --check-output --config lock=none \
		--config lock=mutex -- ./differ
	equal "$output" ''
	contains "$stderr" 'lock=mutex: its output differs in line 2'
	contains "$stderr" "'lock mutex', not 'lock none'"
	# The numbers that are measured by may differ, in length too.
	run -0 rates -n 3 --check-output --config lock=none \
		--config 'lock=none max-wait=2s' -- ./differ
	run -1 --separate-stderr mmgate compare -n 3 --check-output \
		--config lock=none --config bare -- ./differ
	contains "$stderr" 'differs'
}

@test "a metric that is not there, no number or not above 0 is an error" {
	while IFS='|' read -r words complaint; do
		run -1 --separate-stderr rates -n 2 --config lock=none \
			--config bare -- echo "$words"
		contains "$stderr" "$complaint"
	done <<-'ROWS'
		nothing|nothing in it matches
		rate: 1.2.3|is no number
		rate: 0|above 0
	ROWS
	# In stderr, too.
	run -0 rates -n 2 --config lock=none --config bare -- \
		sh -c 'echo "rate: 5" >&2'
}

@test "what is wrong is said in one line before anything starts" {
	while IFS='|' read -r option value complaint; do
		run -2 --separate-stderr mmgate compare --config lock=none \
			--config bare "$option" "$value" -- touch ran
		equal "${#stderr_lines[@]}" 1 "lines on stderr for $value"
		contains "$stderr" "$complaint"
	done <<-'ROWS'
		--config|lock=mutexx|MMGATE_LOCK=mutexx: not understood
		--config|lokc=mutex|did you mean lock?
		--config|mutex|not bare, cpus=
		--config||empty
		--config|bare lock=none|only cpus goes with it
		--config|cpus=0|may be used here
		--config|cpus=4096|may be used here
		--config|cpus=1-|a number of CPUs
		--config|events=all|no log
		--config|o=/tmp|no log
		-n|0|1 to 1000
		-n|many|1 to 1000
		--warmup|-1|0 to 1000
		--metric|[0-9]+|group
		--metric|(|--metric
		--format|csv|text, json and markdown
		-o|/nowhere/to/be|/nowhere/to/be
		--rounds|5|unknown option
	ROWS
	run -2 --separate-stderr mmgate compare --config lock=none -- touch ran
	contains "$stderr" 'two configurations'
	run -2 --separate-stderr mmgate compare --config lock=none \
		--config bare
	contains "$stderr" 'which command?'
	run -127 mmgate compare --config bare --config bare -- ./no-such
	MMGATE_LOCK=bad run -2 mmgate compare --config lock=none \
		--config bare -- touch ran
	[ ! -e ran ]
}

@test "text and markdown say the same as json, and -o writes it" {
	configs=(--config lock=none --config lock=mutex --config lock=spin)
	run -0 rates -n 3 "${configs[@]}" -- ./rate
	contains "${lines[0]}" '3 rounds of 3 configurations'
	contains "$output" 'baseline'
	equal "$(grep -c 'lock=mutex .* 2.000 .* 2.000 to 2.000 .* faster' \
		<<<"$output")" 1
	run -0 rates -n 3 --format markdown -o table.md "${configs[@]}" -- \
		./rate
	equal "$output" ''
	equal "$(grep -c '^|' table.md)" 5
	equal "$(grep -c '^| lock=spin | 50 | 0.500 | 0.500 to 0.500 | slower |' \
		table.md)" 1
}

@test "noise is told from a difference, and what would settle it is said" {
	# The rates of a configuration's runs, in whatever order they come.
	cat >noisy <<-'EOS'
		#!/bin/sh
		[ "$MMGATE_LOCK" = none ] && rates='150 100 140 110' ||
			rates='130 150 110 180'
		echo >>"count.$MMGATE_LOCK"
		echo "rate: $(echo $rates |
			cut -d' ' -f"$(wc -l <"count.$MMGATE_LOCK")")"
	EOS
	chmod +x noisy
	run -0 rates -n 4 --warmup 0 --config lock=none --config lock=mutex \
		-- ./noisy
	contains "$output" 'no difference'
	contains "$output" 'lock=mutex: too noisy to tell, '
	contains "$output" 'more rounds would settle it in four of five cases (-n '
	rm count.*
	run -0 rates -n 4 --warmup 0 --format json --config lock=none \
		--config lock=mutex -- ./noisy
	equal "$(json 'c[1]["more_rounds"] > 4 and d["noise"] > 0.05')" True
	# One or two rounds do not say how many would.
	for rounds in 1 2; do
		rm count.*
		run -0 rates -n $rounds --warmup 0 --config lock=none \
			--config lock=mutex -- ./noisy
		contains "$output" 'too few to say how many would settle it'
		contains "$output" '(-n 20)'
	done
	rm count.*
	run -0 rates -n 1 --warmup 0 --format json --config lock=none \
		--config lock=mutex -- ./noisy
	equal "$(json '(c[1]["ratio_ci95"][1], c[1]["verdict"])')" \
		"(None, 'no difference')"
}

@test "what each second of delay costs is said of times and rates alone" {
	cat >delayed <<-'EOS'
		#!/bin/sh
		[ -n "${MMGATE_LOG-}" ] && "$SUBJECTS/mapper" -n 100 >/dev/null
		case ${MMGATE_DELAY-} in
		munmap*) echo 'rate: 80'; echo 'latency: 125' ;;
		*) echo 'rate: 100'; echo 'latency: 100' ;;
		esac
	EOS
	chmod +x delayed
	configs=(--config lock=none --config 'lock=none delay=munmap:1us')
	run -0 rates -n 2 "${configs[@]}" -- ./delayed
	contains "$output" "of the program's time"
	contains "$output" 'of each second so added to munmap calls'
	run -0 rates -n 2 --format json "${configs[@]}" -- ./delayed
	equal "$(json 'd["slope"]["per_second"] > 0')" True
	latency=(mmgate compare -n 2 --lower --metric '^latency: ([0-9.]+)')
	run -0 "${latency[@]}" "${configs[@]}" -- ./delayed
	contains "$output" 'each us added to every munmap call costs 25 %'
	contains "$output" 'of what is measured'
	lacks "$output" 'of each second so'
	run -0 "${latency[@]}" --format json "${configs[@]}" -- ./delayed
	equal "$(json '(round(d["slope"]["per_us"], 9),
		d["slope"]["per_second"], d["slope"]["per_second_ci95"])')" \
		'(0.25, None, None)'
}

@test "each second of delay is told by the calls and the time of a run" {
	# So many calls are made, whatever a run takes.
	count_symbols_only
	LOGS=$PWD/logs gate none "$SUBJECTS/mapper" -n 100 >/dev/null
	calls=$(LOGS=$PWD/logs report 'c["munmap"]["count"]')
	run -0 mmgate compare -n 3 --format json --config lock=none \
		--config 'lock=none delay=munmap:100us' -- "$SUBJECTS/mapper" -n 100
	equal "$(json 'round(d["slope"]["per_us"] * c[0]["median"] * 1e6 /
		d["slope"]["per_second"])')" "$calls"
	equal "$(json '(d["slope"]["thread_share"] > 0,
		d["slope"]["queues"] in (True, False))')" '(True, True)'
	# A server makes some before the load and behind it.
	fake_server
	sed -i '2i"$SUBJECTS/mapper" -n 100 >/dev/null' server
	run -0 rates -n 2 --format json --load ./load --ready 'at your' \
		--config lock=none --config 'lock=none delay=munmap:1us' -- \
		./server
	equal "$(json '(d["slope"]["op"], d["slope"]["per_second"])')" \
		"('munmap', None)"
}

@test "what if needs a configuration without the delay" {
	run -0 rates -n 2 --config 'lock=none delay=munmap:1us' \
		--config 'lock=none delay=munmap:2us' -- ./rate
	contains "$output" 'a configuration without the delay is missing'
	lacks "$output" 'costs'
}

@test "a number of few digits gives no verdict that they cannot bear" {
	cat >rounded <<-'EOS'
		#!/bin/sh
		[ "$MMGATE_LOCK" = none ] && echo 'rate: 0.5' || echo "rate: $1"
	EOS
	chmod +x rounded
	configs=(-n 5 --format json --config lock=none --config lock=mutex)
	run -0 rates "${configs[@]}" -- ./rounded 0.6
	equal "$(json '(c[1]["verdict"], c[1]["too_few_digits"])')" \
		"('no difference', True)"
	equal "$(json 'c[1]["ratio_ci95"][0] <= 1')" True
	run -0 rates "${configs[@]}" -- ./rounded 0.7
	equal "$(json '(c[1]["verdict"], c[1]["too_few_digits"])')" \
		"('faster', False)"
}

@test "a run that fails keeps the whole rounds before it" {
	cat >later <<-'EOS'
		#!/bin/sh
		echo >>count
		[ "$(wc -l <count)" -le 4 ] || exit 3
		echo 'rate: 5'
	EOS
	chmod +x later
	for format in json text; do
		rm -f count
		run -1 --separate-stderr rates -n 9 --warmup 0 \
			--format $format --config bare --config bare -- ./later
		contains "$stderr" 'bare: exit status 3'
		[ $format = text ] || equal "$(json '(d["rounds"],
			d["rounds_wanted"], d["interrupted"], d["failure"])')" \
			"(2, 9, False, 'bare: exit status 3')"
	done
	contains "$output" 'failed after 2 of 9 rounds: bare: exit status 3'
}

@test "-o leaves what a file holds until there is something to write" {
	seq 1000 >file
	ln -s file link
	run -1 rates -n 1 -o link --config bare --config bare -- false
	equal "$(cat link)" "$(seq 1000)"
	run -0 rates -n 1 -o link --config bare --config bare -- ./rate
	contains "$(head -1 file)" '1 round of 2 configurations'
	lacks "$(cat file)" 1000
	[ -L link ]
	run -0 rates -n 1 -o /dev/stdout --config bare --config bare -- ./rate
	contains "${lines[0]}" '1 round of 2 configurations'
	mkfifo fifo
	cat fifo >out 3>&- &
	reader=$!
	run -0 rates -n 1 -o fifo --config bare --config bare -- ./rate
	wait "$reader"
	contains "$(cat out)" '1 round of 2 configurations'
}

@test "a signal ends the run and keeps the whole rounds" {
	# Two rounds of numbers, then a run that goes on.
	cat >slow <<-'EOS'
		#!/bin/sh
		echo >>count
		echo 'rate: 5'
		[ "$(wc -l <count)" -lt 5 ] && exit
		echo >waits
		[ -n "${STUBBORN-}" ] && trap '' TERM
		exec sleep 1000
	EOS
	chmod +x slow
	for signal in INT:130 TERM:143; do
		rm -f count waits
		interruptible "$BUILD/mmgate" compare -n 10 --warmup 0 \
			--format json \
			--metric 'rate: (.*)' --config bare --config bare \
			-- ./slow >out 3>&- &
		child=$!
		eventually test -e waits
		kill "-${signal%:*}" "$child"
		status=0
		wait "$child" || status=$?
		equal "$status" "${signal#*:}"
		output=$(cat out)
		equal "$(json '(d["rounds"], len(c[1]["values"]))')" '(2, 2)'
		equal "$(json '(d["interrupted"], d["rounds_wanted"],
			d["failure"])')" '(True, 10, None)'
	done
	# Without a whole round there is nothing to report.
	rm waits
	seq 10 >count
	STUBBORN=1 "$BUILD/mmgate" compare --config bare --config bare -- ./slow >out \
		2>err 3>&- &
	child=$!
	eventually test -e waits
	kill -TERM "$child"
	status=0
	wait "$child" || status=$?
	equal "$status" 143
	equal "$(cat out)" ''
	contains "$(cat err)" 'nothing to report'
}

@test "signals that were ignored at the start stay so" {
	cat >slow <<-'EOS'
		#!/bin/sh
		echo 'rate: 5'
		echo >waits
		until [ -e go ]; do sleep 0.01; done
	EOS
	chmod +x slow
	(
		trap '' HUP INT QUIT TERM TSTP
		exec "$BUILD/mmgate" compare -n 2 --warmup 0 --format json \
			--metric 'rate: (.*)' --config bare --config bare \
			-- ./slow
	) >out 3>&- &
	child=$!
	eventually test -e waits
	for signal in HUP INT QUIT TERM TSTP; do
		kill "-$signal" "$child"
	done
	touch go
	wait "$child"
	output=$(cat out)
	equal "$(json 'd["rounds"]')" 2
}

# Fails when what the run before it left is still there.
leaver() {
	cat >leave <<-'EOS'
		#!/usr/bin/env bash
		[ -e pid ] && is_alive "$(cat pid)" && exit 9
		sleep 1000 >/dev/null 2>&1 3>&- &
		echo $! >pid
		until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done
		echo rate: 1
		exit "$1"
	EOS
	chmod +x leave
	export -f is_alive
}

@test "what a run leaves behind is gone before the next, and told once" {
	leaver
	run -0 --separate-stderr rates -n 2 --config lock=none --config bare \
		-- ./leave 0
	equal "${#stderr_lines[@]}" 1 "lines on stderr: $stderr"
	contains "$stderr" 'in 6 of 6 runs ./leave ended and left processes'
	contains "$stderr" '(such as sleep)'
	run ! is_alive "$(cat pid)"
	# One that fails, and a load.
	run -1 --separate-stderr rates -n 2 --config bare --config bare -- \
		./leave 3
	contains "$stderr" 'exit status 3'
	run ! is_alive "$(cat pid)"
	fake_server
	run -0 --separate-stderr rates -n 1 --warmup 0 --load './leave 0' \
		--ready 'at your' --config bare --config bare -- ./server
	contains "$stderr" 'in 2 of 2 runs the load ended and left processes'
	run ! is_alive "$(cat pid)"
	# What is run, not measured, may leave what it likes.
	mmgate run --quiet -o logs -- ./leave 0 >/dev/null 2>&1 3>&-
	is_alive "$(cat pid)"
	kill "$(cat pid)"
}

@test "a log that cannot be removed is told, and no reason to end" {
	cat >stray <<-'EOS'
		#!/bin/sh
		[ -z "${MMGATE_LOG-}" ] || echo >"$MMGATE_LOG/stray"
		echo rate: 1
	EOS
	chmod +x stray
	run -0 --separate-stderr rates -n 1 --format json --config lock=none \
		--config bare -- ./stray
	equal "$(json 'd["rounds"]')" 1
	equal "${#stderr_lines[@]}" 1 'lines on stderr'
	contains "$stderr" 'note: cannot remove /'
	left=${stderr#*cannot remove }
	rm -r "${left%%,*}"
}

@test "a run starts with an empty stdin, in a group of its own" {
	run -0 rates -n 1 --config lock=none --config bare -- \
		sh -c 'cat; echo "rate: 1"' <<<'not for it'
	run -0 rates -n 1 --config lock=none --config bare -- \
		sh -c '[ "$(ps -o pgid= $$ | tr -d " ")" = $$ ] && echo rate: 1'
}

@test "a terminal sees a bar, and what is no terminal does not" {
	need script
	run -0 script -qec "'$BUILD/mmgate' compare -n 2 --config bare \
		--config bare -- true" /dev/null
	contains "$output" '] 0/6 bare'
	run -0 --separate-stderr mmgate compare -n 2 --config bare \
		--config bare -- true
	equal "$stderr" ''
}

# A server that notes its configuration and its end, and a load that has its
# rate from there.
fake_server() {
	cat >server <<-'EOS'
		#!/bin/sh
		echo "${MMGATE_LOCK-bare}" >lock
		trap 'echo end >>ends; exit 0' TERM
		sleep 0.05
		echo 'server: at your service'
		while :; do sleep 0.02; done
	EOS
	cat >load <<-'EOS'
		#!/bin/sh
		[ -z "${LD_PRELOAD-}" ] || exit 9
		[ "$(cat lock)" = mutex ] && echo rate: 200 || echo rate: 100
	EOS
	chmod +x server load
}

@test "--load measures a server by what runs beside it" {
	fake_server
	run -0 --separate-stderr rates -n 3 --format json --load ./load \
		--ready 'at your' --config lock=none --config lock=mutex \
		--config bare -- ./server
	equal "$stderr" ''
	equal "$(json '[x["ratio"] for x in c]')" '[1, 2, 1]'
	equal "$(wc -l <ends)" 12
}

@test "a server is ready when it listens" {
	cat >listen.py <<-'EOP'
		import signal, socket, sys, time
		kind = sys.argv[1]
		if kind == "tcp":
		    s = socket.socket()
		    s.bind(("127.0.0.1", 0))
		else:
		    s = socket.socket(socket.AF_UNIX)
		    s.bind("\0" + sys.argv[2])
		with open("bound", "w") as f:
		    f.write(repr((int(s.family), s.getsockname())))
		time.sleep(0.2)
		s.listen()
		signal.pause()
	EOP
	# Refused is who comes too early.
	cat >connect.py <<-'EOP'
		import socket
		family, name = eval(open("bound").read())
		socket.socket(family).connect(name)
		print("rate: 1")
	EOP
	for kind in tcp local; do
		run -0 rates -n 1 --warmup 0 --load "$PYTHON connect.py" \
			--config bare --config lock=none -- \
			"$PYTHON" listen.py "$kind" "$PWD"
	done
}

@test "a server that ends early, or a load that fails, is an error" {
	fake_server
	run -1 --separate-stderr rates -n 1 --load ./load --config bare \
		--config bare -- true
	contains "$stderr" 'the server: ended before it was ready: exit status 0'
	run -1 --separate-stderr rates -n 1 --load 'touch loaded; sleep 1000' \
		--ready go --config bare --config bare -- sh -c 'echo go
			until [ -e loaded ]; do sleep 0.01; done; exit 4'
	contains "$stderr" 'the server: ended while the load ran: exit status 4'
	contains "$stderr" "the server's stdout"
	run -1 --separate-stderr rates -n 1 --load 'echo oh; exit 5' \
		--ready service --config bare --config bare -- ./server
	contains "$stderr" 'the load: exit status 5'
	contains "$stderr" '| oh'
	run -2 --separate-stderr rates --ready x --config bare --config bare \
		-- ./server
	contains "$stderr" 'give --load too'
	run -2 --separate-stderr rates --ready '(' --load x --config bare \
		--config bare -- ./server
	contains "$stderr" '--ready ('
}

@test "a server that does not end when asked is killed, which is told" {
	stubborn=(--stop-wait 50ms --ready go --config bare --config bare --
		sh -c 'trap "" TERM; echo go; while :; do sleep 1; done')
	run -0 --separate-stderr rates -n 2 --load 'echo rate: 1' \
		"${stubborn[@]}"
	equal "${#stderr_lines[@]}" 1 'lines on stderr'
	contains "$stderr" 'did not end within 50.0 ms of SIGTERM'
	contains "$stderr" 'killed in 6 of 6 runs'
	contains "$stderr" '(--stop-wait T)'
	run -1 --separate-stderr rates -n 1 --warmup 0 --load 'echo no number' \
		"${stubborn[@]}"
	contains "$stderr" 'no metric in its output'
}

@test "a server has the time that it is given to end, in a script too" {
	cat >server <<-'EOS'
		#!/bin/sh
		trap 'sleep 0.2; echo end >>ends; exit 0' TERM
		echo ready
		while :; do sleep 0.01; done
	EOS
	# The shell around it has ended when it has not.
	printf '#!/bin/sh\n./server\nexit 5\n' >script
	chmod +x server script
	for program in server script; do
		rm -f ends
		run -0 --separate-stderr rates -n 1 --stop-wait 1m \
			--load 'echo rate: 1' --ready ready --config bare \
			--config bare -- "./$program"
		equal "$stderr" ''
		equal "$(wc -l <ends)" 4
	done
}

@test "who asks to end does not wait for a server that does not" {
	cat >server <<-'EOS'
		#!/bin/sh
		trap 'echo >asked' TERM
		echo ready
		while :; do sleep 0.01; done
	EOS
	chmod +x server
	interruptible "$BUILD/mmgate" compare --metric 'rate: (.*)' \
		--stop-wait 1h --load 'echo rate: 1' --ready ready \
		--config bare --config bare -- ./server 2>err 3>&- &
	child=$!
	eventually test -e asked
	kill -INT "$child"
	status=0
	wait "$child" || status=$?
	equal "$status" 130
	lacks "$(cat err)" 'killed'
}

@test "--stop-wait is a duration, for servers" {
	while IFS='|' read -r value complaint; do
		run -2 --separate-stderr rates --load x --stop-wait "$value" \
			--config bare --config bare -- touch ran
		contains "$stderr" "compare: --stop-wait $value: $complaint"
	done <<-'ROWS'
		soon|give a duration
		0s|give a duration
		2h|give a duration such as 90s, 5m or 1h, at most 1h
	ROWS
	run -2 --separate-stderr mmgate tune --stop-wait 5s -- touch ran
	contains "$stderr" '--stop-wait is for servers: give --load too'
	[ ! -e ran ]
}
