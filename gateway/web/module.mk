# SPDX-License-Identifier: GPL-3.0-or-later
# The page is bundled from web/src and what package-lock.json names, its requests' types are made from
# docs/openapi.json; nothing of that is committed.
.PHONY: web
web: ## build the page of `probing serve` into web/dist, for the next make (needs node and npm)
	$(Q)command -v npm >/dev/null || { echo "probing: the page needs node and npm" >&2; exit 1; }
	$(Q)cd web && npm ci --silent --ignore-scripts && npm run --silent generate >/dev/null && npm run --silent check && npm run --silent build
