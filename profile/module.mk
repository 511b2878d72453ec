# SPDX-License-Identifier: GPL-3.0-or-later
LIB_SOURCES += $(wildcard profile/*.c)

# The page is one file, with its style sheet and modules inside.
$(O)/profile/html.o: $(O)/profile/page.inc
$(O)/profile/page.inc: $(wildcard profile/page/*) build-aux/bundle-page
	$(Q)mkdir -p $(@D) && build-aux/bundle-page profile/page > $@.new && mv $@.new $@
