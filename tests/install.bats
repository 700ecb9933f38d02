#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What `make install` puts in place works from there, and goes away again.

load helpers

setup() {
	new_logs
}

@test "an installed copy runs a program under its own library" {
	make -s -C "$ROOT" install BUILD="$BUILD" DESTDIR="$BATS_TEST_TMPDIR/i" \
		PREFIX=/opt/x >/dev/null
	cd /
	run -0 "$BATS_TEST_TMPDIR/i/opt/x/bin/mmgate" run --dry-run \
		-o "$LOGS" -- true
	contains "$output" "$BATS_TEST_TMPDIR/i/opt/x/lib/mmgate/libmmgate.so"
	run -0 "$BATS_TEST_TMPDIR/i/opt/x/bin/mmgate" run --quiet --lock mutex \
		-o "$LOGS" -- "$SUBJECTS/mapper" -n 10
	run -0 report 'c["munmap"]["gated"]'
	holds "$output" -ge 10
}

@test "uninstall removes all that install put there" {
	make -s -C "$ROOT" install BUILD="$BUILD" DESTDIR="$BATS_TEST_TMPDIR/i" \
		PREFIX=/opt/x >/dev/null
	make -s -C "$ROOT" uninstall BUILD="$BUILD" \
		DESTDIR="$BATS_TEST_TMPDIR/i" PREFIX=/opt/x
	equal "$(find "$BATS_TEST_TMPDIR/i" -type f)" ""
}

@test "help lists the targets that the README names" {
	run -0 make -s -C "$ROOT" help
	for target in demo check check-all deps bench install; do
		contains "$output" "make $target"
	done
}
