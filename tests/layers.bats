#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The order of files is written down once, and kept.

load helpers

setup() {
	cp -R "$ROOT/Makefile" "$ROOT/tests" "$ROOT/shim" "$ROOT/tools" \
		"$BATS_TEST_TMPDIR"
	cd "$BATS_TEST_TMPDIR" || return
	unset MAKEFLAGS MAKELEVEL
}

layers() {
	make --no-print-directory check-layers
}

@test "the files as they are keep their order" {
	run -0 layers
	equal "$output" ''
}

@test "an upward include in shim/ is refused and named" {
	sed -i '1a #include "gate.h"' shim/text.c
	run -2 --separate-stderr layers
	contains "$output" 'shim/text.c includes gate.h, which is above it'
}

@test "an upward include in tools/ is refused and named" {
	sed -i '1a #include "launch.h"' tools/units.h
	run -2 --separate-stderr layers
	contains "$output" 'tools/units.h includes launch.h, which is above it'
}

@test "tools/ may not use what shim/ does not share" {
	sed -i '1a #include "gate.h"' tools/cmd_run.c
	run -2 --separate-stderr layers
	contains "$output" 'tools/cmd_run.c includes gate.h'
}

@test "shim/ may not use tools/" {
	sed -i '1a #include "units.h"' shim/init.c
	run -2 --separate-stderr layers
	contains "$output" 'shim/init.c includes units.h'
}

@test "no include goes around by a path" {
	sed -i '1a #include "../tools/units.h"' shim/init.c
	run -2 --separate-stderr layers
	contains "$output" 'shim/init.c includes ../tools/units.h'
}

@test "a file without a place in the order is refused" {
	echo >shim/stray.c
	run -2 --separate-stderr layers
	contains "$output" 'shim/stray.c has no layer'
}
