# SPDX-License-Identifier: GPL-3.0-or-later
# Peers live in a virtual environment of the bench's own.
BENCH_ROUNDS ?= 20

$(O)/peers/.stamp:
	$(Q)python3 -m venv $(O)/peers
	$(Q)$(O)/peers/bin/pip install -q py-spy pystack || echo "bench: some peers cannot be installed"
	$(Q)python3 -m venv $(O)/peers/original
	$(Q)$(O)/peers/original/bin/pip install -q probing || \
		echo "bench: the original probing cannot be installed"
	$(Q)touch $@

.PHONY: bench
bench: $(O)/probing $(O)/peers/.stamp ## measure beside other tools; writes docs/benchmarks.md
	$(Q)python3 tests/bench/bench.py --probing $(O)/probing --peers $(O)/peers \
		--rounds $(BENCH_ROUNDS) --out docs/benchmarks.md
