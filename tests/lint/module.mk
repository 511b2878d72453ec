# SPDX-License-Identifier: GPL-3.0-or-later
.PHONY: lint
lint: ## style, include rules, sizes, spelling
	$(Q)python3 tests/lint/lint.py --cc '$(CC)'
	$(Q)$(PYTEST) tests/lint
