#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Many threads behind one lock: each gets its turn, and nobody waits for ever.
#
# 64 threads hammer for 3 s.  What was measured on 2 CPUs, quiet and beside 4
# threads that only run:
#
#   the slowest thread's calls, as part of an equal share    0.02 to 0.51; 0.02 to 0.28
#   the same under fifo                                      0.99 and more; 0.95
#   the longest single wait                                  0.07 to 0.10; 0.11 to 0.18 s
#   without the library: the same part                       0.21 to 0.47; 0.31 to 0.51
#   and longest call                                         0.08 to 0.10; 0.38 to 0.54 s
#
# Before waiters that starve were served first, the gate opened in each such run
# (a wait of more than 1 s), and the part fell to 0.001 in windows of 2 s.
# A busy machine can starve a thread without our help, so a bound must hold in
# one of three windows; what starves by nature does so in each.  Nor need a lock
# be better than half of what the program had without the library in the worst
# of such windows: under a load of 40 some threads got 0.003 of their share, and
# calls took 3 s.

load helpers

setup() {
	new_logs
}

# The value of a line "NAME: VALUE" in $output.
line() {
	sed -n "s/^$1: //p" <<<"$output"
}

# fair LOCK: one window.  Each thread gets a 50th of an equal share or more, and
# no wait is so long that the gate opens.
fair() {
	run -0 "$SUBJECTS/hammer" -t 64 -d 3
	bare=$(printf '%s\n' "$(line slowest_share)" "${bare-1}" |
		sort -g | head -1)
	bare_longest=$(printf '%s\n' "$(line longest_us)" "${bare_longest-0}" |
		sort -g | tail -1)
	run -0 gate "$1" --events off "$SUBJECTS/hammer" -t 64 -d 3
	share=$(line slowest_share)
	echo "# $1: slowest share $share, longest $(line longest_us) us;" \
		"bare $bare, $bare_longest us" >&3
	run -0 report "($share >= min(0.02, $bare / 2),
		p[0]['gate_opened'] == 0 or $bare_longest > 1000000,
		p[0]['gate_opened'] > 0 or
			sum(o['bypassed'] for o in c.values()) == 0)"
	[ "$output" = '(True, True, True)' ]
}

@test "with 64 threads each gets a 50th of its share, and no wait opens the gate" {
	while read -r lock; do
		unset bare bare_longest
		fair "$lock" || fair "$lock" || fair "$lock" ||
			equal "$share, $output" \
				'0.02 or more, (True, True, True)' "$lock"
	done < <(gating_locks)
}

@test "the longest wait under each lock is measured, and within the limit" {
	while read -r lock; do
		run -0 gate "$lock" --events off --max-wait 300ms \
			"$SUBJECTS/hammer" -t 64 -d 1
		run -0 report 'max(o["wait_ns"]["max"] for o in c.values())
			// 1000000'
		# Late by as much as the machine lets a woken thread wait for a
		# CPU.
		holds "$output" -le 2300 "ms waited under $lock"
		! always_gates "$lock" || holds "$output" -ge 1 "ms, $lock"
	done < <(locks)
}

@test "the main thread can create threads while 64 others hammer" {
	# Bare, 20 threads took up to 1.0 s for the slowest; the gate adds at
	# most one MMGATE_MAX_WAIT for each of the calls that a start makes.
	while read -r lock; do
		run -0 timeout 60 "$BUILD/mmgate" run --quiet --lock "$lock" \
			-o "$LOGS" "$SUBJECTS/hammer" -t 64 -d 1 -l 20
		late=$(line late)
		contains "$late" '20 threads, longest '
		late=${late##*longest }
		holds "${late% us}" -le 5000000 "us for a thread under $lock"
	done < <(locks)
}

# Calls of one window of 0.5 s.
calls() {
	bare "$1" "$SUBJECTS/hammer" -t $((8 * $(nproc))) -d 0.5 |
		sed -n 's/^calls: //p'
}

@test "with 8 threads a CPU spin is not slower than half of mutex" {
	locks | grep -qx spin || skip 'there is no spin'
	ratios=()
	# Pairs, one after the other, in turn first: noise hits both alike.
	for i in 1 2 3 4 5 6 7; do
		if ((i % 2)); then
			spin=$(calls spin) mutex=$(calls mutex)
		else
			mutex=$(calls mutex) spin=$(calls spin)
		fi
		ratios+=($((100 * spin / mutex)))
	done
	median=$(printf '%s\n' "${ratios[@]}" | sort -n | sed -n 4p)
	echo "# spin makes $median % of mutex's calls (${ratios[*]})" >&3
	holds "$median" -ge 50 "% of mutex's calls (${ratios[*]})"
}
