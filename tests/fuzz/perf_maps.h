/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What fuzzers of files with names of code share: two readings of one file must agree. */
#ifndef PRB_TESTS_FUZZ_PERF_MAPS_H
#define PRB_TESTS_FUZZ_PERF_MAPS_H

#include <stdlib.h>
#include <string.h>

#include "profile/native/perf_map.h"

static inline void compare_at(const struct prb_perf_map *a, const struct prb_perf_map *b,
			      uint64_t address)
{
	const char *x = prb_perf_map_find(a, address), *y = prb_perf_map_find(b, address);

	if (!x != !y || (x && strcmp(x, y) != 0))
		abort();
}

static inline void compare_maps(const struct prb_perf_map *a, const struct prb_perf_map *b)
{
	if (a->symbols.count != b->symbols.count)
		abort();
	for (size_t i = 0; i < a->symbols.count; i++) {
		const struct prb_perf_symbol *symbol = &a->symbols.items[i];

		compare_at(a, b, symbol->start);
		compare_at(a, b, symbol->start + symbol->size - 1);
	}
}

#endif
