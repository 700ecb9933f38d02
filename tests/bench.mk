# SPDX-License-Identifier: MIT
# Figures, and the list of targets.

# About 20 minutes; writes $(BUILD)/bench.md.
bench: all subjects
	@$(SCRIPTS)/bench $(BUILD)

# About 2 minutes, to see whether it works.
bench-short: all subjects
	@BENCH_ROUNDS=2 BENCH_SECONDS=0.1 $(SCRIPTS)/bench $(BUILD)

# What `make bench` has written, into the README.
bench-readme:
	@$(SCRIPTS)/bench --readme README.md $(BUILD)/bench.md

help:
	@echo 'make              the library, the command and the examples, in $(BUILD)/'
	@echo 'make demo         installs what is missing, builds, shows three locks'
	@echo 'make check        installs what is missing, builds, runs the tests'
	@echo 'make check-all    the heavy programs too: JVM, node, a scanner, allocators'
	@echo 'make check-under  much of it again under auto, and with place=thread'
	@echo 'make deps         installs what the tests need; deps-all: all of it'
	@echo 'make bench        what it costs, beside references of the same run: 20 minutes'
	@echo 'make bench-readme puts that into the README; bench-short: 2 minutes only'
	@echo 'make soak         a mix of programs for SOAK_SECONDS, $(SOAK_SECONDS) by default'
	@echo 'make install      to $$(DESTDIR)$$(PREFIX), $(PREFIX) by default; uninstall'
	@echo 'make clean        removes what was built'
	@echo 'V=1 shows commands; CC=clang, SAN=undefined, BUILD=DIR choose a build'

.PHONY: bench bench-short bench-readme help
