#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The command, built on a machine without the libraries that resolve stacks.

load helpers

setup_file() {
	make -C "$ROOT" --no-print-directory BUILD=build-plain \
		RESOLVE_MISSING='libunwind elfutils' \
		build-plain/mmgate build-plain/libmmgate.so
}

setup() {
	new_logs
	PLAIN=$ROOT/build-plain/mmgate
}

@test "it needs none of them, and doctor says so" {
	run -0 readelf -dW "$PLAIN"
	lacks "$output" 'unwind'
	lacks "$output" 'libdw'
	run "$PLAIN" doctor
	contains "$output" \
		'built without libunwind and elfutils: stacks are not resolved'
}

@test "run copies no stacks unless it is asked, and report says why" {
	"$PLAIN" run --quiet -o "$LOGS" -- "$SUBJECTS/places" direct 10
	run -0 "$PLAIN" report --by site "$LOGS"
	contains "$output" 'built without'
	run -0 "$PLAIN" report --format json "$LOGS"
	"$PYTHON" -c 'import json, sys; json.load(sys.stdin)' <<<"$output"
	run -2 "$PLAIN" export --names --format csv "$LOGS"
	contains "$output" 'built without'
	run -0 "$PLAIN" export --format csv "$LOGS"
	equal "$(grep -c ',munmap,' <<<"$output")" 10
	run -0 report "p[0]['stacks']['samples']"
	equal "$output" 0
}

@test "its logs can be resolved elsewhere" {
	mmgate doctor | grep -q 'stacks are not resolved' &&
		skip 'built without libunwind or elfutils'
	"$PLAIN" run --quiet --stacks every:1 -o "$LOGS" -- \
		"$SUBJECTS/places" direct 10
	run -0 report "sorted(s['site'].split(' ')[0] for s in p[0]['sites']
		if s['count'] == 10)"
	equal "$output" "['places!direct', 'places!undirect']"
}
