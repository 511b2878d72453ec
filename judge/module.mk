# SPDX-License-Identifier: GPL-3.0-or-later
LIB_SOURCES += $(call sources,judge)

# The registry of the rules is written from their files.
$(call list,$(O)/judge/files,$(call sources,judge/rules))
$(O)/judge/files: ;
$(O)/judge/judge.o: $(O)/judge/rules.inc
$(O)/judge/rules.inc: $(call sources,judge/rules) $(O)/judge/files build-aux/gen-registry
	$(Q)mkdir -p $(@D) && build-aux/gen-registry rules $(filter %.c,$^) > $@.new && mv $@.new $@
