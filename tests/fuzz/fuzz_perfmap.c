/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a perf map, read in pieces as it grows: the result must not depend on the cuts. */
#include "tests/fuzz/input.h"

#include "profile/native/perf_map.h"

static void feed(struct prb_perf_map *map, const uint8_t *data, size_t size)
{
	if (prb_perf_map_feed(map, (const char *)data, size))
		abort();
}

static void compare(const struct prb_perf_map *a, const struct prb_perf_map *b, uint64_t address)
{
	const char *x = prb_perf_map_find(a, address), *y = prb_perf_map_find(b, address);

	if (!x != !y || (x && strcmp(x, y) != 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	size_t cut = input_u32(&input);
	struct prb_perf_map whole, pieces;

	cut = input.size ? cut % input.size : 0;
	prb_perf_map_init(&whole);
	prb_perf_map_init(&pieces);
	feed(&whole, input.data, input.size);
	feed(&pieces, input.data, cut);
	feed(&pieces, input.data + cut, input.size - cut);
	if (whole.symbols.count != pieces.symbols.count)
		abort();
	for (size_t i = 0; i < whole.symbols.count; i++) {
		const struct prb_perf_symbol *symbol = &whole.symbols.items[i];

		compare(&whole, &pieces, symbol->start);
		compare(&whole, &pieces, symbol->start + symbol->size - 1);
	}
	prb_perf_map_deinit(&whole);
	prb_perf_map_deinit(&pieces);
	return 0;
}
