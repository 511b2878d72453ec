# SPDX-License-Identifier: GPL-3.0-or-later
LIB_SOURCES += $(call sources,sql)

# The registry of the tables is written from their files.
$(call list,$(O)/sql/tables/files,$(call sources,sql/tables))
$(O)/sql/tables/files: ;
$(O)/sql/tables/registry.o: $(O)/sql/tables/tables.inc
$(O)/sql/tables/tables.inc: $(call sources,sql/tables) $(O)/sql/tables/files build-aux/gen-registry
	$(Q)mkdir -p $(@D) && build-aux/gen-registry tables $(filter %.c,$^) > $@.new && mv $@.new $@
