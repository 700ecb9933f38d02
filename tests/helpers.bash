# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What the tests share.  The programs under test are in $BUILD.

bats_require_minimum_version 1.5.0

ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$ROOT/$BUILD ;; esac
LIBRARY=$BUILD/libmmgate.so
EXAMPLES=$BUILD/examples
SUBJECTS=$BUILD/tests/subjects
export ROOT BUILD LIBRARY EXAMPLES SUBJECTS

# A hang is what these tests look for: none may take longer.
export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-120}

# Before it goes with the next line: 1 runs the tests that take minutes.
LONG_TESTS=${MMGATE_LONG_TESTS-${LONG_TESTS-}}
export LONG_TESTS

# The caller's settings are not the tests', but for this one: where mappings go
# in all that a test runs.
unset "${!MMGATE_@}" LD_PRELOAD
[ -z "${PLACE_UNDER_TEST-}" ] || export MMGATE_PLACE=$PLACE_UNDER_TEST

# A version manager's python3 is a script that starts others.
PYTHON=/usr/bin/python3
[ -x "$PYTHON" ] || PYTHON=$(command -v python3)
export PYTHON

# lock_values ROWS: of MMGATE_LOCK, from the table that it is built from.
lock_values() {
	sed -nE "s/^($1)\\(([a-z]*),.*/\\2/p" "$ROOT/shim/locks.def" |
		sed 's/^limit$/limit:2/'
}

# All that MMGATE_LOCK can name in this version, or those of LOCKS_UNDER_TEST.
locks() {
	if [ -n "${LOCKS_UNDER_TEST-}" ]; then
		tr ' ' '\n' <<<"$LOCKS_UNDER_TEST"
	else
		lock_values 'LOCK|LOCK_POLICY'
	fi
}

# One, where it does not matter which.
ONE_LOCK=${LOCKS_UNDER_TEST-}
ONE_LOCK=${ONE_LOCK%% *}
ONE_LOCK=${ONE_LOCK:-mutex}
export ONE_LOCK

# lock_in_turn: one of them, another in each test, where each test with each
# lock would take long.  The same whenever that test is run.
lock_in_turn() {
	local all of

	mapfile -t all < <(locks)
	of=$(cksum <<<"$BATS_TEST_NAME")
	echo "${all[${of%% *} % ${#all[@]}]}"
}

# always_gates LOCK: every call takes it.  auto may find that none is best.
always_gates() {
	lock_values LOCK | grep -vx none | grep -qx "$1"
}

# Those of `locks`; all there are where it has none of them.
gating_locks() {
	local of

	of=$(lock_values LOCK | grep -vx none)
	locks | grep -xF "$of" || echo "$of"
}

# Those that let one thread in at a time.
excluding_locks() {
	gating_locks | sed 's/^limit:2$/limit:1/' | grep -vx rw
}

# And those behind which a call that excludes the others is alone: all calls
# but some advice.
serial_locks() {
	excluding_locks
	locks | grep -x rw
}

# part_of NUMBER: of as many in all, how many for each lock.
part_of() {
	echo $(($1 / $(locks | wc -l)))
}

mmgate() {
	"$BUILD/mmgate" "$@"
}

# How calls are caught where a test does not say: as by default.
HOOKS=libc

# What programs call by symbol is the same on every machine; what libc calls for
# itself is not.  For tests that count to the call.
count_symbols_only() {
	HOOKS=symbols
	export MMGATE_HOOKS=symbols
}

# gate LOCK CMD...: CMD under `mmgate run`, its logs in $LOGS.
gate() {
	local lock=$1

	shift
	mmgate run --quiet --lock "$lock" --hooks "$HOOKS" -o "$LOGS" "$@"
}

# bare LOCK CMD...: CMD with the library alone, without the command.
bare() {
	local lock=$1

	shift
	env LD_PRELOAD="$LIBRARY" MMGATE_LOCK="$lock" MMGATE_HOOKS="$HOOKS" \
		"$@"
}

# The value of a Python expression over the report of $LOGS: d is all of it,
# p the processes, c the calls of the first.
report() {
	mmgate report --format json "$LOGS" >"$BATS_TEST_TMPDIR/report.json" &&
		"$PYTHON" - "$BATS_TEST_TMPDIR/report.json" "$1" <<-'EOP'
			import json, sys
			d = json.load(open(sys.argv[1]))
			p = d["processes"]
			c = p[0]["calls"] if p else {}
			print(eval("(" + sys.argv[2] + ")"))
		EOP
}

# The value of a Python expression over the json in $output, of compare or tune:
# d is all of it, c the configurations, r what is recommended.
json() {
	"$PYTHON" -c 'if 1:
		import json, sys
		d = json.load(sys.stdin)
		c, r = d.get("configs"), d.get("recommendation")
		print(eval(sys.argv[1]))' "$1" <<<"$output"
}

# equal ACTUAL EXPECTED [WHAT]
equal() {
	[ "$1" = "$2" ] && return
	printf '%s\nexpected: %s\nactual:   %s\n' "${3-differs}" "$2" "$1" >&2
	return 1
}

# holds A OP B [WHAT]: compares numbers, with an operator of test
holds() {
	local sentence=("$1" "$2" "$3")

	test "${sentence[@]}" && return
	printf '%s: %s does not hold\n' "${4-numbers}" "${sentence[*]}" >&2
	return 1
}

# contains TEXT PART
contains() {
	case $1 in *"$2"*) return ;; esac
	printf 'expected part: %s\nin:            %s\n' "$2" "$1" >&2
	return 1
}

lacks() {
	case $1 in
	*"$2"*)
		printf 'unexpected part: %s\nin:              %s\n' "$2" \
			"$1" >&2
		return 1
		;;
	esac
}

# same FILE FILE: byte for byte
same() {
	cmp "$1" "$2" || {
		diff -a "$1" "$2" | head -20 >&2
		return 1
	}
}

is_root() {
	[ "$(id -u)" = 0 ]
}

# be_nobody DIRECTORY...: from here on "${NOBODY[@]}" CMD... runs CMD as a user
# without rights, who may write to each DIRECTORY of the test's.
be_nobody() {
	NOBODY=()
	is_root || return 0
	need setpriv
	NOBODY=(setpriv --reuid 65534 --regid 65534 --clear-groups
		--bounding-set=-all --inh-caps=-all)
	"${NOBODY[@]}" test -r "$LIBRARY" || skip 'nobody cannot read the build'
	chmod a+x "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR/.." "$BATS_TEST_TMPDIR"
	chmod 777 "$@"
}

need() {
	command -v "$1" >/dev/null || skip "no $1 here"
}

# begin_half CMD...: a mapper, which makes half of its calls and waits; its
# process is in $child.
begin_half() {
	mkfifo "$BATS_TEST_TMPDIR/go"
	"$@" -p <"$BATS_TEST_TMPDIR/go" >"$BATS_TEST_TMPDIR/out" \
		2>"$BATS_TEST_TMPDIR/err" 3>&- &
	child=$!
	exec 9>"$BATS_TEST_TMPDIR/go"
	eventually grep -q half "$BATS_TEST_TMPDIR/out"
}

# The other half, to its end.
end_half() {
	echo >&9
	exec 9>&-
	wait "$child"
	child=
}

# interruptible CMD...: in the background, where a shell has SIGINT ignored, with
# all signals as they are for who sits at a terminal.
interruptible() {
	exec "$PYTHON" -c 'if 1:
		import os, signal, sys
		for number in signal.valid_signals():
		    if signal.getsignal(number) in (signal.SIG_IGN,
		            signal.default_int_handler):
		        signal.signal(number, signal.SIG_DFL)
		os.execv(sys.argv[1], sys.argv[1:])' "$@"
}

# Is it there, and no zombie?
is_alive() {
	local line

	line=$(cat "/proc/$1/stat" 2>/dev/null) || return
	case ${line##*) } in Z* | X*) return 1 ;; esac
}

# In tests whose names start with [long].
takes_long() {
	[ "$LONG_TESTS" = 1 ] || skip 'takes long: MMGATE_LONG_TESTS=1 runs it'
}

# eventually CMD...: true when CMD becomes so in good time.  For states that
# the kernel or another program reaches by itself and tells nobody.
eventually() {
	local try

	for ((try = 0; try < 500; try++)); do
		"$@" && return
		sleep 0.02
	done
	echo "never came true: $*" >&2
	return 1
}

# Where this test's logs go.
new_logs() {
	LOGS=$BATS_TEST_TMPDIR/logs
}

# The same where a disk's write-back would be in the figures; teardown is to call
# drop_logs.
new_logs_in_memory() {
	local free

	new_logs
	free=$(df --output=avail -k /dev/shm 2>/dev/null | tail -1)
	[ "${free:-0}" -gt 1000000 ] || return 0
	drop_dead_logs
	IN_MEMORY=$(mktemp -d "/dev/shm/mmgate-test.$$.XXXXXX") || return 0
	LOGS=$IN_MEMORY/logs
}

# Those of tests that were killed.
drop_dead_logs() {
	local left pid

	for left in /dev/shm/mmgate-test.*; do
		pid=${left#/dev/shm/mmgate-test.}
		is_alive "${pid%%.*}" || rm -rf "$left"
	done
}

drop_logs() {
	[ -z "${IN_MEMORY-}" ] || rm -rf "$IN_MEMORY"
}
