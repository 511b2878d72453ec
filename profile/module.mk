# SPDX-License-Identifier: GPL-3.0-or-later
LIB_SOURCES += $(call sources,profile)

# The page is one file, with its style sheet and modules inside.
$(O)/profile/formats/html.o: $(O)/profile/page.inc
$(O)/profile/page.inc: $(wildcard profile/page/*) build-aux/bundle-page
	$(Q)mkdir -p $(@D) && build-aux/bundle-page profile/page > $@.new && mv $@.new $@
