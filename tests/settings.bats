#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What the settings accept, and what is said of those that they do not.

load helpers

setup() {
	new_logs
}

# "VARIABLE OPTION VALUE" of values that must be refused.
bad_values() {
	cat <<-'ROWS'
		MMGATE_LOCK --lock mutexx
		MMGATE_LOCK --lock limit
		MMGATE_LOCK --lock limit:0
		MMGATE_CALLS --calls mmap,,munmap
		MMGATE_CALLS --calls mmap,open
		MMGATE_LONG --long maybe
		MMGATE_HOOKS --hooks none
		MMGATE_PLACE --place here
		MMGATE_DELAY --delay mmap
		MMGATE_DELAY --delay mmap:fast
		MMGATE_MAX_WAIT --max-wait 1
		MMGATE_MAX_WAIT --max-wait 0s
		MMGATE_MAX_WAIT --max-wait -1s
		MMGATE_LOG_SIZE --log-size 1K
		MMGATE_LOG_SIZE --log-size 64MB
		MMGATE_LOG_TOTAL --log-total many
		MMGATE_EVENTS --events every:0
		MMGATE_EVENTS --events slow:
		MMGATE_STACKS --stacks sometimes
		MMGATE_STACK_SIZE --stack-size 1M
		MMGATE_FOLLOW --follow everything
		MMGATE_ONLY --only a/b
		MMGATE_SKIP --skip a,,b
	ROWS
}

# Known words whose part is not built.
later_values() {
	:
}

@test "the bare library with nothing set prints nothing and changes nothing" {
	run -0 --separate-stderr env LD_PRELOAD="$LIBRARY" "$SUBJECTS/mapper" -t 2
	with=$output
	equal "$stderr" '' stderr
	run -0 "$SUBJECTS/mapper" -t 2
	equal "$with" "$output"
}

@test "the bare library says once what a bad value is, and uses the default" {
	mkdir "$LOGS"
	while read -r variable _ value; do
		run -0 --separate-stderr env LD_PRELOAD="$LIBRARY" \
			MMGATE_LOG="$LOGS" "$variable=$value" /bin/true
		equal "${#stderr_lines[@]}" 1 "lines on stderr for $value"
		contains "$stderr" "$variable=$value"
		contains "$stderr" accepted:
	done < <(bad_values)
	run -0 report 'sorted({e["settings"]["lock"] for e in p})'
	equal "$output" "['none']"
}

@test "run refuses a bad option with one line and exit 2, and makes nothing" {
	while read -r variable option value; do
		run -2 --separate-stderr mmgate run -o "$LOGS" "$option" \
			"$value" -- touch "$BATS_TEST_TMPDIR/ran"
		equal "${#stderr_lines[@]}" 1 "lines on stderr for $value"
		contains "$stderr" "$variable=$value"
	done < <(bad_values)
	[ ! -e "$LOGS" ]
	[ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "run refuses an inherited variable just like an option" {
	while read -r variable _ value; do
		run -2 --separate-stderr env "$variable=$value" \
			"$BUILD/mmgate" run -o "$LOGS" -- touch \
			"$BATS_TEST_TMPDIR/ran"
		equal "${#stderr_lines[@]}" 1 "lines on stderr for $value"
		contains "$stderr" "$variable=$value"
	done < <(bad_values)
	[ ! -e "$LOGS" ]
	[ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "a value whose part is not built is refused with that reason" {
	while read -r variable option value; do
		run -2 --separate-stderr mmgate run -o "$LOGS" "$option" \
			"$value" -- true
		contains "$stderr" 'not in this version'
		run -0 --separate-stderr env LD_PRELOAD="$LIBRARY" \
			"$variable=$value" true
		contains "$stderr" 'not in this version'
	done < <(later_values)
	[ ! -e "$LOGS" ]
}

@test "an unknown MMGATE_ variable is refused, with the one that was meant" {
	run -2 --separate-stderr env MMGATE_LOKC=mutex "$BUILD/mmgate" run \
		-o "$LOGS" -- true
	contains "$stderr" MMGATE_LOKC
	contains "$stderr" 'did you mean MMGATE_LOCK'
	[ ! -e "$LOGS" ]
}

@test "an unknown option is refused, with the one that was meant" {
	run -2 --separate-stderr mmgate run --lokc mutex -o "$LOGS" -- true
	contains "$stderr" '--lock'
	[ ! -e "$LOGS" ]
}

@test "an option goes before its variable" {
	run -0 env MMGATE_LOCK=spin MMGATE_MAX_WAIT=5ms "$BUILD/mmgate" run \
		--quiet --lock mutex -o "$LOGS" -- "$SUBJECTS/mapper"
	run -0 report 'p[0]["settings"]["lock"]'
	equal "$output" mutex
}

@test "the last of two equal options counts" {
	run -0 mmgate run --quiet --lock spin --lock mutex -o "$LOGS" -- \
		"$SUBJECTS/mapper"
	run -0 report 'p[0]["settings"]["lock"]'
	equal "$output" mutex
}

@test "calls says which calls take the lock" {
	run -0 mmgate run --quiet --lock mutex --calls munmap --hooks symbols \
		-o "$LOGS" -- "$SUBJECTS/mapper" -n 10
	run -0 report '{n: o["gated"] for n, o in c.items()}'
	equal "$output" "{'mmap': 0, 'munmap': 10, 'mprotect': 0}"
}

@test "only and skip choose programs by the names of their files" {
	run -0 mmgate run --quiet --only 'map*' -o "$LOGS" -- \
		sh -c '"$0" -n 2' "$SUBJECTS/mapper"
	run -0 report '[e["image"] for e in p]'
	contains "$output" mapper
	lacks "$output" sh
	run -0 mmgate run --quiet --skip 'map*' -o "$LOGS" -- \
		sh -c '"$0" -n 2; :' "$SUBJECTS/mapper"
	run -0 mmgate report --format json "$LOGS"
	lacks "$output" '"mapper"'
}

@test "help of run names each setting with its values and its default" {
	run -0 mmgate help run
	while read -r variable; do
		contains "$output" "($variable)"
	done < <(sed -n 's/^\t{"\(MMGATE_[A-Z_]*\)".*/\1/p' "$ROOT/shim/knobs.c")
}

# The row of README's table: | `VARIABLE` | `OPTION` | values | default |
@test "the README's table of settings is the one in the code" {
	[ -e "$ROOT/README.md" ]
	run -0 mmgate help run
	help=$(tr -s ' \n' '  ' <<<"$output")
	rows=0
	while read -r variable; do
		row=$(grep "^| *\`$variable\`" "$ROOT/README.md") ||
			equal "no row" "a row for $variable"
		option=$(cut -d'|' -f3 <<<"$row" | tr -d ' `')
		default=$(cut -d'|' -f5 <<<"$row" | tr -d ' `')
		contains "$help" "$option VALUE"
		# "(VARIABLE) = VALUES; default: DEFAULT  -o VALUE ..."
		rest=${help#*"($variable)"}
		rest=${rest#*default: }
		rest=${rest// /}
		equal "${rest:0:${#default}}" "$default" "default of $variable"
		rows=$((rows + 1))
	done < <(sed -n 's/^\t{"\(MMGATE_[A-Z_]*\)".*/\1/p' "$ROOT/shim/knobs.c")
	equal "$(grep -c '^| *`MMGATE_' "$ROOT/README.md")" "$rows" \
		'rows of settings in the README'
}

@test "the manual page names each setting and each command" {
	page=$(cat "$ROOT/tools/man/mmgate.1")
	while read -r variable; do
		contains "$page" "$variable"
	done < <(sed -n 's/^\t{"\(MMGATE_[A-Z_]*\)".*/\1/p' "$ROOT/shim/knobs.c")
	# Their synopses, word by word: what comes after "usage:" in the help.
	synopses=$(sed 's/\\-/-/g; s/^\.B //; s/"//g' "$ROOT/tools/man/mmgate.1" |
		tr -s ' \n' ' ')
	for command in run report export set doctor compare tune; do
		run -0 mmgate help "$command"
		contains "$synopses" "$(sed -n 's/^usage: //p' <<<"$output" |
			tr -s ' ')"
	done
}
