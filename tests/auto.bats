#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# MMGATE_LOCK=auto: programs run right under it, and it does look for a lock.
# Which one it takes is the machine's business.

load helpers
load set

setup() {
	new_logs
	export TMPDIR=$BATS_TEST_TMPDIR
}

@test "each example runs to its end under auto" {
	local source

	for source in "$ROOT"/examples/*.c; do
		source=$(basename "$source" .c)
		case $source in common | spread) continue ;; esac
		run -0 --separate-stderr gate auto "$EXAMPLES/$source" -t 4 -n 20
		[[ ${lines[-1]} =~ ^ops_per_second: ]] ||
			equal "${lines[-1]}" 'ops_per_second: X' "$source"
		run -0 report 'p[0]["settings"]["lock"], p[0]["gate_opened"]'
		equal "$output" "('auto', 0)" "$source"
	done
}

@test "no call is lost under auto" {
	count_symbols_only
	begin --lock auto
	go
	rounds_in_two_searches
	halt
	ends
	equal "$(calls count)" "$((4 * ${LINE#rounds: }))" 'calls in all'
}

# Under auto a search takes locks for a while, whatever comes of it.
rounds_in_two_searches() {
	eventually has_gated "$PID" mmap
	run -0 set_ "$PID" lock=none
	run -0 set_ "$PID" lock=auto
	before=$(gated "$PID" mmap)
	eventually has_gated "$PID" mmap "$before"
}

gated() { # PID OP
	report "[e['calls']['$2']['gated'] for e in p if e['pid'] == $1][0]"
}

has_gated() { # PID OP [MORE THAN]
	[ "$(gated "$1" "$2")" -gt "${3-0}" ]
}

@test "auto for one op decides for that one alone" {
	count_symbols_only
	begin --lock madvise:auto
	go
	eventually has_gated "$PID" madvise
	halt
	ends
	run -0 report '{o["gated"] for n, o in c.items() if n != "madvise"}'
	equal "$output" '{0}'
	run -0 report '{p[0]["lock_now"][n] for n in c if n != "madvise"}'
	equal "$output" "{'none'}"
}

@test "what auto decided is in the log: the events agree with what it says" {
	count_symbols_only
	begin --lock mutex --events slow:10s
	go
	run -0 set_ "$PID" lock=auto
	eventually has_gated "$PID" mmap
	halt
	ends
	mmgate report --format json "$LOGS" >"$BATS_TEST_TMPDIR/json"
	mmgate export --format jsonl "$LOGS" >"$BATS_TEST_TMPDIR/jsonl"
	run -0 "$PYTHON" - "$BATS_TEST_TMPDIR/json" "$BATS_TEST_TMPDIR/jsonl" \
		<<-'EOP'
			import json, sys
			p = json.load(open(sys.argv[1]))["processes"][0]
			ops = ["mmap", "munmap", "mprotect", "madvise"]
			now = dict.fromkeys(ops, "mutex")
			changes = 0
			for line in open(sys.argv[2]):
			    e = json.loads(line)
			    if e.get("event") != "lock changed":
			        continue
			    assert e["op"] in ops, e
			    assert e["from"] == now[e["op"]], (e, now)
			    assert e["to"] in ["none", "mutex", "spin"], e
			    now[e["op"]] = e["to"]
			    changes += 1
			assert now == {op: p["lock_now"][op] for op in ops}, (now, p)
			# The four of `set`, at once, are one change.
			assert 1 <= p["lock_changes"] <= changes - 3, (p, changes)
		EOP
}

@test "a forked child begins anew" {
	count_symbols_only
	begin --lock auto --follow fork
	go
	eventually has_gated "$PID" mmap
	halt
	echo fork >&"$TO"
	get 'child: *'
	run -0 report '[(e["settings"]["lock"], e["lock_changes"],
		set(e["lock_now"].values())) for e in p if e["epoch"] == 2]'
	equal "$output" "[('auto', 0, {'none'})]"
	PID=${LINE#child: }
	go
	eventually has_gated "$PID" mmap
	halt
	ends_child
	ends
}

ends_child() {
	echo end >&"$TO"
	get 'rounds: *'
}

@test "children and threads without end are well under auto" {
	run -0 gate auto --follow fork --log-total 64M "$SUBJECTS/forks" 200
	equal "$output" 'children: 200'
	run -0 gate auto "$SUBJECTS/mapper" -t 8 -n 500
	with=$output
	run -0 "$SUBJECTS/mapper" -t 8 -n 500
	equal "$with" "$output"
}
