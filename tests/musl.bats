#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The library for musl, under programs that musl-gcc made.

bats_require_minimum_version 1.5.0

ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
BUILD=${BUILD:-build}
case $BUILD in /*) ;; *) BUILD=$ROOT/$BUILD ;; esac
LIBRARY=$ROOT/build-musl/libmmgate.so
LOADS=$BATS_FILE_TMPDIR/loads
MODULE=$BATS_FILE_TMPDIR/module.so
export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-120}
unset "${!MMGATE_@}" LD_PRELOAD
PYTHON=/usr/bin/python3
[ -x "$PYTHON" ] || PYTHON=$(command -v python3)

setup_file() {
	command -v musl-gcc >/dev/null || return 0
	make -C "$ROOT" --no-print-directory musl
	# Not position-independent: its addresses are known by sight.
	musl-gcc -O2 -D_GNU_SOURCE -no-pie -o "$LOADS" \
		"$ROOT/tests/subjects/loads.c"
	musl-gcc -shared -fPIC -x c -o "$MODULE" - <<<'int variable;'
}

setup() {
	command -v musl-gcc >/dev/null || skip 'no musl-gcc here'
	LOGS=$BATS_TEST_TMPDIR/logs
	mkdir "$LOGS"
}

# hooked HOOKS CMD...: with the library and a log
hooked() {
	local hooks=$1

	shift
	env LD_PRELOAD="$LIBRARY" MMGATE_HOOKS="$hooks" MMGATE_LOCK=mutex \
		MMGATE_LOG="$LOGS" "$@"
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

# traced CMD...: as hooked libc; leaves "op caught missed" lines in truth.
traced() {
	command -v strace >/dev/null || skip 'no strace here'
	strace -f -o /dev/null true 2>/dev/null || skip 'strace may not trace'
	MMGATE_HOOKS=libc MMGATE_LOCK=mutex MMGATE_LOG=$LOGS \
		strace -f -i -y -o "$BATS_TEST_TMPDIR/trace" \
		-E LD_PRELOAD="$LIBRARY" -e trace=mmap,munmap,mprotect \
		-e trace=madvise,mremap,brk,execve,clone,clone3,fork,vfork "$@"
	"$PYTHON" "$ROOT/tests/truth.py" "$BATS_TEST_TMPDIR/trace" \
		>"$BATS_TEST_TMPDIR/truth"
	cat "$BATS_TEST_TMPDIR/truth"
}

# The log has what passed, and as much of it as strace saw pass.
same_as_truth() {
	local op caught missed

	while read -r op caught missed; do
		[ "$(report "c.get('$op', {'count': 0})['count']")" = \
			"$caught" ] || {
			echo "$op: strace saw $caught and $missed past us" >&2
			report 'c' >&2
			return 1
		}
	done <"$BATS_TEST_TMPDIR/truth"
}

none_missed() {
	! awk '$3 > 0' "$BATS_TEST_TMPDIR/truth" | grep .
}

@test "the library for musl takes no more of libc than its start needs" {
	run -0 nm -D --undefined-only "$LIBRARY"
	taken=$(awk '$1 == "U" { print $NF }' <<<"$output" | sort | xargs)
	[ "$taken" = '__environ __errno_location getauxval' ]
	run -0 readelf -dW "$LIBRARY"
	[[ $output != *libc.so.6* ]]
}

# musl's functions as compilers make them, and as they must not be touched.
@test "sites: moves are kept in their order, what is not known is left alone" {
	cat >"$BATS_TEST_TMPDIR/sites.c" <<-'END'
		#include "patch.h"
		#include "wrap.h"
		#include <stdio.h>
		#include <string.h>
		#include <sys/mman.h>

		void patch_explain(struct patch_report *r, enum patch_layer l,
				   const char *what, const char *why)
		{
			(void)r, (void)l, (void)what, (void)why;
		}

		void patch_add(struct patch_batch *batch,
			       const struct patch_code *code, uint32_t ops)
		{
			(void)batch, (void)code, (void)ops;
		}

		enum op wrap_op(long number)
		{
			(void)number;
			return OP_MPROTECT;
		}

		bool libc_has_thread(void) { return true; }
		long wrap_call(long number, const uint64_t a[6], const void *by)
		{
			(void)by;
			printf("call %ld of %ld, %ld, %ld", number, (long)a[0],
			       (long)a[1], (long)a[2]);
			return 7;
		}

		static unsigned char body[4096]
			__attribute__((aligned(4096)));

		static void try(const char *name, const char *bytes, size_t size)
		{
			struct patch_code code = {0};
			const char *why;

			memset(body, 0x90, 64);
			memcpy(body, bytes, size);
			why = patch_inner_site(body, body + size, 10, &code);
			printf("%s: %s", name, why != NULL ? why : "");
			if (why == NULL) {
				long (*function)(long, long, long) =
					(long (*)(long, long, long))body;

				memcpy(code.at, code.bytes, code.length);
				printf(", %ld", function(4097, 5, 3));
			}
			puts("");
		}
		#define TRY(name, bytes) try(name, bytes, sizeof(bytes) - 1)
		#define LOAD "\xb8\x0a\0\0\0"
		#define CALL "\x0f\x05\xc3"

		int main(void)
		{
			mprotect(body, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
			TRY("none", LOAD CALL);
			/* and $-4096, %rdi; sub %rdx, %rsi */
			TRY("numbers", LOAD "\x48\x81\xe7\0\xf0\xff\xff"
			    "\x48\x29\xd6" CALL);
			/* mov %rsi, %rdi; movslq %edx, %rdx; xor %r9d, %r9d */
			TRY("registers", LOAD "\x48\x89\xf7\x48\x63\xd2"
			    "\x45\x31\xc9" CALL);
			/* mov $1, %edx; mov $2, %rsi */
			TRY("loads", LOAD "\xba\1\0\0\0"
			    "\x48\xc7\xc6\2\0\0\0" CALL);
			TRY("from rax", LOAD "\x48\x89\xc7" CALL);
			TRY("to rax", LOAD "\x48\x89\xf8" CALL);
			TRY("of memory", LOAD "\x48\x8b\x7f\x08" CALL);
			TRY("by place", LOAD "\x48\x8d\x3d\0\0\0\0" CALL);
			TRY("by flags", LOAD "\x83\xd7\x01" CALL);
			TRY("twice", LOAD CALL LOAD CALL);
			TRY("another", "\xb8\x0b\0\0\0" CALL);
			/* jmp to the move */
			TRY("jumped into", "\xeb\x05" LOAD "\x48\x89\xf7" CALL);
			TRY("cut", LOAD "\x48\x89\xf7");
			return 0;
		}
	END
	gcc -O2 -D_GNU_SOURCE -iquote "$ROOT/shim" \
		-o "$BATS_TEST_TMPDIR/sites" "$BATS_TEST_TMPDIR/sites.c" \
		"$ROOT/shim/patch_x86_64.c"
	run -0 "$BATS_TEST_TMPDIR/sites"
	cat >"$BATS_TEST_TMPDIR/expected" <<-'END'
		none: call 10 of 4097, 5, 3, 7
		numbers: call 10 of 4096, 2, 3, 7
		registers: call 10 of 5, 5, 3, 7
		loads: call 10 of 4097, 2, 1, 7
		from rax: its code is not known
		to rax: its code is not known
		of memory: its code is not known
		by place: its code is not known
		by flags: its code is not known
		twice: its code has several such calls
		another: there is no such call
		jumped into: its code is not known
		cut: its code is not known
	END
	diff "$BATS_TEST_TMPDIR/expected" <(echo "$output")
}

@test "the loader's mprotect is claimed only where its code is known" {
	cat >"$BATS_TEST_TMPDIR/claims.c" <<-'END'
		#include "patch.h"
		#include "wrap.h"
		#include <asm/unistd.h>
		#include <stdio.h>
		#include <string.h>

		const struct wrap_entry wrap_entries[WRAP_ENTRIES] = {
			{"mmap", OP_MMAP, __NR_mmap},
			[WRAP_ENTRY_mprotect] = {"mprotect", OP_MPROTECT,
						 __NR_mprotect},
		};
		const char *const patch_no_sites;
		const char patch_no_call[] = "none";
		const char patch_by_another[] = "another";
		static unsigned char code[65536], *const loader = code + 40000;
		static const char *answer;

		void *elf_symbol(const struct elf_image *image,
				 const char *name, size_t *size)
		{
			(void)image;
			if (size != NULL)
				*size = 64;
			if (name == NULL)
				return NULL;
			return strcmp(name, "dlopen") == 0 ? loader : code;
		}

		enum op wrap_op(long number)
		{
			return number == __NR_brk ? OP_BRK : OP_MPROTECT;
		}

		bool patch_is_foreign(const unsigned char *body)
		{
			return *body != 0;
		}

		void wrap_go_on(unsigned entry, void *function)
		{
			(void)entry, (void)function;
		}

		void patch_add(struct patch_batch *batch,
			       const struct patch_code *change, uint32_t ops)
		{
			(void)batch, (void)change, (void)ops;
		}

		void patch_explain(struct patch_report *r, enum patch_layer l,
				   const char *what, const char *why)
		{
			(void)r;
			if (l == LAYER_LOADER)
				printf(" (%s: %s)", what, why);
		}

		const char *patch_inner_site(unsigned char *from,
					     unsigned char *to, long number,
					     struct patch_code *change)
		{
			(void)change;
			return number == __NR_mprotect && from < loader &&
					       to > loader
				       ? answer
				       : NULL;
		}

		int main(void)
		{
			const char *const answers[] = {NULL, patch_no_call,
						       "strange"};
			struct elf_image libc = {
				.text = (uintptr_t)code,
				.text_end = (uintptr_t)(code + sizeof(code))};

			for (int i = 0; i < 3; i++) {
				struct patch_batch batch = {0};
				struct patch_report report = {0};

				answer = answers[i];
				patch_plan_libc(&libc, &batch, &report);
				patch_loader(NULL, &report);
				printf(" %s\n", report.ops[LAYER_LOADER] >>
							OP_MPROTECT & 1
						? "claimed"
						: "not claimed");
			}
			return 0;
		}
	END
	gcc -O2 -D_GNU_SOURCE -iquote "$ROOT/shim" \
		-o "$BATS_TEST_TMPDIR/claims" "$BATS_TEST_TMPDIR/claims.c" \
		"$ROOT/shim/patch_musl.c"
	run -0 "$BATS_TEST_TMPDIR/claims"
	cat >"$BATS_TEST_TMPDIR/expected" <<-'END'
		 claimed
		 claimed
		 (mprotect: strange) not claimed
	END
	diff "$BATS_TEST_TMPDIR/expected" <(echo "$output")
}

@test "all that malloc does in threads passes the gate" {
	traced "$LOADS" churn
	none_missed
	same_as_truth
	run -0 report 'c["mmap"]["count"] >= 400 and c["munmap"]["count"] >= 400'
	[ "$output" = True ]
}

@test "all that malloc does for small blocks passes the gate, brk too" {
	traced "$LOADS" blocks
	none_missed
	same_as_truth
	run -0 report 'c["brk"]["count"] > 0'
	[ "$output" = True ]
}

@test "all calls for threads pass, but the last one of a detached thread" {
	traced "$LOADS" threads
	same_as_truth
	# Four of them, and it says so itself.
	[ "$(awk '$3 > 0 && ($1 != "munmap" || $3 > 4)' \
		"$BATS_TEST_TMPDIR/truth")" = '' ]
	run -0 report 'p[0]["hooks"]["libc"]'
	[[ $output == "patched: "*"detached thread's own stack"* ]]
}

@test "all calls for files pass the gate" {
	traced "$LOADS" files
	none_missed
	same_as_truth
}

@test "all that the loader does for dlopen passes the gate" {
	traced "$LOADS" modules "$MODULE"
	none_missed
	same_as_truth
	run -0 report 'c["mmap"]["count"] > 0'
	[ "$output" = True ]
}

@test "a call by its name is counted once, as the program's" {
	traced "$LOADS" calls
	none_missed
	same_as_truth
	run -0 "$BUILD/mmgate" export --format csv "$LOGS"
	# The program lies below 16 MiB, libc does not.
	[ "$(awk -F, '$4 == "madvise" && length($15) <= 8' <<<"$output" |
		wc -l)" = 4 ]
}

@test "results and errors are libc's own, whatever is hooked" {
	"$LOADS" calls >"$BATS_TEST_TMPDIR/bare"
	LD_PRELOAD=$LIBRARY "$LOADS" calls >"$BATS_TEST_TMPDIR/passive"
	cmp "$BATS_TEST_TMPDIR/bare" "$BATS_TEST_TMPDIR/passive"
	for hooks in symbols libc all; do
		hooked "$hooks" "$LOADS" calls >"$BATS_TEST_TMPDIR/$hooks"
		cmp "$BATS_TEST_TMPDIR/bare" "$BATS_TEST_TMPDIR/$hooks"
	done
}

@test "by symbols alone the program's calls are counted, and libc's are not" {
	hooked symbols "$LOADS" large
	run -0 report 'sum(v["count"] for v in c.values())'
	[ "$output" = 0 ]
	run -0 report 'p[0]["hooks"]["libc"]'
	[ "$output" = 'symbols only: not asked for' ]
	rm "$LOGS"/*
	hooked symbols "$LOADS" calls
	run -0 report '[c[o]["count"] for o in
		("mmap", "munmap", "mprotect", "madvise", "mremap")]'
	[ "$output" = '[4, 2, 3, 4, 2]' ]
}

@test "a child that fork makes is a process of its own" {
	MMGATE_FOLLOW=fork hooked libc "$LOADS" child
	run -0 report 'sorted(e["calls"]["madvise"]["count"] for e in p)'
	[ "$output" = '[1, 10]' ]
}

@test "glibc's library leaves musl programs among the children alone" {
	# musl's loader takes it, and says nothing to constructors.
	for load in large churn threads files calls child; do
		run -0 "$BUILD/mmgate" run --quiet --lock mutex \
			-o "$LOGS/$load" -- sh -c "'$LOADS' $load; echo \$?"
		[ "${lines[-1]}" = 0 ]
		# Not in it, and not in the log.
		run -0 "$BUILD/mmgate" report --format json "$LOGS/$load"
		[[ $output != *'"loads"'* ]]
	done
}
