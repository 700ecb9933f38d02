# SPDX-License-Identifier: MIT
# Long runs: constant memory, counters that never go back, no event astray.

SOAK_SECONDS ?= 1200

soak: all subjects
	@$(SCRIPTS)/soak $(BUILD) $(SOAK_SECONDS)

.PHONY: soak
