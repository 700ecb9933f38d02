#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The library that HOOKS_PATCH=0 builds.

bats_require_minimum_version 1.5.0

ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
NOPATCH=$ROOT/build-nopatch
LIBRARY=$NOPATCH/libmmgate.so
export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-120}
unset "${!MMGATE_@}" LD_PRELOAD

setup_file() {
	make -C "$ROOT" --no-print-directory HOOKS_PATCH=0 \
		BUILD=build-nopatch all
}

@test "no patch file is in a library built without patching, nor a stub" {
	run -0 nm --defined-only "$LIBRARY"
	[[ $output == *' gate_enter'* ]]
	# The one that refuses, and the one that watches the exported functions.
	[ "$(sed -n 's/.* \(patch_[a-z_]*\)$/\1/p' <<<"$output" |
		sort | xargs)" = "patch_apply patch_recheck" ]
	run ! grep -E ' (write_(in_place|through_proc)|copy_code|wrap_call)$' \
		<<<"$output"
	run -0 strings "$LIBRARY"
	[[ $output != *'/proc/self/mem'* ]]
}

@test "a library built without patching makes no code writable" {
	command -v strace >/dev/null || skip 'no strace here'
	strace -o /dev/null true 2>/dev/null || skip 'strace may not trace'
	mkdir "$BATS_TEST_TMPDIR/logs"
	MMGATE_LOG=$BATS_TEST_TMPDIR/logs strace -f \
		-E LD_PRELOAD="$LIBRARY" -e trace=mprotect,openat \
		-o "$BATS_TEST_TMPDIR/trace" true
	grep -q libmmgate "$BATS_TEST_TMPDIR/trace"
	run ! grep -E 'PROT_WRITE\|PROT_EXEC|self/mem' "$BATS_TEST_TMPDIR/trace"
}

@test "a build without patching refuses hooks=libc and all, and says why" {
	for hooks in libc all; do
		run -2 "$NOPATCH/mmgate" run --hooks "$hooks" -- true
		[[ $output == *"MMGATE_HOOKS=$hooks: not in this build, which patches no code; accepted: symbols"* ]]
	done
}

@test "a build without patching hooks symbols, and its log says why" {
	"$NOPATCH/mmgate" run --quiet -o "$BATS_TEST_TMPDIR/logs" -- true
	run -0 "$NOPATCH/mmgate" report --format json "$BATS_TEST_TMPDIR/logs"
	[[ $output == *'"hooks": "symbols"'* ]]
	[[ $output == *'"libc": "symbols only: built without patching"'* ]]
}

@test "doctor of a build without patching passes, and says what is not in it" {
	run -0 "$NOPATCH/mmgate" doctor
	[[ $output =~ 'in force '\ +yes\ +'not in this build' ]]
	[[ $output =~ 'mmap '\ +yes\ +no\ +no\ +no\ +no ]]
}
