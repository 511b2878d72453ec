# SPDX-License-Identifier: GPL-3.0-or-later
LIB_SOURCES += $(wildcard tables/*.c)

# The list of the tables is written from their files. The folder changes when one of them goes.
$(O)/tables/registry.o: $(O)/tables/tables.inc
$(O)/tables/tables.inc: $(wildcard tables/*.c tables/) build-aux/gen-registry
	$(Q)mkdir -p $(@D) && build-aux/gen-registry tables $(filter %.c,$^) > $@.new && mv $@.new $@
