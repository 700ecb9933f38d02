#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The heavy half of coverage.bats: runtimes, a scanner, other allocators.

load helpers
load coverage

setup() {
	need strace
	new_logs
	mkdir "$LOGS"
	cd "$BATS_TEST_TMPDIR" || return
}

@test "a JVM with threads is caught whole" {
	need java
	need javac
	cat >Work.java <<-'EOJ'
		public class Work {
			public static void main(String[] unused) throws Exception {
				Thread[] threads = new Thread[8];
				for (int i = 0; i < threads.length; i++) {
					threads[i] = new Thread(() -> {
						long sum = 0;
						for (int k = 0; k < 2000; k++)
							sum += new byte[100000].length;
						if (sum == 0)
							throw new RuntimeException();
					});
					threads[i].start();
				}
				for (Thread thread : threads)
					thread.join();
			}
		}
	EOJ
	javac Work.java
	all_caught java -Xmx256m -cp . Work
	holds "$(sed -n 's/^mprotect \([0-9]*\) .*/\1/p' "$TRUTH")" -ge 100
}

@test "node with worker threads is caught whole" {
	need node
	all_caught node -e 'const { Worker } = require("worker_threads");
		for (let i = 0; i < 4; i++)
			new Worker("let a = []; for (let i = 0; i < 1e5; i++) a.push({ i })",
				{ eval: true });'
	holds "$(sed -n 's/^mmap \([0-9]*\) .*/\1/p' "$TRUTH")" -ge 100
}

@test "clamscan is caught whole" {
	need clamscan
	mkdir db files
	printf 'Test.Pattern:0:*:6d6d676174652d74657374\n' >db/own.ndb
	printf 'mmgate-test\n' >files/bad
	head -c 3000000 /dev/zero >files/large
	traced libc "$LIBRARY" sh -c 'clamscan -d db -r files || [ $? = 1 ]'
	contains "$(cat out)" 'Infected files: 1'
	equal "$(cat "$MISSED")" '' 'missed calls'
}

# allocator GLOB: the library of another malloc; sets ALLOCATOR.
allocator() {
	local found

	found=$(compgen -G "/usr/lib*/$1" || compgen -G "/usr/lib/*/$1") ||
		skip "no $1 here"
	ALLOCATOR=${found%%$'\n'*}
}

# around HOOKS GLOB: an allocator before and behind the library.
around() {
	allocator "$2"
	for list in "$LIBRARY:$ALLOCATOR" "$ALLOCATOR:$LIBRARY"; do
		rm -rf "$LOGS"
		mkdir "$LOGS"
		all_caught_with "$1" "$list" "$SUBJECTS/libc_calls" churn
		rm -rf "$LOGS"
		mkdir "$LOGS"
		all_caught_with "$1" "$list" "$SUBJECTS/libc_calls" threads
	done
}

@test "jemalloc's calls are caught whole, before and behind it" {
	around libc 'libjemalloc.so.2'
}

@test "mimalloc's calls are caught whole, before and behind it" {
	around libc 'libmimalloc.so.*'
}

@test "tcmalloc's calls, which it makes by syscall(), are caught by hooks=all" {
	around all 'libtcmalloc_minimal.so.4'
}
