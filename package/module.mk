# SPDX-License-Identifier: GPL-3.0-or-later
# The Python package, and the wheel with the program and the libraries in it.
WHEEL_O := $(O)/wheel
PACKAGE_FILES := $(wildcard package/*.p* package/*.start package/probing/*.py package/probing/*/*.py)

# Copies whose `stdout` and `stderr` package/link/shared.c defines: they were compiled for programs.
WHEEL_ARCHIVES := $(patsubst %,$(WHEEL_O)/lib%.a,bfd iberty sframe dwarf elf sqlite3 pcre2-8 zstd lzma z)

$(WHEEL_O)/lib%.a:
	@mkdir -p $(@D)
	$(Q)f=$$($(CC) -print-file-name=lib$*.a); [ ! -f $$f ] || \
		objcopy --redefine-sym stdout=prb_stdout --redefine-sym stderr=prb_stderr $$f $@

$(WHEEL_O)/libprobing.so: $(O)/libprobing.a $(O)/package/link/shared.o lib/probing.map $(WHEEL_ARCHIVES)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,-Bsymbolic \
		-Wl,--version-script=lib/probing.map -Wl,--no-undefined -o $@ $(O)/package/link/shared.o \
		-Wl,--whole-archive $(O)/libprobing.a -Wl,--no-whole-archive -L$(WHEEL_O) $(LIBS)

$(WHEEL_O)/completion.%: $(O)/probing
	@mkdir -p $(@D)
	$(Q)$< completion $* > $@

.PHONY: wheel
wheel: $(O)/probing $(WHEEL_O)/libprobing.so $(AGENT) $(O)/probing.1 $(patsubst %,$(WHEEL_O)/completion.%,bash zsh fish) $(PACKAGE_FILES) $(PLUGIN_FILES) ## the Python package with the program in it: pip install build/wheel/probing-*.whl
	$(Q)build-aux/make-wheel $(VERSION) $(O)/probing $(WHEEL_O)/libprobing.so $(AGENT) $(O)/probing.1 \
		$(foreach s,bash zsh fish,$(s)=$(WHEEL_O)/completion.$(s)) $(WHEEL_O)

.PHONY: sdist
sdist: ## the sources as one archive, to be built with make
	$(Q)mkdir -p $(O) && git archive --prefix=probing-$(VERSION)/ -o $(O)/probing-$(VERSION).tar.gz HEAD
	@echo $(O)/probing-$(VERSION).tar.gz
