#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What works here and for a given program is said before and after, and where
# code may not be changed the program runs all the same.

# Each test is a subshell; bats sets stderr and stderr_lines.
# shellcheck disable=SC2030,SC2031,SC2154

load helpers

setup_file() {
	compile() {
		"${CC:-cc}" -D_GNU_SOURCE -O2 -fPIC -shared "$@"
	}
	export TOYS=$BATS_FILE_TMPDIR
	compile -Wl,-z,initfirst -o "$TOYS/first.so" \
		"$BATS_TEST_DIRNAME/subjects/preload/patcher.c"
	compile -o "$TOYS/later.so" \
		"$BATS_TEST_DIRNAME/subjects/preload/patcher.c"
	compile -Wl,-z,initfirst -o "$TOYS/sealer.so" \
		"$BATS_TEST_DIRNAME/subjects/preload/sealer.c"
}

setup() {
	new_logs
}

# row OP: its cells in the matrix that `doctor` printed into $output.
row() {
	awk -v op="$1" '$1 == op && NF == 6 { print $2, $3, $4, $5, $6 }' \
		<<<"$output"
}

# is_row OP CELL...
is_row() {
	equal "$(row "$1")" "${*:2}" "row of $1"
}

# Skips when this kernel or this user cannot forbid it.
may_deny() {
	local status=0

	"$SUBJECTS/deny" "$1" true 2>"$BATS_TEST_TMPDIR/why" || status=$?
	[ "$status" != 77 ] || skip "cannot forbid: $(<"$BATS_TEST_TMPDIR/why")"
}

# denied WHAT CMD...: CMD under run, started by a program that forbids WHAT;
# it is the last process of the report.
denied() {
	may_deny "$1"
	run -0 --separate-stderr mmgate run -o "$LOGS" -- "$SUBJECTS/deny" "$@"
}

# counted OP: calls that the last process made.
counted() {
	report "p[-1]['calls'].get('$1', {'count': 0})['count']"
}

# layers: what became of libc and the loader in the last process.
layers() {
	report 'p[-1]["hooks"]["libc"] + " | " + p[-1]["hooks"]["ld.so"]'
}

# --- the matrix ---

@test "doctor makes each call in each way, and sees it" {
	[ "$(uname -m)" = x86_64 ] || skip 'inline calls are x86-64 only'
	run -0 mmgate doctor
	lacks "$output" 'changing code        refused'
	for op in mmap munmap mprotect; do
		is_row $op yes yes yes yes yes
	done
	for op in madvise mremap pkey_mprotect; do
		is_row $op yes yes - yes yes
	done
	is_row brk - yes - yes yes
}

@test "doctor shows which of its columns the settings ask for" {
	run -0 mmgate doctor
	contains "$output" "in force             yes      yes   yes    not"
	MMGATE_HOOKS=symbols run -0 mmgate doctor
	contains "$output" "in force             yes      not asked for"
	MMGATE_HOOKS=all run -0 mmgate doctor
	contains "$output" "in force             yes      yes   yes    yes"
}

@test "where code cannot be changed the matrix says no, and why" {
	may_deny mdwe,proc
	run -0 "$SUBJECTS/deny" mdwe,proc "$BUILD/mmgate" doctor
	is_row mmap yes no no no no
	is_row brk - no - no no
	contains "$output" 'changing code        refused (mprotect: Permission'
	contains "$output" \
		'libc                 symbols only: this system forbids'
	contains "$output" \
		'ld.so                symbols only: this system forbids'
}

@test "a hook that is there and does not work fails doctor" {
	# A library that loads the real one behind libc, where no symbol of
	# its own is found, and overwrites its jump in libc's mmap.
	cp "$BUILD/mmgate" "$BATS_TEST_TMPDIR"
	"${CC:-cc}" -D_GNU_SOURCE -O2 -fPIC -shared -Wl,--no-as-needed \
		-o "$BATS_TEST_TMPDIR/libmmgate.so" \
		"$BATS_TEST_DIRNAME/subjects/preload/patcher.c" "$LIBRARY" \
		-Wl,-rpath,"$BUILD"
	run -1 "$BATS_TEST_TMPDIR/mmgate" doctor
	is_row mmap no no yes yes yes
	is_row munmap no yes yes yes yes
	contains "$output" \
		'libc                 patched: mmap: another library has patched'
	contains "$output" \
		'FAILED               munmap by symbol should be caught'
}

@test "doctor leaves nothing behind" {
	TMPDIR=$BATS_TEST_TMPDIR run -0 mmgate doctor
	equal "$(ls "$BATS_TEST_TMPDIR")" ''
}

# --- what a command allows ---

# A program of its own kind, or a skip.
build() {
	"$@" -x c -o "$BATS_TEST_TMPDIR/program" - 2>/dev/null <<-'EOC' ||
		int main(void) { return 5; }
	EOC
		skip "cannot build: $*"
	PROGRAM=$BATS_TEST_TMPDIR/program
}

# refused PART: run refuses $PROGRAM with one line, before it makes anything,
# and doctor says the same; --force runs it, and says what is not covered.
refused() {
	run -125 --separate-stderr mmgate run -o "$LOGS" -- "$PROGRAM"
	equal "${#stderr_lines[@]}" 1 'lines of refusal'
	contains "$stderr" "$1"
	[ ! -e "$LOGS" ]
	run -1 mmgate doctor -- "$PROGRAM"
	contains "$output" "$1"
}

@test "a static program is refused, and runs uncovered with --force" {
	build "${CC:-cc}" -static
	refused 'is statically linked: no loader'
	run -5 --separate-stderr mmgate run --force -o "$LOGS" -- "$PROGRAM"
	contains "$stderr" "not covered: $PROGRAM itself: $PROGRAM is statically"
}

@test "a static-pie program is refused" {
	build "${CC:-cc}" -static-pie
	refused 'is a static-pie program: no loader'
}

@test "a musl program is refused" {
	need musl-gcc
	build musl-gcc
	refused 'is a musl program, and the library is built for glibc'
}

@test "a 32-bit program is refused" {
	build "${CC:-cc}" -m32 -nostdlib -Wl,-e,main
	refused 'is a 32-bit program'
}

@test "a setuid program is refused" {
	is_root || skip 'needs root'
	build "${CC:-cc}"
	chown 65534 "$PROGRAM"
	chmod u+s "$PROGRAM"
	mmgate doctor -- "$PROGRAM" >"$BATS_TEST_TMPDIR/out" &&
		skip 'this file system has no setuid'
	refused 'cannot be preloaded, as it is setuid or setgid'
}

@test "a program with file capabilities is refused to those who gain them" {
	is_root || skip 'needs root'
	need setcap
	need setpriv
	build "${CC:-cc}"
	setcap cap_net_raw=ep "$PROGRAM" 2>/dev/null ||
		skip 'this file system has no capabilities'
	chmod -R o+rX "$BATS_RUN_TMPDIR"
	run setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$BUILD/mmgate" doctor -- "$PROGRAM"
	[ "$status" != 127 ] && [ "$status" != 126 ] ||
		skip 'others cannot reach the build directory'
	contains "$output" 'cannot be preloaded, as it has file capabilities'
}

@test "a Go program's own calls are said to be unseen" {
	need go
	printf 'package main\nimport "C"\nfunc main() {}\n' \
		>"$BATS_TEST_TMPDIR/main.go"
	HOME=$BATS_TEST_TMPDIR go build -o "$BATS_TEST_TMPDIR/program" \
		"$BATS_TEST_TMPDIR/main.go" || skip 'cannot build Go with C'
	run -0 mmgate doctor -- "$BATS_TEST_TMPDIR/program"
	contains "$output" 'is a Go program'
}

# alone FLAG...: a program with a thread pointer of its own.
alone() {
	[ "$(uname -m)" = x86_64 ] || skip 'inline calls are x86-64 only'
	"${CC:-cc}" -O1 -fPIE -pie -fno-stack-protector -nostdlib \
		-o "$BATS_TEST_TMPDIR/alone" \
		"$ROOT/tests/subjects/sites/alone.c" "$@"
	LOGS=$BATS_TEST_TMPDIR/logs
	run -0 mmgate run --quiet --hooks all -o "$LOGS" -- \
		"$BATS_TEST_TMPDIR/alone"
	equal "$output" 'all good'
}

@test "a program without libc is left alone by hooks=all, and it is said" {
	alone
	run -0 report 'p[0]["hooks"]["inline"]'
	contains "$output" 'the program does not use libc'
	run -0 mmgate doctor -- "$BATS_TEST_TMPDIR/alone"
	contains "$output" 'does not use libc, only system calls of its own'
	run -0 mmgate doctor -- "$BUILD/mmgate"
	lacks "$output" 'does not use libc'
}

@test "calls under another thread pointer than libc's go by" {
	alone -Wl,--no-as-needed -lc
	run -0 report 'p[0]["hooks"]["inline"]'
	contains "$output" patched
	run -0 report 'c.get("munmap", {"count": 0})["count"]'
	equal "$output" 0
}

@test "a command that valgrind, sudo or a container starts gets its note" {
	for name in valgrind sudo docker systemd-run; do
		printf '#!/bin/sh\n' >"$BATS_TEST_TMPDIR/$name"
		chmod +x "$BATS_TEST_TMPDIR/$name"
		run -0 mmgate doctor -- "$BATS_TEST_TMPDIR/$name"
		contains "$output" "note                 "
	done
}

@test "where code cannot be changed run says beforehand what is not seen" {
	may_deny mdwe,proc
	run -0 --separate-stderr "$SUBJECTS/deny" mdwe,proc "$BUILD/mmgate" \
		run -o "$LOGS" -- "$SUBJECTS/blocks" 3
	contains "$stderr" 'note: no program may change its code here'
	equal "$output" 'blocks: 6 of 6'
	run -0 "$SUBJECTS/deny" mdwe,proc "$BUILD/mmgate" doctor -- "$PYTHON"
	contains "$output" 'libraries that it loads with RTLD_DEEPBIND'
}

@test "env is looked through: what it starts is judged, and what it loses" {
	build "${CC:-cc}" -static
	run -5 --separate-stderr mmgate run -o "$LOGS" -- env A=1 "$PROGRAM"
	contains "$stderr" 'env starts is not covered: '"$PROGRAM is statically"
	for clear in -i - --ignore-environment -uLD_PRELOAD; do
		run -0 --separate-stderr mmgate run -o "$LOGS" -- env $clear \
			/bin/true
		contains "$stderr" 'not covered: what env starts: its environ'
	done
}

# --- after the run ---

@test "run says why the command itself left no log" {
	run -0 --separate-stderr mmgate run --only other -o "$LOGS" -- true
	contains "$stderr" 'true itself: MMGATE_ONLY or MMGATE_SKIP'
	run -0 --separate-stderr mmgate run --skip 'tr*' -o "$LOGS" -- true
	contains "$stderr" 'true itself: MMGATE_ONLY or MMGATE_SKIP'
	# shellcheck disable=SC2016 # the inner shell's
	run -0 --separate-stderr mmgate run -o "$LOGS" -- sh -c \
		'rm -r "$1"' sh "$LOGS"
	contains "$stderr" 'sh itself: the directory of its log is gone'
}

@test "a script whose child is static counts as what it is" {
	build "${CC:-cc}" -static
	printf '#!/bin/sh\n%s; exit $?\n' "$PROGRAM" \
		>"$BATS_TEST_TMPDIR/script"
	chmod +x "$BATS_TEST_TMPDIR/script"
	run -5 --separate-stderr mmgate run -o "$LOGS" -- \
		"$BATS_TEST_TMPDIR/script"
	lacks "$stderr" 'itself'
	contains "$stderr" 'in 1 process:'
}

@test "a command that cannot write its log runs, and says so once" {
	is_root || skip 'needs root, to become somebody else'
	need setpriv
	chmod -R o+rX "$BATS_RUN_TMPDIR"
	cp "$LIBRARY" "$SUBJECTS/blocks" "$BATS_TEST_TMPDIR"
	chmod o+rx "$BATS_TEST_TMPDIR"/*
	mkdir -m 700 "$LOGS"
	run -0 --separate-stderr env MMGATE_LOG="$LOGS" \
		LD_PRELOAD="$BATS_TEST_TMPDIR/libmmgate.so" MMGATE_ONLY=blocks \
		setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$BATS_TEST_TMPDIR/blocks" 3
	equal "$output" 'blocks: 6 of 6'
	contains "$stderr" "no log in $LOGS: permission denied"
	equal "${#stderr_lines[@]}" 1 'lines of complaint'
}

# --- code that cannot be changed in place ---

@test "PR_SET_MDWE alone: the code is changed through /proc/self/mem" {
	denied mdwe "$SUBJECTS/blocks" 20
	equal "$output" 'blocks: 40 of 40'
	lacks "$stderr" 'not covered'
	equal "$(layers)" 'patched | patched'
	equal "$(counted mmap) $(counted munmap)" '40 40'
}

@test "PR_SET_MDWE without /proc: symbols only, and the reason is shown" {
	denied mdwe,proc "$SUBJECTS/blocks" 20
	equal "$output" 'blocks: 40 of 40'
	contains "$stderr" 'not covered in 1 of 2 processes: calls that libc'
	contains "$stderr" 'symbols only: this system forbids changing code'
	equal "$(counted mmap) $(counted munmap)" '20 20'
}

@test "a filter that refuses executable mprotect: by /proc/self/mem" {
	denied exec "$SUBJECTS/blocks" 20
	equal "$output" 'blocks: 40 of 40'
	equal "$(layers)" 'patched | patched'
	equal "$(counted mmap) $(counted munmap)" '40 40'
}

@test "the same filter without /proc: symbols only" {
	denied exec,proc "$SUBJECTS/blocks" 20
	equal "$output" 'blocks: 40 of 40'
	contains "$stderr" 'symbols only: this system forbids changing code'
	equal "$(counted mmap) $(counted munmap)" '20 20'
}

@test "without /proc alone nothing is lost" {
	denied proc "$SUBJECTS/blocks" 20
	equal "$(layers)" 'patched | patched'
	equal "$(counted mmap) $(counted munmap)" '40 40'
}

@test "under PR_SET_MDWE inline calls alone are not caught, and it is said" {
	[ "$(uname -m)" = x86_64 ] || skip 'inline calls are x86-64 only'
	may_deny mdwe
	run -0 "$SUBJECTS/deny" mdwe "$BUILD/mmgate" doctor
	contains "$output" 'changing code        allowed, by /proc/self/mem'
	is_row mmap yes yes yes yes no
	is_row madvise yes yes - yes no
	contains "$output" 'this system forbids new code'
}

# with LIBRARY...: the subject with these preloaded, its log in $LOGS.
with() {
	local list

	list=$(IFS=:; echo "$*")
	rm -rf "$LOGS" "$BATS_TEST_TMPDIR"/count.*
	mkdir "$LOGS"
	run env MMGATE_LOG="$LOGS" PATCHER_COUNT="$BATS_TEST_TMPDIR/count" \
		LD_PRELOAD="$list" "$SUBJECTS/blocks" 20
	[ "$status" != 77 ] || skip 'this kernel cannot seal memory'
	equal "$status: $output" '0: blocks: 40 of 40'
}

@test "sealed code is changed through /proc/self/mem" {
	with "$LIBRARY" "$TOYS/sealer.so"
	equal "$(layers)" 'patched | patched'
	equal "$(counted mmap)" 40
}

@test "sealed code without /proc: symbols only in libc" {
	may_deny proc
	with "$LIBRARY" "$TOYS/sealer.so"
	rm -rf "$LOGS"
	mkdir "$LOGS"
	run -0 "$SUBJECTS/deny" proc env MMGATE_LOG="$LOGS" \
		LD_PRELOAD="$LIBRARY:$TOYS/sealer.so" "$SUBJECTS/blocks" 20
	equal "$output" 'blocks: 40 of 40'
	equal "$(layers)" \
		'symbols only: this system forbids changing code | patched'
	equal "$(counted mmap)" 20
}

# --- another library that patches ---

# jumps CMD...: for each way that others write their jump, with and without a
# chain.  blocks makes 20 calls of mmap by symbol, and 20 inside libc.
jumps() {
	for PATCHER_JUMP in near far r11 rax; do
		export PATCHER_JUMP
		unset PATCHER_CHAIN
		"$@"
		export PATCHER_CHAIN=1
		"$@"
	done
}

patched_before() {
	with "$LIBRARY" "$TOYS/first.so"
	# All of them, as without us: none is lost, none comes twice.
	equal "$(<"$BATS_TEST_TMPDIR/count.blocks")" 40 'its count'
	equal "$(counted mmap) $(counted munmap)" '0 40' 'ours'
	equal "$(report 'p[0]["hooks"]["symbols"]')" False
	equal "$(layers)" \
		'patched: mmap: another library has patched it | patched'
	equal "$(report 'p[0]["coverage"]["mmap"]')" ld.so
	equal "$(report 'p[0]["coverage"]["munmap"]')" symbols,libc,ld.so
}

@test "a function that was patched before us is left alone, and it is said" {
	jumps patched_before
}

@test "run shows that another library has patched a function" {
	LD_PRELOAD=$TOYS/first.so run -0 --separate-stderr mmgate run \
		-o "$LOGS" -- "$SUBJECTS/blocks" 3
	contains "$stderr" 'mmap: another library has patched it'
	contains "$stderr" 'not all covered: calls that libc makes itself'
}

patched_later() {
	with "$LIBRARY" "$TOYS/later.so"
	equal "$(<"$BATS_TEST_TMPDIR/count.blocks")" 40 'its count'
	# A chain leads on to our jump, which it replaced.
	if [ -n "${PATCHER_CHAIN-}" ]; then
		equal "$(counted mmap) $(counted munmap)" '40 40' 'ours'
	else
		equal "$(counted mmap) $(counted munmap)" '0 40' 'ours'
	fi
	equal "$(layers)" \
		'patched: mmap: another library has patched it since | patched'
	equal "$(report 'p[0]["coverage"]["mmap"]')" ld.so
}

@test "a library that patches after us gets its calls, and the log says so" {
	jumps patched_later
}

@test "a library that takes the gate's functions for libc's is noticed" {
	jumps patched_ours
	LD_PRELOAD=$TOYS/later.so run -0 --separate-stderr mmgate run \
		-o "$LOGS" -- "$SUBJECTS/blocks" 3
	contains "$stderr" 'mmap: another library has patched it since'
}

# Ahead of us in the list, it finds our mmap when it looks for the next one.
patched_ours() {
	with "$TOYS/later.so" "$LIBRARY"
	equal "$(<"$BATS_TEST_TMPDIR/count.blocks")" 40 'its count'
	equal "$(counted mmap) $(counted munmap)" '0 40' 'ours'
	contains "$(layers)" 'mmap: another library has patched it since'
	equal "$(report 'p[0]["hooks"]["symbols"]')" False
	equal "$(report 'p[0]["coverage"]["mmap"]')" ld.so
	equal "$(report 'p[0]["coverage"]["munmap"]')" symbols,libc,ld.so
}

@test "the log of a killed process says that another library has patched since" {
	# The gate looks a tenth of a second later at the latest, if called.
	run -137 env MMGATE_LOG="$(mktemp -d "$LOGS.XXX")" \
		LD_PRELOAD="$LIBRARY:$TOYS/later.so" python3 -c 'if True:
		import mmap, os, time
		time.sleep(.2)
		mmap.mmap(-1, 4096).close()
		os.kill(os.getpid(), 9)'
	LOGS=$(echo "$LOGS".*)
	equal "$(layers)" \
		'patched: mmap: another library has patched it since | patched'
	equal "$(report 'p[0]["coverage"]["mmap"]')" ld.so
}

@test "a jump out of another library's patch does not keep later calls from it" {
	for list in "$TOYS/later.so" "$TOYS/later.so:$LIBRARY"; do
		run -0 env MMGATE_LOCK=mutex LD_PRELOAD="$list" \
			PATCHER_RAISE=3 PATCHER_COUNT="$BATS_TEST_TMPDIR/count" \
			"$SUBJECTS/leaver"
		equal "$output" '9 blocks'
		equal "$(<"$BATS_TEST_TMPDIR/count.leaver")" 10 "with $list"
	done
}

# --- programs that bring their own ---

# sanitized OPTION...: blocks, built so, under run.
sanitized() {
	"$@" -D_GNU_SOURCE -g -pthread -o "$BATS_TEST_TMPDIR/program" \
		"$BATS_TEST_DIRNAME/subjects/blocks.c" 2>/dev/null ||
		skip "cannot build: $*"
	"$BATS_TEST_TMPDIR/program" 3 >/dev/null || skip "does not run: $*"
	run -0 --separate-stderr mmgate run -o "$LOGS" -- \
		"$BATS_TEST_TMPDIR/program" 20
	equal "$output" 'blocks: 40 of 40'
	contains "$stderr" "has a sanitizer's malloc"
	holds "$(counted munmap)" -ge 20
	holds "$(counted munmap)" -le 22
}

@test "a program with gcc's AddressSanitizer runs and counts" {
	need gcc
	sanitized gcc -fsanitize=address
}

@test "a program with gcc's ThreadSanitizer runs and counts" {
	need gcc
	sanitized gcc -fsanitize=thread
}

@test "a program with clang's AddressSanitizer inside runs and counts" {
	need clang
	sanitized clang -fsanitize=address
}

@test "a program under valgrind runs, with symbols only and the reason" {
	need valgrind
	run -0 --separate-stderr mmgate run -o "$LOGS" -- valgrind -q /bin/true
	contains "$stderr" 'valgrind runs a copy of the code'
	contains "$(layers)" 'symbols only: valgrind runs a copy of the code'
}

# --- mappings ---

# How many mappings the subject has, and how many of them may be written and
# executed.
mappings() {
	run -0 "$@" "$SUBJECTS/mappings"
	MAPPINGS=${output#mappings: }
	MAPPINGS=${MAPPINGS%%,*}
	equal "${output##*: }" 0 'writable and executable'
}

@test "the library adds 12 mappings at most: 6 its own, 2 logs, 4 patched" {
	mappings env
	bare=$MAPPINGS
	mappings env -u MMGATE_PLACE LD_PRELOAD="$LIBRARY"
	holds "$MAPPINGS" -le $((bare + 6)) 'loaded'
	mappings env LD_PRELOAD="$LIBRARY" MMGATE_LOCK=mutex
	holds "$MAPPINGS" -le $((bare + 10)) 'patched'
	for hooks in libc all; do
		rm -rf "$LOGS"
		mkdir "$LOGS"
		mappings env LD_PRELOAD="$LIBRARY" MMGATE_LOG="$LOGS" \
			MMGATE_HOOKS=$hooks
		holds "$MAPPINGS" -le $((bare + 12)) "hooks=$hooks, logged"
	done
}

@test "a shell that runs /bin/true 1000 times has no more mappings after it" {
	mkdir "$LOGS"
	# shellcheck disable=SC2016 # the inner shell's
	script='count() {
			n=0
			while read -r line; do n=$((n + 1)); done </proc/$$/maps
		}
		count; a=$n; count; a=$n
		i=0
		while [ $i -lt 1000 ]; do /bin/true; i=$((i + 1)); done
		count; echo $((n - a))'
	LD_PRELOAD=$LIBRARY MMGATE_LOG=$LOGS run -0 sh -c "$script"
	equal "$output" 0
	holds "$(find "$LOGS" -name '*.mmgate' | wc -l)" -eq 1001 'logs'
}
