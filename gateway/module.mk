# SPDX-License-Identifier: GPL-3.0-or-later
CLI_SOURCES += $(wildcard gateway/*.c gateway/*/*.c)

# The page is part of the program if `make web` has built it.
$(O)/gateway/page_files.o: $(O)/gateway/page_files.inc
$(O)/gateway/page_files.inc: build-aux/embed-page $(wildcard gateway/web/dist/*)
	$(Q)mkdir -p $(@D) && build-aux/embed-page gateway/web/dist > $@.new && mv $@.new $@

$(O)/gateway/skills/skills.o: $(O)/gateway/skills/skills.inc
$(O)/gateway/skills/skills.inc: build-aux/embed-skills $(wildcard gateway/skills/*.md)
	$(Q)mkdir -p $(@D) && $< $(sort $(filter %.md,$^)) > $@.new && mv $@.new $@

$(O)/gateway/dashboards/dashboards.o: $(O)/gateway/dashboards/own.inc
$(O)/gateway/dashboards/own.inc: build-aux/embed-text gateway/dashboards/own.json
	$(Q)mkdir -p $(@D) && $^ > $@.new && mv $@.new $@

# What answers look like.
$(O)/gateway/openapi.o: $(O)/gateway/schemas.inc
$(O)/gateway/schemas.inc: build-aux/embed-schemas gateway/schemas.json docs/dump.schema.json
	$(Q)mkdir -p $(@D) && $< $(filter %.json,$^) > $@.new && mv $@.new $@

# The page is bundled from gateway/web/src and what package-lock.json names, its requests' types are made from
# docs/openapi.json; nothing of that is committed.
.PHONY: web
web: ## build the page of `probing serve` into gateway/web/dist, for the next make (needs node and npm)
	$(Q)command -v npm >/dev/null || { echo "probing: the page needs node and npm" >&2; exit 1; }
	$(Q)cd gateway/web && npm ci --silent --ignore-scripts && npm run --silent generate >/dev/null && npm run --silent check && npm run --silent build
