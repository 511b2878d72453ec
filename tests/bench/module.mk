# SPDX-License-Identifier: GPL-3.0-or-later
# Peers live in a virtual environment of the bench's own.
BENCH_ROUNDS ?= 20

$(O)/peers/.stamp: tests/bench/module.mk
	$(Q)python3 -m venv $(O)/peers
	$(Q)$(O)/peers/bin/pip install -q py-spy pystack || echo "bench: some peers cannot be installed"
	$(Q)for peer in pyinjector memray numpy; do $(O)/peers/bin/pip install -q $$peer || \
		echo "bench: $$peer cannot be installed"; done
	$(Q)rm -rf $(O)/peers/original
	$(Q)python3 -m venv --copies $(O)/peers/original
	$(Q)$(O)/peers/original/bin/pip install -q probing || \
		echo "bench: the original probing cannot be installed"
	$(Q)cp $(O)/peers/original/lib/python3*/site-packages/probing/_core.abi3.so \
		$(O)/peers/original/bin/libprobing.so || true # where its inject looks for it
	$(Q)touch $@

$(O)/tests/bench/%: $(O)/tests/bench/%.o $(O)/libprobing.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

-include $(O)/tests/bench/long_recording.d

.PHONY: bench-debuggers
bench-debuggers: $(O)/libprobing.so ## measure in gdb, beside CPython's script; writes docs/debuggers.tsv
	$(Q)python3 tests/bench/debuggers.py --library $(CURDIR)/$(O)/libprobing.so

$(O)/peers/compare/.stamp: tests/bench/module.mk
	$(Q)$(COMPARE_PYTHON) -m venv $(O)/peers/compare
	$(Q)for peer in py-spy pystack memray 'austin-dist<4'; do $(O)/peers/compare/bin/pip install -q "$$peer" || \
		echo "bench: $$peer cannot be installed"; done
	$(Q)touch $@

# One that was built from source has CPython's script for gdb beside it.
COMPARE_PYTHON ?= python3
.PHONY: bench-compare
bench-compare: all $(O)/peers/compare/.stamp ## ask other tools the same of one program; writes docs/comparison.md
	$(Q)python3 tests/bench/compare.py --probing $(O)/probing --peers $(O)/peers/compare

.PHONY: bench-values
bench-values: all ## what is shown of kinds of values, beside PEERS="--peer py-spy=FILE …"; writes docs/values.tsv
	$(Q)python3 tests/bench/values.py --probing $(O)/probing --out docs/values.tsv $(PEERS)

.PHONY: bench-wedges
bench-wedges: all ## ask stand-ins of inference servers what keeps their requests; writes docs/server.tsv
	$(Q)python3 tests/bench/wedges.py --probing $(O)/probing

.PHONY: bench-breaks
bench-breaks: $(O)/libprobing.so ## measure what breakpoints of Python cost; writes docs/breaks.tsv
	$(Q)python3 tests/bench/breaks.py --library $(CURDIR)/$(O)/libprobing.so

$(O)/peers/telemetry/.stamp: tests/bench/module.mk
	$(Q)python3 -m venv $(O)/peers/telemetry
	$(Q)$(O)/peers/telemetry/bin/pip install -q opentelemetry-sdk || echo "bench: opentelemetry-sdk cannot be installed"
	$(Q)touch $@

$(O)/peers/duckdb/.stamp: tests/bench/module.mk
	$(Q)python3 -m venv $(O)/peers/duckdb
	$(Q)$(O)/peers/duckdb/bin/pip install -q duckdb || echo "bench: duckdb cannot be installed"
	$(Q)touch $@

.PHONY: bench-rings
bench-rings: all wheel $(O)/peers/duckdb/.stamp $(O)/peers/telemetry/.stamp ## measure rings, recording and start-up
	$(Q)python3 tests/bench/rings.py --probing $(O)/probing --peers $(O)/peers

.PHONY: bench-events
bench-events: $(AGENT) $(O)/peers/telemetry/.stamp ## measure recording from Python, beside logging and OpenTelemetry
	$(Q)python3 tests/bench/events.py --agent $(CURDIR)/$(AGENT) $$($(O)/peers/telemetry/bin/python -c \
		'import opentelemetry.sdk' && echo --peers $(O)/peers/telemetry/bin/python)

.PHONY: bench-allocations
bench-allocations: $(O)/probing $(AGENT) $(O)/peers/.stamp ## measure memory, and --sites beside tracemalloc and memray
	$(Q)python3 tests/bench/allocations.py --probing $(CURDIR)/$(O)/probing --peers $(O)/peers
	$(Q)python3 tests/bench/census.py --probing $(CURDIR)/$(O)/probing

.PHONY: bench-scripts
bench-scripts: $(O)/probing $(O)/libprobing.so ## measure scripts, beside CPython's for gdb; writes docs/scripts.tsv
	$(Q)python3 tests/bench/scripts.py --probing $(CURDIR)/$(O)/probing

.PHONY: bench
bench: all wheel $(O)/peers/.stamp $(O)/peers/duckdb/.stamp $(O)/peers/telemetry/.stamp $(O)/tests/bench/long_recording ## measure beside other tools; writes docs/benchmarks.tsv and docs/benchmarks.md
	$(Q)python3 tests/bench/bench.py --probing $(O)/probing --peers $(O)/peers \
		--long-recording $(O)/tests/bench/long_recording \
		--rounds $(BENCH_ROUNDS) --out docs/benchmarks.tsv

EBPF_SAMPLES ?= 150000
.PHONY: bench-ebpf
bench-ebpf: $(O)/probing ## the acceptance of samples by eBPF, EBPF_SAMPLES of each program; writes docs/benchmarks.tsv
	$(Q)PROBING_BINARY=$(call built,probing) $(PYTHON) tests/bench/ebpf.py --samples $(EBPF_SAMPLES) \
		$(VERSIONS:%=--version %) --out docs/benchmarks.tsv

.PHONY: bench-cluster
bench-cluster: all ## what `cluster hang` takes for thousands of simulated ranks
	$(Q)python3 tests/bench/cluster.py --probing $(O)/probing

.PHONY: bench-training
bench-training: all ## shares and durations of torch's modules, TORCHES="--python FILE …"; writes the table of docs/training.md
	$(Q)python3 tests/bench/training.py --probing $(O)/probing
	$(Q)python3 tests/bench/training_costs.py --probing $(O)/probing
	$(Q)python3 tests/bench/training_kinds.py --probing $(O)/probing --out docs/training.md $(TORCHES)

.PHONY: bench-clickhouse
bench-clickhouse: all $(AGENT) ## rows a second to a ClickHouse server of this machine, and an idle `probing node`
	$(Q)python3 tests/bench/clickhouse.py --probing $(O)/probing
