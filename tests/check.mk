# SPDX-License-Identifier: MIT
# Checks, and what they need.  tests/unit.mk has the unit programs and models.

SCRIPTS := tools/scripts
SUBJECTS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/subjects/*.c))
BATS := $(filter-out tests/%_all.bats,$(sort $(wildcard tests/*.bats)))
C_FILES := $(wildcard shim/*.[ch] tools/*.[ch] examples/*.[ch] \
	tests/*/*.[ch] tests/subjects/*/*.[ch])
SHELL_FILES = $(shell grep -lsE '^\#!.*(bash|/sh)' $(SCRIPTS)/* .ci/*)
# What shellcheck cannot know of bats: each test is a subshell, run sets
# variables, and inner shells get their scripts quoted.
BATS_KNOWS := SC2016,SC2030,SC2031,SC2154
# What must fail when the library does nothing.
CORE := tests/exports.bats tests/counts.bats tests/locks.bats

deps:
	@$(SCRIPTS)/deps check

deps-all:
	@$(SCRIPTS)/deps all

demo:
	@$(SCRIPTS)/deps demo
	@$(MAKE) --no-print-directory all
	@$(SCRIPTS)/demo $(BUILD)

subjects: $(SUBJECTS)

$(BUILD)/tests/subjects/%: $(BUILD)/tests/subjects/%.o
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $<

# Each word is a target here or a file of tests; ends with the line that counts
# them all.
check: deps
	@$(MAKE) --no-print-directory all subjects
	@BUILD=$(BUILD) $(SCRIPTS)/check check-layers check-shell check-format \
		check-werror check-unit check-ubsan check-tsan check-models \
		check-promela check-fuzz \
		check-failsafe check-under-short $(BATS)

check-all: deps-all
	@$(MAKE) --no-print-directory all subjects
	@BUILD=$(BUILD) $(SCRIPTS)/check $(sort $(wildcard tests/*_all.bats))

check-layers:
	@$(SCRIPTS)/layers "$(SHIM_LAYERS)" "$(TOOL_LAYERS)" "$(SHARED)"

check-shell:
	@shellcheck $(SHELL_FILES)
	@shellcheck --exclude=$(BATS_KNOWS) tests/*.bash tests/*.bats

check-format:
	@clang-format --dry-run -Werror $(C_FILES)

# Both compilers, without a warning.
check-werror:
	@for cc in gcc clang; do \
		$(MAKE) --no-print-directory BUILD=build-$$cc CC=$$cc \
			EXTRA=-Werror all subjects || exit 1; \
	done

# The suite can fail: with an empty library in place of ours, the core does.
check-failsafe: $(BUILD)/mmgate $(SUBJECTS)
	@$(SCRIPTS)/failsafe $(BUILD) $(CORE)

.PHONY: deps deps-all demo subjects check check-all check-layers \
	check-shell check-format check-werror check-failsafe
