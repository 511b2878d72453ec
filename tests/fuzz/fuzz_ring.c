/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a ring: an error, or rows whose texts can be read. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "rings/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile char used;

static void read_texts(const struct prb_ring *ring, const struct prb_ring_item *row)
{
	for (uint32_t i = 0; i < ring->header.column_count; i++) {
		if (ring->columns[i].type != PRB_RING_TEXT || !row->texts[i])
			continue;
		for (uint32_t at = 0; at < row->lengths[i]; at++)
			used = row->texts[i][at];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct prb_ring_range range = {1000000, INT64_MAX / 2};
	prb_auto_ring struct prb_ring *ring = NULL;
	prb_auto_error struct prb_error *err = NULL;
	int fd = memfd_create("ring", MFD_CLOEXEC);
	struct prb_ring_item row;
	bool more = true;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	err = prb_ring_open(fd, "ring", &ring);
	/* A header may promise any number of chunks: the first hundred are like the others. */
	for (int i = 0; !err && more && i < 100; i++) {
		err = prb_ring_next_chunk(ring, &range, &more);
		while (!err && more && prb_ring_next_row(ring, &row))
			read_texts(ring, &row);
	}
	return 0;
}
