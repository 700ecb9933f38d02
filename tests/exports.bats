#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The library as a file: what it gives and what it needs.

load helpers

symbols() { # of ops.def
	sed -n 's/^OP_SYMBOL(\([a-z_0-9]*\),.*/\1/p' "$ROOT/shim/ops.def" | sort
}

@test "the library exports the wrapped calls and nothing else" {
	run -0 nm -D --defined-only "$LIBRARY"
	exported=$(awk '$2 ~ /[TWiu]/ { sub(/@.*/, "", $3); print $3 }' \
		<<<"$output" | sort)
	equal "$exported" "$(symbols)"
}

@test "the library needs libc alone" {
	run -0 readelf -dW "$LIBRARY"
	needed=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$output")
	case $needed in
	'' | libc.so.6) ;;
	*) equal "$needed" libc.so.6 ;;
	esac
}

@test "the library takes nothing of libc but errno, and whether it is glibc" {
	run -0 nm -D --undefined-only "$LIBRARY"
	taken=$(awk '{ sub(/@.*/, "", $NF); print $(NF - 1), $NF }' <<<"$output")
	equal "$taken" $'U __errno_location\nw gnu_get_libc_version'
}

@test "the library runs on any glibc from 2.17 on" {
	run -0 readelf -VW "$LIBRARY"
	while read -r version; do
		newest=$(printf '%s\n2.17\n' "$version" | sort -V | tail -1)
		equal "$newest" 2.17 "it asks for GLIBC_$version"
	done < <(grep -o 'GLIBC_[0-9.]*' <<<"$output" | sed 's/GLIBC_//' |
		sort -u)
}

@test "its thread-local data are static and below 64 bytes" {
	run -0 readelf -dW "$LIBRARY"
	contains "$output" STATIC_TLS
	run -0 readelf -lW "$LIBRARY"
	size=$(awk '$1 == "TLS" { print $6 }' <<<"$output")
	holds "$((size))" -le 64 'size of TLS'
	holds "$((size))" -gt 0 'size of TLS'
}

@test "it binds at start, stays loaded, and starts first" {
	run -0 readelf -dW "$LIBRARY"
	contains "$output" INITFIRST
	contains "$output" NODELETE
	contains "$output" NOW
	run -0 readelf -lW "$LIBRARY"
	lacks "$(grep GNU_STACK <<<"$output")" RWE
}

@test "both builds write the same bytes: no size depends on the word" {
	# record.h asserts the sizes; -m32 holds them to the other word.
	if ! printf 'int x;\n' | "${CC:-cc}" -m32 -x c -c -o /dev/null - \
		2>/dev/null; then
		skip 'the compiler has no 32-bit target'
	fi
	run -0 "${CC:-cc}" -m32 -ffreestanding -std=gnu11 -fsyntax-only \
		-I"$ROOT/shim" -x c "$ROOT/shim/record.h"
}
