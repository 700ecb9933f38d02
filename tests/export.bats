#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Exports for other programs: Perfetto, Prometheus.

load helpers

setup() {
	count_symbols_only
	new_logs
}

@test "the chrome trace has a slice for each call and each wait" {
	gate mutex "$SUBJECTS/mapper" -t 4 -n 100 >/dev/null
	mmgate export --format jsonl "$LOGS" >"$BATS_TEST_TMPDIR/jsonl"
	mmgate export --format chrome "$LOGS" >"$BATS_TEST_TMPDIR/trace"
	run -0 "$PYTHON" - "$BATS_TEST_TMPDIR/trace" "$BATS_TEST_TMPDIR/jsonl" \
		<<-'EOP'
			import collections, json, sys
			trace = json.load(open(sys.argv[1]))
			rows = [json.loads(line) for line in open(sys.argv[2])]
			events = trace["traceEvents"]
			assert trace["displayTimeUnit"] == "ns"
			slices = [e for e in events if e["ph"] == "X"]
			calls = [e for e in slices if e["cat"] in ("hold", "call")]
			waits = [e for e in slices if e["cat"] == "wait"]
			assert len(calls) == len(rows) == 1200, len(calls)
			assert len(waits) == sum(r.get("wait_ns", 0) > 0 for r in rows)
			assert collections.Counter(e["name"] for e in calls) == \
			    collections.Counter(r["op"] for r in rows)
			total = sum(r["kernel_ns"] for r in rows)
			assert abs(sum(e["dur"] for e in calls) * 1000 - total) < 1 + total / 1e6
			# A thread does one thing at a time: slices follow each other.
			threads = collections.defaultdict(list)
			for e in slices:
			    assert e["ts"] >= 0 and e["dur"] >= 0
			    threads[e["tid"]].append((e["ts"], e["dur"]))
			for list in threads.values():
			    end = 0
			    for ts, dur in sorted(list):
			        assert ts >= end - 0.002, (ts, end)
			        end = ts + dur
			assert set(e["ph"] for e in events) <= set("XMCi")
			names = [e["args"]["name"] for e in events
			         if e["ph"] == "M" and e["name"] == "process_name"]
			assert names == ["mapper (lock=mutex)"], names
			counters = set(e["name"] for e in events if e["ph"] == "C")
			assert "calls/s" in counters, counters
		EOP
}

@test "names of functions are in the chrome trace when asked for" {
	mmgate run --quiet --hooks symbols --stacks every:1 -o "$LOGS" -- \
		"$SUBJECTS/mapper" -n 20 >/dev/null
	[ "$(report 'len(p[0]["sites"])')" -gt 0 ] ||
		skip 'no stacks are resolved in this build'
	mmgate export --format chrome --names "$LOGS" >"$BATS_TEST_TMPDIR/trace"
	run -0 "$PYTHON" - "$BATS_TEST_TMPDIR/trace" <<-'EOP'
		import json, sys
		events = json.load(open(sys.argv[1]))["traceEvents"]
		calls = [e["args"] for e in events if e["ph"] == "X"]
		assert any(a["caller"].startswith("mapper!one_loop") for a in calls)
		assert any(any("mapper!" in f for f in a.get("stack", []))
		           for a in calls)
	EOP
	run -2 --separate-stderr mmgate export --format prometheus --names \
		"$LOGS"
	equal "${#stderr_lines[@]}" 1
}

@test "the prometheus text is what its own tools take for good" {
	need promtool
	gate mutex "$SUBJECTS/mapper" -t 4 -n 100 >/dev/null
	mmgate export --format prometheus "$LOGS" >"$BATS_TEST_TMPDIR/prom"
	run -0 promtool check metrics <"$BATS_TEST_TMPDIR/prom"
	equal "$output" ''
}

@test "the prometheus text has the figures of the report, in seconds" {
	gate mutex "$SUBJECTS/mapper" -t 4 -n 100 -e "$SUBJECTS/early" >/dev/null
	mmgate report --format json "$LOGS" >"$BATS_TEST_TMPDIR/json"
	mmgate export --format prometheus "$LOGS" >"$BATS_TEST_TMPDIR/prom"
	run -0 "$PYTHON" - "$BATS_TEST_TMPDIR/prom" "$BATS_TEST_TMPDIR/json" \
		<<-'EOP'
			import json, re, sys
			types, values, buckets = {}, {}, {}
			for line in open(sys.argv[1]):
			    if line.startswith("# TYPE"):
			        _, _, name, kind = line.split()
			        assert name not in types, name
			        types[name] = kind
			        continue
			    if line.startswith("#"):
			        continue
			    name, labels, value = re.fullmatch(
			        r'([a-z_]+)\{(.*)\} ([0-9.]+)\n', line).groups()
			    family = re.sub("_(bucket|sum|count)$", "", name)
			    kind = types.get(name) or types[family]
			    assert (kind == "counter") == name.endswith("_total"), name
			    assert (name, labels) not in values, line
			    values[name, labels] = float(value)
			    if name.endswith("_bucket"):
			        rest = re.sub(',le="[^"]*"', "", labels)
			        list = buckets.setdefault((family, rest), [])
			        assert not list or list[-1] <= float(value), line
			        list.append(float(value))
			for (family, labels), list in buckets.items():
			    assert list[-1] == values[family + "_count", labels]
			for p in json.load(open(sys.argv[2]))["processes"]:
			    for op, o in p["calls"].items():
			        l = 'image="%s",op="%s"' % (p["image"], op)
			        assert values["mmgate_calls_total", l] == o["count"]
			        assert values["mmgate_calls_gated_total", l] == o["gated"]
			        for h, n in (("kernel_ns", "kernel"), ("wait_ns", "wait")):
			            if o[h]["count"]:
			                s = values["mmgate_%s_seconds_sum" % n, l]
			                assert abs(s * 1e9 - o[h]["sum"]) < 2, (s, o[h])
			                assert values["mmgate_%s_seconds_count" % n, l] \
			                    == o[h]["count"]
		EOP
}

@test "names with strange bytes do no harm in any export" {
	strange=$BATS_TEST_TMPDIR/$'e\033[31mvil"\\x\377'
	cp "$SUBJECTS/mapper" "$strange"
	gate mutex "$strange" >/dev/null
	run -0 mmgate export --format prometheus "$LOGS"
	lacks "$output" $'\033'
	contains "$output" 'vil\"\\x'
	mmgate export --format chrome "$LOGS" >"$BATS_TEST_TMPDIR/trace"
	"$PYTHON" -m json.tool "$BATS_TEST_TMPDIR/trace" >/dev/null
}

@test "names that hold what is between names do no harm in any export" {
	odd=$BATS_TEST_TMPDIR/$'a;b, "c"\n\t{x="1"} 7'
	cp "$SUBJECTS/mapper" "$odd"
	mmgate run --quiet --hooks symbols --stacks every:1 -o "$LOGS" -- \
		"$odd" -n 20 >/dev/null
	[ "$(report 'len(p[0]["sites"])')" -gt 0 ] ||
		skip 'no stacks are resolved in this build'
	for format in csv jsonl folded chrome prometheus; do
		names=--names
		[ "$format" != prometheus ] || names=
		mmgate export --format "$format" $names "$LOGS" \
			>"$BATS_TEST_TMPDIR/$format"
	done
	run -0 "$PYTHON" - "$BATS_TEST_TMPDIR" <<-'EOP'
		import csv, json, re, sys
		def open_(format):
		    return open(sys.argv[1] + "/" + format, newline="")
		name = 'a;b, "c"??{x="1"} 7'
		rows = list(csv.reader(open_("csv")))
		assert len(rows) == 61 and set(map(len, rows)) == {16}, len(rows)
		assert len(open_("csv").readlines()) == 61
		assert rows[1][14].startswith(name.replace(";", ":") + "!"), rows[1]
		for frame in rows[1][15].split(";"):
		    assert "!" in frame, frame
		lines = [json.loads(line) for line in open_("jsonl")]
		assert len(lines) == 60 and lines[0]["caller"].startswith(name + "!")
		json.load(open_("chrome"))
		for line in open_("folded"):
		    frames, ns = line.rstrip("\n").rsplit(" ", 1)
		    frames = frames.split(";")
		    assert ns.isdigit() and frames[0] == name.replace(";", ":"), line
		    assert frames[-1] in ("mmap", "munmap", "mprotect"), line
		    assert all("!" in frame for frame in frames[1:-1]), line
		for line in open_("prometheus"):
		    assert line[0] == "#" or re.fullmatch(
		        r'\w+\{image="([^"\\]|\\.)*"(,\w+="[^"\\]*")*\} [0-9.]+\n',
		        line), line
	EOP
}

@test "exports of a program that did nothing are whole" {
	gate none "$SUBJECTS/mapper" -n 0 >/dev/null
	mmgate export --format chrome "$LOGS" >"$BATS_TEST_TMPDIR/trace"
	"$PYTHON" -m json.tool "$BATS_TEST_TMPDIR/trace" >/dev/null
	run -0 mmgate export --format prometheus "$LOGS"
	contains "$output" 'mmgate_processes{image="mapper"} 1'
}
