#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The programs of examples/ do what their help texts say.

load helpers

setup() {
	new_logs
	export TMPDIR=$BATS_TEST_TMPDIR
}

examples() {
	local source

	for source in "$ROOT"/examples/*.c; do
		source=$(basename "$source" .c)
		case $source in
		common | spread) ;;
		*) echo "$source" ;;
		esac
	done
}

# Each example in each of its ways.
ways() {
	cat <<-'ROWS'
		congestion -c firstpage
		congestion -c firstpage -m report
		congestion -c firstpage -m each
		convoy
		convoy -m each
		convoy -m handoff
		late_start
		malloc_churn
		protect_flip
		protect_flip -m each
		purge
		purge -v free
		purge -b 5
		purge -m each
		remap
		remap -v dontneed
		remap -v free
		remap -m each
		scan_files
		scan_files -v read
		scan_files -m each
		stacks
		stacks -v own
		wakeup
		wakeup -m each
		wasm_slots
		wasm_slots -v remap
		wasm_slots -v fresh
		wasm_slots -m each
	ROWS
}

# ends_well: $output is that of an example that ran to its end.
ends_well() {
	[[ ${lines[-1]} =~ ^ops_per_second:\ [0-9]+\.[0-9][0-9]$ ]] ||
		equal "${lines[-1]}" 'ops_per_second: X.XX' "$*"
	lacks "${lines[-1]}" 'ops_per_second: 0.00'
}

@test "the list of ways has every example" {
	equal "$(ways | cut -d' ' -f1 | sort -u)" "$(examples)"
}

@test "an example does the loops asked for, with one thread and with eight" {
	while read -ra way; do
		for threads in 1 8; do
			run -0 --separate-stderr "$EXAMPLES/${way[0]}" \
				"${way[@]:1}" -t "$threads" -n 3
			ends_well "${way[@]}" -t "$threads"
			equal "$stderr" '' "stderr of ${way[*]}"
		done
	done < <(ways)
}

@test "an example runs for the time asked for, and divides by the real one" {
	while read -r example; do
		before=$(date +%s%N)
		run -0 "$EXAMPLES/$example" -t 2 -d 0.2
		holds $(($(date +%s%N) - before)) -ge 200000000 "$example"
		ends_well "$example"
	done < <(examples)
}

@test "an example does the same under each lock" {
	while read -r lock; do
		while read -ra way; do
			run -0 bare "$lock" "$EXAMPLES/${way[0]}" \
				"${way[@]:1}" -t 8 -n 3
			ends_well "$lock" "${way[@]}"
		done < <(ways | grep -v -e '-m')
	done < <(locks)
}

@test "an example that cannot do what it was asked says so in one line" {
	while read -r example; do
		while read -ra options; do
			run -2 --separate-stderr "$EXAMPLES/$example" \
				"${options[@]}"
			equal "${#stderr_lines[@]}" 1 "$example ${options[*]}"
			contains "$stderr" "$example: "
			equal "$output" '' "$example ${options[*]}"
		done <<-'ROWS'
			-t 0
			-t 65537
			-t many
			-t
			-n 0
			-n -1
			-n 1.5
			-d 0
			-d 1s
			-d .
			-n 5 -d 1
			-z
			-t 2 more
			-m other
			-v other
		ROWS
	done < <(examples)
	run -2 --separate-stderr "$EXAMPLES/wakeup" -w 1ms
	equal "${#stderr_lines[@]}" 1
	run -2 --separate-stderr "$EXAMPLES/purge" -b 17
	equal "${#stderr_lines[@]}" 1
	run -2 --separate-stderr "$EXAMPLES/scan_files" -p /nowhere
	equal "${#stderr_lines[@]}" 1
}

@test "the help of an example fits a terminal and ends with a line to try" {
	while read -r example; do
		run -0 "$EXAMPLES/$example" -h
		equal "$(awk 'length > 80' <<<"$output")" '' "$example"
		for option in -t -n -d; do
			contains "$output" "  $option "
		done
		contains "${lines[-1]}" "Example: $example -"
	done < <(examples)
}

# calls: of the report, as "OP=COUNT ...".
calls() {
	report '" ".join(n + "=" + str(c[n]["count"])
		for n in sorted(c))'
}

# Three threads, seven loops: WAY|CALLS, those of the program alone.
expected() {
	cat <<-'ROWS'
		congestion -c both|madvise=84 mmap=42 munmap=42
		convoy|mmap=3 mprotect=21 munmap=3
		malloc_churn|
		protect_flip|mmap=3 mprotect=42 munmap=3
		purge|madvise=336 mmap=3 munmap=3
		purge -b 5|madvise=336 mmap=3 munmap=3
		purge -v free|madvise=336 mmap=3 munmap=3
		remap|mmap=24 mprotect=21 munmap=3
		remap -v dontneed|madvise=21 mmap=3 munmap=3
		scan_files|mmap=21 munmap=21
		scan_files -v read|
		stacks|
		stacks -v own|mmap=168 munmap=168
		wakeup|mmap=21 munmap=21
		wasm_slots|madvise=21 mmap=12 mprotect=105 munmap=12
		wasm_slots -v remap|mmap=33 mprotect=84 munmap=12
		wasm_slots -v fresh|mmap=21 mprotect=84 munmap=21
	ROWS
}

@test "an example makes the calls that its help text says" {
	count_symbols_only
	while IFS='|' read -r way calls; do
		read -ra way <<<"$way"
		gate none "$EXAMPLES/${way[0]}" "${way[@]:1}" -t 3 -n 7 \
			>/dev/null
		run -0 calls
		equal "$output" "$calls" "${way[*]}"
	done < <(expected)
}

@test "convoy has 2000 tasks when nobody says how many" {
	count_symbols_only
	gate mutex "$EXAMPLES/convoy" -n 1 >/dev/null
	run -0 calls
	equal "$output" 'mmap=2000 mprotect=2000 munmap=2000'
}

@test "the threads beside late_start's creations make the calls it says" {
	count_symbols_only
	gate none "$EXAMPLES/late_start" -t 3 -n 7 >"$BATS_TEST_TMPDIR/out"
	loops=$(sed -n 's/^loops of the threads at work: //p' \
		"$BATS_TEST_TMPDIR/out")
	holds "$loops" -ge 3
	run -0 calls
	equal "$output" "mmap=$loops munmap=$loops"
	equal "$(grep -cE '^[0-9]+( +[0-9.]+){3}$' "$BATS_TEST_TMPDIR/out")" 7
}

# libc's calls beside these are those of its own threads and heaps.
@test "what libc maps for an example is seen when libc is hooked" {
	gate none "$EXAMPLES/malloc_churn" -t 3 -n 7 >/dev/null
	run -0 report 'min(c[n]["count"] for n in ("mmap", "munmap")) >= 21'
	equal "$output" True malloc_churn
	gate none "$EXAMPLES/stacks" -t 3 -n 7 >/dev/null
	run -0 report 'min(c[n]["count"] for n in ("mmap", "munmap")) >= 168'
	equal "$output" True stacks
	gate none "$EXAMPLES/late_start" -t 1 -n 7 >"$BATS_TEST_TMPDIR/out"
	loops=$(sed -n 's/^loops of the threads at work: //p' \
		"$BATS_TEST_TMPDIR/out")
	run -0 report "min(c[n]['count'] for n in ('mmap', 'munmap')) - $loops"
	holds "$output" -ge 7 late_start
}

all_made() {
	compgen -G "$BATS_TEST_TMPDIR/files/*/255" >/dev/null
}

@test "scan_files leaves nothing behind, ended by itself or by a signal" {
	mkdir "$BATS_TEST_TMPDIR/files"
	"$EXAMPLES/scan_files" -n 5 -p "$BATS_TEST_TMPDIR/files" >/dev/null
	equal "$(ls "$BATS_TEST_TMPDIR/files")" ''
	"$EXAMPLES/scan_files" -d 100 -p "$BATS_TEST_TMPDIR/files" \
		>/dev/null 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	eventually all_made
	kill "$!"
	status=0
	wait "$!" || status=$?
	equal "$status" 143
	equal "$(ls "$BATS_TEST_TMPDIR/files")" ''
	equal "$(cat "$BATS_TEST_TMPDIR/err")" ''
}

@test "wakeup logs what is later than its threshold, and counts the rest" {
	run -0 "$EXAMPLES/wakeup" -t 2 -n 50 -w 0
	contains "$output" 'later than 0 us: 100'
	equal "$(grep -c ' us  thread [01]$' <<<"$output")" 32
	contains "$output" 'and 68 that came when the log was full'
	run -0 "$EXAMPLES/wakeup" -t 2 -n 50 -w 1000000000
	contains "$output" 'later than 1000000000 us: 0'
}

@test "late_start lists 32 creations and counts the rest" {
	run -0 "$EXAMPLES/late_start" -t 1 -n 40
	equal "$(grep -cE '^[0-9]+( +[0-9.]+){3}$' <<<"$output")" 32
	contains "$output" 'and 8 more'
}
