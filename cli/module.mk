# SPDX-License-Identifier: GPL-3.0-or-later
CLI_SOURCES += $(filter-out cli/inject_main.c,$(call sources,cli))

# The registry of the commands is written from their files.
$(call list,$(O)/command/files,$(call sources,cli))
$(O)/command/files: ;
$(O)/command/commands.o: $(O)/command/commands.inc
$(O)/command/commands.inc: $(call sources,cli) $(O)/command/files build-aux/gen-registry
	$(Q)mkdir -p $(@D) && build-aux/gen-registry commands $(filter %.c,$^) > $@.new && mv $@.new $@

# A program of its own: the injector and no more of the libraries than it needs.
INJECT_OBJECTS := $(patsubst %,$(O)/%.o,cli/inject_main cli/commands/inject/library \
	$(addprefix command/,descriptors exit exit_kind help_parts log manual_parts options output rights term))

all: $(O)/probing-inject

$(O)/probing-inject: $(INJECT_OBJECTS) $(O)/libprobing.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(INJECT_LIBS)

.PHONY: probing-inject-static
probing-inject-static: all-archives $(O)/probing-inject-static ## probing-inject as one file that needs no libraries

$(O)/probing-inject-static: $(INJECT_OBJECTS) $(O)/libprobing.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -static -o $@ $^ $(INJECT_STATIC_LIBS)

-include $(O)/cli/inject_main.d

$(O)/cli/commands/debug/dap.o: cli/commands/debug/dap.py
$(O)/cli/commands/eval/eval.o: cli/commands/eval/interpreter.py
$(O)/cli/commands/completion/completion.o: $(wildcard cli/commands/completion/*.in)

# The unit tests of the command line are linked with all of it but main().
CLI_TESTS := $(addprefix $(O)/tests/unit/,test_json test_options test_render test_serve test_text test_target_spec)

$(O)/libprobing-cli.a: $(patsubst %.c,$(O)/%.o,$(filter-out cli/main.c,$(CLI_SOURCES)))
	$(call say,AR,$@)rm -f $@ && $(AR) crs $@ $^

$(CLI_TESTS): $(O)/tests/unit/%: $(O)/tests/unit/%.o $(O)/libprobing-cli.a $(O)/libprobing.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter-out %/libreadline.a,$^) \
		$(TEST_LIBS) $(CLI_LIBS) $(LIBS)

# So are the fuzzers of what clients of a served process and of a gateway send.
CLI_FUZZERS := $(O)/fuzz_serve $(O)/fuzz_gateway
CLI_REPLAYS := $(CLI_FUZZERS:$(O)/fuzz_%=$(O)/replay_%)
$(CLI_FUZZERS): $(O)/fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(O)/libprobing-cli.a $(O)/libprobing.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -fsanitize=fuzzer -o $@ $(filter-out %/libreadline.a,$^) \
		$(CLI_LIBS) $(LIBS)
$(CLI_REPLAYS): $(O)/replay_%: $(O)/tests/fuzz/fuzz_%.o $(O)/tests/fuzz/replay.o $(O)/libprobing-cli.a $(O)/libprobing.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter-out %/libreadline.a,$^) $(CLI_LIBS) $(LIBS)

# readline and libiberty both have a xmalloc(): each keeps its own.
ifneq ($(READLINE),)
$(O)/libreadline.a: $(READLINE)
	$(call say,OBJCOPY,$@)$(OBJCOPY) --redefine-sym xmalloc=readline_xmalloc \
		--redefine-sym xrealloc=readline_xrealloc $< $@

CLI_LIBS := $(O)/libreadline.a $(CLI_LIBS)
$(O)/probing $(CLI_FUZZERS) $(CLI_REPLAYS) $(CLI_TESTS): $(O)/libreadline.a
endif

# The man page is printed by the program, from the tables its help comes from.
.PHONY: man
man: $(O)/probing.1 $(O)/probing-inject.1 ## the man pages

$(O)/probing.1 $(O)/probing-inject.1: %.1: %
	$(call say,MAN,$@)$(if $(filter probing,$(*F)),$(NATIVE),$<) --man > $@
