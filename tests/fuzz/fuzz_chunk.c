/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a chunk of samples: an error, or runs that are within their bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "profile/store/chunk.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct prb_chunk *chunk, const struct prb_run *runs)
{
	for (size_t i = 0; i < chunk->runs; i++)
		if (runs[i].thread >= chunk->threads || runs[i].stack >= chunk->stacks ||
		    runs[i].state >= PRB_RUN_STATES || runs[i].begin < 0 || runs[i].wall < 0 ||
		    runs[i].cpu < 0 || runs[i].queue < 0)
			abort();
}

static void decode(const struct prb_chunk *chunk, const void *data, size_t size)
{
	prb_auto_free struct prb_run *runs = calloc(chunk->runs + 1, sizeof(*runs));
	struct prb_error *err = prb_chunk_decode(chunk, data, size, runs);

	if (!err)
		check(chunk, runs);
	prb_error_destroy(err);
}

/*
 * Decodes the bytes as they are, and as the content of a compressed frame, so that the code after
 * decompression is reached at once.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { HEADER = 4 };
	struct prb_chunk chunk;
	char packed[ZSTD_COMPRESSBOUND(65536)];
	size_t length;

	if (size < HEADER || size > 65536)
		return 0;
	chunk = (struct prb_chunk){
		.runs = 1 + data[0],
		.begin = (int64_t)data[1] << 55,
		.unit = 1 + ((int64_t)data[2] << 32),
		.threads = 1 + data[3] % 16,
		.stacks = 1 + data[3],
		.waits = 1 + data[2] % 8,
	};
	decode(&chunk, data + HEADER, size - HEADER);
	length = ZSTD_compress(packed, sizeof(packed), data + HEADER, size - HEADER, 1);
	if (!ZSTD_isError(length))
		decode(&chunk, packed, length);
	return 0;
}
