# SPDX-License-Identifier: GPL-3.0-or-later
# Unit tests: each tests/unit/test_NAME.c is one cmocka program.
UNIT_TESTS := $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(wildcard tests/unit/test_*.c))

$(O)/tests/unit/%: $(O)/tests/unit/%.o $(O)/libprobing.a
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

.PHONY: check-unit
check-unit: $(UNIT_TESTS)
	@for t in $^; do echo "$$t"; $$t || exit 1; done
