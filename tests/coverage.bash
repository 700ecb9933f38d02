# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Counting the truth: strace says where each system call instruction lies.

# traced HOOKS PRELOAD CMD...: leaves "op caught missed" lines in $TRUTH, and
# the missed places in $MISSED.
traced() {
	local hooks=$1 preload=$2

	shift 2
	LOCK=$(lock_in_turn)
	TRUTH=$BATS_TEST_TMPDIR/truth
	MISSED=$BATS_TEST_TMPDIR/missed
	strace -f -i -y --seccomp-bpf -o "$BATS_TEST_TMPDIR/trace" \
		-e trace=mmap,munmap,mprotect,madvise,mremap,brk,pkey_mprotect,execve,clone,clone3,fork,vfork \
		-E LD_PRELOAD="$preload" -E MMGATE_HOOKS="$hooks" -E MMGATE_LOCK="$LOCK" \
		-E MMGATE_FOLLOW=fork -E MMGATE_LOG="$LOGS" "$@" \
		>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || {
		cat "$BATS_TEST_TMPDIR/err" >&2
		return 1
	}
	"$PYTHON" "$ROOT/tests/truth.py" "$BATS_TEST_TMPDIR/trace" \
		>"$TRUTH" 2>"$MISSED"
}

# What the logs count, in the form of $TRUTH without its last column.
counted() {
	report '"\n".join("%s %d" % (o, n) for o, n in sorted(
		(o, sum(q["calls"].get(o, {"count": 0})["count"] for q in p))
		for o in {o for q in p for o in q["calls"]}))'
}

# all_caught CMD...: nothing is missed, and the log has each call once.
all_caught() {
	all_caught_with libc "$LIBRARY" "$@"
}

# all_caught_with HOOKS PRELOAD CMD...
all_caught_with() {
	traced "$@"
	equal "$(cat "$MISSED")" "" "missed calls under $LOCK"
	equal "$(counted)" "$(cut -d ' ' -f 1,2 "$TRUTH")" "the log under $LOCK"
}
