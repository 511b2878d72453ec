# SPDX-License-Identifier: GPL-3.0-or-later
LIB_SOURCES += $(call sources,sql)

# The list of the tables is written from their files. A folder changes when one of them goes.
$(O)/sql/tables/registry.o: $(O)/sql/tables/tables.inc
$(O)/sql/tables/tables.inc: $(call sources,sql/tables) $(call folders,sql/tables) build-aux/gen-registry
	$(Q)mkdir -p $(@D) && build-aux/gen-registry tables $(filter %.c,$^) > $@.new && mv $@.new $@
