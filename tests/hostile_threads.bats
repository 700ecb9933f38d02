#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Programs that interrupt, stop, jump out of and end their threads in the middle
# of calls: they do what they do without the library, and nothing hangs.
#
# What broke in tools of this kind, and where it is tested here:
#   handlers that map or protect inside a call    barriers, interrupts (also
#                                                 signals.bats: a single mprotect)
#   jumps out of handlers, asynchronous cancel    stops jump, alone, cancel (and
#                                                 signals.bats: with forks)
#   collectors that stop threads and then map     stops collect
#   errno lost or clobbered                       barriers, interrupts
#   stacks too small for a wrapper's frames       stacks
#   destructors of threads and of the process     endings, the late library
#   libc's own call at a thread's end, signals
#     blocked, after thread-specific data         endings (libc and ld.so hooks)
#   priority inversion                            priorities
#   state for each thread that grows              10,000 threads (log.bats: the
#                                                 memory of as many at once)
#   the program's signals stolen                  interrupts, stops: each handler
#                                                 here is the program's, and runs
# Cannot apply: unwinders and their locks (nothing is unwound in the program),
# dynamic thread-local memory (initial-exec, no destructors: nothing to tear
# down), dlsym and malloc below a wrapper (there are none; poison.h).
#
# Stack: a wrapped call takes 640 bytes below its caller's frame at most where
# the bare one takes 120; the first call of a forked child that is followed
# (MMGATE_FOLLOW=fork), which opens a log, takes 1.5 KiB.

load helpers

export BATS_TEST_TIMEOUT=900

setup() {
	new_logs
}

# as_bare CMD...: what it prints and its status, without the library, less the
# lines that differ from run to run.
as_bare() {
	run -0 timeout 200 "$@"
	expected=$(grep -v '^longest_ms' <<<"$output")
}

# as_gated LOCK [OPTION...] -- CMD...: the same must come out with it.
as_gated() {
	local lock=$1

	shift
	run -0 timeout 200 "$BUILD/mmgate" run --quiet --lock "$lock" \
		-o "$LOGS" "$@"
	equal "$(grep -v '^longest_ms' <<<"$output")" "$expected" \
		"under $lock: $*"
	longest=$(sed -n 's/^longest_ms: //p' <<<"$output")
}

# All that the program did is in the log: nothing lost, nothing twice.  Under
# auto some calls took a lock, and each change is an event for some of 7 ops.
# balanced [CUT]: so many calls may have been cut off between the two.
balanced() {
	run -0 report '([n for n, o in c.items() if o["gated"] and
		(o["count"] < o["gated"] + o["bypassed"] or
		p[0]["settings"]["lock"] != "auto" and
		o["count"] > o["gated"] + o["bypassed"])],
		p[0]["events"]["kept"] + p[0]["events"]["overwritten"] -
		p[0]["gate_opened"] - sum(o["count"] for o in c.values()),
		7 * p[0]["lock_changes"])'
	equal "${output%%]*}" '([' 'calls neither gated nor bypassed'
	read -r more most <<<"$(tr -d ',)' <<<"${output#*], }")"
	holds "$more" -ge "-${1:-0}" 'events beside those of calls'
	holds "$more" -le "$most" 'events beside those of calls'
}

@test "write barriers at 1 kHz work while other threads map" {
	as_bare "$SUBJECTS/barriers" 2000
	while read -r lock; do
		as_gated "$lock" "$SUBJECTS/barriers" 2000
		run -0 report 'c["mprotect"]["count"] >= 2000'
		equal "$output" True
		balanced
	done < <(locks)
}

@test "handlers at 1 kHz make every call in the middle of every call, errno intact" {
	as_bare "$SUBJECTS/interrupts" 100
	while read -r lock; do
		for calls in mmap,munmap,mprotect,madvise all; do
			as_gated "$lock" --calls $calls \
				"$SUBJECTS/interrupts" 100
			balanced
			always_gates "$lock" || continue
			run -0 report 'sum(o["bypassed_by"]["reentry"]
				for o in c.values()) > 0'
			equal "$output" True 'calls from handlers, inside'
		done
	done < <(locks)
}

@test "rings that go round under handlers keep whole events" {
	as_bare "$SUBJECTS/interrupts" 100
	while read -r lock; do
		as_gated "$lock" --log-size 512K --events all \
			"$SUBJECTS/interrupts" 100
		balanced
		run -0 report 'p[0]["events"]["overwritten"] > 0'
		equal "$output" True
	done < <(locks)
}

@test "a wrapped call takes 1 KiB of stack at most, and a followed child's first 2 KiB" {
	export LD_BIND_NOW=1 # the subject's own calls are bound on this stack
	run -0 "$SUBJECTS/stacks"
	while read -r lock; do
		for wait in 1s 1us; do # 1us: the gate opens
			for hooks in symbols libc all; do
				run -0 mmgate run --quiet --lock "$lock" \
					--max-wait $wait --hooks $hooks \
					--calls all --follow fork \
					-o "$LOGS" "$SUBJECTS/stacks"
				while IFS=': ' read -r what bytes; do
					most=1024
					[ "$what" != child ] || most=2048
					holds "$bytes" -le $most \
						"$what, $lock, $wait, $hooks"
				done <<<"$output"
			done
		done
	done < <(locks)
}

@test "a collector that stops all threads by a signal can map at once, or within the limit" {
	as_bare "$SUBJECTS/stops" collect 100
	while read -r lock; do
		as_gated "$lock" --max-wait 100ms "$SUBJECTS/stops" collect 100
		# Some 100 ms for a thread that was stopped inside, and what a
		# busy machine adds.
		holds "$longest" -le 2000 "ms for a call under $lock"
		[ "$lock" = none ] || balanced
	done < <(locks)
}

@test "threads that jump out of a call or of its wait do not stop others" {
	as_bare "$SUBJECTS/stops" jump 40
	while read -r lock; do
		# The gate opens and closes many times, or hardly ever.
		for wait in 2ms 1s; do
			as_gated "$lock" --max-wait $wait \
				"$SUBJECTS/stops" jump 40
			holds "$longest" -le 3000 "ms for a call under $lock"
		done
	done < <(locks)
}

@test "a thread that jumped out of a call takes locks again" {
	as_bare "$SUBJECTS/stops" alone 5
	while read -r lock; do
		as_gated "$lock" --max-wait 1ms "$SUBJECTS/stops" alone 5
		# Each jump may leave it inside for 1,000 of its calls, of which
		# 6,000 follow each.
		run -0 report 'sum(o["bypassed_by"]["reentry"]
			for o in c.values())'
		holds "$output" -le 5000 "calls as if inside, under $lock"
	done < <(serial_locks)
}

@test "what a thread held that jumped out of a call is given back for it" {
	as_bare "$SUBJECTS/stops" advise 20
	while read -r lock; do
		as_gated "$lock" "$SUBJECTS/stops" advise 20
		# Not by another one's wait for it.
		run -0 report 'p[0]["gate_opened"]'
		equal "$output" 0 "openings under $lock"
	done < <(gating_locks)
}

@test "threads can be cancelled at any instant, and their handlers run" {
	as_bare "$SUBJECTS/stops" cancel 30
	while read -r lock; do
		for wait in 2ms 1s; do
			as_gated "$lock" --max-wait $wait \
				"$SUBJECTS/stops" cancel 30
			holds "$longest" -le 3000 "ms for a call under $lock"
		done
	done < <(locks)
}

@test "threads and the process map until their very end" {
	as_bare "$SUBJECTS/endings" 400
	while read -r lock; do
		for hooks in symbols libc; do
			as_gated "$lock" --hooks $hooks "$SUBJECTS/endings" 400
			# 400 threads in 4 rounds of destructors and once more,
			# and three at the end; stacks are libc's.
			run -0 report 'c["munmap"]["count"] >= 2003'
			equal "$output" True "$lock $hooks"
			# The last detached ones may be cut off in it.
			balanced "$([ $hooks = symbols ] || echo 8)"
			run -0 report 'p[0]["hooks"]["libc"] != "patched" or
				392 <= c["madvise"]["count"] <= 400'
			equal "$output" True 'stacks that libc gave back'
		done
	done < <(locks)
}

@test "a library whose destructor runs last of all maps in it" {
	need "${CC:-cc}"
	cd "$BATS_TEST_TMPDIR"
	# A dependency of another one: its destructor follows that one's.
	for name in late later; do
		cat >$name.c <<-EOC
			#include <sys/mman.h>
			#include <unistd.h>
			void ${name}_use(void) {}
			__attribute__((destructor)) static void end(void)
			{
				void *at = mmap(0, 4096, 3, 34, -1, 0);
				if (at != MAP_FAILED && munmap(at, 4096) == 0)
					(void)!write(1, "$name\n", sizeof("$name"));
			}
		EOC
	done
	echo 'void late_use(void); int main(void) { late_use(); return 0; }' \
		>main.c
	"${CC:-cc}" -shared -fPIC -o liblater.so later.c
	"${CC:-cc}" -shared -fPIC -Wl,--no-as-needed -o liblate.so late.c \
		-L. -llater -Wl,-rpath,"$PWD"
	"${CC:-cc}" -o main main.c -L. -llate -Wl,-rpath,"$PWD" \
		-Wl,-rpath-link,.
	as_bare ./main
	equal "$expected" 'late
later'
	while read -r lock; do
		as_gated "$lock" ./main
		run -0 bare "$lock" ./main
		equal "$output" "$expected" "without a log, $lock"
	done < <(locks)
}

@test "10,000 threads can be created and joined" {
	as_bare "$SUBJECTS/mapper" -t 5000 -n 2
	while read -r lock; do
		as_gated "$lock" "$SUBJECTS/mapper" -t 5000 -n 2
		run -0 report 'p[0]["threads"] in (10000, 10001)'
		equal "$output" True "$lock"
		balanced
	done < <(locks)
}

@test "a real-time thread waits for an ordinary one no longer than the limit" {
	run timeout 200 "$SUBJECTS/priorities" fifo
	[ "$status" != 77 ] || skip 'this user may not have real-time threads'
	equal "$status" 0
	expected='done'
	# The ordinary thread cannot run for up to 3 s while it is inside.  The
	# same can happen in the kernel, without us: so the wait is asked for.
	while read -r lock; do
		# Time that it could not have run in is not counted, and the CPU
		# that all are on may come late: in one of three.
		for _ in 1 2 3; do
			as_gated "$lock" --max-wait 100ms \
				"$SUBJECTS/priorities" fifo
			longest=$(report 'max(o["wait_ns"]["max"]
				for o in c.values())')
			run -0 mmgate export --format jsonl "$LOGS"
			openings=$(sed -n 's/.*"event":"gate opened".*"wait_ns":\([0-9]*\).*/\1/p' \
				<<<"$output" | sort -n)
			for wait in $openings; do
				holds "$wait" -ge 90000000 \
					"ns until it opened, $lock"
			done
			longest=$(printf '%s\n' "$longest" "$openings" |
				sort -n | tail -1)
			[ "$longest" -gt 400000000 ] || break
		done
		holds "$longest" -le 400000000 \
			"ns waited, or until it opened, under $lock"
	done < <(locks)
}

@test "threads of all nice values get through, and none waits past the limit" {
	run timeout 200 "$SUBJECTS/priorities" nice
	[ "$status" != 77 ] || skip 'this user may not have negative nice values'
	as_bare "$SUBJECTS/priorities" nice
	while read -r lock; do
		as_gated "$lock" "$SUBJECTS/priorities" nice
		holds "$longest" -le 3000 "ms for a call under $lock"
		balanced
	done < <(locks)
}
