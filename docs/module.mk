# SPDX-License-Identifier: GPL-3.0-or-later

# The page is written from the tables in python/layout/.
.PHONY: support-matrix
support-matrix: ## write docs/support-matrix.md from the code
	$(Q)tests/tools/gen-support-matrix --cc '$(CC)'

# The pages are written from the table declarations of the program.
.PHONY: tables
tables: $(O)/probing ## write docs/tables.md and docs/tables/ from the tables
	$(Q)PROBING_BINARY=$(call built,probing) tests/tools/gen-tables

.PHONY: script-api
script-api: $(O)/libprobing.so ## write docs/script-api.md from the Python package
	$(Q)PROBING_LIBRARY=$(call built,libprobing.so) tests/tools/gen-script-api

# The page is written from the keys that the program has.
.PHONY: configuration
configuration: $(O)/probing ## write docs/configuration.md from the keys
	$(Q)PROBING_BINARY=$(call built,probing) tests/tools/gen-configuration

# The page is written from what a gateway says of itself.
.PHONY: http-api
http-api: $(O)/probing ## write docs/http-api.md from the requests of the gateway
	$(Q)PROBING_BINARY=$(call built,probing) tests/tools/gen-http-api

# Judges each planted hang, half a minute.
.PHONY: gen-why
gen-why: $(O)/probing ## write docs/why.tsv and the table of docs/why.md from planted hangs
	$(Q)PROBING_WHY_TABLE=1 PROBING_BINARY=$(call built,probing) $(PYTEST) tests/live/judge/test_planted.py

# With the page built in (make web, make), and Chromium.
.PHONY: screenshots
screenshots: $(O)/probing ## write the pictures of the page in docs/images
	$(Q)PROBING_BINARY=$(call built,probing) tests/tools/gen-screenshots

# Runs the commands shown in the pages again and writes their current output.
.PHONY: docs
docs: $(O)/probing support-matrix tables configuration http-api script-api ## bring transcripts, pictures, figures, tables and the support matrix up to date
	$(Q)PROBING_BINARY=$(call built,probing) python3 tests/lint/test_docs.py
	$(Q)PROBING_BINARY=$(call built,probing) python3 tests/lint/test_picture.py

.PHONY: check-docs
check-docs: $(O)/probing usable-gdb ## the pages say what the program does
	$(Q)PROBING_CI='$(CI)' PROBING_BINARY=$(call built,probing) $(PYTEST) tests/lint/test_docs.py tests/lint/test_picture.py

# With packages of PyPI and npm: what is built asks nobody for anything.
SITE_TOOLS := $(O)/site-tools
$(SITE_TOOLS)/bin/mkdocs:
	$(Q)python3 -m venv '$(SITE_TOOLS)' && '$(SITE_TOOLS)/bin/pip' install -q 'mkdocs-material>=9.5,<10'

.PHONY: site
site: $(O)/probing $(SITE_TOOLS)/bin/mkdocs ## the pages as a site, in build/site/VERSION, and whether its links lead somewhere
	$(Q)MKDOCS=$(call built,site-tools/bin/mkdocs) HOMEPAGE='$(HOMEPAGE)' build-aux/make-site $(VERSION) $(call built,probing) $(call built,site)
	$(Q)PROBING_BINARY=$(call built,probing) $(PYTEST) tests/live/package/test_site.py
