#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# report --worst: the calls that took longest, and who was there with them.

load helpers

setup() {
	new_logs
}

@test "the worst calls come with time, size, place and thread" {
	gate mutex "$SUBJECTS/mapper" -t 4 -n 200 >/dev/null
	mmgate report --worst 3 --format json "$LOGS" >"$BATS_TEST_TMPDIR/json"
	mmgate export --format jsonl "$LOGS" >"$BATS_TEST_TMPDIR/jsonl"
	run -0 "$PYTHON" - "$BATS_TEST_TMPDIR/json" "$BATS_TEST_TMPDIR/jsonl" \
		<<-'EOP'
			import json, sys
			worst = json.load(open(sys.argv[1]))["worst"]
			rows = [json.loads(line) for line in open(sys.argv[2])]
			def cost(e): return e.get("wait_ns", 0) + e["kernel_ns"]
			costs = sorted(map(cost, rows), reverse=True)
			assert [cost(w) for w in worst] == costs[:3], costs[:3]
			for w in worst:
			    same = [r for r in rows if r["time_ns"] == w["time_ns"]
			            and r["tid"] == w["tid"]]
			    assert len(same) == 1 and same[0]["op"] == w["op"]
			    assert same[0]["addr"] == w["addr"]
			    assert w["site"]
			    place = w["site"].split(" via ")[0]
			    assert not w["stack"] or place in w["stack"]
			    for kind in "before", "after":
			        o = w[kind]
			        assert len(o["calls"]) == min(o["count"], 16)
			        assert all(c["tid"] != w["tid"] for c in o["calls"])
			        assert sum(c["overlap_ns"] for c in o["calls"]) \
			            <= o["overlap_ns"] + 1
		EOP
	run -0 mmgate report --worst 3 "$LOGS"
	contains "$output" 'The calls that took longest'
	# Long lines are folded.
	contains "$(tr -s ' \n' ' ' <<<"$output")" ' of mapper'
	equal "$(grep -c '^  [123]\. .* after the start: ' <<<"$output")" 3
}

@test "a call that holds the others up is worst, and they are behind it" {
	# Two threads; one maps and fills 64 MiB while the lock is held.
	mmgate run --quiet --lock mutex --long gate -o "$LOGS" -- \
		"$SUBJECTS/alike" populate
	run -0 mmgate report --worst 12 --format json "$LOGS"
	equal "$("$PYTHON" -c 'import json, sys
w = json.load(sys.stdin)["worst"]
print(any(o["count"] for c in w for o in (c["before"], c["after"])))' \
		<<<"$output")" True 'somebody was there'
}

@test "who waited at the gate, and for whom, adds up" {
	mmgate run --quiet --lock mutex --long gate -o "$LOGS" -- \
		"$SUBJECTS/alike" populate
	mmgate report --format json "$LOGS" >"$BATS_TEST_TMPDIR/json"
	run -0 "$PYTHON" - "$BATS_TEST_TMPDIR/json" <<-'EOP'
		import json, sys
		p = json.load(open(sys.argv[1]))["processes"][0]
		waited = sum(c["wait_ns"]["sum"] for c in p["calls"].values())
		pairs = p["waits_for"]
		assert all(w["ns"] > 0 and w["waiter"]["site"] and w["holder"]["site"]
		           for w in pairs)
		assert [w["ns"] for w in pairs] == \
		    sorted((w["ns"] for w in pairs), reverse=True)
		assert sum(w["ns"] for w in pairs) <= waited * 1.01 + 1000
		ops = {w[k]["op"] for w in pairs for k in ("waiter", "holder")}
		assert ops <= set(p["calls"]) | {"others"}, ops
		assert all(c["ns"] > 0 for c in p["in_the_way"])
	EOP
}

@test "without single calls there is none that is worst" {
	gate none "$SUBJECTS/mapper" >/dev/null
	mmgate run --quiet --events off -o "$LOGS" -- "$SUBJECTS/mapper"
	run -0 mmgate report --worst 5 "$LOGS"
	contains "$output" 'No single calls are in the logs, so none is the worst: events are off (--events all keeps them)'
	run -0 mmgate report --worst 5 --format json "$LOGS"
	contains "$output" '"worst": []'
}

@test "a flight recorder of slow calls keeps the worst" {
	mmgate run --quiet --events slow:1ns -o "$LOGS" -- "$SUBJECTS/mapper" \
		-n 50
	run -0 mmgate report --worst 1000 --format json "$LOGS"
	equal "$("$PYTHON" -c 'import json, sys
d = json.load(sys.stdin)
print(len(d["worst"]) == sum(o["count"] for p in d["processes"]
	for o in p["calls"].values()))' <<<"$output")" True
}

@test "the worst calls keep their stacks, however many slow ones there were" {
	# Twelve thousand slow calls, and room for some hundreds of stacks.
	mmgate run --quiet --stacks slow:1ns --log-size 16M -o "$LOGS" -- \
		"$SUBJECTS/mapper" -t 4 -n 1000
	run -0 mmgate report --worst 10 --format json "$LOGS"
	run -0 "$PYTHON" -c 'import json, sys
d = json.load(sys.stdin)
p = d["processes"][0]
calls = sum(c["count"] for c in p["calls"].values())
assert calls > 10000, calls
# Where the worst come late, what a second may copy can be spent.
assert sum(len(w["stack"]) > 1 for w in d["worst"]) >= 8, d["worst"]
# They stand for themselves, and the others for the rest.
seen = sum(s["count"] for s in p["sites"])
assert 0.7 < seen / calls < 1.4, seen / calls' <<<"$output"
}

@test "numbers of worst calls that cannot be are refused" {
	gate none "$SUBJECTS/mapper" >/dev/null
	for number in 0 -1 x 1001 ''; do
		run -2 --separate-stderr mmgate report --worst "$number" "$LOGS"
		equal "${#stderr_lines[@]}" 1
		contains "$stderr" 'a number from 1 to 1000'
	done
}
