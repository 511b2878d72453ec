# SPDX-License-Identifier: GPL-3.0-or-later
CLI_SOURCES += $(wildcard cli/*.c)

# The unit tests of the command line are linked with all of it but main().
CLI_TESTS := $(addprefix $(O)/tests/unit/,test_json test_options test_render test_text)

$(O)/libprobing-cli.a: $(patsubst %.c,$(O)/%.o,$(filter-out cli/main.c,$(wildcard cli/*.c)))
	$(call say,AR,$@)rm -f $@ && $(AR) crs $@ $^

$(CLI_TESTS): $(O)/tests/unit/%: $(O)/tests/unit/%.o $(O)/libprobing-cli.a $(O)/libprobing.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(TEST_LIBS) $(LIBS)

# The man page is printed by the program, from the tables its help comes from.
.PHONY: man
man: $(O)/probing.1 ## the man page

$(O)/probing.1: $(O)/probing
	$(call say,MAN,$@)$< --man > $@
