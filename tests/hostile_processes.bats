#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Processes that fork, execute, close, jail and kill each other: none hangs,
# each does what it does without the library, and finished calls are kept.
#
# What is tested elsewhere: children forked while others hold the lock
# (fork.bats), in handlers that interrupt a call, and by vfork (signals.bats);
# SIGKILL and exec of the program itself (counts.bats); descriptors of the
# library alone (log.bats).  What cannot be asked of us here: libc's posix_spawn
# makes no wrapped call between clone and exec, so a child of it is killed in
# the program that it became; a criu that works with this kernel may be missing,
# so it is only shown to start as it does without us.

load helpers

export BATS_TEST_TIMEOUT=400

# The values of MMGATE_HOOKS and MMGATE_FOLLOW, from the tables behind them.
hooks() {
	choices hooks
}

follows() {
	choices follows
}

choices() {
	sed -n "/struct choice $1\[\] = {/,/};/p" "$ROOT/shim/knobs.c" |
		grep -o '"[a-z]*"' | tr -d '"'
}

# tree OPTIONS... -- CMD...: under run, quietly, logs in $LOGS.
tree() {
	mmgate run --quiet --hooks symbols -o "$LOGS" "$@"
}

# Calls of one kind in the processes of an image, sorted.
counts_of() { # IMAGE OP
	report "sorted(e['calls']['$2']['count'] for e in p
		if e['image'] == '$1')"
}

setup() {
	new_logs
	cd "$BATS_TEST_TMPDIR" || return
	SETTINGS=(LD_PRELOAD="$LIBRARY" MMGATE_LOCK="$ONE_LOCK"
		MMGATE_HOOKS=symbols MMGATE_LOG="$LOGS")
}

teardown() {
	# What a failed test left behind.
	[ -z "${left-}" ] || kill -KILL "$left" 2>/dev/null || :
}

# --- starting processes ---

@test "children of every kind map beside their parent under each lock" {
	while read -r lock; do
		for kind in fork _Fork rawclone rawclone3 double handler; do
			run -0 tree --lock "$lock" --follow fork -- \
				"$SUBJECTS/children" "$kind" 20
			equal "$output" "$kind: 20" "under $lock"
			# Each has a log, and is behind a gate of its own.
			run -0 report '[len(p), {(o["count"], o["gated"])
				for e in p for n, o in e["calls"].items()
				if n == "mremap"}, p[0]["calls"].get("mremap")]'
			equal "$output" '[21, {(1, 0)}, None]' "$kind"
		done
		for kind in vfork clonevm clonevfork; do
			run -0 tree --lock "$lock" --follow fork -- \
				"$SUBJECTS/children" "$kind" 20
			equal "$output" "$kind: 20" "under $lock"
			# They are their parent.
			run -0 report '[len(p), c["mremap"]["count"],
				p[0]["gate_opened"]]'
			equal "$output" '[1, 20, 0]' "$kind"
		done
	done < <(locks)
}

@test "and with each kind of hooks" {
	while read -r hooks; do
		for kind in _Fork rawclone double handler vfork clonevm; do
			run -0 mmgate run --quiet --hooks "$hooks" --lock \
				"$ONE_LOCK" --follow fork -o "$LOGS" -- \
				"$SUBJECTS/children" "$kind" 20
			equal "$output" "$kind: 20" "with $hooks"
			run -0 report 'sum(e["calls"].get("mremap",
				{"count": 0})["count"] for e in p)'
			equal "$output" 20 "$kind with $hooks"
		done
	done < <(hooks)
}

@test "50 short children of a shell are 50 logs" {
	script='for i in 1 2 3 4 5 6 7 8 9 10; do
		"$0" -n 2 & "$0" -n 2 & "$0" -n 2 & "$0" -n 2 & "$0" -n 2; wait
	done'
	run -0 sh -c "$script" "$SUBJECTS/mapper"
	plain=$output
	while read -r lock; do
		run -0 --separate-stderr tree --lock "$lock" -- \
			sh -c "$script" "$SUBJECTS/mapper"
		equal "$output" "$plain"
		equal "$stderr" '' stderr
		run -0 counts_of mapper mmap
		equal "$output" "[$(printf '2, %.0s' {1..49})2]" "$lock"
	done < <(locks)
}

@test "a parallel make builds what it builds without the library" {
	need make
	cat >Makefile <<-'EOM'
		.RECIPEPREFIX = >
		all: $(addprefix out/,$(shell seq 2 51))
		out/%: | out
		> $(SUBJECT) -n $* >$@
		out:
		> mkdir out
	EOM
	run -0 make -s SUBJECT="$SUBJECTS/mapper"
	mv out plain
	while read -r lock; do
		rm -rf out
		run -0 --separate-stderr tree --lock "$lock" -- \
			make -s -j8 SUBJECT="$SUBJECTS/mapper"
		equal "$output$stderr" ''
		diff -r plain out
		run -0 counts_of mapper munmap
		equal "$output" "[$(for i in {1..25}; do
			echo -n "$((i * 2)), $((i * 2)), "; done |
			sed 's/, $//')]"
	done < <(locks)
}

# --- killed in a call ---

held() { # LOCK OPTION... -- MODE SECONDS
	local lock=$1 options=()

	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	run tree --lock "$lock" "${options[@]}" -- "$SUBJECTS/held" "$@"
	[ "$status" != 77 ] || skip 'no seccomp filter with answers here'
	equal "$status: $output" "0: $1: good" "under $lock"
}

@test "a child that shares memory and is killed in a call costs one wait" {
	while read -r lock; do
		for mode in vfork clone; do
			# It never comes back: the gate opens, for 0.5 s.
			held "$lock" --max-wait 5ms -- "$mode" 0.8
			run -0 report '[len(p), p[0]["gate_opened"] >= 1,
				c["mmap"]["bypassed_by"]["timeout"] > 0]'
			equal "$output" '[1, True, True]' "$mode under $lock"
			# Then it is closed, with a fresh lock, for all.
			run -0 report 'c["mmap"]["gated"]'
			holds "$output" -ge 100 "gated calls under $lock"
		done
	done < <(serial_locks)
}

@test "a child with memory of its own, killed in a call, costs nothing" {
	while read -r lock; do
		for mode in fork spawn; do
			held "$lock" --max-wait 10s --follow fork -- "$mode" 0
			# Its log is whole, without the call that never ended.
			run -0 report '[len(p)] + [e["gate_opened"] for e in p]
				+ ["mprotect" in e["calls"] for e in p]'
			equal "$output" '[2, 0, 0, False, False]' "$mode"
			run -0 report 'c["mmap"]["gated"] == c["mmap"]["count"]'
			equal "$output" True "$mode under $lock"
		done
	done < <(serial_locks)
}

@test "under limit:N one that is killed in a call takes its place along, until none is left" {
	held limit:2 --max-wait 10s -- vfork 0
	run -0 report '[p[0]["gate_opened"], c["mmap"]["gated"] >= 200]'
	equal "$output" '[0, True]' 'with a place left'
	held limit:1 --max-wait 5ms -- vfork 0
	run -0 report 'p[0]["gate_opened"] >= 1'
	equal "$output" True 'with none left'
}

@test "a vfork child that is killed while it waits holds nobody up" {
	while read -r lock; do
		# Its parent's thread counts as inside from then on, and goes
		# around the lock; the others are gated.
		held "$lock" --max-wait 10s -- waiter 0
		run -0 report '[p[0]["gate_opened"],
			c["mmap"]["bypassed_by"]["timeout"],
			c["mmap"]["gated"] >= 200]'
		equal "$output" '[0, 0, True]' "$lock"
	done < <(serial_locks | grep -vx fifo)
}

@test "under fifo it gets its turn all the same, which costs one wait" {
	held fifo --max-wait 5ms -- waiter 0.8
	run -0 report '[p[0]["gate_opened"] >= 1, c["mmap"]["gated"] >= 100]'
	equal "$output" '[True, True]'
}

# --- who is followed ---

@test "follow says which processes have a log and a gate" {
	lock=$(excluding_locks | head -1)
	# In self, forked, executed: is a call held up by one that is held?
	declare -A gated=([none]='yes no no' [exec]='yes no yes'
		[fork]='yes yes yes')
	# The logs of each: image and number in the line of forks.
	declare -A logs=([none]='1 1 1' [exec]='1 1 1,1' [fork]='1 1,2 1,1')
	while read -r follow; do
		read -ra answers <<<"${gated[$follow]}"
		read -ra epochs <<<"${logs[$follow]}"
		for mode in self forked executed; do
			# Whoever is gated waits; a minute is more than the
			# subject's patience.
			limit=3600s
			[ "${answers[0]}" = no ] || limit=20ms
			held "$lock" --follow "$follow" --max-wait "$limit" -- \
				"$mode"
			run -0 report '",".join(str(e["epoch"]) for e in p) +
				" " + str(sum(e["gate_opened"] for e in p))'
			equal "$output" "${epochs[0]} $([ \
				"${answers[0]}" = no ] || echo 1)$([ \
				"${answers[0]}" = yes ] || echo 0)" \
				"$mode, follow $follow"
			answers=("${answers[@]:1}")
			epochs=("${epochs[@]:1}")
		done
	done < <(follows)
}

# --- exec ---

@test "a program that executes itself from a thread, others mapping, goes on" {
	while read -r lock; do
		run -0 tree --lock "$lock" -- "$SUBJECTS/again" 30
		equal "$output" executed "under $lock"
		# One process, a log for each of its images but the last, which
		# maps nothing itself.
		run -0 report '[len(p), len({e["pid"] for e in p}),
			all(e["calls"]["mmap"]["count"] >= 50
				for e in p[:-1])]'
		equal "$output" '[31, 1, True]' "$lock"
	done < <(locks)
}

# seen WORD...: with its environment edited by env, the subject's settings in
# the log: lock, or nothing without one.
seen() {
	rm -rf "$LOGS"
	mkdir "$LOGS"
	run -0 --separate-stderr env "${SETTINGS[@]}" env "$@" \
		"$SUBJECTS/mapper" -n 10
	equal "$output" "$PLAIN" 'what the program prints'
	said=${#stderr_lines[@]}
	report '[e["settings"]["lock"] for e in p if e["image"] == "mapper"]' \
		2>/dev/null || echo 'no logs'
}

@test "an environment that is passed on, edited or cleared is what counts" {
	PLAIN=$("$SUBJECTS/mapper" -n 10)
	big=$(head -c 100000 /dev/zero | tr '\0' x)
	equal "$(seen X=1)" "['$ONE_LOCK']" 'passed on'
	equal "$(seen BIG="$big")" "['$ONE_LOCK']" 'among much else'
	equal "$(seen MMGATE_LOCK=spin)" "['spin']" 'another lock'
	equal "$(seen -u MMGATE_LOCK)" "['none']" 'no lock'
	equal "$(seen -u MMGATE_LOG)" '[]' 'no log'
	equal "$(seen -u LD_PRELOAD)" '[]' 'not preloaded'
	equal "$(seen LD_PRELOAD=)" '[]' 'preloaded is nothing'
	equal "$(seen LD_PRELOAD="$LIBRARY:$LIBRARY")" "['$ONE_LOCK']" twice
	equal "$(seen -i)" '[]' cleared
	equal "$(seen -i "${SETTINGS[@]}")" "['$ONE_LOCK']" 'nothing else'
	# Started by another than run: exec is what it means then.
	equal "$(seen MMGATE_FOLLOW=none)" "['$ONE_LOCK']" 'nobody was started'
	equal "$(seen MMGATE_FOLLOW=none MMGATE_STARTED=1)" '[]' 'another was'
	equal "$(seen MMGATE_FOLLOW=none MMGATE_STARTED=x)" '[]' 'no number'
	# A line is said where something is not as it was asked for.
	seen MMGATE_LOCK=mutexx >/dev/null
	equal "$said" 1
	seen MMGATE_LOG=/nowhere >/dev/null
	equal "$said" 1
	seen -i >/dev/null
	equal "$said" 0
}

# --- daemons and descriptors ---

# Starts a daemon in COMMAND..., which ends when the daemon is at its half.
start_daemon() {
	echo precious >data
	touch -d '2001-01-01' data
	rm -f half go result
	mkfifo half go
	"$@" sh -c '"$0" "$@"; : <half' "$SUBJECTS/daemon" "$PWD/data" \
		"$PWD/half" "$PWD/go" "$PWD/result"
}

finish_daemon() {
	# Opens when the daemon has its end.
	timeout 20 sh -c 'echo >go'
	eventually test -s result
	equal "$(cat result)" 'daemon: good'
	equal "$(cat data)" precious
	# Until its end it has its log.
	eventually daemon_is_gone
}

daemon_is_gone() {
	! pgrep -f "^$SUBJECTS/daemon $PWD/data" >/dev/null
}

@test "a daemon that closes every descriptor outlives run, and has its log" {
	start_daemon env
	finish_daemon
	while read -r lock; do
		# The run has ended, and trimmed what nobody uses.
		start_daemon tree --lock "$lock" --follow fork --
		finish_daemon
		run -0 report '[e["calls"]["munmap"]["count"] for e in p
			if e["image"] == "daemon" and e["calls"]]'
		equal "$output" '[200]' "under $lock"
		# Not followed, it is left alone.
		start_daemon tree --lock "$lock" --
		finish_daemon
		run -0 report '[e["calls"] for e in p
			if e["image"] == "daemon"]'
		equal "$output" '[{}]' "under $lock"
	done < <(locks)
}

@test "a daemon in a pid namespace outlives run, whatever its number" {
	unshare -pf true 2>/dev/null || skip 'may not make pid namespaces'
	mkfifo last
	# The number in its log is some other process's here, or nobody's.
	start_daemon tree --follow fork -- sh -c '
		unshare -pf sh -c "\"\$@\"; cat <last" init "$@" 3>&- &
		: <half' outside
	finish_daemon
	echo >last
	run -0 report '[e["calls"]["munmap"]["count"] for e in p
		if e["image"] == "daemon" and e["calls"]]'
	equal "$output" '[200]'
}

@test "a daemon of a relative log directory finds it from another one" {
	mkdir "$LOGS"
	start_daemon env "${SETTINGS[@]}" MMGATE_LOG=logs MMGATE_FOLLOW=fork
	finish_daemon
	run -0 report 'sum(e["calls"].get("munmap", {"count": 0})["count"]
		for e in p)'
	equal "$output" 200
}

@test "descriptors 0 to 2 that are closed at run are closed in the program" {
	cat >fds.py <<-'EOP'
		import os, sys
		def is_open(fd):
		    try:
		        os.fstat(fd)
		    except OSError:
		        return False
		    return True
		fds = [fd for fd in range(20) if is_open(fd)]
		open(sys.argv[1], "w").write("%s\n" % fds)
		m = __import__("mmap").mmap(-1, 65536)
		m.close()
	EOP
	# Nobody may write into what took their place.
	for closed in '<&-' '>&-' '2>&-' '<&- >&-' '<&- 2>&-' '>&- 2>&-' \
		'<&- >&- 2>&-'; do
		bash -c "\"\$@\" 3>&- $closed" closed "$PYTHON" fds.py plain
		bash -c "\"\$@\" 3>&- $closed" closed "$BUILD/mmgate" run \
			--lock "$ONE_LOCK" -o "$LOGS" -- "$PYTHON" fds.py with
		same plain with
		run -0 report '[len(p), c["mmap"]["count"] >= 1, d["broken"]
			if "broken" in d else 0]'
		equal "$output" '[1, True, 0]' "$closed"
	done
}

# --- roots, users, namespaces ---

# A directory with what PROGRAM needs to run in it.
make_root() { # PROGRAM
	mkdir root
	cp -L "$1" root/program
	ldd "$1" | grep -o '/[^ ]*' | while read -r file; do
		mkdir -p "root$(dirname "$file")"
		cp -L "$file" "root$file"
	done
}

jail() { # HOW: with and without the library; said in $stderr
	run -0 "$SUBJECTS/jail" "$1" "$PWD/root" "$2" -n 10
	plain=$output
	rm -rf "$LOGS"
	mkdir "$LOGS"
	run -0 --separate-stderr env "${SETTINGS[@]}" MMGATE_FOLLOW=fork \
		"$SUBJECTS/jail" "$1" "$PWD/root" "$2" -n 10
	equal "$output" "$plain" "$1"
}

# Mapped before and after; the child finds no place for a log and is silent.
jail_is_logged() {
	run -0 report '[[e["image"], e["calls"]["mmap"]["count"]] for e in p]'
	equal "$output" "[['jail', 200]]"
}

@test "in a chroot and behind pivot_root programs run as they do bare" {
	is_root || skip 'needs root, to change the root'
	make_root "$SUBJECTS/mapper"
	run "$SUBJECTS/jail" pivot "$PWD/root" /program
	[ "$status" != 77 ] || skip "may not mount here: $output"
	for how in chroot pivot; do
		# The library is not there: its loader says so.
		jail "$how" /program
		equal "${#stderr_lines[@]}" 1 'lines on stderr'
		contains "$stderr" 'cannot be preloaded'
		jail_is_logged
	done
	# The library is there, the directory of logs is not.
	mkdir -p "root$(dirname "$LIBRARY")"
	cp "$LIBRARY" "root$LIBRARY"
	for how in chroot pivot; do
		jail "$how" /program
		equal "${#stderr_lines[@]}" 1 'lines on stderr'
		contains "$stderr" "no log in $LOGS: no such directory"
		jail_is_logged
	done
	# And it is: in there the log goes to the directory of that name.
	mkdir -p "root$LOGS"
	jail chroot /program
	equal "$stderr" '' stderr
	LOGS=$PWD/root$LOGS
	run -0 counts_of program mmap
	equal "$output" '[10]'
	run -0 counts_of jail mmap
	equal "$output" '[100]' 'the forked child'
}

@test "a process that gives up its user keeps its log; the next goes without" {
	is_root || skip 'needs root, to give it up'
	chmod 711 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR"/* "$BATS_TEST_TMPDIR"
	setpriv --reuid 65534 --clear-groups test -r "$LIBRARY" -a -x \
		"$SUBJECTS/mapper" || skip 'others cannot read the build'
	mkdir root
	jail drop "$SUBJECTS/mapper"
	equal "${#stderr_lines[@]}" 1 'lines on stderr'
	contains "$stderr" "no log in $LOGS: permission denied"
	jail_is_logged
}

@test "in user and pid namespaces programs are gated and logged" {
	unshare -Ur true 2>/dev/null || skip 'no user namespaces here'
	plain=$("$SUBJECTS/mapper" -n 10)
	while read -r lock; do
		for flags in -U -Ur -Urpf -Urpfm -Urn; do
			run -0 --separate-stderr tree --lock "$lock" -- \
				unshare "$flags" "$SUBJECTS/mapper" -n 10
			equal "$output" "$plain" "$flags under $lock"
			equal "$stderr" '' stderr
			run -0 counts_of mapper mmap
			equal "$output" '[10]' "$flags under $lock"
		done
	done < <(locks)
	# Many that are number 1.
	run -0 tree -- bash -c 'for ((i = 0; i < 10; i++)); do
		unshare -Urpf "$0" -n 10 & done; wait' "$SUBJECTS/mapper"
	equal "$(uniq -c <<<"$output" | tr -s ' ')" " 10 $plain"
	run -0 report '[e["pid"] for e in p if e["image"] == "mapper"]'
	equal "$output" "[$(printf '1, %.0s' {1..9})1]"
}

# --- death ---

# Starts WORD... with a subject in the middle of its work; its number in $left.
start_half() {
	rm -f in out
	mkfifo in
	"$@" "$SUBJECTS/mapper" -n 100 -p <in >out 3>&- &
	parent=$!
	exec 9>in
	eventually grep -q half out
	left=$(pgrep -P "$parent")
}

@test "a program that dies with its parent dies with run" {
	need setpriv
	need pgrep
	gone() { # but its new parent need not have noticed
		! is_alive "$left"
	}
	while read -r lock; do
		start_half "$BUILD/mmgate" run --quiet --lock "$lock" \
			--hooks symbols -o "$LOGS" -- setpriv --pdeathsig KILL
		kill -KILL "$parent"
		eventually gone
		exec 9>&-
		run -0 counts_of mapper mmap
		equal "$output" '[50]' "under $lock"
		# The run that never ended is no obstacle to the next.
		run -0 tree --lock "$lock" -- "$SUBJECTS/mapper" -n 10
		run -0 counts_of mapper mmap
		equal "$output" '[10]' "under $lock"
	done < <(locks)
}

@test "a program whose run was killed goes on, and keeps its directory" {
	need pgrep
	start_half "$BUILD/mmgate" run --quiet --lock "$ONE_LOCK" \
		--hooks symbols -o "$LOGS" --
	kill -KILL "$parent"
	run -2 tree -- true
	contains "$output" 'in use'
	echo >&9
	exec 9>&-
	eventually grep -q sum: out
	run -0 counts_of mapper mmap
	equal "$output" '[100]'
}

# --- setuid ---

# raised NAME PROGRAM: a copy that changes its user when it is executed.
raised() {
	is_root || skip 'needs root, to make a file of another user'
	chmod 711 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR"/* "$BATS_TEST_TMPDIR"
	cp "$(type -P id)" who
	cp "$2" "$1"
	chown 65534 who "$1"
	chmod 4755 who "$1"
	[ "$(./who -u)" = 65534 ] || skip 'no setuid programs on this mount'
}

@test "a setuid program in the tree and what it starts are left alone" {
	raised mapper2 "$SUBJECTS/mapper"
	raised env2 "$(type -P env)"
	script='./mapper2 -n 10; "$0" -n 10; ./env2 "$0" -n 10'
	run -0 sh -c "$script" "$SUBJECTS/mapper"
	plain=$output
	while read -r lock; do
		run -0 --separate-stderr tree --lock "$lock" -- sh -c \
			"$script" "$SUBJECTS/mapper"
		equal "$output" "$plain"
		equal "$stderr" '' stderr
		# Its loader takes LD_PRELOAD away from its children, too.
		run -0 report '[e["image"] for e in p if e["image"] != "sh" and
			e["image"] != "dash"]'
		equal "$output" "['mapper']"
	done < <(locks)
}

@test "run says of a setuid program that it is not gated" {
	raised mapper2 "$SUBJECTS/mapper"
	printf '#!%s\n' "$PWD/mapper2" >script
	chmod +x script
	for program in ./mapper2 ./script; do
		run -125 --separate-stderr mmgate run -o "$LOGS" -- "$program"
		contains "$stderr" setuid
		run -0 --separate-stderr mmgate run --force -o "$LOGS" -- \
			./mapper2 -n 10
		contains "$stderr" 'without the library'
		contains "$stderr" 'not covered: ./mapper2'
	done
}

@test "a copy that a setuid program does load is passive" {
	raised mapper2 "$SUBJECTS/mapper"
	unshare -m true 2>/dev/null || skip 'may not mount here'
	# In the system's own directory and setuid itself, as the loader wants.
	mkdir lib
	cp "$LIBRARY" lib/
	chmod 4755 lib/libmmgate.so
	mkdir -m 777 "$LOGS"
	cat >trusted <<-'EOS'
		mount -t overlay -o "lowerdir=$PWD/lib:/usr/lib" mmgate \
			/usr/lib || exit 77
		export LD_PRELOAD=libmmgate.so MMGATE_HOOKS=symbols
		export MMGATE_LOG=$1
		shift
		exec "$@"
	EOS
	run unshare -m sh trusted "$LOGS" "$SUBJECTS/mapper" -n 10
	[ "$status" != 77 ] || skip 'no overlay mounts here'
	run -0 counts_of mapper mmap
	equal "$output" '[10]' 'without setuid'
	rm -f "$LOGS"/*
	raised cat2 "$(type -P cat)"
	run -0 unshare -m sh trusted "$LOGS" ./cat2 /proc/self/maps
	contains "$output" libmmgate.so
	run -0 --separate-stderr unshare -m sh trusted "$LOGS" ./mapper2 -n 10
	equal "$output" "$("$SUBJECTS/mapper" -n 10)"
	# Not even a bad value is worth a word.
	run -0 --separate-stderr env MMGATE_LOCK=mutexx \
		unshare -m sh trusted "$LOGS" ./mapper2 -n 10
	equal "$stderr" '' stderr
	equal "$(ls -A "$LOGS")" ''
}

# --- programs of the other class, and those that look into others ---

# 32 bits without 32-bit headers: libc's calls are declared here.
build_32() {
	cat >old.c <<-'EOC'
		extern int puts(const char *);
		extern void exit(int);
		void _start(void);
		void _start(void)
		{
			puts("32 bits");
			exit(3);
		}
	EOC
	for libc in /lib32 /lib/i386-linux-gnu /usr/lib32; do
		${CC:-cc} -m32 -O1 -nostdlib -nostartfiles -fno-pic -no-pie \
			-o old old.c "$libc/libc.so.6" \
			-Wl,-dynamic-linker,/lib/ld-linux.so.2 2>/dev/null &&
			run ./old && [ "$status" = 3 ] && return
	done
	skip 'no 32-bit programs here'
}

@test "a 32-bit child runs, and its loader's one line says what it lacks" {
	build_32
	while read -r lock; do
		run -0 --separate-stderr tree --lock "$lock" -- sh -c \
			'./old; echo $?; "$0" -n 10' "$SUBJECTS/mapper"
		equal "$output" "32 bits
3
$("$SUBJECTS/mapper" -n 10)"
		# The line is the loader's: 'ERROR: ld.so: object ... from
		# LD_PRELOAD cannot be preloaded (wrong ELF class: ...'.
		equal "${#stderr_lines[@]}" 1 'lines on stderr'
		contains "$stderr" 'wrong ELF class'
		run -0 counts_of mapper mmap
		equal "$output" '[10]'
	done < <(locks)
	run -125 --separate-stderr mmgate run -o "$LOGS" -- ./old
	equal "${#stderr_lines[@]}" 1 'lines on stderr'
}

@test "strace inherits the environment and traces as ever" {
	need strace
	strace -f -o plain "$SUBJECTS/mapper" -t 2 -n 10 >out ||
		skip 'strace may not trace here'
	while read -r lock; do
		run -0 --separate-stderr tree --lock "$lock" -- strace -f \
			-o trace "$SUBJECTS/mapper" -t 2 -n 10
		equal "$output" "$(cat out)" "under $lock"
		equal "$stderr" '' stderr
		run -0 counts_of mapper mprotect
		equal "$output" '[20]'
		# -ff, through vfork and into what it becomes.
		run -0 tree --lock "$lock" --skip strace -- strace -f -o trace \
			sh -c '"$0" -n 10; :' "$SUBJECTS/mapper"
		run -0 report '[e["image"] for e in p][1:]'
		equal "$output" "['mapper']"
	done < <(locks)
}

@test "gdb inherits the environment and runs a program as ever" {
	need gdb
	debug() {
		"$@" gdb -nx -batch -ex 'run -t 2 -n 10 >printed' \
			-ex 'info inferiors' "$SUBJECTS/mapper" 2>&1 </dev/null |
			sed 's/(process [0-9]*)/(process N)/; /LWP/d; /New process/d'
		cat printed
	}
	plain=$(debug env)
	[[ $plain = *'exited normally'* ]] || skip 'gdb may not run here'
	while read -r lock; do
		equal "$(debug tree --lock "$lock" --)" "$plain" "under $lock"
		run -0 counts_of mapper mprotect
		equal "$output" '[20]'
	done < <(locks)
}

@test "gdb stops a program in the middle of its calls and lets it go" {
	need gdb
	counted() {
		report 'c["mmap"]["count"]'
	}
	goes_on() {
		[ "$(counted)" -gt "$before" ]
	}
	while read -r lock; do
		rm -rf "$LOGS"
		mkdir "$LOGS"
		env "${SETTINGS[@]}" MMGATE_LOCK="$lock" MMGATE_EVENTS=off \
			"$SUBJECTS/mapper" -t 4 -n 1000000000 3>&- &
		left=$!
		eventually counted >/dev/null
		timeout 60 gdb -nx -batch -p "$left" \
			-ex 'thread apply all backtrace' -ex detach \
			>trace 2>&1 </dev/null 3>&- || :
		contains "$(cat trace)" start_thread
		contains "$(cat trace)" detached
		before=$(counted)
		eventually goes_on
		kill -KILL "$left"
		wait "$left" || :
		left=
	done < <(excluding_locks)
}

@test "criu starts under run as it starts without" {
	need criu
	checked() {
		local answer=0

		"$@" criu check >checked 2>&1 || answer=$?
		sed -E 's/\([0-9.]+\)//' checked
		echo "status: $answer"
	}
	plain=$(checked env)
	equal "$(checked "$BUILD/mmgate" run --quiet --lock "$ONE_LOCK" \
		--follow fork -o "$LOGS" --)" "$plain"
}
