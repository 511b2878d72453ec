# SPDX-License-Identifier: GPL-3.0-or-later
LIB_SOURCES += $(call sources,lib)

# The first number changes when programs have to be built anew.
SONAME := libprobing.so.1

.PHONY: library
library: $(O)/libprobing.so ## the shared library, for programs of your own

$(O)/libprobing.so: $(O)/libprobing.a lib/probing.map lib/module.mk
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) \
		-Wl,--version-script=lib/probing.map -Wl,--no-undefined -o $@ \
		-Wl,--whole-archive $(O)/libprobing.a -Wl,--no-whole-archive $(SHARED_LIBS)
	$(Q)ln -sf libprobing.so $(O)/$(SONAME)

# Where the loader looks anyway, a program need not be told.
comma := ,
RPATH = $(if $(filter-out /usr,$(prefix)), -Wl$(comma)-rpath$(comma)$${prefix}/lib)

# Made each time: what make was told of the prefix is no file.
.PHONY: $(O)/probing.pc
$(O)/probing.pc: lib/probing.pc.in
	@mkdir -p $(@D)
	$(Q)sed -e 's|@prefix@|$(prefix)|; s|@version@|$(VERSION)|; s|@rpath@|$(RPATH)|' $< > $@

# The Python package, which `probing script` runs with.
.PHONY: install-package uninstall-package
install-package:
	$(Q)for f in $(wildcard package/*.py package/probing/*.py package/probing/*/*.py) package/probing/py.typed; do \
		install -D -m 644 $$f $(DESTDIR)$(prefix)/share/probing/python/$${f#package/}; done

uninstall-package:
	rm -rf $(DESTDIR)$(prefix)/share/probing/python

install: install-package
uninstall: uninstall-package
