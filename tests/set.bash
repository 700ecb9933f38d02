# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# A program that makes calls when it is told to, and `mmgate set` on it.

# begin OPTION...: set_calls with 8 threads under `mmgate run OPTION...`, with
# its logs in $LOGS; $PID is its number.
begin() {
	coproc TOLD {
		exec "$BUILD/mmgate" run --quiet --hooks "$HOOKS" --stacks off \
			-o "$LOGS" "$@" -- "$SUBJECTS/set_calls" 8 3>&-
	}
	exec {TO}>&"${TOLD[1]}" {FROM}<&"${TOLD[0]}"
	RUN=$TOLD_PID
	get ready
	PID=$(newest)
}

# The number of the process whose log was made last.
newest() {
	local files

	files=$(cd "$LOGS" && printf '%s\n' *.mmgate | sort -t- -k2n | tail -1)
	echo "${files%%-*}"
}

# get LINE: what the subject says next, a pattern; $LINE is it.
get() {
	read -r -t 60 LINE <&"$FROM"
	# shellcheck disable=SC2053 # a pattern
	[[ $LINE == $1 ]] || equal "$LINE" "$1" 'the subject'
}

# rounds N: as many, of each of the 8 threads.
rounds() {
	echo "$1" >&"$TO"
	get 'rounds: *'
}

# The threads call until `halt`.
go() {
	echo go >&"$TO"
	get gone
}

halt() {
	echo stop >&"$TO"
	get 'rounds: *'
}

# ends: the program ends, with the status that it should.
ends() {
	echo end >&"$TO"
	wait "$RUN"
	exec {TO}>&- {FROM}<&-
}

set_() {
	mmgate set "$@" --dir "$LOGS"
}

# A setting in force, by the report.
in_force() {
	report "[e['settings']['$1'] for e in p if e['pid'] == $PID][0]"
}

# Sum of a field over all calls of $PID: count, gated.
calls() {
	report "sum(o['$1'] for e in p if e['pid'] == $PID
		for o in e['calls'].values())"
}
