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

# refused FILE INCLUDE: with that line in it, check-layers names both.
refused() {
	sed -i "1a #include \"$2\"" "$1"
	run -2 --separate-stderr layers
	contains "$output" "$1 includes $2"
}

@test "an upward include in shim/ is refused and named" {
	refused shim/text.c gate.h
	contains "$output" ', which is above it'
}

@test "an upward include in tools/ is refused and named" {
	refused tools/units.h launch.h
	contains "$output" ', which is above it'
}

@test "tools/ may not use what shim/ does not share" {
	refused tools/cmd_run.c gate.h
}

@test "shim/ may not use tools/" {
	refused shim/init.c units.h
}

@test "no include goes around by a path" {
	refused shim/init.c ../tools/units.h
}

@test "a file without a place in the order is refused" {
	echo >shim/stray.c
	run -2 --separate-stderr layers
	contains "$output" 'shim/stray.c has no layer'
}
