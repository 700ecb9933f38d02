#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Other people's tests of the calls, for `make check-all`: each has the verdict
# under each lock that it has without the library.

load helpers

# The suite of python3 has an hour for each lock.
[ "$LONG_TESTS" != 1 ] || export BATS_TEST_TIMEOUT=14400

setup() {
	new_logs
	cd "$BATS_TEST_TMPDIR" || return
}

# judge CMD...: stress-ng's status and the lines in which it says what failed.
# Its own processes' numbers go.
judge() {
	local status=0

	"$@" >judged 2>&1 || status=$?
	echo "status $status"
	sed -n '/fail:\|error:\|skipped/s/\[[0-9]*\] //p' judged
}

# stress STRESSOR OP LEAST: verifies for two seconds.  The children that do the
# work are forked, so FOLLOW=fork; at least LEAST of their OPs took the lock,
# where all take it.
stress() {
	local words lock plain gated counted calls

	need stress-ng
	words=(stress-ng --verify "--$1" 1 --timeout 2)
	plain=$(judge "${words[@]}")
	while read -r lock; do
		export MMGATE_FOLLOW=fork MMGATE_CALLS=all MMGATE_LOG_TOTAL=256M
		gated=$(judge gate "$lock" "${words[@]}")
		equal "$gated" "$plain" "$1 under $lock"
		counted=count
		! always_gates "$lock" || counted=gated
		calls="sum(e['calls'].get('$2', {}).get('$counted', 0) for e in p)"
		run -0 report "$calls"
		if [ "$output" -lt "$3" ]; then # it hardly ran
			equal "$(judge gate "$lock" "${words[@]/%2/10}")" \
				"$plain" "$1 under $lock, longer"
			run -0 report "$calls"
		fi
		holds "$output" -ge "$3" "${2}s in $1 under $lock"
	done < <(locks)
}

@test "stress-ng verifies mmap as without the library" {
	stress mmap munmap 500
}

@test "stress-ng verifies mprotect as without the library" {
	stress mprotect mprotect 500
}

@test "stress-ng verifies madvise as without the library" {
	stress madvise madvise 500
}

@test "stress-ng verifies mremap as without the library" {
	stress mremap mremap 10
}

@test "stress-ng verifies brk as without the library" {
	stress brk brk 500
}

@test "stress-ng verifies fork as without the library" {
	# Its children end at once, without a call.
	stress fork mmap 1
}

@test "stress-ng verifies page faults as without the library" {
	stress fault mmap 100
}

@test "[long] each test of python3's own suite has the outcome that it has without the library" {
	takes_long
	"$PYTHON" -c 'import test.test_mmap' ||
		skip 'no test suite of python3 here'
	run -0 "$ROOT/tools/scripts/python-suite" "$BUILD"
	contains "${lines[-1]}" ' passed, 0 failed'
}
