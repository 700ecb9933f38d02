# SPDX-License-Identifier: MIT
# Figures, and the list of targets.

bench: all subjects
	@$(SCRIPTS)/bench $(BUILD)

help:
	@echo 'make              the library, the command and the examples, in $(BUILD)/'
	@echo 'make demo         installs what is missing, builds, shows three locks'
	@echo 'make check        installs what is missing, builds, runs the tests'
	@echo 'make check-all    the heavy programs too: JVM, node, a scanner, allocators'
	@echo 'make deps         installs what the tests need; deps-all: all of it'
	@echo 'make bench        prints what it costs, beside references of the same run'
	@echo 'make soak         a mix of programs for SOAK_SECONDS, $(SOAK_SECONDS) by default'
	@echo 'make install      to $$(DESTDIR)$$(PREFIX), $(PREFIX) by default; uninstall'
	@echo 'make clean        removes what was built'
	@echo 'V=1 shows commands; CC=clang, SAN=undefined, BUILD=DIR choose a build'

.PHONY: bench help
