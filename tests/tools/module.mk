# SPDX-License-Identifier: GPL-3.0-or-later
# Tools for developers, built on request.

$(O)/gen-layout: $(O)/tests/tools/gen-layout.o $(O)/libprobing.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# In an emulated machine, which has a kernel and a Python of its own.
AARCH64_O := $(O)/aarch64
AARCH64_ROOT := $(AARCH64_O)/machine

.PHONY: check-aarch64
check-aarch64: ## build for aarch64 and test it in an emulated machine
	$(Q)tests/tools/aarch64-vm --print-cross-flags | tr '\n' '\0' | \
		xargs -0 $(MAKE) O=$(AARCH64_O) all unit-tests
	$(Q)rm -rf $(AARCH64_ROOT) && mkdir -p $(AARCH64_ROOT)/build/tests/unit
	$(Q)cp -r tests docs $(AARCH64_ROOT) && cp $(AARCH64_O)/probing $(AARCH64_ROOT)/build
	$(Q)cp $(UNIT_TESTS:$(O)/%=$(AARCH64_O)/%) $(AARCH64_ROOT)/build/tests/unit
	$(Q)tests/tools/aarch64-vm --timeout 1800 --with $(AARCH64_ROOT) -- tests/tools/check-in-vm
