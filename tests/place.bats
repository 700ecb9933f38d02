#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# MMGATE_PLACE=thread: where mappings go, which are left alone, and that nothing
# else changes.

load helpers

export BATS_TEST_TIMEOUT=300

setup() {
	new_logs
}

# placed CMD...: with the library alone
placed() {
	env LD_PRELOAD="$LIBRARY" MMGATE_PLACE=thread MMGATE_HOOKS="$HOOKS" "$@"
}

# value NAME: of the line "NAME: VALUE" in $output
value() {
	sed -n "s/^$1: //p" <<<"$output"
}

@test "areas of memory of two threads never merge" {
	for threads in 2 3 40 300; do
		run -0 placed "$SUBJECTS/place_arenas" "$threads"
		equal "$(value shared)" 0 "$threads threads"
		run -0 placed "$SUBJECTS/place_arenas" "$threads" main
		equal "$(value shared)" 0 "$threads threads and the main one"
	done
	# The kernel's choice does merge them, or this shows nothing.
	run -0 "$SUBJECTS/place_arenas" 40
	holds "$(value shared)" -gt 0
}

@test "multiples of 2 MiB begin on a boundary of 2 MiB" {
	run -0 placed "$SUBJECTS/place_arenas" 8
	equal "$(value unaligned)" 0
}

@test "a thread gets its freed address space again, whoever freed it" {
	run -0 placed "$SUBJECTS/place_reuse"
	equal "$(grep -c ': same$' <<<"$output")" 8
	lacks "$output" differs
}

@test "calls whose place was chosen, or is not for others to choose, are untouched" {
	need strace
	local calls=$BATS_TEST_TMPDIR/calls

	run -0 strace -f -o "$calls" -e trace=mmap \
		-E LD_PRELOAD="$LIBRARY" -E MMGATE_PLACE=thread \
		"$SUBJECTS/place_given"
	equal "${#lines[@]}" 18 'calls that the subject names'
	for call in "${lines[@]}"; do
		grep -qF "$call" "$calls" || {
			echo "not made as it was: $call" >&2
			return 1
		}
	done
	# The ordinary one is not.
	run ! grep -F 'mmap(NULL, 126976,' "$calls"
	run -0 grep -cE 'mmap\(0x[0-9a-f]+, 126976,' "$calls"
	equal "$output" 1
}

@test "a program of one thread is not placed" {
	need strace
	local calls=$BATS_TEST_TMPDIR/calls

	run -0 strace -f -o "$calls" -e trace=mmap \
		-E LD_PRELOAD="$LIBRARY" -E MMGATE_PLACE=thread \
		"$SUBJECTS/calls" "$BATS_TEST_TMPDIR/trace"
	run ! grep -E 'mmap\(NULL, [0-9]{13}, PROT_NONE' "$calls"
}

@test "the log has the program's arguments and the kernel's result" {
	count_symbols_only
	run -0 gate none --place thread "$SUBJECTS/place_given"
	run -0 report 'p[0]["settings"]["place"]'
	equal "$output" thread
	run -0 report 'c["mmap"]["count"]'
	equal "$output" 20 'mmaps: none of the own ones'
	mmgate export --format csv "$LOGS" >"$BATS_TEST_TMPDIR/events.csv"
	run -0 "$PYTHON" - "$BATS_TEST_TMPDIR/events.csv" <<-'EOP'
		import csv, sys
		last = [r for r in csv.DictReader(open(sys.argv[1]))
		        if r["op"] == "mmap"][-1]
		print(last["length"], int(last["addr"], 16), last["result"] != "")
	EOP
	equal "$output" '126976 0 True'
}

@test "20,000 short threads leave no more areas of memory than 4,000" {
	run -0 placed "$SUBJECTS/place_churn" 4000
	local fewer
	fewer=$(value 'more areas')
	run -0 placed "$SUBJECTS/place_churn" 20000
	equal "$(value threads)" 20000
	holds "$(value 'more areas')" -le $((fewer + 100))
	# Two anchors at most for each of 512 threads.
	holds "$(value 'more areas')" -le 1200
}

@test "children of a program whose threads map are well, followed or not" {
	for follow in exec fork; do
		while read -r lock; do
			run -0 env LD_PRELOAD="$LIBRARY" MMGATE_LOCK="$lock" \
				MMGATE_PLACE=thread MMGATE_FOLLOW=$follow \
				"$SUBJECTS/place_forks" 25
			equal "$output" 'children that ended badly: 0' \
				"$lock, $follow"
		done < <(locks)
	done
}

@test "a program gets the areas of memory that the kernel allows it" {
	local most
	most=$(cat /proc/sys/vm/max_map_count)
	[ "$most" -le 300000 ] || skip "too many are allowed here: $most"
	run -0 placed "$SUBJECTS/place_limits" areas 4 warm
	holds "$(value mapped)" -ge $((most - 200)) 'of vm.max_map_count'
	equal "$(value error)" 'Cannot allocate memory'
	equal "$(value again)" yes
}

@test "large blocks of odd sizes lie side by side" {
	run -0 placed "$SUBJECTS/place_areas" 16 60 $(((2 << 20) + 4096)) 0
	equal "$(value failed)" 0
	# A stack, its guard, two anchors and the blocks.
	holds "$(value 'more areas')" -le $((16 * 5 + 10))
}

@test "half as many mappings as there may be areas are placed" {
	local most
	most=$(cat /proc/sys/vm/max_map_count)
	[ "$most" -le 300000 ] || skip "too many are allowed here: $most"
	# Four times as many: the kernel has few areas of them.
	run -0 "$SUBJECTS/place_areas" 12 $((most / 3)) 4096 2
	equal "$(value failed)" 0 'without the library'
	run -0 placed "$SUBJECTS/place_areas" 12 $((most / 3)) 4096 2
	equal "$(value failed)" 0
	# And the anchors of 12 threads, their stacks and guards.
	holds "$(value 'more areas')" -le $((most / 2 + 100))
}

@test "limits of a program's own hold as they would without the library" {
	for how in '' warm data 'data warm'; do
		# shellcheck disable=SC2086 # words
		run -0 "$SUBJECTS/place_limits" bytes 4 64 $how
		expected=$output
		# shellcheck disable=SC2086
		run -0 placed "$SUBJECTS/place_limits" bytes 4 64 $how
		equal "$output" "$expected" "limit: $how"
	done
}

@test "where memory is limited from the start, the kernel places, and that is said" {
	for limit in '-v 4000000' '-d 2000000'; do
		# shellcheck disable=SC2086 # words
		run -0 --separate-stderr sh -c "ulimit $limit; \"\$@\"" sh \
			env LD_PRELOAD="$LIBRARY" MMGATE_PLACE=thread \
			"$SUBJECTS/place_arenas" 4
		equal "${#stderr_lines[@]}" 1 'lines on stderr'
		contains "$stderr" 'MMGATE_PLACE=thread'
		contains "$stderr" 'using kernel'
		# shellcheck disable=SC2086
		run -0 sh -c "ulimit $limit; \"\$@\"" sh \
			"$BUILD/mmgate" run --quiet --place thread \
			--log-size 256K -o "$LOGS" -- "$SUBJECTS/mapper"
		run -0 report 'p[0]["settings"]["place"]'
		equal "$output" kernel
	done
}

@test "a program that locks all its memory is placed too" {
	is_root || skip 'needs root, to lock memory'
	for threads in 2 20; do
		run -0 placed "$SUBJECTS/place_locked" "$threads"
		equal "$output" "threads: $threads"
	done
}

# under_each_lock SCRIPT: plain, and placed under each lock: the same.
under_each_lock() {
	local lock

	mkdir plain
	(cd plain && sh ../"$1" >../plain.out 2>&1)
	while read -r lock; do
		mkdir "$lock"
		(cd "$lock" && LOGS=../logs.$lock && mmgate run --quiet \
			--lock "$lock" --place thread -o "$LOGS" \
			sh ../"$1" >"../$lock.out" 2>&1)
		same plain.out "$lock.out"
		run -0 diff -r plain "$lock"
	done < <(locks)
}

@test "real programs do the same with their memory placed" {
	cd "$BATS_TEST_TMPDIR"
	need xz
	need gcc
	need sqlite3
	"$PYTHON" -c 'import random; r = random.Random(5); print("\n".join(
		str(r.random()) for _ in range(400000)))' >text
	cp "$ROOT/examples/common.c" "$ROOT/examples/common.h" .
	cat >threads.py <<-'EOP'
		import hashlib, mmap, threading
		sums = [None] * 8
		def work(n):
		    total = hashlib.sha256()
		    for i in range(60):
		        m = mmap.mmap(-1, 4096 * (1 + (i * n) % 40))
		        m[:4] = b"%04d" % (i * n)
		        data = bytearray((i * 7 + n) % 256 for _ in range(3000)) * 60
		        total.update(m[:] + data)
		        m.close()
		    sums[n] = total.hexdigest()
		threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
		[t.start() for t in threads]
		[t.join() for t in threads]
		print("\n".join(sums))
	EOP
	cat >script <<-EOS
		"$PYTHON" ../threads.py
		xz -T2 -1 --block-size=1MiB -c ../text >text.xz && cksum text.xz
		xz -T2 -dc text.xz | cksum
		sqlite3 base.db 'pragma mmap_size=100000000; create table t(a, b);
			with recursive n(i) as (select 1 union all
			select i + 1 from n where i < 20000) insert into t
			select i, i * i % 1013 from n; create index k on t(b);
			select sum(a), count(distinct b) from t where b > 500;'
		gcc -O2 -pthread -c -o common.o ../common.c && cksum common.o
		"$EXAMPLES/malloc_churn" -t 4 -n 200 | grep -c ops_per_second
	EOS
	under_each_lock script
	equal "$(wc -l <plain.out)" 14 'lines of the script'
}
