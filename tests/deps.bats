#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What is missing is installed once, by whoever may; others are told how.

load helpers

# A place where everything is there but redis, and where the package managers
# only write down what they were asked.
setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir bin
	ln -s /usr/bin/* /bin/* bin/ 2>/dev/null || :
	while read -r name; do
		fake "$name" :
	done < <(sed -n 's/^\(build\|demo\|check\) *\([a-z][a-z0-9.-]*\) .*/\2/p' \
		"$ROOT/tools/scripts/deps")
	rm -f bin/redis-server bin/redis-benchmark bin/apt-* bin/dnf bin/apk \
		bin/pacman bin/sudo bin/id bin/clang
	fake clang :
	fake id 'echo 0'
	fake sudo 'exit 1'
}

fake() { # NAME SCRIPT
	rm -f "bin/$1"
	printf '#!/bin/sh\n%s\n' "$2" >"bin/$1"
	chmod +x "bin/$1"
}

deps() {
	PATH=$PWD/bin "$ROOT/tools/scripts/deps" "$@"
}

# An install of $2 by $1 brings redis.
fake_manager() {
	fake "$1" "echo \"$1 \$*\" >>$PWD/asked
		case \"\$*\" in *$2*)
			cp $PWD/bin/clang $PWD/bin/redis-server
			cp $PWD/bin/clang $PWD/bin/redis-benchmark ;;
		esac"
}

@test "what is missing is installed, and a second run installs nothing" {
	fake_manager apt-get redis-server
	fake apt-cache :
	run -0 deps check
	equal "$(cat asked)" "apt-get update -q
apt-get install -q -y --no-install-recommends redis-server redis-tools"
	rm asked
	run -0 deps check
	equal "$output" ''
	[ ! -e asked ]
}

@test "each package manager gets its own names" {
	for manager in dnf apk pacman; do
		rm -f bin/redis-* bin/apk bin/dnf bin/pacman asked
		fake_manager $manager redis
		run -0 deps check
		contains "$(tail -1 asked)" redis
	done
}

@test "who may not install is told the exact command, with exit 1" {
	fake_manager apt-get redis
	fake apt-cache :
	fake id 'echo 1000'
	run -1 --separate-stderr deps check
	contains "$stderr" "apt-get update -q && env \
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
redis-server redis-tools"
	[ ! -e asked ]
}

@test "sudo is used where it asks for no password" {
	fake_manager apt-get redis
	fake apt-cache :
	fake id 'echo 1000'
	# shellcheck disable=SC2016 # the fake's own
	fake sudo 'shift; exec "$@"'
	run -0 deps check
	contains "$(cat asked)" 'install'
}

@test "without a package manager it is said what is missing" {
	run -1 --separate-stderr deps check
	contains "$stderr" redis-server
}

@test "an install that brings nothing is an error" {
	fake_manager apt-get nothing-of-the-sort
	fake apt-cache :
	run -1 --separate-stderr deps check
	contains "$stderr" 'still missing: redis-server'
}
