#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Stacks of large programs.

load helpers

setup() {
	new_logs
	run mmgate doctor
	case $output in
	*'stacks are not resolved'*) skip 'built without libunwind or elfutils' ;;
	esac
}

# Of the stacks that are not cut 99 % begin with main or a thread; $1: what
# their last frame is besides, as a pattern.
reach_the_start() {
	# Constructors run from the loader's own start, which is stripped.
	local loader='ld-linux[^;]*\+0x[0-9a-f]+;ld-linux[^;]*!_dl_init'

	run -0 mmgate export --format folded "$LOGS"
	whole=$(grep -vc ';\[cut\];' <<<"$output")
	reached=$(grep -v ';\[cut\];' <<<"$output" |
		grep -cE "^[^;]*;([^;]*!(_start|_*clone|__libc_start|_dl_start)$1|$loader)")
	holds "$whole" -ge 10 'stacks'
	# Of a dozen kinds one may be seen before it has its frame.
	holds "$reached" -ge $((whole - 1 - whole / 100)) "of $whole"
}

# What a stripped program's first frames are called: its file and a place in
# the few bytes of _start.
begin_of() {
	local entry

	entry=$(readelf -hW "$(command -v "$1")" |
		sed -n 's/.*Entry point address: *//p')
	for ((i = 0; i < 0x30; i++)); do
		printf '|%s\\+0x%x$' "$1" $((entry + i))
		printf '|%s\\+0x%x;' "$1" $((entry + i))
	done
}

@test "clamscan's untruncated stacks reach main or a thread's start" {
	need clamscan
	mkdir "$BATS_TEST_TMPDIR/db"
	printf 'mmgate-test:0:*:6d6d67617465207465737420766972757321\n' \
		>"$BATS_TEST_TMPDIR/db/test.ndb"
	mmgate run --quiet --stacks every:1,slow:1ms --stack-size 64K \
		-o "$LOGS" -- clamscan -d "$BATS_TEST_TMPDIR/db" -r \
		--no-summary "$ROOT/shim" "$ROOT/tools" >/dev/null
	reach_the_start "$(begin_of clamscan)"
}

# Its jit's frames are apart: they keep frame pointers, which lead on.
@test "node's untruncated stacks reach main or a thread's start" {
	need node
	mmgate run --quiet --stacks every:1,slow:1ms --stack-size 64K \
		-o "$LOGS" -- node -e '
		const { Worker } = require("worker_threads");
		for (let i = 0; i < 3; i++)
			new Worker("let a = []; for (let i = 0; i < 200; i++)" +
				"a.push(new ArrayBuffer(1 << 20).slice(0));",
				{ eval: true });' >/dev/null
	reach_the_start '|ld-linux[^;]*'
}

@test "functions of node have their names" {
	need node
	cat >"$BATS_TEST_TMPDIR/work.js" <<-'EOJ'
		function someWork() {
			let kept = [];
			for (let i = 0; i < 300; i++)
				kept.push(new ArrayBuffer(1 << 20).slice(0));
			return kept.length;
		}
		someWork();
	EOJ
	# It leaves a file of its own where it is run.
	cd "$BATS_TEST_TMPDIR"
	mmgate run --quiet --stacks every:1 --stack-size 64K -o "$LOGS" -- \
		node --perf-basic-prof --interpreted-frames-native-stack \
		"$BATS_TEST_TMPDIR/work.js"
	rm -f "/tmp/perf-$(report 'p[0]["pid"]').map"
	run -0 mmgate export --format folded "$LOGS"
	contains "$output" 'someWork '
}

@test "a program with many libraries: each is known" {
	need java
	cat >"$BATS_TEST_TMPDIR/T.java" <<-'EOJ'
		class T {
			public static void main(String[] a) throws Exception {
				Thread[] t = new Thread[4];
				for (int i = 0; i < t.length; i++) {
					t[i] = new Thread(() -> {
						for (int k = 0; k < 200; k++)
							java.nio.ByteBuffer.allocateDirect(1 << 20);
					});
					t[i].start();
				}
				for (Thread x : t)
					x.join();
			}
		}
	EOJ
	mmgate run --quiet --stacks every:2,slow:1ms -o "$LOGS" -- \
		java -XX:MaxDirectMemorySize=2g "$BATS_TEST_TMPDIR/T.java" >/dev/null
	run -0 report "max(sum('libjvm.so!' in s['site'] for s in e['sites'])
		for e in p) > 0"
	equal "$output" True
}
