#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What people met, as real runs: the verdict names the right cause, and what
# only looks alike is not blamed on the lock.  tests/README.md has the table.
#
# How long threads wait depends on the machine and on who else uses it.  So a
# test holds the verdict to what is true on all of them: which causes may be
# named at all, which remedy must be there and before which other, which code
# makes the calls.

load helpers

setup() {
	new_logs_in_memory
}

teardown() {
	drop_logs
}

# record CMD...: under run, as a user would; with more stacks, for programs that
# make few calls: sites are estimated from samples.
record() {
	mmgate run --quiet --stacks every:1,slow:1ms -o "$LOGS" -- "$@" \
		>"$BATS_TEST_TMPDIR/out"
	mmgate report --format json "$LOGS" >"$BATS_TEST_TMPDIR/verdict.json"
}

case_of() {
	record "$SUBJECTS/cases" "$@"
	grep -q '^not here' "$BATS_TEST_TMPDIR/out" &&
		skip "this kernel cannot do it"
	grep -q '^done' "$BATS_TEST_TMPDIR/out"
}

# expect EXPRESSION...: each is true of the recorded verdict.
#   v the verdict, p its process, c its calls, sites those of the program;
#   answer(...) is one of these, cause(...) and remedy(...) are all there,
#   first(remedy) no other is before it but those given, named(...) are sites
expect() {
	"$PYTHON" - "$BATS_TEST_TMPDIR/verdict.json" "$@" <<-'EOP'
		import collections, json, sys
		d = json.load(open(sys.argv[1]))
		v = d["verdict"]
		p = [q for q in d["processes"] if q["pid"] == v["pid"]][0]
		c = p["calls"]
		causes = [x["cause"] for x in v["causes"]]
		remedies = [x["remedy"] for x in v["remedies"]]
		text = collections.defaultdict(str,
		    {x["remedy"]: x["text"] for x in v["remedies"]})
		why = collections.defaultdict(str,
		    {x["cause"]: x["text"] for x in v["causes"]})
		sites = {}
		for s in p["sites"]:
		    name = s["site"].split("!")[-1].split(" ")[0]
		    sites.setdefault((name, s["via"]), 0)
		    sites[name, s["via"]] += s["wait_ns"] + s["kernel_ns"]
		def answer(*a): return v["answer"] in a
		def cause(*a): return all(x in causes for x in a)
		def remedy(*a): return all(x in remedies for x in a)
		def named(*a): return all((x, None) in sites for x in a)
		def before(a, b):
		    return b not in remedies or (a in remedies and
		        remedies.index(a) < remedies.index(b))
		likely, thread = v["lost_ns"]["likely"], p["thread_ns"]
		# Nobody is told that the lock is at fault, nor to try another.
		blamed = (v["answer"] in ("yes", "partly") or
		          "lock" in remedies or "place" in remedies)
		bad = [x for x in sys.argv[2:] if not eval("(" + x + ")")]
		if bad:
		    for x in bad: print("not true:", x)
		    print(v["headline"])
		    print("lost", v["lost_ns"], "of", thread)
		    for x in v["causes"]: print(" ", x["cause"], x["text"])
		    for x in v["remedies"]: print(" ", x["remedy"], x["text"])
		    print(sites)
		    print({n: (x["count"], x["kernel_ns"]["sum"])
		           for n, x in c.items()})
		    sys.exit(1)
	EOP
}

patched() {
	"$PYTHON" - "$BATS_TEST_TMPDIR/verdict.json" <<-'EOP'
		import json, sys
		d = json.load(open(sys.argv[1]))
		sys.exit(d["processes"][0]["hooks"]["libc"] != "patched")
	EOP
}

# Causes that a load without them must not be given.
NOT_ELSEWHERE='not cause("one thread") and not cause("populate") and
	not cause("huge pages") and not cause("huge unmaps") and
	not cause("outside reader")'

# Do others use the CPUs?  So many threads as there are get less of them than
# they could.
others_run() {
	"$PYTHON" - <<-'EOP'
		import os, sys, time
		def spin():
		    cpu, wall = time.process_time(), time.monotonic()
		    while time.monotonic() - wall < 0.3:
		        pass
		    return (time.process_time() - cpu) / (time.monotonic() - wall)
		children = []
		for _ in os.sched_getaffinity(0):
		    child = os.fork()
		    if child == 0:
		        os._exit(spin() < 0.9)
		    children.append(child)
		sys.exit(not any([os.waitpid(child, 0)[1] for child in children]))
	EOP
}

# Ticks of CPU time that were used, or stolen, by others than this shell and what
# it waited for; and those of all CPUs.
cpu_ticks() {
	local user nice system idle iowait irq softirq steal mine line

	read -r _ user nice system idle iowait irq softirq steal _ </proc/stat
	read -r line <"/proc/$BASHPID/stat"
	read -r -a mine <<<"${line##*) }"
	others=$((user + nice + system + irq + softirq + steal -
		mine[11] - mine[12] - mine[13] - mine[14]))
	all=$((user + nice + system + idle + iowait + irq + softirq + steal))
}

# watch_others CMD...: runs CMD, and sets $calm unless others had a tenth of the
# CPUs meanwhile.
watch_others() {
	local others all before passed

	cpu_ticks
	before=$others
	passed=$all
	"$@"
	cpu_ticks
	calm=1
	# A tick may be charged to whom it does not belong.
	if [ $((others - before)) -gt 2 ] &&
		[ $(((others - before) * 10)) -ge $((all - passed)) ]; then
		calm=
	fi
}

# judged TRIES ALWAYS COMMAND WANTED...: runs COMMAND, after which ALWAYS is
# true; and in one of so many runs all that is wanted.  Where others have the
# CPUs, threads hardly meet, or are stopped in the middle of a call, and the
# figures show that: then it is the truth, and no try.
judged() {
	local tries=$1 always=$2 words calm disturbed=0

	read -ra words <<<"$3"
	shift 3
	while [ "$tries" -gt 0 ] && [ "$disturbed" -lt 8 ]; do
		watch_others "${words[@]}"
		if [ -n "$calm" ]; then
			tries=$((tries - 1))
			expect "$always"
		else
			disturbed=$((disturbed + 1))
			expect "$always" >"$BATS_TEST_TMPDIR/why" || continue
		fi
		expect "$@" >"$BATS_TEST_TMPDIR/why" && return
	done
	cat "$BATS_TEST_TMPDIR/why" >&2
	! others_run || skip 'others use the CPUs, so that the load is another'
	return 1
}

@test "what a run takes of the CPUs is not taken for others'" {
	spin() {
		local end=$((SECONDS + 1))

		while [ "$SECONDS" -le "$end" ]; do :; done
	}
	# What is wrongly taken for others' would be so each time.
	for _ in 1 2 3 4 5; do
		watch_others spin
		first=$calm
		watch_others "$BASH" -c "$(declare -f spin); spin"
		[ "$first$calm" != 11 ] || break
	done
	[ "$first$calm" = 11 ] || ! others_run || skip 'others use the CPUs'
	equal "$first$calm" 11
	(spin) &
	watch_others sleep 1
	wait $!
	equal "$calm" '' "another process's"
}

# queue LOAD WANTED...: its threads wait for the lock.
queue() {
	judged 3 "$NOT_ELSEWHERE" "case_of $1" \
		'answer("yes", "partly") and cause("lock")' "${@:2}"
}

# innocent LOAD EXPRESSION...: it is not the lock.  Some are so short that one
# call in which a thread lost its CPU is much of their time.
innocent() {
	judged 3 'not answer("yes")' "case_of $1" 'answer("no") and not blamed' "${@:2}"
}

# true_of COMMAND WANTED...
true_of() {
	judged 3 True "$@"
}

# --- threads that queue ---

@test "a scanner's maps queue, and its allocator's are told apart" {
	queue scan 'named("map_file", "age", "unmap_file")' \
		'c["mmap"]["gated"] == 0'
	cp "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/plain"
	patched || return 0
	expect '("keep_result", "malloc") in sites' \
		'("keep_result", "free") in sites'
	# A mutex of its own leaves these as they were: malloc is told of.
	judged 3 "$NOT_ELSEWHERE" 'case_of scan-mutex' 'remedy("malloc")' \
		'("keep_result", "malloc") in sites' \
		'("keep_result", "free") in sites'
	same "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/plain"
}

@test "a scanner with its own mutex, the gate's, and both does the same" {
	case_of scan
	cp "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/plain"
	for load in scan scan-mutex; do
		gate mutex "$SUBJECTS/cases" "$load" >"$BATS_TEST_TMPDIR/out"
		same "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/plain"
		run -0 report 'all(c[n]["gated"] + c[n]["bypassed"] ==
			c[n]["count"] for n in ("mmap", "munmap"))'
		equal "$output" True "$load: one lock for each call"
	done
}

@test "instances that are reserved, grown and dropped queue; one alone does not" {
	queue instances 'named("reserve")' 'remedy("reuse")' \
		'before("reuse", "lock")' \
		'c["mprotect"]["count"] >= 3200'
	innocent instance 'c["mprotect"]["count"] >= 2000' \
		'v["lost_ns"]["low"] < 0.02 * thread'
}

@test "slots of 4 GiB are no huge unmaps, and each call has its site" {
	true_of "record $EXAMPLES/wasm_slots -v fresh -t 4 -n 200" 'named("reserve", "protect", "release")' "$NOT_ELSEWHERE" \
		'answer("yes", "partly", "no")' 'not remedy("split")' \
		'remedy("reuse")'
}

@test "calls that exclude can have a lock that advice does not take" {
	for setting in 'lock=mutex calls=mmap,munmap,mprotect' \
		lock=mprotect:mutex; do
		read -ra words <<<"${setting//=/ }"
		mmgate run --quiet -o "$LOGS" "${words[@]/#[lc]/--&}" -- \
			"$EXAMPLES/wasm_slots" -t 4 -n 100 >/dev/null
		run -0 report 'c["madvise"]["gated"] == 0 and
			c["mprotect"]["gated"] == c["mprotect"]["count"]'
		equal "$output" True "$setting"
	done
}

@test "threads that map, write and unmap queue, and are to keep their blocks" {
	queue queries 'named("block")' 'remedy("reuse")' \
		'before("reuse", "lock") and before("reuse", "place")'
	queue blocks 'named("block")' 'remedy("reuse")' \
		'before("reuse", "lock") and before("reuse", "place")'
	innocent pool 'not remedy("reuse")' 'cause("above")'
}

@test "threads that switch access on and off queue, in one mapping or in many" {
	for load in flip flip-apart; do
		queue "$load" 'not remedy("reuse")' \
			'c["mprotect"]["count"] >= 16 * 400 * 2' \
			'max(sites, key=sites.get)[0] in ("flip", "flip_apart")'
		equal "$(report 'c["mprotect"]["errors"]')" 0
	done
	queue flip-fixed 'named("map_over")' \
		'c["mmap"]["count"] >= 16 * 100 * 2'
}

@test "two builds, by mprotect and by mapping over, are beside each other" {
	case_of flip
	mv "$LOGS" "$BATS_TEST_TMPDIR/other"
	case_of flip-fixed
	run -0 mmgate report "$BATS_TEST_TMPDIR/other" --diff "$LOGS"
	contains "$output" mprotect
	contains "$output" mmap
	contains "$output" map_over
}

@test "very many mappings that are unmapped one by one: one call for many" {
	queue slices 'named("release")' 'remedy("batch")' \
		'c["munmap"]["count"] >= 20000' 'before("batch", "lock")'
}

@test "small files that are mapped are to be read" {
	true_of "record $EXAMPLES/scan_files -t 8 -n 300" "$NOT_ELSEWHERE" 'answer("yes", "partly", "no")' \
		'named("scan_mapped")' 'remedies[0] == "read"'
	true_of "record $EXAMPLES/scan_files -t 8 -n 300 -v read" 'answer("no") and not blamed' 'not remedy("read")'
	# One thread maps, the other only writes to memory.
	true_of 'case_of files' 'named("map_small")' 'not cause("outside reader")' \
		'remedy("read")' \
		'c["munmap"]["count"] >= 4000' \
		'c["munmap"]["kernel_ns"]["p50"] > c["mmap"]["kernel_ns"]["p50"]'
}

@test "a burst of advice is one thing, with its number, size and caller" {
	true_of 'case_of burst' 'not cause("one thread")' 'named("give_back")' \
		'remedy("batch") and before("batch", "decay") and
			before("batch", "lock")' \
		'"madvise calls" in text["batch"]' \
		'"from cases!give_back" in text["batch"]' \
		'c["madvise"]["bytes"] >= 20000 * 160 * 1024'
}

@test "pages that are given back and used again are to stay a while" {
	true_of "record $EXAMPLES/purge -t 4 -n 200" 'not cause("one thread")' 'named("give_back")' \
		'remedies[0] == "decay"' '"99" in text["decay"]' \
		'answer("no", "partly")'
}

@test "mappings that another thread unmaps are told from a thread's own" {
	judged 3 "$NOT_ELSEWHERE" 'case_of handed' 'named("hand")' \
		'"by another" in text["reuse"]' 'before("reuse", "lock")'
	mv "$LOGS" "$BATS_TEST_TMPDIR/other"
	queue unmapped 'named("unmap_own")' 'remedy("reuse")' \
		'"by another" not in text["reuse"]'
	run -0 mmgate report "$BATS_TEST_TMPDIR/other" --diff "$LOGS"
	contains "$output" munmap
}

@test "files that are filled as they are mapped are why others wait" {
	true_of 'case_of fill' 'answer("indirect", "no", "partly")' 'cause("populate")' \
		'remedy("populate")' 'named("load_file")' \
		'not cause("one thread")'
	gate mutex "$SUBJECTS/cases" fill >/dev/null
	run -0 report 'c["mmap"]["bypassed_by"]["long"]'
	equal "$output" 24 'not behind the lock'
}

@test "threads that start and fill memory at once wait for no lock of ours" {
	true_of 'case_of starters' 'not cause("one thread")' \
		'("start_all", "pthread_create") in sites' \
		'sum(x["wait_ns"]["sum"] for x in c.values()) == 0'
}

@test "large buffers of malloc are of their caller, and malloc is to keep them" {
	export MALLOC_MMAP_THRESHOLD_=131072
	case_of webapp
	patched || skip 'libc cannot be hooked here'
	true_of 'case_of webapp' "$NOT_ELSEWHERE" '("serve", "malloc") in sites' \
		'("serve", "free") in sites' 'remedy("malloc")' \
		'c["mmap"]["count"] >= 800' \
		'before("malloc", "lock")' '"mmap_threshold" in text["malloc"]'
	# Its own threshold rises with what is freed.
	unset MALLOC_MMAP_THRESHOLD_
	true_of 'case_of webapp' 'c["mmap"]["count"] < 100'
}

@test "malloc_trim's calls are of who called it" {
	case_of trim
	patched || skip 'libc cannot be hooked here'
	true_of 'case_of trim' 'any(name == "trim_all" and via and "malloc_trim" in via
			for name, via in sites)' 'not cause("one thread")'
}

@test "threads that wait for fork() wait for the lock" {
	true_of 'case_of forks' "$NOT_ELSEWHERE" 'named("protect_own")' \
		'not remedy("reuse") and not remedy("batch")' \
		'answer("yes", "partly") or "fork()" in why["stalls"]'
}

@test "stacks of threads that come and go are to be kept" {
	record "$EXAMPLES/stacks" -t 8 -n 30
	patched || skip 'libc cannot be hooked here'
	true_of "record $EXAMPLES/stacks -t 8 -n 30" "$NOT_ELSEWHERE" 'remedies[0] == "stacks"' \
		'("start_child", "pthread_create") in sites'
}

@test "calls that are not wrapped are not in the way of a verdict" {
	true_of 'case_of others' 'named("call_others")' "$NOT_ELSEWHERE" \
		'set(c) <= {"mmap", "munmap", "mprotect", "madvise",
			"mremap", "brk"}' 'c["mremap"]["count"] >= 120'
}

# --- readers of /proc ---

# watched HOW: runs it until a run was not disturbed, and says so in $calm.
watched() {
	calm=
	for _ in 1 2 3; do
		record "$SUBJECTS/watched" "$1"
		expect 'not cause("one thread") and not cause("populate") and
			not cause("huge unmaps")'
		! grep -qx undisturbed "$BATS_TEST_TMPDIR/out" || calm=1
		[ -z "$calm" ] || break
	done
}

@test "stalls at equal intervals are a reader of /proc, of one's own too" {
	local seen=0

	for how in smaps own; do
		watched "$how"
		[ -n "$calm" ] || continue
		expect 'cause("outside reader") and remedy("reader")' \
			'"/proc/PID/smaps" in v["headline"]' \
			'answer("indirect", "no")' \
			'not remedy("lock") and not remedy("place")'
		seen=1
	done
	[ "$seen" = 1 ] || skip 'this machine is too busy for equal intervals'
}

@test "readers at odd times, beside page faults, or stopped, accuse no call" {
	for how in seldom rollup stopped; do
		record "$SUBJECTS/watched" "$how"
		expect 'not cause("one thread") and not cause("populate") and
			not cause("huge unmaps") and not remedy("batch")' \
			'cause("outside reader") or answer("no") or
			"reads /proc/PID/smaps" in why.get("lock", "")'
	done
}

@test "unmaps of much memory are why others wait, while all of /proc is read" {
	true_of "record $SUBJECTS/watched unmaps" 'cause("huge unmaps") and remedy("split")' \
		'answer("indirect", "no") and not remedy("lock")' \
		'named("unmap_much")'
}

# --- what only looks alike ---

@test "advice of one thread among four that only count is not the lock" {
	true_of "record $SUBJECTS/alike zap" 'answer("no") and not blamed' 'v["lost_ns"]["likely"] == 0' \
		'remedy("decay")'
}

@test "first touches of memory are not the lock, shared, apart or filled before" {
	true_of "record $SUBJECTS/alike touch" 'answer("no") and not blamed'
	innocent apart
	innocent prefilled 'cause("populate")'
}

@test "protection of much memory by one thread is not the lock, used or not" {
	innocent lengths 'cause("one thread")' \
		'c["mprotect"]["kernel_ns"]["max"] >
			10 * c["mprotect"]["kernel_ns"]["p50"]'
	run -0 mmgate report --by size "$LOGS"
	contains "$output" '64.0 MiB'
}

@test "one thread that unmaps all the time waits for nobody" {
	true_of "record $SUBJECTS/alike one" 'answer("no") and not blamed' 'cause("one thread")' \
		'v["lost_ns"]["high"] == 0'
}

@test "huge pages are why others wait, not the lock itself" {
	true_of 'case_of collapse' 'answer("indirect", "no")' 'not remedy("lock") and not remedy("place")' \
		'cause("huge pages") and remedy("huge pages")' \
		'named("collapse")'
}

@test "sleeps around a cheap unmap are above the call" {
	innocent pauses 'cause("above") and remedy("above")' \
		'sum(x["kernel_ns"]["sum"] for x in c.values()) < thread / 10'
}
