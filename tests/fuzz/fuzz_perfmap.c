/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a perf map, read in pieces as it grows: the result must not depend on the cuts. */
#include "tests/fuzz/input.h"
#include "tests/fuzz/perf_maps.h"

static void feed(struct prb_perf_map *map, const uint8_t *data, size_t size)
{
	if (prb_perf_map_feed(map, (const char *)data, size))
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
	compare_maps(&whole, &pieces);
	prb_perf_map_deinit(&whole);
	prb_perf_map_deinit(&pieces);
	return 0;
}
