#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Every call of the family goes through the gate, whoever makes it: counted by
# strace, which knows where each system call instruction lies.

load helpers
load coverage

setup() {
	need strace
	new_logs
	mkdir "$LOGS"
}

@test "the test's own measure: with symbols alone malloc's calls are missed" {
	traced symbols "$LIBRARY" "$SUBJECTS/libc_calls" churn
	contains "$(cat "$MISSED")" "libc.so.6"
}

@test "malloc and free above the mmap threshold are caught" {
	all_caught "$SUBJECTS/libc_calls" churn
	holds "$(sed -n 's/^munmap \([0-9]*\) .*/\1/p' "$TRUTH")" -ge 1000
}

@test "arenas that grow and shrink are caught" {
	all_caught "$SUBJECTS/libc_calls" arenas
	holds "$(sed -n 's/^madvise \([0-9]*\) .*/\1/p' "$TRUTH")" -ge 100
}

@test "thread stacks are caught" {
	all_caught "$SUBJECTS/libc_calls" threads
	holds "$(sed -n 's/^mprotect \([0-9]*\) .*/\1/p' "$TRUTH")" -ge 300
}

@test "files that stdio maps are caught" {
	all_caught "$SUBJECTS/libc_calls" files
	holds "$(sed -n 's/^mmap \([0-9]*\) .*/\1/p' "$TRUTH")" -ge 300
}

@test "the loader's calls for dlopen and dlclose are caught" {
	all_caught "$SUBJECTS/libc_calls" modules
	holds "$(sed -n 's/^munmap \([0-9]*\) .*/\1/p' "$TRUTH")" -ge 100
}

@test "python3 with threads and imports is caught whole" {
	all_caught "$PYTHON" -c '
import ctypes, json, mmap, sqlite3, ssl, threading
def work():
    for i in range(50):
        m = mmap.mmap(-1, 65536); m[0] = 1; m.close()
        bytearray(1 << 20)
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]'
}

@test "xz with two threads is caught whole" {
	need xz
	head -c 20000000 /dev/zero >"$BATS_TEST_TMPDIR/big"
	all_caught xz -T2 -0 -c "$BATS_TEST_TMPDIR/big"
}

@test "sqlite3 with mapped files is caught whole" {
	need sqlite3
	all_caught sqlite3 "$BATS_TEST_TMPDIR/db" "PRAGMA mmap_size=100000000;
		CREATE TABLE t(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL
		SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO t SELECT
		hex(randomblob(50)) FROM n; SELECT count(*) FROM t;"
}

@test "gcc and the programs that it starts are caught whole" {
	need gcc
	all_caught gcc -D_GNU_SOURCE -O1 -c "$ROOT/tests/subjects/libc_calls.c" \
		-o "$BATS_TEST_TMPDIR/out.o"
}

@test "git is caught whole" {
	need git
	cd "$BATS_TEST_TMPDIR"
	git init -q repo
	git -C repo -c user.name=a -c user.email=a@b commit -q --allow-empty -m one
	all_caught git -C repo log --stat
}

@test "the calls of a second libc are missed, and the report says so" {
	traced libc "$LIBRARY" "$SUBJECTS/libc_calls" second
	contains "$(cat "$MISSED")" "missed mmap"
	contains "$(mmgate report "$LOGS")" "second copy of libc"
}

@test "calls by syscall() and inline ones are caught by hooks=all alone" {
	traced libc "$LIBRARY" "$SUBJECTS/own_calls"
	equal "$(sed -n 's/^missed madvise .* \([0-9]*\)$/\1/p' "$MISSED" |
		sort -n | xargs)" "100 101" "missed under hooks=libc"
	traced all "$LIBRARY" "$SUBJECTS/own_calls"
	equal "$(cat "$MISSED")" "" "missed calls"
	contains "$(cat "$BATS_TEST_TMPDIR/out")" "all good"
}

@test "libraries that are linked for another address do not trouble the start" {
	for name in one two; do
		"${CC:-cc}" -shared -fPIC -x c - -o "$BATS_TEST_TMPDIR/$name.so" \
			-Wl,-Ttext-segment=0x10000000 -Wl,-soname,$name.so \
			<<<"int $name(void) { return 1; }" 2>/dev/null ||
			skip 'the linker cannot'
	done
	run -0 env LD_PRELOAD="$LIBRARY:$BATS_TEST_TMPDIR/one.so:$BATS_TEST_TMPDIR/two.so" \
		MMGATE_LOG="$LOGS" "$SUBJECTS/mapper" -n 10
	run -0 report 'p[0]["hooks"]["libc"]'
	equal "$output" patched
}
