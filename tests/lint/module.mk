# SPDX-License-Identifier: GPL-3.0-or-later
.PHONY: lint
lint: ## style, include rules, sizes, spelling; with the program built, that the pages say what it does
	$(Q)python3 tests/lint/lint.py --cc '$(CC)'
	$(Q)PROBING_BINARY=$(call built,probing) $(PYTEST) $(subst loadfile,load,$(BESIDE)) tests/lint
