#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# mmgate compare: how programs are run, watched, ended and heard.  What they are
# measured by is what they print, and a program that hangs does so for ever, so
# nothing depends on time.

load helpers

setup() {
	cd "$BATS_TEST_TMPDIR" || return
}

# What was left running is noted in left.
teardown() {
	local pid

	[ -e left ] || return 0
	while read -r pid; do
		kill -KILL "$pid" 2>/dev/null || :
	done <left
}

# Two configurations that do not differ.
rates() {
	mmgate compare --metric '^rate: ([0-9.]+)' --config bare --config bare \
		"$@"
}

# script NAME: an executable file of stdin.
script() {
	{
		echo '#!/usr/bin/env bash'
		cat
	} >"$1"
	chmod +x "$1"
}

none_alive() {
	local pid

	while read -r pid; do
		! is_alive "$pid" || {
			echo "$pid still runs: $(cat "/proc/$pid/comm")" >&2
			return 1
		}
	done <left
}

# listen.py: a server that notes itself in left.
listener() {
	cat >listen.py <<-'EOP'
		import os, signal, socket
		s = socket.socket()
		s.bind(("127.0.0.1", 0))
		with open("left", "a") as f:
		    f.write(f"{os.getpid()}\n")
		s.listen()
		while True:
		    signal.pause()
	EOP
}

@test "what leaves the process group is gone before the next run all the same" {
	# Fails when what a run before it left is still there.
	script leave <<-'EOS'
		while read -r pid; do
			! is_alive "$pid" || exit 9
		done <left
		before=$(wc -l <left)
		setsid sh -c 'echo $$ >>left; exec sleep 1000' \
			</dev/null >/dev/null 2>&1 3>&- &
		until [ "$(wc -l <left)" -gt "$before" ]; do :; done
		echo rate: 1
	EOS
	: >left
	export -f is_alive
	run -0 --separate-stderr rates -n 2 --warmup 0 -- ./leave
	contains "$stderr" 'in 4 of 4 runs ./leave ended and left processes'
	equal "$(wc -l <left)" 4
	none_alive
	# By a program in a group of its own, at the limit of its time.
	script hang <<-'EOS'
		timeout 900 sh -c 'echo $$ >>left; exec sleep 1000'
		echo rate: 1
	EOS
	run -1 --separate-stderr rates -n 1 --timeout 500ms -- ./hang
	contains "$stderr" 'it still ran after 500'
	none_alive
}

@test "what others began before is let be" {
	script around <<-EOS
		sleep 1000 >/dev/null 2>&1 3>&- &
		echo \$! >left
		exec "$BUILD/mmgate" compare -n 1 --metric '(1)' \
			--config bare --config bare -- ./leave
	EOS
	script leave <<-'EOS'
		sleep 1000 >/dev/null 2>&1 3>&- &
		echo $! >pid
		echo 1
	EOS
	run -0 ./around
	is_alive "$(cat left)"
	run ! is_alive "$(cat pid)"
	# What is run, not measured, leaves what it likes.
	script session <<-'EOS'
		setsid sleep 1000 </dev/null >/dev/null 2>&1 3>&- &
		echo $! >>left
		wait $!
	EOS
	mmgate run --quiet -o logs -- sh -c \
		'setsid sleep 1000 >/dev/null 2>&1 3>&- & echo $! >>left'
	is_alive "$(tail -1 left)"
}

@test "a server that a wrapper puts in a group of its own is found and ended" {
	listener
	script wrapper <<-EOS
		timeout 900 "$PYTHON" listen.py
		echo ended >>ends
	EOS
	run -0 --separate-stderr rates -n 1 --warmup 0 --load 'echo rate: 1' \
		-- ./wrapper
	equal "$stderr" ''
	none_alive
	# One that goes to the background is refused, and does not stay.
	rm left
	script daemon <<-EOS
		setsid "$PYTHON" listen.py </dev/null >/dev/null 2>&1 3>&- &
		until [ -s left ]; do sleep 0.01; done
	EOS
	run -1 --separate-stderr rates -n 1 --load 'echo rate: 1' -- ./daemon
	contains "$stderr" 'the server: ended before it was ready'
	none_alive
}

@test "what a program opens once more by its name cuts nothing off" {
	script opens <<-'EOS'
		echo 'first line'
		echo 'rate: 100'
		echo again >/dev/stdout
		echo 'this goes everywhere' | tee /dev/stderr
		echo 'an error' >&2
		echo once more >/dev/stderr
		echo 'last line'
		exit 3
	EOS
	run -1 --separate-stderr rates -n 1 -- ./opens
	contains "$stderr" "stdout:
  | first line
  | rate: 100
  | again
  | this goes everywhere
  | last line
stderr:
  | this goes everywhere
  | an error
  | once more"
	sed -i '/^exit/d' opens
	run -0 rates -n 1 --format json --check-output -- ./opens
	equal "$(json 'c[0]["values"]')" '[100]'
}

@test "no limit on the size of files ends a program that writes" {
	script writes <<-'EOS'
		head -c 3000000 /dev/zero | tr '\0' x
		echo
		echo rate: 7
	EOS
	(
		ulimit -f 1000
		mmgate compare -n 1 --metric '^rate: (.*)' --format json \
			--config bare --config bare -- ./writes
	) >out
	output=$(cat out)
	equal "$(json 'c[1]["values"]')" '[7]'
}

@test "who writes more than is kept is an error that says so" {
	script endless <<-'EOS'
		echo begin
		exec head -c 400M /dev/zero
	EOS
	run -1 --separate-stderr rates -n 1 -- ./endless
	contains "$stderr" 'bare: it wrote more than the 256 MiB that are kept'
	contains "$stderr" '>/dev/null'
	# And a server, whose load waits for it.
	script server <<-'EOS'
		echo ready
		until [ -e loaded ]; do sleep 0.01; done
		exec head -c 400M /dev/zero
	EOS
	run -1 --separate-stderr rates -n 1 --ready ready \
		--load 'touch loaded; sleep 1000' -- ./server
	contains "$stderr" 'the server: while the load ran: it wrote more than'
}

@test "who holds its output open and goes on does not hold up the run" {
	script holds <<-'EOS'
		setsid sleep 1000 3>&- &
		echo $! >>left
		echo rate: 1
	EOS
	run -0 --separate-stderr rates -n 1 -- ./holds
	contains "$stderr" 'left processes behind'
	none_alive
}

@test "a server that stops while the load waits for it is an error" {
	script server <<-'EOS'
		echo ready
		until [ -e loaded ]; do sleep 0.01; done
		kill -STOP $$
	EOS
	run -1 --separate-stderr rates -n 1 --ready ready --stop-wait 1h \
		--load 'touch loaded; sleep 1000' -- ./server
	contains "$stderr" 'the server: while the load ran: stopped by signal'
}

@test "--timeout ends a run that hangs, and a load" {
	run -1 --separate-stderr rates -n 1 --timeout 300ms -- sleep 1000
	contains "$stderr" 'bare: it still ran after 300'
	contains "$stderr" '(--timeout T)'
	run -1 --separate-stderr rates -n 1 --timeout 300ms --ready go \
		--load 'sleep 1000' -- sh -c 'echo go; sleep 1000'
	contains "$stderr" 'bare: the load: it still ran after 300'
	for value in soon 0s 25h; do
		run -2 --separate-stderr rates --timeout "$value" -- touch ran
		contains "$stderr" "compare: --timeout $value: give a duration"
	done
	[ ! -e ran ]
}

@test "a server that its load ends is an error, whoever is first to see it" {
	script server <<-'EOS'
		trap 'exit 0' USR1
		echo $$ >left
		echo ready
		while :; do sleep 0.01; done
	EOS
	# Ends when the server has, at the same moment or some time later.
	script load <<-'EOS'
		echo rate: 1
		pid=$(cat left)
		kill -USR1 "$pid"
		while is_alive "$pid"; do :; done
	EOS
	export -f is_alive
	for _ in 1 2 3; do
		run -1 --separate-stderr rates -n 1 --warmup 0 --ready ready \
			--load ./load -- ./server
		contains "$stderr" \
			'the server: ended while the load ran: exit status 0'
	done
}

@test "a server that ends otherwise than in the first run is an error" {
	script server <<-'EOS'
		echo >>starts
		trap 'exit $(cat status)' TERM
		echo ready
		while :; do sleep 0.01; done
	EOS
	# The status of each start, the last for all that follow.
	script load <<-'EOS'
		echo rate: 1
		n=$(wc -l <starts)
		cut -d' ' -f"$((n < 3 ? n : 3))" <<<"$STATUSES" >status
	EOS
	served=(rates -n 2 --warmup 0 --ready ready --load ./load -- ./server)
	while IFS='|' read -r statuses exit complaint; do
		rm -f starts
		STATUSES=$statuses run "-$exit" --separate-stderr "${served[@]}"
		contains "$stderr" "$complaint"
	done <<-'ROWS'
		0 0 1|1|not as in the first run: exit status 1
		1 1 2|1|not as in the first run: exit status 2
		1 1 1|0|
		1 1 0|0|
		0 143 0|0|
	ROWS
}

@test "the end of the first configuration's server is what counts" {
	script server <<-'EOS'
		trap 'exit $status' TERM
		status=0
		[ "${MMGATE_LOCK-}" = mutex ] && status=1
		echo ready
		while :; do sleep 0.01; done
	EOS
	for _ in 1 2 3 4; do
		run -1 --separate-stderr mmgate compare -n 1 --warmup 0 \
			--metric '(1)' --ready ready --load 'echo 1' \
			--config lock=none --config lock=mutex -- ./server
		contains "$stderr" 'lock=mutex: the server: when it was asked'
	done
}

@test "time that is spent where the library is not is told" {
	# A second at least of CPU time, by itself.
	script spend <<-'EOS'
		while read -r _ _ _ _ _ _ _ _ _ _ _ _ _ user rest \
			</proc/self/stat && [ "$user" -lt 100 ]; do :; done
	EOS
	script inside <<-'EOS'
		env -u LD_PRELOAD ./spend
	EOS
	run -0 --separate-stderr mmgate compare -n 1 --config lock=none \
		--config lock=mutex -- ./inside
	equal "${#stderr_lines[@]}" 1 'lines on stderr'
	contains "$stderr" 'CPU time of a run were spent by processes that left no log (such as'
	run -0 --separate-stderr mmgate compare -n 1 --config lock=none \
		--config lock=mutex -- ./spend
	equal "$stderr" ''
	# Its file is gone while it runs.
	script gone <<-'EOS'
		cp "$(command -v sh)" gone-shell
		exec ./gone-shell -c 'rm gone-shell; . ./spend'
	EOS
	run -0 --separate-stderr mmgate compare -n 1 --config lock=none \
		--config lock=mutex -- ./gone
	equal "$stderr" ''
}

@test "a full /dev/shm is no reason to miss the library" {
	need unshare
	unshare -m true || skip 'no mount namespaces here'
	script full <<-EOS
		mount -t tmpfs -o size=1m none /dev/shm || exit 77
		dd if=/dev/zero of=/dev/shm/all bs=4k 2>/dev/null
		exec "$BUILD/mmgate" compare -n 1 --metric '(1)' \
			--config lock=none --config lock=mutex -- echo 1
	EOS
	run unshare -m ./full
	[ "$status" != 77 ] || skip 'nothing can be mounted here'
	equal "$status" 0
	lacks "$output" 'never got into'
}

@test "what mmgate had in memory for a run is not in the peak of the next" {
	script writes <<-'EOS'
		echo rate: 1
		head -c 12000000 /dev/zero
	EOS
	run -0 rates -n 2 --format json -- ./writes
	equal "$(json 'all(x["peak_rss_bytes"] < 10e6 for x in c)')" True
}
