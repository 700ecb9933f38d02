#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The heavy programs, for `make check-all`: runtimes, a scanner, allocators.

load helpers

export BATS_TEST_TIMEOUT=400

setup() {
	new_logs
	cd "$BATS_TEST_TMPDIR" || return
}

# like_plain CMD...: the same output and status under each lock as without.
# What goes to stderr is the program's own business: runtimes put times there.
like_plain() {
	local lock status expected=0

	"$@" >plain.out 2>plain.err || expected=$?
	while read -r lock; do
		status=0
		gate "$lock" "$@" >"$lock.out" 2>"$lock.err" || status=$?
		if [ "$status" != "$expected" ]; then
			cat "$lock.err" >&2
			equal "$status" "$expected" "status under $lock"
		fi
		same plain.out "$lock.out"
		run -0 mmgate report --format json "$LOGS"
	done < <(locks)
}

@test "a JVM with threads that fill and drop memory" {
	need java
	need javac
	cat >Main.java <<-'EOJ'
		import java.util.*;
		import java.util.concurrent.*;

		public class Main {
			static long work(int n) {
				long sum = n;
				List<byte[]> kept = new ArrayList<>();
				for (int i = 0; i < 300; i++) {
					byte[] part = new byte[64 * 1024 + n * 8 + i];
					Arrays.fill(part, (byte) (i * 7 + n));
					kept.add(part);
					if (kept.size() > 40)
						kept.subList(0, 20).clear();
					for (byte[] k : kept)
						sum = sum * 31 + k[k.length - 1] + k.length;
				}
				return sum;
			}

			public static void main(String[] args) throws Exception {
				ExecutorService pool = Executors.newFixedThreadPool(8);
				List<Future<Long>> sums = new ArrayList<>();
				for (int n = 0; n < 16; n++) {
					final int number = n;
					sums.add(pool.submit(() -> work(number)));
				}
				for (Future<Long> sum : sums)
					System.out.println(sum.get());
				pool.shutdown();
				System.gc();
				System.exit(9);
			}
		}
	EOJ
	like_plain java -Xmx256m Main.java
	equal "$(wc -l <plain.out)" 16
	run -0 report 'sum(o["count"] for e in p for o in e["calls"].values())'
	holds "$output" -gt 100 'calls that the report has'
	# Another collector commits and gives back by other calls.
	javac Main.java
	like_plain java -XX:+UseParallelGC -Xmx128m -Xms8m Main
}

@test "node with worker threads" {
	need node
	cat >main.js <<-'EOJ'
		const { Worker, isMainThread, parentPort, workerData } =
			require("worker_threads");
		if (isMainThread) {
			const sums = new Array(6);
			let left = sums.length;
			for (let n = 0; n < sums.length; n++) {
				const worker = new Worker(__filename, { workerData: n });
				worker.on("message", sum => { sums[n] = sum; });
				worker.on("exit", code => {
					if (code !== 0) process.exit(1);
					if (--left === 0) {
						console.log(sums.join("\n"));
						process.exitCode = 5;
					}
				});
			}
		} else {
			const source = new WebAssembly.Memory({ initial: 1, maximum: 64 });
			let sum = workerData;
			for (let i = 0; i < 60; i++) {
				if (i % 2 === 0) source.grow(1);
				const part = new Uint32Array(50000 + i).fill(i * 7 + workerData);
				sum = (sum * 31 + part[part.length - 1] + part.length +
					source.buffer.byteLength) % 1000000007;
				JSON.parse(JSON.stringify({ list: Array(500).fill({ i }) }));
			}
			parentPort.postMessage(sum);
		}
	EOJ
	like_plain node main.js
	equal "$(wc -l <plain.out)" 6
	run -0 report 'sum(o["count"] for e in p for o in e["calls"].values())'
	holds "$output" -gt 50 'calls that the report has'
}

@test "clamscan on a directory, with a signature of our own" {
	need clamscan
	mkdir files
	for i in $(seq 30); do
		head -c $((i * 5000)) "$(type -P bash)" >"files/part$i"
	done
	echo 'mmgate looks for this line' >files/bad
	cp files/bad files/worse
	echo more >>files/worse
	printf 'Test.OfOurs:%s:%s\n' "$(md5sum <files/bad | cut -d' ' -f1)" \
		"$(stat -c %s files/bad)" |
		awk -F: '{ print $2 ":" $3 ":" $1 }' >ours.hdb
	printf 'Test.Line:0:*:%s\n' "$(printf 'mmgate looks for' |
		od -An -tx1 | tr -d ' \n')" >ours.ndb
	mkdir signatures
	mv ours.hdb ours.ndb signatures/
	like_plain clamscan --no-summary --database=signatures -r files
	equal "$(grep -c FOUND plain.out)" 2
}

allocators() {
	local glob

	for glob in libjemalloc.so.2 'libmimalloc.so.*' \
		libtcmalloc_minimal.so.4; do
		compgen -G "/usr/lib/*/$glob" || compgen -G "/usr/lib*/$glob" ||
			:
	done | sort -u
}

@test "other allocators, preloaded before and after the library" {
	seen=0
	while read -r allocator; do
		while read -r lock; do
			"$EXAMPLES/malloc_churn" -t 2 -n 20 >/dev/null
			LD_PRELOAD=$allocator run -0 gate "$lock" \
				"$EXAMPLES/malloc_churn" -t 4 -n 50
			contains "$output" ops_per_second:
			run -0 env LD_PRELOAD="$allocator:$LIBRARY" \
				MMGATE_LOCK="$lock" \
				"$EXAMPLES/malloc_churn" -t 4 -n 50
			contains "$output" ops_per_second:
			LD_PRELOAD=$allocator run -0 gate "$lock" "$PYTHON" -c '
import threading
def work():
    for i in range(50):
        x = [bytes(100000 + i) for _ in range(20)]
threads = [threading.Thread(target=work) for _ in range(6)]
for t in threads: t.start()
for t in threads: t.join()
print("done")'
			equal "$output" 'done' "$allocator under $lock"
			# A child in the middle of it all.
			LD_PRELOAD=$allocator run -0 env \
				LD_PRELOAD="$LIBRARY:$allocator" \
				MMGATE_LOCK="$lock" MMGATE_FOLLOW=fork \
				"$SUBJECTS/forks" 200
			equal "$output" 'children: 200' "$allocator, $lock"
		done < <(locks)
		seen=$((seen + 1))
	done < <(allocators)
	[ "$seen" -gt 0 ] || skip 'no other allocator here'
}

@test "a C++ compiler's own programs, from one library to the next" {
	need g++
	cat >main.cc <<-'EOC'
		#include <iostream>
		#include <stdexcept>
		#include <thread>
		#include <vector>
		int main()
		{
			std::vector<std::thread> threads;
			std::vector<long> sums(4);
			for (int n = 0; n < 4; n++)
				threads.emplace_back([n, &sums] {
					for (int i = 0; i < 2000; i++) {
						std::vector<int> v(1000 + i, n);
						try {
							sums[n] += v.at(i % 2 ? 5 : 100000);
						} catch (const std::out_of_range &) {
							sums[n] += 7;
						}
					}
				});
			for (auto &t : threads)
				t.join();
			for (long sum : sums)
				std::cout << sum << '\n';
		}
	EOC
	like_plain sh -c 'g++ -O1 -pthread -o main main.cc && ./main'
	equal "$(wc -l <plain.out)" 4
}
