#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Programs as the distribution ships them do under each lock what they do
# without the library: the same bytes, the same status.

load helpers

export BATS_TEST_TIMEOUT=400

setup() {
	new_logs
	cd "$BATS_TEST_TMPDIR" || return
	cat >words.py <<-'EOP'
		import random, sys
		rng = random.Random(20051)
		words = [bytes(rng.randrange(97, 123) for _ in range(rng.randrange(2, 12)))
		         for _ in range(5000)]
		out = sys.stdout.buffer
		for _ in range(int(sys.argv[1])):
		    out.write(b" ".join(rng.choices(words, k=2000)) + b"\n")
	EOP
}

# under_each_lock SCRIPT: runs SCRIPT, a file for sh, plain and under each lock
# in directories of their own; output, errors and status must be equal.
under_each_lock() {
	local lock status expected=0

	mkdir plain
	(cd plain && sh ../"$1" >../plain.out 2>../plain.err) || expected=$?
	while read -r lock; do
		mkdir "$lock"
		status=0
		(cd "$lock" && LOGS=../logs.$lock && gate "$lock" sh ../"$1" \
			>"../$lock.out" 2>"../$lock.err") || status=$?
		equal "$status" "$expected" "status under $lock"
		same plain.out "$lock.out"
		same plain.err "$lock.err"
	done < <(locks)
}

# The gate was there: not so in programs whose calls all come from libc itself.
calls_seen() {
	local lock

	while read -r lock; do
		LOGS=logs.$lock
		run -0 report 'd["total"]["calls"] > 0'
		equal "$output" True "calls seen under $lock"
	done < <(locks)
}

# Every file that the script left behind is the same, too.
same_files() {
	local lock

	while read -r lock; do
		run -0 diff -r plain "$lock"
	done < <(locks)
}

@test "xz with two threads packs 12 MB and unpacks it" {
	need xz
	"$PYTHON" words.py 900 >text
	holds "$(stat -c %s text)" -ge 12000000 'size of the file'
	cat >script <<-'EOS'
		xz -T2 -0 --block-size=2MiB -c ../text >text.xz &&
		xz -T2 -dc text.xz | cksum
		cksum text.xz
		xz -T2 -t ../script
	EOS
	under_each_lock script
	equal "$(cut -d' ' -f1,2 plain.out | head -1)" \
		"$(cksum <text | cut -d' ' -f1,2)"
	same_files
}

@test "a threaded python3 script with maps of its own" {
	cat >maps.py <<-'EOP'
		import gc, hashlib, mmap, os, sys, tempfile, threading
		sums = [None] * 8
		def work(n):
		    h = hashlib.sha256()
		    for i in range(60):
		        with mmap.mmap(-1, 1 << 18, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as m:
		            m[:] = bytes([n * 31 + i & 255]) * len(m)
		            m.resize(1 << 19)
		            if hasattr(m, "madvise"):
		                m.madvise(mmap.MADV_WILLNEED)
		            h.update(m[:])
		        with tempfile.TemporaryFile() as f:
		            f.write(os.urandom(0) + bytes(range(256)) * 64)
		            f.flush()
		            with mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m:
		                h.update(m[i:])
		        gc.collect()
		    sums[n] = h.hexdigest()
		threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
		for t in threads: t.start()
		for t in threads: t.join()
		print(*sums, sep="\n")
		try:
		    mmap.mmap(-1, 1 << 62)
		except OSError as e:
		    print(e)
		sys.exit(17)
	EOP
	echo "exec $PYTHON ../maps.py" >script
	under_each_lock script
	equal "$(wc -l <plain.out)" 9
	calls_seen
}

@test "sqlite3 with its file mapped" {
	need sqlite3
	cat >work.sql <<-'EOQ'
		PRAGMA mmap_size=268435456;
		CREATE TABLE t(id INTEGER PRIMARY KEY, k INTEGER, v TEXT);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
			WHERE i < 60000)
			INSERT INTO t SELECT i, i * 7919 % 10007,
				hex(i * i) || substr('abcdefghij', i % 9) FROM n;
		CREATE INDEX k ON t(k);
		SELECT count(*), sum(k), max(v), sum(length(v)) FROM t;
		DELETE FROM t WHERE k % 3 = 0;
		VACUUM;
		PRAGMA mmap_size=4194304;
		SELECT count(*), sum(id) FROM t WHERE k BETWEEN 100 AND 900;
		PRAGMA integrity_check;
		SELECT nothing FROM nowhere;
	EOQ
	echo 'sqlite3 data.db <../work.sql' >script
	under_each_lock script
	contains "$(cat plain.out)" ok
	same_files
	calls_seen
}

@test "gcc compiles one of our own files to the same text" {
	need gcc
	cat >script <<-EOS
		gcc -std=gnu11 -O2 -D_GNU_SOURCE -I$ROOT/shim -S -o gate.s \
			$ROOT/shim/gate.c
		gcc -std=gnu11 -O2 -D_GNU_SOURCE -c -o table.o $ROOT/tools/table.c
		gcc -c $ROOT/shim/no_such_file.c
	EOS
	under_each_lock script
	[ -s plain/gate.s ]
	same_files
}

@test "a shell pipeline of small programs" {
	cat >script <<-'EOS'
		find /usr/share/doc -maxdepth 1 2>/dev/null | sort | head -300 |
			sed 's/[aeiou]/_/g' | tr a-z A-Z | uniq | awk '{ n += length }
				END { print NR, n }'
		for i in 1 2 3 4 5; do (exit $i); echo $?; done
		grep -c . /etc/passwd
		ls /nothing-there
		sh -c 'kill -9 $$'
	EOS
	under_each_lock script
}

redis() {
	redis-cli -s "$PWD/redis.sock" "$@"
}

redis_answers() {
	[ "$(redis ping 2>/dev/null)" = PONG ]
}

redis_saved() {
	redis info persistence | grep -q 'rdb_bgsave_in_progress:0'
}

redis_loaded() {
	redis info persistence | grep -q '^loading:0'
}

# redis_session WORD...: a server started by WORD..., under load with saves in
# the background, then with data of ours; prints what it holds.
redis_session() {
	rm -f dump.rdb redis.sock
	"$@" redis-server --port 0 --unixsocket "$PWD/redis.sock" --save '' \
		--dir "$PWD" --enable-debug-command yes --io-threads 2 \
		--logfile "$PWD/redis.log" >/dev/null 3>&- &
	child=$!
	eventually redis_answers
	redis-benchmark -s "$PWD/redis.sock" -n 3000 -c 20 -P 8 -r 2000 -d 400 \
		-t set,get,lpush,mset --threads 2 -q >benchmark 2>&1 &
	load=$!
	redis bgsave >/dev/null
	wait "$load"
	eventually redis_saved
	redis flushall >/dev/null
	"$PYTHON" - <<-'EOP' | redis >/dev/null
		for i in range(20000):
		    print(f"SET key:{i} {'v' * (i % 700)}{i}")
		    if i % 10 == 0:
		        print(f"ZADD set:{i % 7} {i} member:{i}")
	EOP
	redis bgsave >/dev/null
	eventually redis_saved
	redis info persistence | grep -o 'rdb_last_bgsave_status:[a-z]*'
	redis dbsize
	redis debug digest
	redis shutdown nosave >/dev/null 2>&1 || :
	status=0
	wait "$child" || status=$?
	echo "status $status"
	# The dump, as a server without the library reads it.
	redis-server --port 0 --unixsocket "$PWD/redis.sock" --save '' \
		--dir "$PWD" --enable-debug-command yes \
		--logfile "$PWD/redis2.log" >/dev/null 3>&- &
	child=$!
	eventually redis_answers
	eventually redis_loaded
	redis debug digest
	redis shutdown nosave >/dev/null 2>&1 || :
	wait "$child"
}

@test "redis-server under load, with background saves" {
	need redis-server
	need redis-benchmark
	[ "${#PWD}" -lt 90 ] || cd "$(mktemp -d)"
	redis_session env >plain.out
	contains "$(cat plain.out)" 'rdb_last_bgsave_status:ok'
	equal "$(sort plain.out | uniq -d | wc -l)" 1 'digests that are equal'
	while read -r lock; do
		redis_session "$BUILD/mmgate" run --quiet --lock "$lock" \
			--hooks symbols --follow fork -o "$LOGS" -- >"$lock.out"
		same plain.out "$lock.out"
		run -0 report 'len(p) >= 3 and d["total"]["calls"] > 0'
		equal "$output" True 'the server and its savers have logs'
	done < <(locks)
}
