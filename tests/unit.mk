# SPDX-License-Identifier: MIT
# Unit tests, the models of the locks, and both under sanitizers.

unit = $(BUILD)/tests/unit
model = $(BUILD)/tests/models
UNIT_TESTS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/test_*.c))
UNIT_HELPERS := $(patsubst %.c,$(BUILD)/%.o,\
	$(filter-out tests/unit/test_% tests/unit/race.c,\
	$(wildcard tests/unit/*.c)))
LOCK_LAYERS := $(filter lock_% permits locks,$(SHIM_LAYERS))
# What a test may call: the tools without their commands, and the locks.  Not
# the rest of shim/: its mem.c, for one, would stand in for libc's.
UNIT_OBJECTS := $(UNIT_HELPERS) \
	$(filter-out %/main.o $(BUILD)/tools/cmd_%.o,$(TOOL_OBJECTS)) \
	$(patsubst %,$(unit)/shim-%.o,$(LOCK_LAYERS) auto clock elf)
MODEL_SHIM := $(LOCK_LAYERS:%=$(model)/shim-%.o) $(model)/explore.o
RACE_LOCKS := $(filter-out none,$(patsubst lock_%,%,$(filter lock_%,$(SHIM_LAYERS))))
RACES := $(LOCK_LAYERS:%=$(unit)/shim-%.o) $(unit)/shim-clock.o \
	$(unit)/shim-elf.o $(unit)/shim-text.o $(unit)/race.o

# Header names such as elf.h are libc's too, hence -iquote.
$(unit)/%.o: override CPPFLAGS += -iquote shim
# Few slots, so that a full queue is reached; few stamps, to save states.
$(model)/%.o: override CPPFLAGS += -iquote shim -iquote tests/models \
	-DLOCK_SLOTS=2 -DLOCK_STAMPS=1

$(unit)/shim-%.o: shim/%.c Makefile
	@echo "  CC    $< (unit)"; mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(UNIT_TESTS): %: %.o $(UNIT_OBJECTS)
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^ $(RESOLVE_LIBS) -lm

# Its functions beside a wrap_call() of the test's own.
$(unit)/test_patch: $(if $(filter x86_64%,$(MACHINE)),$(unit)/shim-patch_x86_64.o)

# The real code, its atomics and futex calls made steps.
$(model)/shim-%.o: shim/%.c tests/models/instrument.h Makefile
	@echo "  CC    $< (model)"; mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -include tests/models/instrument.h \
		-c -o $@ $<

# -z now: binding a symbol late needs more stack than a fibre has.
$(model)/model_lock: $(model)/model_lock.o $(model)/flawed.o $(MODEL_SHIM)
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,-z,now -o $@ $^

$(model)/flawed.o: tests/models/flawed.c tests/models/instrument.h Makefile
	@echo "  CC    $< (model)"; mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -include tests/models/instrument.h \
		-c -o $@ $<

$(model)/model_gate: $(model)/model_gate.o $(model)/gate_model.o $(MODEL_SHIM) \
		$(patsubst %,$(BUILD)/shim/%.o,text knobs diag elf clock log \
		auto modules stack thread rules figures ways request \
		libc_$(LIBC))
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,-z,now -o $@ $^

# Runs programs, prints what failed in each and one line for all.
define run_all
	@failed=; for program in $1; do \
		echo "== $${program#$(BUILD)/tests/}"; \
		$$program >$$program.out 2>&1 || failed="$$failed $$program"; \
		grep -v '^ok' $$program.out; \
	done; \
	count=$$(cat $(addsuffix .out,$1) | grep -c '^ok'); \
	if [ -n "$$failed" ]; then \
		echo "$@: FAILED:$$failed" >&2; exit 1; \
	fi; \
	echo "$@: all $$count checks passed"
endef

check-unit: $(UNIT_TESTS) check-record32
	$(call run_all,$(UNIT_TESTS))

# 32-bit programs write the same bytes: record.h asserts it, if asked.
check-record32:
	@m32="$(CC) -m32 -std=gnu11 -ffreestanding -fsyntax-only"; \
	if ! echo | $$m32 -x c - 2>/dev/null; then \
		echo "ok - record.h # skip: $(CC) cannot compile for 32 bits"; \
	elif $$m32 -x c shim/record.h; then \
		echo "ok - record.h is the same for 32 bits"; \
	else \
		echo "check-record32: FAILED: record.h" >&2; exit 1; \
	fi

check-models: $(model)/model_lock $(model)/model_gate check-promela
	$(call run_all,$(model)/model_lock $(model)/model_gate)

# Abstract models, for spin(1): what each must report, and its settings.
PROMELA := sound-plain sound-rounds sound-spin sound-timeouts sound-abandon \
	sound-reserve sound-reserve-abandon flawed-wake flawed-look \
	flawed-keep
PROMELA_sound-plain := -DTHREADS=4 -DROUNDS=1
PROMELA_sound-rounds := -DTHREADS=3 -DROUNDS=3
PROMELA_sound-spin := -DTHREADS=3 -DSPIN
PROMELA_sound-timeouts := -DTHREADS=3 -DTIME_OUTS=2
PROMELA_sound-abandon := -DTHREADS=3 -DABANDON -DROUNDS=1 -DTIME_OUTS=2
PROMELA_sound-reserve := -DTHREADS=3 -DROUNDS=1 -DRESERVE=2 -DTIME_OUTS=1
PROMELA_sound-reserve-abandon := -DTHREADS=3 -DROUNDS=1 -DRESERVE=2 \
	-DABANDON -DTIME_OUTS=1
PROMELA_flawed-wake := -DFLAW_WAKE
PROMELA_flawed-look := -DFLAW_LOOK -DABANDON -DROUNDS=1 -DTIME_OUTS=1
PROMELA_flawed-keep := -DFLAW_KEEP -DTHREADS=3 -DROUNDS=2 -DRESERVE=2

check-promela:
	@if command -v spin >/dev/null; then \
		$(MAKE) --no-print-directory run-promela; \
	else \
		echo "ok - abstract models # skip: spin is not installed"; \
	fi

run-promela: $(PROMELA:%=$(model)/%.promela)
	@cat $(^:=.out); ! grep -h '^not ok' $(^:=.out) >&2
	@echo "check-promela: all $(words $(PROMELA)) checks passed"

$(model)/%.promela: tests/models/futex_lock.pml tests/unit.mk
	@mkdir -p $@.dir
	$(Q)cd $@.dir && spin -a $(PROMELA_$*) $(CURDIR)/$< && \
		$(CC) -w -O2 -DSAFETY -o pan pan.c
	$(Q)cd $@.dir && ./pan -m100000 >pan.out
	@sh -c 'found=sound; \
		grep -q "errors: 0" $@.dir/pan.out || found=flawed; \
		grep -qE "max search depth too small|out of memory" \
			$@.dir/pan.out && found=unfinished; \
		case $* in $$found-*) echo "ok - model $*: $$found";; \
		*) echo "not ok - model $*: expected $*, got $$found";; esac \
		>$@.out'
	@touch $@

# ThreadSanitizer reports no race behind a lock, and does behind none.
check-tsan:
	@$(MAKE) --no-print-directory SAN=thread EXTRA='$(EXTRA)' run-races

run-races: $(unit)/race
	@for lock in $(RACE_LOCKS); do \
		if $< $$lock >$<.out 2>&1; then \
			echo "ok - $$lock: no race"; \
		else \
			cat $<.out; echo "$@: FAILED: $$lock" >&2; exit 1; \
		fi; \
	done; \
	if $< none >$<.out 2>&1 || ! grep -q 'data race' $<.out; then \
		echo "$@: FAILED: no race reported behind none" >&2; exit 1; \
	fi; \
	echo "ok - none: race reported"; \
	echo "check-tsan: all checks passed"

$(unit)/race: $(RACES)
	@echo "  LINK  $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -pthread -o $@ $^

check-ubsan:
	@$(MAKE) --no-print-directory SAN=undefined,address \
		BUILD=build-sanitized \
		EXTRA='$(EXTRA) -fno-sanitize-recover=all' check-unit

.PHONY: check-unit check-record32 check-models check-promela run-promela \
	check-tsan run-races check-ubsan
