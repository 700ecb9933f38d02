#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# report --diff: two recorded runs beside each other.

load helpers

setup() {
	count_symbols_only
	new_logs
}

two_runs() {
	gate none "$SUBJECTS/mapper" -n 100 >/dev/null
	mv "$LOGS" "$LOGS.first"
	gate mutex "$SUBJECTS/mapper" -n 300 >/dev/null
}

@test "two runs are beside each other, with what they were set to" {
	two_runs
	run -0 mmgate report "$LOGS.first" --diff "$LOGS"
	contains "$output" "First: $LOGS.first"
	contains "$output" "Second: $LOGS"
	contains "$output" 'lock: none in the first, mutex in the second'
	contains "$output" munmap
	contains "$output" '`mmgate compare`'
	equal "$(awk 'length > 120 && /^  [a-z]/' <<<"$output")" '' 'long lines'
}

@test "the json of two runs has the figures of each" {
	two_runs
	mmgate report "$LOGS.first" --diff "$LOGS" --format json \
		>"$BATS_TEST_TMPDIR/json"
	run -0 "$PYTHON" - "$BATS_TEST_TMPDIR/json" <<-'EOP'
		import json, sys
		d = json.load(open(sys.argv[1]))
		assert d["version"] == 1
		for op in "mmap", "munmap", "mprotect":
		    o = d["calls"][op]
		    assert (o["a"]["count"], o["b"]["count"]) == (100, 300), o
		    for s in "a", "b":
		        rate = o[s]["count"] / d[s]["duration_ns"] * 1e9
		        assert abs(o[s]["calls_per_second"] / rate - 1) < 1e-6
		    assert o["a"]["wait_ns"] == 0
		assert all(s["site"] for s in d["sites"])
	EOP
}

@test "a run beside itself has no difference" {
	gate none "$SUBJECTS/mapper" >/dev/null
	run -0 mmgate report "$LOGS" --diff "$LOGS" --format json
	equal "$("$PYTHON" -c 'import json, sys
d = json.load(sys.stdin)
print(all(o["a"] == o["b"] for o in d["calls"].values()))' <<<"$output")" True
	run -0 mmgate report "$LOGS" --diff "$LOGS"
	contains "$output" x1.00
	lacks "$output" ' in the first, '
}

@test "calls stand in the order of how their time changed" {
	two_runs
	mmgate report "$LOGS.first" --diff "$LOGS" --format json \
		>"$BATS_TEST_TMPDIR/json"
	mmgate report "$LOGS.first" --diff "$LOGS" >"$BATS_TEST_TMPDIR/text"
	run -0 "$PYTHON" - "$BATS_TEST_TMPDIR/json" "$BATS_TEST_TMPDIR/text" <<-'EOP'
		import json, sys
		d = json.load(open(sys.argv[1]))
		def cost(op, side):
		    o = d["calls"][op][side]
		    return (o["wait_ns"] + o["kernel_ns"]) / d[side]["duration_ns"]
		wanted = sorted(d["calls"], key=lambda op:
		                -abs(cost(op, "b") - cost(op, "a")))
		text = open(sys.argv[2]).read().split("By call", 1)[1]
		words = (line.split()[-1:] + line.split()[:1]
		         for line in text.split("By site")[0].splitlines())
		found = [w for pair in words for w in pair if w in d["calls"]]
		assert found == wanted and len(found) > 2, (found, wanted)
	EOP
}

@test "what is not in both is new or gone" {
	gate none "$SUBJECTS/mapper" >/dev/null
	mv "$LOGS" "$LOGS.first"
	gate none "$SUBJECTS/early" >/dev/null
	run -0 mmgate report "$LOGS.first" --diff "$LOGS"
	contains "$output" gone
	run -0 mmgate report "$LOGS" --diff "$LOGS.first"
	contains "$output" new
}

@test "a missing second run is one line and exit 1" {
	gate none "$SUBJECTS/mapper" >/dev/null
	run -1 --separate-stderr mmgate report "$LOGS" --diff "$LOGS.none"
	equal "${#stderr_lines[@]}" 1
	contains "$stderr" "$LOGS.none"
}
