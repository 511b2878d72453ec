# SPDX-License-Identifier: GPL-3.0-or-later
LIB_SOURCES += $(wildcard sql/*/*.c)

# The list of the tables is written from their files.
$(O)/sql/tables/registry.o: $(O)/sql/tables/tables.inc
$(O)/sql/tables/tables.inc: $(wildcard sql/tables/*.c) build-aux/gen-registry
	$(Q)mkdir -p $(@D) && build-aux/gen-registry tables $(filter %.c,$^) > $@.new && mv $@.new $@
