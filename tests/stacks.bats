#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Which place in a program made a call: stacks that were copied, unwound and
# named.

load helpers

shopt -s extglob

setup() {
	new_logs
	PLACES=$SUBJECTS/places
	run mmgate doctor
	case $output in
	*'stacks are not resolved'*) skip 'built without libunwind or elfutils' ;;
	esac
}

# sampled WHAT...: each call of it with its stack; no more than a few dozen.
sampled() {
	gate none true
	mmgate run --quiet --stacks every:1 --hooks "$HOOKS" -o "$LOGS" -- "$@"
}

# sites: "module!function via count" of the last process, without lines, that
# made a call of the kinds in $1.
sites() {
	report "'\n'.join(sorted('%s %s %d' % (s['site'].split(' ')[0],
		s['via'] or '-', sum(n for op, n in s['calls'].items()
		if op in '$1'.split(','))) for s in p[-1]['sites']
		if set(s['calls']) & set('$1'.split(','))))"
}

build_c() {
	cc -O2 -pthread "$@" || skip 'cannot compile here'
}

@test "malloc and free are of the function that called them" {
	sampled "$PLACES" named 5
	run -0 sites mmap,munmap
	# A libc that has its frames in rbp cannot be left without our own.
	libc=$(ldd "$PLACES" | awk '$1 == "libc.so.6" { print $3 }')
	objdump -d --disassemble=malloc "$libc" | grep -q 'mov *%rsp,%rbp' &&
		skip 'this libc keeps frame pointers'
	equal "$output" "places!grab free 15
places!grab malloc 15"
}

@test "the three callers of one function are three stacks" {
	sampled "$PLACES" named 5
	run -0 mmgate export --format folded "$LOGS"
	for caller in first second third; do
		equal "$(grep -c "places!$caller .*places!grab .*;munmap " \
			<<<"$output")" 1 "stacks through $caller"
	done
}

@test "stacks that differ in addresses or processes alone read as one" {
	local program=$BATS_TEST_TMPDIR/twice

	build_c -o "$program" "$ROOT/tests/subjects/sites/twice.c"
	sampled sh -c '"$0"; "$0"' "$program"
	run -0 mmgate export --format folded "$LOGS"
	contains "$output" 'twice!twice;munmap '
	equal "$(mmgate export --format folded "$LOGS" | sed 's/ [0-9]*$//' |
		sort | uniq -d)" '' 'repeated lines'
	mmgate report --format html -o "$BATS_TEST_TMPDIR/page" "$LOGS"
	run -0 "$PYTHON" - "$BATS_TEST_TMPDIR/page" <<-'EOP'
		import re, sys
		text = open(sys.argv[1]).read()
		cells = re.findall(r"<td class=name>.*?</td>", text, re.S)
		cells = [c for c in cells if "twice!twice" in c]
		assert len(cells) == 2, cells
		for cell in cells:
		    stacks = re.findall(r"<ol class=stack>.*?</ol>", cell, re.S)
		    assert len(stacks) == 1, cell
		    assert "20 samples" in cell, cell
	EOP
}

@test "calls by symbol have no via" {
	sampled "$PLACES" direct 10
	run -0 sites mmap,munmap
	equal "$output" "places!direct - 10
places!undirect - 10"
}

@test "thread stacks are of the function that called pthread_create" {
	sampled "$PLACES" thread 10
	run -0 sites mprotect
	contains "$output" 'places!body - 10'
	contains "$output" 'places!launch pthread_create 1'
}

@test "calls on coroutine, alternate and small stacks are attributed" {
	for kind in coroutine signal small; do
		sampled "$PLACES" "$kind" 10
		run -0 sites mmap,munmap
		contains "$output" 'places!direct - 10'
		contains "$output" 'places!undirect - 10'
		run -0 report 'p[-1]["stacks"]["unresolved"]'
		equal "$output" 0 "$kind: unresolved"
	done
}

@test "a library that dlopen brought is known, and so is who opened it" {
	build_c -g -shared -fPIC -o "$BATS_TEST_TMPDIR/plugin.so" \
		"$ROOT/tests/subjects/sites/plugin.c"
	sampled "$PLACES" library 3 "$BATS_TEST_TMPDIR/plugin.so"
	run -0 sites munmap
	equal "$output" "places!from_library dlclose 3
plugin.so!give_back - 3"
	run -0 sites mprotect
	contains "$output" 'places!open_it dlopen 3'
	run -0 mmgate report --by library "$LOGS"
	contains "$output" 'plugin.so'
}

@test "a library that was replaced since names nothing" {
	local plugin=$BATS_TEST_TMPDIR/plugin.so

	build_c -g -shared -fPIC -o "$plugin" \
		"$ROOT/tests/subjects/sites/plugin.c"
	sampled "$PLACES" library 3 "$plugin"
	run -0 sites munmap
	contains "$output" 'plugin.so!give_back - 3'
	# The same code but for its build-id, elsewhere.
	sed 's/give_back/taken_back/' "$ROOT/tests/subjects/sites/plugin.c" \
		>"$BATS_TEST_TMPDIR/other.c"
	rm "$plugin"
	build_c -g -shared -fPIC -o "$plugin" "$BATS_TEST_TMPDIR/other.c"
	run -0 sites munmap
	contains "$output" 'plugin.so+0x'
	lacks "$output" 'back'
	rm "$plugin"
	run -0 sites munmap
	contains "$output" 'plugin.so+0x'
}

@test "code in an anonymous page is called jit, by its address" {
	[ "$(uname -m)" = x86_64 ] || skip 'x86-64 code'
	sampled "$PLACES" jit 10 >"$BATS_TEST_TMPDIR/out"
	address=$(head -1 "$BATS_TEST_TMPDIR/out")
	run -0 sites munmap
	equal "$output" "[jit]+$address - 10"
	run -0 mmgate export --format folded "$LOGS"
	contains "$output" "places!jit "
}

@test "a name cannot end a frame or a line of the folded stacks" {
	odd=$BATS_TEST_TMPDIR/$'a;b\nc 7'
	cp "$PLACES" "$odd"
	sampled "$odd" direct 10 >/dev/null
	run -0 mmgate export --format folded "$LOGS"
	for line in "${lines[@]}"; do
		[[ $line == 'a:b?c 7;'* ]]
	done
}

@test "code in an anonymous page has the name that a map for perf gives it" {
	[ "$(uname -m)" = x86_64 ] || skip 'x86-64 code'
	sampled "$PLACES" jit 10 $'hot\033 loop' >/dev/null
	rm "/tmp/perf-$(report 'p[-1]["pid"]').map"
	run -0 report '[(s["site"], s["count"]) for s in p[-1]["sites"]
		if "munmap" in s["calls"]]'
	equal "$output" "[('[jit]!hot? loop', 10)]"
	# The names are of the logs, and go with them.
	gate none true
	[ -e "$(echo "$LOGS.old"/*-jit)" ]
	gate none true
	equal "$(compgen -G "$LOGS*/*-jit" || true)" ''
}

@test "C++: inlined functions, exceptions and operator new" {
	need g++
	g++ -O2 -g -o "$BATS_TEST_TMPDIR/classes" \
		"$ROOT/tests/subjects/sites/classes.cc"
	sampled "$BATS_TEST_TMPDIR/classes" 10
	run -0 report "'\n'.join('%s|%s %d' % (s['site'].split(' (')[0],
		s['via'] or '-', s['count']) for s in p[-1]['sites'])"
	contains "$output" 'classes!take|- 10'
	contains "$output" 'classes!shop::Counter::~Counter|- 10'
	contains "$output" 'classes!shop::stock|operator new'
	run -0 mmgate export --format folded "$LOGS"
	contains "$output" 'classes!shop::Counter::serve (classes.cc:'
}

@test "without frame pointers, stripped: names from a separate debug file" {
	local program=$BATS_TEST_TMPDIR/bare

	need objcopy
	build_c -g -fomit-frame-pointer -o "$program" \
		"$ROOT/tests/subjects/places.c"
	objcopy --only-keep-debug "$program" "$program.debug"
	objcopy --strip-all --add-gnu-debuglink="$program.debug" "$program"
	sampled "$program" named 5
	run -0 sites mmap,munmap
	equal "$output" "bare!grab free 15
bare!grab malloc 15"
	rm "$program.debug"
	run -0 sites mmap,munmap
	equal "$(sort <<<"${output//+0x+([0-9a-f])/}")" "bare free 15
bare malloc 15"
}

@test "run takes the program's memory out of the logs, unless it is to stay" {
	local secret=not-for-others

	sampled "$PLACES" direct 10
	copies=$(stat -c %b "$LOGS"/*-*.mmgate)
	mmgate run --quiet --stacks every:1 --keep-raw -o "$LOGS" -- \
		"$PLACES" direct 10
	holds "$(stat -c %b "$LOGS"/*-*.mmgate)" -gt "$copies" 'blocks'
	run -0 sites mmap,munmap
	contains "$output" 'places!direct - 10'
	env SECRET=$secret LD_PRELOAD="$LIBRARY" true
}

# with_registers: samples in the log, and those of them with registers.
with_registers() {
	cat >"$BATS_TEST_TMPDIR/registers.c" <<-'END'
		#include <stdio.h>
		#include "record.h"
		int main(int argc, char **argv)
		{
			static struct record_header h;
			struct record_sample s;
			FILE *log = fopen(argv[argc - 1], "r");
			unsigned used = 0, kept = 0, k;

			if (!log || fread(&h, sizeof(h), 1, log) != 1 ||
			    fseek(log, (long)h.stacks.samples_at, SEEK_SET))
				return 1;
			for (unsigned i = 0; i < record_samples(&h.stacks); i++) {
				if (fread(&s, sizeof(s), 1, log) != 1)
					return 1;
				used += s.event.seq != 0;
				for (k = 0; k < RECORD_REGISTERS; k++)
					if (s.registers[k] != 0)
						break;
				kept += k < RECORD_REGISTERS;
			}
			printf("%u %u\n", used, kept);
			return 0;
		}
	END
	gcc -iquote "$ROOT/shim" -o "$BATS_TEST_TMPDIR/registers" \
		"$BATS_TEST_TMPDIR/registers.c"
	"$BATS_TEST_TMPDIR/registers" "$LOGS"/*-*.mmgate
}

@test "what lay in registers goes with the copies" {
	mmgate run --quiet --stacks every:1 --keep-raw -o "$LOGS" -- \
		"$PLACES" direct 10
	read -r used kept <<<"$(with_registers)"
	holds "$used" -ge 20 'samples'
	equal "$kept" "$used" 'with registers'
	sampled "$PLACES" direct 10
	read -r used kept <<<"$(with_registers)"
	holds "$used" -ge 20 'samples'
	equal "$kept" 0 'with registers'
}

# Each call is picked for itself; their sum is all there were.
@test "estimates of a long run add up to its calls" {
	mmgate run --quiet --stacks every:10 -o "$LOGS" -- \
		"$PLACES" direct 40000
	# Some hundred picks; a weight that is forgotten is a factor of 2.
	run -0 report '0.7 < sum(s["count"] for s in p[0]["sites"]) / 80000 < 1.4'
	equal "$output" True
	run -0 report 'p[0]["stacks"]["samples"] <= 1000'
	equal "$output" True
}

# A thread's first call is picked as often as any other.
@test "samples of threads that make a few calls each stand for all of them" {
	for how in 'stacks every:8' 'events every:8'; do
		rm -rf "$LOGS"
		mmgate run --quiet "--${how%% *}" "${how#* }" -o "$LOGS" -- \
			"$EXAMPLES/stacks" -t 4 -n 400 >/dev/null
		# Some eight hundred picks; half of them was what they stood for.
		run -0 "$PYTHON" - <<-EOP
			import json, subprocess
			r = json.loads(subprocess.check_output(["$BUILD/mmgate",
			    "report", "--format", "json", "$LOGS"]))
			p = r["processes"][0]
			calls = sum(c["count"] for c in p["calls"].values())
			events = subprocess.check_output(["$BUILD/mmgate", "export",
			    "--format", "jsonl", "$LOGS"], text=True).splitlines()
			told = (sum(json.loads(e).get("weight", 0) for e in events)
			        if "$how"[0] == "e" else
			        sum(s["count"] for s in p["sites"]))
			assert calls > 4000, calls
			assert 0.75 < told / calls < 1.33, (told, calls)
		EOP
	done
}

@test "slow calls are recorded apart, and others not" {
	mmgate run --quiet --stacks slow:3600s -o "$LOGS" -- "$PLACES" direct 10
	run -0 report 'p[0]["stacks"]["samples"]'
	equal "$output" 0
	mmgate run --quiet --stacks slow:0,every:1 -o "$LOGS" -- \
		"$PLACES" direct 10
	run -0 report 'all(s["samples"] == s["count"] for s in p[0]["sites"])'
	equal "$output" True
}

@test "without stacks the report says so, and an export has none" {
	mmgate run --quiet --stacks off -o "$LOGS" -- "$PLACES" direct 10
	run -0 mmgate report --by site "$LOGS"
	contains "$output" 'no stacks were recorded (--stacks off)'
	mmgate run --quiet --stacks off --events off -o "$LOGS" -- \
		"$PLACES" direct 10
	run -0 mmgate report --by thread "$LOGS"
	contains "$output" 'by thread: no events were recorded (--events all)'
	run -0 report 'p[0]["sites"]'
	equal "$output" '[]'
	run -0 mmgate export --format folded "$LOGS"
	equal "$output" ''
}

@test "callers have names without any stack" {
	mmgate run --quiet --stacks off -o "$LOGS" -- "$PLACES" direct 3
	run -0 mmgate export --format csv --names "$LOGS"
	equal "$(grep -c '"places!undirect (places.c:[0-9]*)",""' \
		<<<"$output")" 3
}

@test "when the library was replaced since, chains begin at the caller" {
	mkdir "$LOGS"
	cp "$LIBRARY" "$BATS_TEST_TMPDIR/old.so"
	LD_PRELOAD=$BATS_TEST_TMPDIR/old.so MMGATE_LOG=$LOGS \
		MMGATE_STACKS=every:1 "$PLACES" named 5
	rm "$BATS_TEST_TMPDIR/old.so"
	run -0 sites mmap,munmap
	equal "$output" "places!grab free 15
places!grab malloc 15"
}

# stops CMD...: the chain of each call under gdb, its own view beside ours, a
# thread and a chain a line; prints "N the same, M others".
stops() {
	mkdir -p "$LOGS"
	STOPS_FILE=$BATS_TEST_TMPDIR/stops STOPS_LIBRARY=$LIBRARY \
		STOPS_ENVIRONMENT="LD_PRELOAD=$LIBRARY
MMGATE_LOG=$LOGS
MMGATE_STACKS=every:1" \
		gdb -nx -batch -x "$ROOT/tests/stops.py" -ex run \
		--args "$@" >"$BATS_TEST_TMPDIR/gdb" 2>&1
	mmgate export --format jsonl "$LOGS" >"$BATS_TEST_TMPDIR/jsonl"
	"$PYTHON" - "$BATS_TEST_TMPDIR/stops" "$BATS_TEST_TMPDIR/jsonl" <<-'EOP'
		import collections, json, sys
		theirs, ours = [collections.defaultdict(list) for i in range(2)]
		for line in open(sys.argv[1]):
		    tid, *chain = line.split()
		    theirs[int(tid)].append(chain)
		for line in open(sys.argv[2]):
		    event = json.loads(line)
		    if "stack" in event:
		        cut = ["cut"] if event["stack_cut"] else []
		        ours[event["tid"]].append(event["stack"] + cut)
		same = others = 0
		for tid in set(theirs) | set(ours):
		    others += abs(len(theirs[tid]) - len(ours[tid]))
		    for a, b in zip(ours[tid], theirs[tid]):
		        plain = [pc.rstrip("?") for pc in b]
		        cut, a = a[-1] == "cut", [pc for pc in a if pc != "cut"]
		        n = len(a)
		        beyond = [] if cut else b[n:]
		        if n > 1 and a == plain[:n] and \
		                all(pc.endswith("?") for pc in beyond):
		            same += 1
		        else:
		            others += 1
		            print("ours", *a, "\ngdb ", *b, file=sys.stderr)
		print(same, "the same,", others, "others")
	EOP
}

@test "chains are those that gdb sees at each copy" {
	need gdb
	gdb -nx -batch -ex 'python print(1)' >/dev/null 2>&1 ||
		skip 'gdb without python'
	for kind in named thread signal coroutine; do
		rm -rf "$LOGS"
		run -0 stops "$PLACES" "$kind" 5
		contains "$output" ' the same, 0 others'
		holds "${output%% the same*}" -ge 10 "$kind: chains"
	done
	rm -rf "$LOGS"
	cat >"$BATS_TEST_TMPDIR/work.py" <<-'EOP'
		import threading
		def work():
		    return [bytearray(1 << 20) for i in range(10)]
		thread = threading.Thread(target=work)
		thread.start()
		thread.join()
		work()
	EOP
	run -0 stops "$PYTHON" "$BATS_TEST_TMPDIR/work.py"
	contains "$output" ' the same, 0 others'
	holds "${output%% the same*}" -ge 10 'chains of python3'
}

@test "untruncated stacks of python3 reach main or a thread's start" {
	sampled "$PYTHON" -c 'import json, decimal, threading
def work():
    return [bytearray(1 << 20) for i in range(50)]
threads = [threading.Thread(target=work) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()'
	run -0 mmgate export --format folded "$LOGS"
	whole=$(grep -vc ';\[cut\];' <<<"$output")
	reached=$(grep -cE '^[^;]*;[^;]*!(_start|_*clone|__libc_start)' \
		<<<"$output")
	holds $((reached * 100)) -ge $((whole * 99)) 'per cent'
	holds "$reached" -ge 10 'chains'
}
