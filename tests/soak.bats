#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What `make soak` does for long, in short; and that it can fail.

load helpers

export BATS_TEST_TIMEOUT=400

soak() {
	TMPDIR=$BATS_TEST_TMPDIR "$ROOT/tools/scripts/soak" "$@"
}

@test "a mix of programs under each lock: constant memory, nothing goes back" {
	need python3
	# Under a second each: on a busy machine less has nothing to compare.
	run soak "$BUILD" 35
	[ "$status" = 0 ] || grep -A9 FAILED <<<"$output"
	# Six programs, five checks of each.
	equal "${lines[-1]}" "$((6 * 5 * $(locks | wc -l))) passed, 0 failed"
}

@test "soak fails when the library counts nothing" {
	need python3
	need cc
	other=$BATS_TEST_TMPDIR/build
	mkdir "$other"
	ln -s "$BUILD/mmgate" "$BUILD/examples" "$BUILD/tests" "$other/"
	cc -shared -fPIC -x c -o "$other/libmmgate.so" - </dev/null
	run -1 soak "$other" 1
	contains "$output" 'no calls were counted'
	lacks "${lines[-1]}" ' 0 failed'
}
