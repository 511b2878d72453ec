# SPDX-License-Identifier: GPL-3.0-or-later
# Fuzzers for everything that parses: tests/fuzz/fuzz_NAME.c, built with clang's libFuzzer in a
# folder of their own. The corpus of each is in tests/fuzz/corpus/NAME. See docs/fuzzing.md.
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_O := $(O)/fuzz
FUZZ ?= $(FUZZERS)
FUZZ_SECONDS ?= 1800
CHECK_FUZZ_SECONDS ?= 2

# Everything is compiled again for them, by a make of its own.
FUZZ_MAKE = $(MAKE) -s O=$(FUZZ_O) CC=clang SAN=address,undefined \
	CFLAGS='-O1 -g -fsanitize=fuzzer-no-link'
.PHONY: fuzzers
fuzzers:
	$(Q)+$(FUZZ_MAKE) $(FUZZERS:%=$(FUZZ_O)/fuzz_%)

$(O)/fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(O)/libprobing.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS) \
		-ljansson

-include $(FUZZERS:%=$(O)/tests/fuzz/fuzz_%.d)

.PHONY: check-fuzz
check-fuzz: fuzzers ## run each fuzzer over its corpus and a little further
	$(Q)tests/fuzz/run-all $(FUZZ_O) $(CHECK_FUZZ_SECONDS) $(FUZZERS)

# The corpora alone, by programs that any compiler builds: in `make check` nothing of clang is needed.
REPLAY_O := $(O)/sanitized
REPLAY_MAKE = $(MAKE) -s O=$(REPLAY_O) SAN=address,undefined CFLAGS='-O1 -g'
REPLAYS := $(FUZZERS:%=replay_%)
.PHONY: replays
replays:
	$(Q)+$(REPLAY_MAKE) $(REPLAYS:%=$(REPLAY_O)/%)

$(O)/replay_%: $(O)/tests/fuzz/fuzz_%.o $(O)/tests/fuzz/replay.o $(O)/libprobing.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) -ljansson

-include $(O)/tests/fuzz/replay.d

.PHONY: check-corpora
check-corpora: replays ## run the fuzzers' corpora alone, with sanitizers
	$(Q)tests/fuzz/run-all $(REPLAY_O) 0 $(FUZZERS)

.PHONY: fuzz
fuzz: fuzzers ## run each fuzzer for FUZZ_SECONDS [1800]; FUZZ=NAME… for some of them
	$(Q)for f in $(FUZZ); do tests/fuzz/run $(FUZZ_O) $$f $(FUZZ_SECONDS) || exit 1; done
