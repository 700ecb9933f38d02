# SPDX-License-Identifier: MIT
# The same tests under what the program does not choose: lock=auto alone, and
# place=thread with each lock.  The library's auto decides 50 times as often as
# it does for users, as most tests last less than a second.

# *_all: what of their programs is installed.
UNDER := calls counts coverage coverage_all fork hostile_machine \
	hostile_processes hostile_stacks hostile_threads locks locks_each \
	programs programs_all signals starvation
UNDER_SHORT := calls coverage fork hostile_threads
hasty := $(BUILD)/hasty

$(hasty)/mmgate: $(BUILD)/mmgate
	@mkdir -p $(@D)/tests
	$(Q)ln -sfn ../examples $(@D)/examples
	$(Q)ln -sfn ../../tests/subjects $(@D)/tests/subjects
	$(Q)cp $< $@

hasty: all subjects $(hasty)/mmgate
	@$(MAKE) --no-print-directory BUILD=$(hasty) \
		EXTRA='$(EXTRA) -DAUTO_HASTE=50' $(hasty)/libmmgate.so

# About 30 minutes.
check-under: hasty
	@BUILD=$(hasty) LOCKS_UNDER_TEST=auto \
		$(SCRIPTS)/check $(UNDER:%=tests/%.bats)
	@BUILD=$(hasty) PLACE_UNDER_TEST=thread \
		$(SCRIPTS)/check $(UNDER:%=tests/%.bats)

# A minute, for `make check`.
check-under-short: hasty
	@BUILD=$(hasty) LOCKS_UNDER_TEST=auto PLACE_UNDER_TEST=thread \
		FORKS=1000 $(SCRIPTS)/check $(UNDER_SHORT:%=tests/%.bats)

.PHONY: hasty check-under check-under-short
