# SPDX-License-Identifier: GPL-3.0-or-later
LIB_SOURCES += $(call sources,inference)

# The descriptions of servers are part of the program, and of the library.
$(O)/inference/engines.o: $(O)/inference/engines.inc
$(O)/inference/engines.inc: build-aux/embed-engines $(wildcard inference/engines/*.engine)
	$(Q)mkdir -p $(@D) && $< $(sort $(filter %.engine,$^)) > $@.new && mv $@.new $@
