# SPDX-License-Identifier: GPL-3.0-or-later
# Tools for developers, built on request.

$(O)/gen-layout: $(O)/tests/tools/gen-layout.o $(O)/libprobing.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
