# SPDX-License-Identifier: GPL-3.0-or-later
# Unit tests: each tests/unit/test_NAME.c is one cmocka program.
UNIT_TESTS := $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(wildcard tests/unit/test_*.c))
# Asked for when it is used first: a make that tests nothing starts no Python.
PYTHON = $(eval PYTHON := $$(shell tests/tools/python))$(PYTHON)
# Tests wait for much: files of them run side by side where pytest-xdist is there.
BESIDE = $(eval BESIDE := $$(shell tests/tools/python --beside))$(BESIDE)
PYTEST = $(PYTHON) -m pytest -q -p no:cacheprovider
# On how many interpreters a live test runs, at most, in `make check-all`.
SAMPLE ?= 3
# Which live tests that fail are run once more, and have to fail again to count: those that
# tests/quarantine.txt lists, or all: see tests/verdict.py.
REPEAT ?= quarantined
TESTED = probing
# With CI set, pytest tells all that it has seen; whether it was set for us is PROBING_CI.
LIVE = PROBING_CI='$(CI)' CI=1 PROBING_BINARY=$(call built,$(TESTED)) \
	PROBING_FAULT_STEPS=$(call built,fault-steps/probing) PROBING_SAMPLE=$(SAMPLE) \
	$(PYTHON) -m pytest -q -o cache_dir=$(call built,pytest-cache)
LIVE_OR_AGAIN = PROBING_REPEAT=$(REPEAT) $(LIVE) $(BESIDE) tests/live || { [ $$? = $(ONLY_THOSE) ] || exit 1; \
	echo "$@: these are run once more; a second failure counts" >&2; $(LIVE) --last-failed tests/live; }
LIVE_NEEDS = all probing-inject-static wheel deb static musl-wheel fault-steps
# Not the Debian package, which takes as long as the others together, nor the static program, whose linker warns.
MAIN_NEEDS = all wheel fault-steps $(if $(NO_ARCHIVE),,probing-inject-static)
# Which tests `make check-long` runs: all of them take hours, a folder or a file minutes.
LONG ?= tests/live
# How pytest ends if only such tests failed: AGAIN of tests/ledgers.py.
ONLY_THOSE := 10

$(O)/tests/unit/%: $(O)/tests/unit/%.o $(O)/libprobing.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(TEST_LIBS) $(LIBS)

# What is loaded into the target is no part of the library.
RING_WRITER := $(patsubst %,agent/%.c,inside/environment inside/own_folder inside/status inside/config rings/create rings/history rings/limits rings/write)
$(O)/tests/unit/test_gathered: $(O)/cli/commands/perf/gathered.o
$(O)/tests/unit/test_identity_cache: $(O)/agent/inside/identity_cache.o
$(O)/tests/unit/test_ring: $(RING_WRITER:%.c=$(O)/%.o)

-include $(UNIT_TESTS:=.d)

include tests/lint/module.mk tests/tools/module.mk tests/fuzz/module.mk tests/bench/module.mk

# Tests run what is built as other users, too, whatever the umask of whoever builds it.
open_build = $(Q)chmod -R go+rX '$(O)'

# Parts run one after the other, each with what it can do side by side.
PARTS = $(MAKE) -s --no-print-directory WERROR=1
JOBS = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$$(nproc))
.PHONY: check
check: ## the main path of everything, in minutes; installs what it needs
	$(Q)build-aux/install-deps check
	$(Q)+$(PARTS) $(JOBS) check-needs
	$(Q)+tests/tools/check lint='$(PARTS) lint' unit='$(PARTS) check-unit REPEAT=all' corpora='$(PARTS) check-corpora' \
		live='$(PARTS) check-main'

.PHONY: check-needs
check-needs: unit-tests replays $(MAIN_NEEDS)
	$(open_build)

.PHONY: test
test: check ## the same

.PHONY: check-all
check-all: ## all tests, in their short form, on all interpreters; `make deps-test` installs what they need
	$(Q)+$(PARTS) $(JOBS) unit-tests fuzzers $(filter-out deb,$(LIVE_NEEDS)) usable-gdb
	$(open_build)
	$(Q)+tests/tools/check lint='PROBING_CI=$(CI) $(PARTS) lint' unit='$(PARTS) check-unit' fuzz='$(PARTS) check-fuzz' \
		aarch64='$(PARTS) $(JOBS) check-aarch64-if-there' live='$(PARTS) check-live'

.PHONY: unit-tests
unit-tests: $(UNIT_TESTS)

.PHONY: check-unit
check-unit: $(UNIT_TESTS) ## unit tests
	$(Q)PROBING_CI='$(CI)' PROBING_REPEAT=$(REPEAT) tests/tools/unit-tests $^

# On this machine's own Python, without what tests/long.txt lists. Machines are busy: what fails is run once
# more, and named at the end.
.PHONY: check-main
check-main: REPEAT := all
check-main: $(MAIN_NEEDS)
	$(Q)export PROBING_MAIN_PATH=1; $(LIVE_OR_AGAIN)

.PHONY: check-live
check-live: $(LIVE_NEEDS) test-interpreters usable-gdb ## tests on real interpreters and processes
	$(Q)$(LIVE_OR_AGAIN)

# In the build of the fuzzers, which has sanitizers. Live: what the command itself reads of a process.
# Not tests that take /proc or ptrace() away, which the leak sanitizer needs, nor those of speed.
SANITIZED := $(patsubst %,tests/live/%.py,cli/test_cli cli/test_query_cli dump/test_modes dump/test_native \
	injector/test_inject python/test_heap python/test_locals target/test_states) -k 'not instant'
SANITIZERS = UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=allocator_may_return_null=1 \
	LSAN_OPTIONS=suppressions="'$(CURDIR)/tests/leaks.txt'":print_suppressions=0
.PHONY: check-sanitized
check-sanitized: override SAMPLE := 1
check-sanitized: TESTED := fuzz/probing
check-sanitized: $(O)/libprobing.so test-interpreters ## unit tests and some live ones with clang's sanitizers: addresses, leaks, undefined behaviour
	$(Q)+$(FUZZ_MAKE) $(JOBS) unit-tests $(FUZZ_O)/probing $(FUZZ_O)/libprobing-agent.so
	$(Q)ln -sf ../libprobing.so $(FUZZ_O)
	$(Q)PROBING_CI='$(CI)' $(SANITIZERS) tests/tools/unit-tests $(UNIT_TESTS:$(O)/%=$(FUZZ_O)/%)
	$(Q)$(SANITIZERS) $(LIVE) $(BESIDE) $(SANITIZED)

# Threads that write to one ring. What a reader does is not seen: it reads the file. A child after
# fork() has lost the threads that it would be blamed for.
TSAN_SOURCES := tests/unit/test_ring.c rings/ring.c rings/cold_read.c $(wildcard base/*.c target/proc/*.c) \
	$(RING_WRITER)
.PHONY: check-tsan
check-tsan: ## the unit tests of rings with clang's ThreadSanitizer
	@mkdir -p $(O)/tsan
	$(Q)clang $(CPPFLAGS) -std=gnu11 -fno-strict-aliasing -O1 -g -fsanitize=thread -o $(O)/tsan/test_ring \
		$(TSAN_SOURCES) $(TEST_LIBS) $(LIBS)
	$(Q)TSAN_OPTIONS=die_after_fork=0:report_thread_leaks=0 tests/tools/unit-tests $(O)/tsan/test_ring

# A build whose injector kills itself before a chosen step: these sources are compiled again, and come
# before the library that has them, too.
FAULT_O := $(O)/fault-steps
FAULT_SOURCES := cli/commands/pause/pause.c control/pause.c injector/hijack/hijack.c injector/hijack/mailbox.c injector/hijack/run_to.c \
	injector/arch/scratch.c injector/arch/aarch64.c injector/arch/x86_64.c target/ptrace/arch/aarch64.c target/ptrace/fault_step.c \
	target/ptrace/gpregs.c target/ptrace/stop.c
FAULT_OBJECTS := $(FAULT_SOURCES:%.c=$(FAULT_O)/%.o)

$(FAULT_OBJECTS): $(FAULT_O)/%.o: %.c $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) $(CFLAGS) -DPRB_FAULT_STEPS -MMD -MP -c -o $@ $<

$(FAULT_O)/probing: $(FAULT_OBJECTS) $(filter-out $(FAULT_SOURCES:%.c=$(O)/%.o),$(CLI_OBJECTS)) $(O)/libprobing.a $(READLINE:%=$(O)/libreadline.a)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(O)/libprobing.a $(CLI_LIBS) $(LIBS)

-include $(FAULT_OBJECTS:.o=.d)

.PHONY: fault-steps
fault-steps: $(FAULT_O)/probing

.PHONY: check-faults
check-faults: $(O)/probing fault-steps ## the fault matrix of injection, 200 runs of each cell; writes docs/faults.tsv and docs/faults.md
	$(Q)PROBING_BINARY=$(call built,probing) PROBING_FAULT_STEPS=$(call built,fault-steps/probing) \
		tests/tools/check-faults $(FAULT_CELLS)

.PHONY: check-long
check-long: override SAMPLE := 0
check-long: $(LIVE_NEEDS) ## the long counts of the same tests, and builds no package provides; LONG=tests/live/ROOM: some of them
	$(Q)tests/tools/test-interpreters
	$(Q)tests/tools/test-interpreters --free-threaded
	$(Q)tests/tools/test-interpreters --free-threaded --exported
	$(Q)tests/tools/test-interpreters --debug-build
	$(Q)tests/tools/test-interpreters --musl
	$(Q)tests/tools/test-debuggers
	$(Q)tests/tools/test-packages
	$(Q)tests/tools/test-torch trixie sid index
	$(Q)+$(MAKE) -s check-tsan $(O)/tests/unit/test_ring
	$(Q)PROBING_KILLS=1000 tests/tools/unit-tests $(O)/tests/unit/test_ring
	$(Q)PROBING_LONG=1 $(LIVE) $(BESIDE) $(LONG)

.PHONY: test-debuggers
test-debuggers: ## fetch the versions of gdb and LLDB that tests run beside this machine's own
	$(Q)tests/tools/test-debuggers

.PHONY: test-packages
test-packages: ## install packages of PyPI that tests look at from outside
	$(Q)tests/tools/test-packages

.PHONY: test-torch
test-torch: ## fetch versions of torch that tests run beside this machine's own
	$(Q)tests/tools/test-torch

# In place of this machine's own gdb, where that cannot write registers of this processor. Tests that
# need one are skipped where none can be had.
.PHONY: usable-gdb
usable-gdb:
	$(Q)tests/tools/test-debuggers --if-needed || true

.PHONY: test-interpreters
test-interpreters: ## fetch the interpreters that tests run on
	$(Q)tests/tools/test-interpreters
