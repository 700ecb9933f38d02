#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The library for 64-bit ARM, in an emulator.

bats_require_minimum_version 1.5.0

ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$ROOT/$BUILD ;; esac
LIBRARY=$ROOT/build-aarch64/libmmgate.so
LOADS=$BATS_FILE_TMPDIR/loads
MODULE=$BATS_FILE_TMPDIR/module.so
ARM_CC=aarch64-linux-gnu-gcc
export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-120}
unset "${!MMGATE_@}" LD_PRELOAD
PYTHON=/usr/bin/python3
[ -x "$PYTHON" ] || PYTHON=$(command -v python3)

have() {
	command -v "$1" >/dev/null
}

setup_file() {
	have "$ARM_CC" && have qemu-aarch64 || return 0
	make -C "$ROOT" --no-print-directory aarch64
	"$ARM_CC" -O2 -D_GNU_SOURCE -pthread -o "$LOADS" \
		"$ROOT/tests/subjects/loads.c"
	"$ARM_CC" -shared -fPIC -x c -o "$MODULE" - <<<'int variable;'
}

setup() {
	have "$ARM_CC" || skip "no $ARM_CC here"
	have qemu-aarch64 || skip 'no qemu-aarch64 here'
	LOGS=$BATS_TEST_TMPDIR/logs
	mkdir "$LOGS"
}

emulated() {
	qemu-aarch64 -L /usr/aarch64-linux-gnu "$@"
}

# hooked HOOKS CMD...: with the library and a log
hooked() {
	local hooks=$1

	shift
	emulated -E LD_PRELOAD="$LIBRARY" -E MMGATE_HOOKS="$hooks" \
		-E MMGATE_LOCK=mutex -E MMGATE_LOG="$LOGS" \
		-E MALLOC_MMAP_THRESHOLD_=65536 "$@" \
		2>"$BATS_TEST_TMPDIR/errors"
}

# The value of a Python expression over the report: p the processes, c the
# calls of the first.
report() {
	"$BUILD/mmgate" report --format json "$LOGS" |
		"$PYTHON" -c "import json, sys
p = json.load(sys.stdin)['processes']
c = p[0]['calls']
print($1)"
}

@test "the library for ARM takes nothing of libc but errno, and whether it is glibc" {
	run -0 nm -D --undefined-only "$LIBRARY"
	[ "$(awk '{ sub(/@.*/, "", $NF); print $NF }' <<<"$output")" = \
		$'__errno_location\ngnu_get_libc_version' ]
}

@test "100 of 100 maps and unmaps of malloc pass the gate" {
	hooked libc "$LOADS" large
	run -0 report '[c[o]["count"] for o in ("mmap", "munmap")]'
	[ "$output" = '[100, 100]' ]
	run -0 report 'p[0]["hooks"]["libc"].split(":")[0]'
	[ "$output" = patched ]
	# The clock works, with or without a vDSO.
	run -0 report 'c["mmap"]["kernel_ns"]["p50"] > 0'
	[ "$output" = True ]
}

@test "by symbols alone none of them does" {
	hooked symbols "$LOADS" large
	run -0 report 'sum(v["count"] for v in c.values())'
	[ "$output" = 0 ]
}

@test "threads, arenas and files pass the gate" {
	hooked libc "$LOADS" churn
	run -0 report 'c["mmap"]["count"] >= 400 and c["munmap"]["count"] >= 400'
	[ "$output" = True ]
	rm "$LOGS"/*
	hooked libc "$LOADS" blocks
	run -0 report 'c["mprotect"]["count"] > 100 and c["madvise"]["count"] > 0'
	[ "$output" = True ]
	rm "$LOGS"/*
	hooked libc "$LOADS" threads
	run -0 report 'c["madvise"]["count"] >= 100'
	[ "$output" = True ]
	rm "$LOGS"/*
	hooked libc "$LOADS" files
	run -0 report 'c["mmap"]["count"] >= 100'
	[ "$output" = True ]
}

@test "results and errors are the same, whatever is hooked" {
	emulated "$LOADS" calls >"$BATS_TEST_TMPDIR/bare"
	for hooks in symbols libc all; do
		hooked "$hooks" "$LOADS" calls >"$BATS_TEST_TMPDIR/$hooks"
		cmp "$BATS_TEST_TMPDIR/bare" "$BATS_TEST_TMPDIR/$hooks"
	done
}

@test "what takes more than an entry is refused with its reason" {
	hooked all "$LOADS" modules "$MODULE"
	why='entry patches only on this architecture'
	run -0 report '[p[0]["hooks"][l] for l in ("ld.so", "syscall", "inline")]'
	[ "$output" = "['symbols only: $why', 'symbols only: $why', 'symbols only: $why']" ]
	run -0 report 'p[0]["hooks"]["libc"]'
	[ "$output" = "patched: brk: $why" ]
	run -0 report '[p[0]["coverage"][o] for o in ("brk", "mmap")]'
	[ "$output" = "['', 'symbols,libc']" ]
}

@test "code is changed where the emulator's /proc shows other memory, too" {
	hooked libc -B 0x100000000000 "$LOADS" large
	run -0 report '[c[o]["count"] for o in ("mmap", "munmap")]'
	[ "$output" = '[100, 100]' ]
}

# Version 7.2 takes any advice and leaves memory as it is; a later one may do
# better, and then nothing is said.
@test "a forked child is known even where madvise does nothing" {
	hooked libc "$LOADS" child
	run -0 report '[e["calls"]["madvise"]["count"] for e in p]'
	[ "$output" = '[1]' ]
	run ! grep -v '^mmgate: madvise does nothing here' \
		"$BATS_TEST_TMPDIR/errors"
	rm "$LOGS"/*
	hooked libc -E MMGATE_FOLLOW=fork "$LOADS" child
	run -0 report 'sorted(e["calls"]["madvise"]["count"] for e in p)'
	[ "$output" = '[1, 10]' ]
}

@test "entries: near and far, landing pads kept, others' patches left alone" {
	cat >"$BATS_TEST_TMPDIR/entries.c" <<-'END'
		#include "patch.h"
		#include <stdio.h>
		#include <string.h>
		#include <sys/mman.h>

		enum { CALL = 0xd4000001, RET = 0xd65f03c0, NOP = 0xd503201f };
		enum { BTI = 0xd503245f, PACIASP = 0xd503233f, B = 0x14000004 };
		enum { NUMBER_215 = 0xd2801ae8, NUMBER_9 = 0x52800128 };

		void patch_explain(struct patch_report *r, enum patch_layer l,
				   const char *what, const char *why)
		{
			(void)r, (void)l, (void)what, (void)why;
		}

		static int wrapper(void)
		{
			return 7;
		}

		static void try(const char *name, unsigned char *body,
				unsigned first, unsigned number, unsigned size,
				const void *to)
		{
			unsigned words[8] = {first, number, CALL, RET,
					     NOP, NOP, NOP, NOP};
			struct patch_code code = {0};
			const char *why;
			unsigned now;
			int (*function)(void) = (int (*)(void))body;

			memcpy(body, words, sizeof(words));
			why = patch_entry(body, size, 215, to, &code);
			printf("%s: %s", name, why != NULL ? why : "");
			if (why == NULL) {
				memcpy(code.at, code.bytes, code.length);
				patch_flush(&code);
				memcpy(&now, body, sizeof(now));
				printf("%u bytes, %s, %d", code.length,
				       now == BTI ? "pad" : "no pad", function());
			}
			printf("%s\n", patch_way() == PATCH_PROC_ONLY ?
				       ", guarded" : "");
		}

		static unsigned char *page_at(unsigned long at)
		{
			return mmap((void *)at, 4096,
				    PROT_READ | PROT_WRITE | PROT_EXEC,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		}

		int main(void)
		{
			unsigned char *near = page_at(0), *far = page_at(
				((unsigned long)wrapper & ~4095UL) + (1UL << 32));
			unsigned stub[2] = {0x528000e0, RET}; /* mov w0, #7 */

			memcpy(near + 1024, stub, sizeof(stub));
			try("near", near, NOP, NUMBER_215, 32, near + 1024);
			try("far", far, NOP, NUMBER_215, 32, wrapper);
			try("short", far, NOP, NUMBER_215, 12, wrapper);
			try("other call", near, NOP, NUMBER_9, 32, wrapper);
			try("foreign", near, B, NUMBER_215, 32, wrapper);
			try("bti", near, BTI, NUMBER_215, 32, near + 1024);
			try("bti far", far, BTI, NUMBER_215, 32, wrapper);
			try("paciasp", near, PACIASP, NUMBER_215, 32, near + 1024);
			return 0;
		}
	END
	"$ARM_CC" -O2 -D_GNU_SOURCE -iquote "$ROOT/shim" \
		-o "$BATS_TEST_TMPDIR/entries" "$BATS_TEST_TMPDIR/entries.c" \
		"$ROOT/shim/patch_aarch64.c"
	run -0 emulated "$BATS_TEST_TMPDIR/entries"
	cat >"$BATS_TEST_TMPDIR/expected" <<-'END'
		near: 4 bytes, no pad, 7
		far: 16 bytes, no pad, 7
		short: it is too short and too far away
		other call: its code is not known
		foreign: another library has patched it
		bti: 8 bytes, pad, 7, guarded
		bti far: 20 bytes, pad, 7, guarded
		paciasp: 8 bytes, pad, 7, guarded
	END
	diff "$BATS_TEST_TMPDIR/expected" <(echo "$output")
}

# By frame pointers: this machine's libunwind knows no other registers.
@test "stacks are copied from the caller on, and unwound here" {
	"$BUILD/mmgate" doctor | grep -q 'stacks are not resolved' &&
		skip 'built without libunwind or elfutils'
	"$ARM_CC" -O2 -g -D_GNU_SOURCE -pthread \
		-o "$BATS_TEST_TMPDIR/places" "$ROOT/tests/subjects/places.c"
	emulated -E LD_PRELOAD="$LIBRARY" -E MMGATE_LOG="$LOGS" \
		-E MMGATE_STACKS=every:1 "$BATS_TEST_TMPDIR/places" named 5 \
		2>/dev/null
	run -0 report "sorted('%s %s %d' % (s['site'].split(' ')[0], s['via'],
		s['count']) for s in p[0]['sites'] if s['calls'].get('munmap'))"
	[ "$output" = "['places!grab libc.so.6 15']" ]
	run -0 "$BUILD/mmgate" export --format folded "$LOGS"
	for caller in first second third; do
		[[ $output == *"places!main "*"places!$caller "*"places!grab "* ]]
	done
}
