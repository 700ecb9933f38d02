# SPDX-License-Identifier: MIT
# mmgate.  `make help` lists the targets.

VERSION := 0.1.0
PREFIX ?= /usr/local
CC ?= cc
SAN ?=
# 0: a library without any code that patches code.
HOOKS_PATCH ?= 1
BUILD := build$(if $(SAN),-$(SAN))$(if $(filter 0,$(HOOKS_PATCH)),-nopatch)
Q := $(if $(V),,@)

# The files, lowest first: each may include only what stands before it.
# `make check-layers` holds them to it.
SHIM_LAYERS := poison hot sys mem text ops record knobs diag elf libc \
	libc_glibc libc_musl clock turn interval lock lock_none lock_mutex lock_spin \
	lock_fifo permits lock_limit lock_rw locks auto world log modules \
	stack span thread rules figures ways request gate place wrap \
	wrap_enter wrap_number wrap_glibc wrap_musl own patch patch_glibc \
	patch_musl patch_all patch_x86_64 patch_aarch64 unpatched init
TOOL_LAYERS := clocks cmd utf8 die units output opts table json ratio hist source \
	merge log log_dir gaps image samples demangle images symbols jit frames \
	unwind sites chains unresolved rows kinds crowd tids habits digest \
	verdict sums causes remedies judge window study worst busy embed \
	html report report_notes report_groups report_sites report_worst \
	report_blame report_json report_text report_diff chart flame \
	report_html export export_folded export_chrome \
	export_prometheus stats sampler \
	rundir capture group spenders launch rewrite preflight probe_calls probe \
	metric config server measure machine profile progress rounds target \
	comparison comparison_json comparison_text search tune advice \
	advice_json advice_text control cmd_run cmd_report cmd_export cmd_set \
	cmd_doctor cmd_compare cmd_tune main
# What tools/ may use of shim/.
SHARED := text ops record knobs

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wcast-qual -Wwrite-strings -Wvla -Wundef -Wformat=2 \
	-Wconversion -Wno-sign-conversion
CFLAGS ?= -O2 -g
override CFLAGS += -std=gnu11 $(WARN) $(EXTRA) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
override CPPFLAGS += -D_GNU_SOURCE -MMD -MP -DMMGATE_VERSION='"$(VERSION)"' \
	-DHOOKS_PATCH=$(HOOKS_PATCH)
MACHINE := $(shell $(CC) -dumpmachine)
# glibc says so in its headers, musl says nothing.
LIBC := $(if $(shell printf '\043include <features.h>\n' | $(CC) -E -dM -x c - | \
	grep __GLIBC__),glibc,musl)
# In the program's threads: no vector registers to save, nothing of libc's that
# needs its start, no thread-local data that allocates.
SHIM_CFLAGS := -fPIC -ffreestanding -fvisibility=hidden -fno-stack-protector \
	-ftls-model=initial-exec -fasynchronous-unwind-tables \
	-mgeneral-regs-only $(if $(filter aarch64%,$(MACHINE)),-mno-outline-atomics)
# One segment of code and constants: each more is a mapping in every program.
SHIM_LDFLAGS := -shared -nostartfiles -Wl,-z,defs -Wl,-z,now -Wl,-z,relro \
	-Wl,-z,initfirst -Wl,-z,nodelete -Wl,-z,noexecstack -Wl,-z,noseparate-code -Wl,--as-needed \
	-Wl,--build-id -Wl,--eh-frame-hdr \
	-Wl,-soname,libmmgate.so -Wl,--version-script=$(BUILD)/shim/exports.map

# Stacks are unwound and code is named by these, where they are installed.
RESOLVE_NEEDS := libunwind uthash elfutils
RESOLVE_HEADER_libunwind := libunwind.h
RESOLVE_HEADER_uthash := uthash.h
RESOLVE_HEADER_elfutils := elfutils/libdwfl.h
RESOLVE_MISSING := $(strip $(foreach need,$(RESOLVE_NEEDS),$(if $(shell \
	printf '\043include <$(RESOLVE_HEADER_$(need))>\n' | \
	$(CC) -E -x c -o /dev/null - 2>&1),$(need))))
RESOLVE_LIBS := $(if $(RESOLVE_MISSING),,-lunwind-$(firstword \
	$(subst -, ,$(MACHINE))) -ldw -lelf -ldl)

sources = $(wildcard $(addprefix $1/,$(addsuffix .c,$2)))
objects = $(patsubst %.c,$(BUILD)/%.o,$(call sources,$1,$2))
# Each file for another libc, another CPU, or the other answer to HOOKS_PATCH.
SHIM_LEFT_OUT := $(if $(filter glibc,$(LIBC)),%_musl,%_glibc) \
	$(if $(filter aarch64%,$(MACHINE)),%_x86_64 patch_all,%_aarch64) \
	$(if $(filter 0,$(HOOKS_PATCH)),patch patch_% wrap_number,unpatched)
SHIM_OBJECTS := $(call objects,shim,$(filter-out $(SHIM_LEFT_OUT),$(SHIM_LAYERS)))
TOOL_LEFT_OUT := $(if $(RESOLVE_MISSING),demangle images symbols frames unwind \
	sites chains,unresolved)
TOOL_FILES := $(filter-out $(TOOL_LEFT_OUT),$(TOOL_LAYERS))
TOOL_OBJECTS := $(call objects,tools,$(TOOL_FILES)) \
	$(patsubst shim/%.c,$(BUILD)/tools/shim-%.o,$(call sources,shim,$(SHARED)))
EXAMPLE_PARTS := common spread
EXAMPLES := $(filter-out $(EXAMPLE_PARTS),\
	$(basename $(notdir $(wildcard examples/*.c))))

all: $(BUILD)/libmmgate.so $(BUILD)/mmgate $(EXAMPLES:%=$(BUILD)/examples/%)

include $(wildcard tests/*.mk tools/dist/*.mk)

$(BUILD)/libmmgate.so: $(SHIM_OBJECTS) $(BUILD)/shim/exports.map
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(SHIM_LDFLAGS) $(LDFLAGS) -o $@ $(SHIM_OBJECTS)

$(BUILD)/mmgate: $(TOOL_OBJECTS)
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(RESOLVE_LIBS) -lm

$(BUILD)/examples/%: $(BUILD)/examples/%.o \
		$(EXAMPLE_PARTS:%=$(BUILD)/examples/%.o)
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ -lm

$(BUILD)/shim/exports.map: shim/exports.map.in shim/ops.def
	@mkdir -p $(@D)
	$(Q)$(CC) -E -P -x c -Ishim $< -o $@

# A copied stack begins at the stack pointer.
$(BUILD)/shim/stack.o: SHIM_CFLAGS += \
	$(if $(filter x86_64%,$(MACHINE)),-mno-red-zone)

$(BUILD)/shim/%.o: shim/%.c Makefile
	@echo "  CC    $<"; mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(SHIM_CFLAGS) -c -o $@ $<

$(BUILD)/tools/shim-%.o: shim/%.c Makefile
	@echo "  CC    $< (tools)"; mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# Which the assembler reads.
$(BUILD)/tools/embed.o: $(wildcard tools/html/*)

$(BUILD)/tools/unresolved.o: override CPPFLAGS += \
	-DRESOLVE_MISSING='"$(subst $(eval) , and ,$(RESOLVE_MISSING))"'

$(BUILD)/tools/%.o: tools/%.c Makefile
	@echo "  CC    $<"; mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -iquote shim -c -o $@ $<

$(BUILD)/%.o: %.c Makefile
	@echo "  CC    $<"; mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -pthread -c -o $@ $<

# The library for other C libraries and machines.
MUSL_CC ?= musl-gcc
AARCH64_CC ?= aarch64-linux-gnu-gcc

musl:
	@$(MAKE) --no-print-directory CC=$(MUSL_CC) BUILD=build-musl \
		build-musl/libmmgate.so

aarch64:
	@$(MAKE) --no-print-directory CC=$(AARCH64_CC) BUILD=build-aarch64 \
		build-aarch64/libmmgate.so

clean:
	rm -rf build build-*

.DEFAULT_GOAL := all
# demo, check, bench and the rest stand in tests/*.mk and tools/dist/*.mk.
.PHONY: all musl aarch64 clean demo check check-all deps bench install help
.SECONDARY:
-include $(wildcard $(BUILD)/*/*.d $(BUILD)/*/*/*.d)
