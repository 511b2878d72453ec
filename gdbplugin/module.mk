# SPDX-License-Identifier: GPL-3.0-or-later
# The plugin of gdb and LLDB is Python as it stands: nothing is built.
PLUGIN_FILES := $(wildcard gdbplugin/*.py gdbplugin/core/*.py gdbplugin/core/commands/*.py)

.PHONY: install-gdbplugin
install-gdbplugin:
	$(Q)for f in $(PLUGIN_FILES); do \
		install -D -m 644 $$f $(DESTDIR)$(prefix)/share/probing/$$f; done

install: install-gdbplugin

# The folder is the plugin's alone, with what Python compiles of it.
.PHONY: uninstall-gdbplugin
uninstall-gdbplugin:
	rm -rf $(DESTDIR)$(prefix)/share/probing/gdbplugin

uninstall: uninstall-gdbplugin
