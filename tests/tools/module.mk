# SPDX-License-Identifier: GPL-3.0-or-later
# Tools for developers, built on request.

$(O)/gen-layout: $(O)/tests/tools/gen-layout.o $(O)/libprobing.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
-include $(O)/tests/tools/gen-layout.d

ANALYZED := $(LIB_SOURCES) $(CLI_SOURCES) cli/inject_main.c $(AGENT_OBJECTS:$(O)/%.o=%.c)
.PHONY: analyze
analyze: ## let clang's analyzer and clang-tidy look for faults
	$(Q)PROBING_CI='$(CI)' tests/tools/analyze $(sort $(ANALYZED)) -- $(CPPFLAGS) -std=gnu11

.PHONY: check-bare
check-bare: ## run README's commands in releases of Debian with nothing but make and python3 (as root), and write docs/support-matrix.md; SUITES=trixie for one of them
	$(Q)PROBING_RELEASES=docs/releases.tsv tests/tools/bare-debian $(SUITES)
	$(Q)tests/tools/gen-support-matrix --cc '$(CC)'

# In an emulated machine, which has a kernel and a Python of its own.
AARCH64_O := $(O)/aarch64
AARCH64_PAGES ?= 4k# or 16k: of the kernel
AARCH64_ROOT := $(AARCH64_O)/machine
AARCH64_SYSROOT := $(or $(PROBING_TEST_INTERPRETERS),/var/cache/probing-test-interpreters)/aarch64/sysroot
# Return addresses are signed, as distributions begin to do.
AARCH64_MAKE = tests/tools/aarch64-vm --print-cross-flags | tr '\n' '\0' | \
	xargs -0 $(MAKE) --no-print-directory O=$(AARCH64_O) SAN= \
	CFLAGS='-O2 -g -mbranch-protection=standard'
# Tests without special needs of the kernel run in an emulated process too.
PURE_TESTS := $(addprefix $(AARCH64_O)/tests/unit/,test_cache test_cfi test_cfi_format \
	test_cfi_hostile test_core test_json test_options test_render test_snapshot test_text)

# By its loader, not with -L: that would lead the tests to the emulator's own / and /tmp.
AARCH64_LIBS := $(AARCH64_SYSROOT)/lib/aarch64-linux-gnu:$(AARCH64_SYSROOT)/usr/lib/aarch64-linux-gnu
AARCH64_EMULATED := qemu-aarch64-static $(AARCH64_SYSROOT)/lib/ld-linux-aarch64.so.1 --library-path $(AARCH64_LIBS)

.PHONY: check-aarch64-units
check-aarch64-units: ## build for aarch64 and run the unit tests that need no kernel
	$(Q)+$(AARCH64_MAKE) all $(PURE_TESTS)
	$(Q)for t in $(PURE_TESTS); do \
		$(AARCH64_EMULATED) $$t >$$t.log 2>&1 || { cat $$t.log; exit 1; }; \
		printf 'aarch64 %s: ' $${t##*/}; sed -n 's/^\[  PASSED  \] //p' $$t.log; done

# Only if all of this is installed already: building and testing here does not need it.
.PHONY: check-aarch64-if-there
check-aarch64-if-there:
	$(Q)+command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64-static >/dev/null && \
		[ -e $(AARCH64_SYSROOT)/.complete ] && $(MAKE) -s check-aarch64-units || true

.PHONY: check-aarch64
check-aarch64: ## build for aarch64 and test it in an emulated machine
	$(Q)+$(AARCH64_MAKE) all unit-tests
	$(Q)+$(AARCH64_MAKE) fault-steps
	$(Q)rm -rf $(AARCH64_ROOT) && mkdir -p $(AARCH64_ROOT)/build/tests/unit $(AARCH64_ROOT)/build/fault-steps
	$(Q)cp -r tests docs gdbplugin $(AARCH64_ROOT)
	$(Q)cp $(addprefix $(AARCH64_O)/,probing libprobing.so libprobing-agent.so) $(AARCH64_ROOT)/build
	$(Q)cp $(AARCH64_O)/fault-steps/probing $(AARCH64_ROOT)/build/fault-steps
	$(Q)cp $(UNIT_TESTS:$(O)/%=$(AARCH64_O)/%) $(AARCH64_ROOT)/build/tests/unit
	$(Q)tests/tools/aarch64-vm --timeout 1800 --pages $(AARCH64_PAGES) --with $(AARCH64_ROOT) -- tests/tools/check-in-vm

.PHONY: check-dist
check-dist: ## after `make dist`: README's lines to install, typed in bare roots
	$(Q)tests/tools/check-dist

# With packages of PyPI.
CONDA_TOOLS := $(O)/conda-tools
$(CONDA_TOOLS)/bin/python:
	$(Q)python3 -m venv '$(CONDA_TOOLS)' && '$(CONDA_TOOLS)/bin/pip' install -q 'py-rattler>=0.28,<1' 'py-rattler-build>=0.73,<1'

.PHONY: check-conda
check-conda: $(CONDA_TOOLS)/bin/python ## after `make dist`: build the conda package by its recipe, install it and read a program
	$(Q)'$(CONDA_TOOLS)/bin/python' tests/tools/check-conda

.PHONY: check-dist-aarch64
check-dist-aarch64: ## after `make dist-aarch64`: pip and the static program, in an emulated machine
	$(Q)rm -rf $(AARCH64_ROOT) && mkdir -p $(AARCH64_ROOT)/tests/tools $(AARCH64_ROOT)/dist
	$(Q)cp tests/tools/main-path tests/tools/check-dist-in-vm $(AARCH64_ROOT)/tests/tools
	$(Q)cp dist/*aarch64* $(AARCH64_ROOT)/dist
	$(Q)tests/tools/aarch64-vm --with $(AARCH64_ROOT) -- tests/tools/check-dist-in-vm

.PHONY: check-image
check-image: ## after `make dist`: the image, by docker or podman
	$(Q)tests/tools/check-image

.PHONY: dist-aarch64
dist-aarch64: $(O)/probing ## after `make dist`: the wheels and the static program for aarch64, in dist/ too
	$(Q)+$(AARCH64_MAKE) NATIVE=$(abspath $(O)/probing) wheel musl-wheel static
	$(Q)cp $(AARCH64_O)/wheel/*.whl $(AARCH64_O)/musl-wheel/*.whl dist/
	$(Q)aarch64-linux-gnu-strip -o dist/probing-$(VERSION)-aarch64-static $(AARCH64_O)/probing-static
	$(Q)$(DIST_SUMS)
