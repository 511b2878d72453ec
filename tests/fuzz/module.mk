# SPDX-License-Identifier: GPL-3.0-or-later
# Fuzzers for everything that parses: tests/fuzz/fuzz_NAME.c, built with clang's libFuzzer in a
# folder of their own. The corpus of each is in tests/fuzz/corpus/NAME.
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_O := $(O)/fuzz
FUZZ_SECONDS ?= 1800

# Everything is compiled again for them, by a make of its own.
.PHONY: fuzzers
fuzzers:
	$(Q)$(MAKE) O=$(FUZZ_O) CC=clang SAN=address,undefined FUZZ=1 CFLAGS='-O1 -g -fsanitize=fuzzer-no-link' \
		$(FUZZERS:%=$(FUZZ_O)/fuzz_%)

$(O)/fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(O)/libprobing.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)

.PHONY: check-fuzz
check-fuzz: fuzzers ## run each fuzzer over its corpus and a little further
	$(Q)for f in $(FUZZERS); do mkdir -p $(FUZZ_O)/new/$$f tests/fuzz/corpus/$$f; \
		$(FUZZ_O)/fuzz_$$f -max_total_time=5 -verbosity=0 -print_final_stats=0 -timeout=10 -rss_limit_mb=2048 \
			$(FUZZ_O)/new/$$f tests/fuzz/corpus/$$f || exit 1; done

.PHONY: fuzz
fuzz: fuzzers ## run each fuzzer for FUZZ_SECONDS [1800]
	$(Q)for f in $(FUZZERS); do mkdir -p $(FUZZ_O)/new/$$f; \
		$(FUZZ_O)/fuzz_$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 \
			$(FUZZ_O)/new/$$f tests/fuzz/corpus/$$f || exit 1; done
