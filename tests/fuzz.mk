# SPDX-License-Identifier: MIT
# Fuzzers of all that reads what others wrote; they need clang with libFuzzer
# (libclang-rt-dev).  What they learnt is in tests/fuzz/corpus.

FUZZ_CC ?= clang
# Of `make fuzz`: how long each runs, and how many run at a time.
FUZZ_SECONDS ?= 3600
FUZZ_JOBS ?= $(shell nproc)
# Of `make check-fuzz`, behind the corpus.
FUZZ_SHORT := 4

fuzz = $(BUILD)/fuzz
corpus = tests/fuzz/corpus
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SOURCES := tests/unit/make_log.c \
	$(filter-out tests/fuzz/fuzz_%.c,$(wildcard tests/fuzz/*.c)) \
	$(filter-out %/main.c %/merge.c,$(call sources,tools,$(TOOL_FILES))) \
	$(call sources,shim,$(SHARED))
FUZZ_OBJECTS := $(FUZZ_SOURCES:%.c=$(fuzz)/%.o) $(fuzz)/narrow/merge.o
FUZZ_FLAGS := -std=gnu11 -O1 -g $(WARN) -fno-omit-frame-pointer \
	-fno-sanitize-recover=all \
	-fsanitize=address,undefined,float-cast-overflow
# What steers: the code under test, but not each compare of each bucket.
$(fuzz)/tools/%.o $(fuzz)/shim/%.o $(fuzz)/narrow/%.o: \
	FUZZ_WATCH = -fsanitize=fuzzer-no-link
$(fuzz)/tools/hist.o: FUZZ_WATCH += -fno-sanitize-coverage=trace-cmp

# To hang and to take memory without end are findings too.
FUZZ_LIMITS := -timeout=5 -rss_limit_mb=512 -malloc_limit_mb=256 \
	-max_len=4096 -print_final_stats=1

$(fuzz)/tools/embed.o: $(wildcard tools/html/*)

define compile_for_fuzz
@echo "  CC    $< (fuzz)"; mkdir -p $(@D)
$(Q)$(FUZZ_CC) $(CPPFLAGS) $(FUZZ_FLAGS) $(FUZZ_WATCH) -iquote shim \
	-iquote tools -c -o $@ $<
endef

$(fuzz)/%.o: %.c Makefile tests/fuzz.mk
	$(compile_for_fuzz)

$(fuzz)/narrow/merge.o: $(fuzz)/narrow/merge.c
	$(compile_for_fuzz)

# Events come through a window of thousands: with one of a few, small logs
# reach all of its code.
$(fuzz)/narrow/merge.c: tools/merge.c tools/merge.h
	@mkdir -p $(@D)
	$(Q)sed 's/MERGE_WINDOW = [0-9]*/MERGE_WINDOW = 32/' tools/merge.h \
		>$(@D)/merge.h
	$(Q)cp $< $@

$(FUZZERS:%=$(fuzz)/%): $(fuzz)/%: $(fuzz)/tests/fuzz/fuzz_%.o $(FUZZ_OBJECTS)
	@echo "  LINK  $@"
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -fsanitize=fuzzer -Wl,--wrap=exit \
		-o $@ $^ $(RESOLVE_LIBS) -lm

fuzzers: $(FUZZERS:%=$(fuzz)/%)

# The corpus first, each of whose inputs found something once; then new ones,
# by the same numbers each time: what is unknown yet is for `make fuzz` to find.
check-fuzz: fuzzers
	@for name in $(FUZZERS); do \
		$(fuzz)/$$name $(FUZZ_LIMITS) -runs=0 \
			$(corpus)/$$name >$(fuzz)/$$name.out 2>&1 && \
		rm -rf $(fuzz)/short && mkdir $(fuzz)/short && \
		$(fuzz)/$$name $(FUZZ_LIMITS) \
			-max_total_time=$(FUZZ_SHORT) -seed=1 \
			-artifact_prefix=$(fuzz)/$$name- $(fuzz)/short \
			$(corpus)/$$name >$(fuzz)/$$name.out 2>&1 || \
		{ tail -n 60 $(fuzz)/$$name.out; exit 1; }; \
	done
	@echo "$@: all $$(find $(corpus) -type f | wc -l) checks passed"

# Each finding is a file $(fuzz)/NAME-...: `$(fuzz)/NAME FILE` shows it again.
fuzz: fuzzers
	@printf '%s\n' $(FUZZERS) | xargs -P $(FUZZ_JOBS) -I{} sh -c ' \
		mkdir -p $(fuzz)/new-{} && exec $(fuzz)/{} $(FUZZ_LIMITS) \
			-max_total_time=$(FUZZ_SECONDS) \
			-artifact_prefix=$(fuzz)/{}- $(fuzz)/new-{} \
			$(corpus)/{} >$(fuzz)/{}.out 2>&1' || \
		{ grep -H 'SUMMARY\|Test unit' $(FUZZERS:%=$(fuzz)/%.out); exit 1; }
	@grep -H 'stat::number_of_exec' $(FUZZERS:%=$(fuzz)/%.out)

# Takes what `make fuzz` learnt into the corpus, as little as reaches the same.
fuzz-merge: fuzzers
	@for name in $(FUZZERS); do \
		mkdir -p $(fuzz)/new-$$name && rm -rf $(fuzz)/least && \
		mkdir $(fuzz)/least && \
		$(fuzz)/$$name $(FUZZ_LIMITS) -merge=1 \
			$(fuzz)/least $(corpus)/$$name $(fuzz)/new-$$name \
			>$(fuzz)/$$name.out 2>&1 && \
		rm -rf $(corpus)/$$name && mv $(fuzz)/least $(corpus)/$$name || \
		exit 1; \
	done
	@du -sh --apparent-size $(corpus)/*

.PHONY: fuzzers check-fuzz fuzz fuzz-merge
