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
	$(Q)for f in $(FUZZERS); do \
		tests/fuzz/run -q $(FUZZ_O) $$f $(CHECK_FUZZ_SECONDS) || exit 1; done

.PHONY: fuzz
fuzz: fuzzers ## run each fuzzer for FUZZ_SECONDS [1800]; FUZZ=NAME… for some of them
	$(Q)for f in $(FUZZ); do tests/fuzz/run $(FUZZ_O) $$f $(FUZZ_SECONDS) || exit 1; done
