/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "rings/cold.h"
#include "rings/ring_private.h"

enum { MAX_GAPS = 1024 };

bool prb_cold_is_name(const char *name)
{
	size_t length = strlen(name), end = strlen(PRB_COLD_END);

	return length > end && !strcmp(name + length - end, PRB_COLD_END);
}

/** The bytes of a part, unpacked into @p out; false if they are not what they say. */
static struct prb_error *unpack(const struct prb_ring *ring, const struct prb_cold_part *part,
				char *out, uint64_t size, bool whole, bool *ret)
{
	prb_auto_free char *packed = NULL;
	uint64_t got;
	size_t length;

	*ret = false;
	/* No writer needs more for so many bytes; a file with holes says any size for nothing. */
	if (!part->size || part->size > ZSTD_compressBound(size))
		return NULL;
	packed = malloc(part->size);
	if (!packed)
		return prb_error_nomem();
	PRB_TRY(prb_ring_read_at(ring, packed, part->size, ring->offset + sizeof(*part), &got));
	length = ZSTD_decompress(out, size, packed, part->size);
	*ret = got == part->size && !ZSTD_isError(length) && (!whole || length == size);
	if (*ret)
		memset(out + length, 0, size - length);
	return NULL;
}

/**
 * The chunk is there. The chunks between it and the last one are missing or damaged: the ring may
 * still have it.
 */
static struct prb_error *have(struct prb_ring *ring, uint64_t number)
{
	if (number > ring->chunk && ring->gaps.count < MAX_GAPS) {
		struct prb_ring_span *gap = prb_vec_push(&ring->gaps);

		if (!gap)
			return prb_error_nomem();
		*gap = (struct prb_ring_span){ring->chunk, number};
	}
	ring->chunk = number + 1;
	return NULL;
}

static struct prb_error *take_chunk(struct prb_ring *ring, const struct prb_cold_part *part,
				    const struct prb_ring_range *range, bool *ret)
{
	uint64_t bytes = (uint64_t)ring->slots * ring->header.slot_size;
	bool good;

	*ret = false;
	if (part->number >= ((uint64_t)INT64_MAX >> ring->header.chunk_shift) ||
	    part->number < ring->chunk) {
		ring->damaged++;
		return NULL;
	}
	if (!prb_ring_bounds_meet(ring, part->number, &part->bounds, range)) {
		ring->left_out++;
		return have(ring, part->number);
	}
	PRB_TRY(unpack(ring, part, ring->data, bytes, true, &good));
	if (!good) {
		ring->damaged++;
		return NULL;
	}
	PRB_TRY(have(ring, part->number));
	memcpy(ring->states, ring->data, bytes);
	ring->first = part->number << ring->header.chunk_shift;
	ring->slot = 0;
	prb_str_truncate(&ring->text, 0);
	*ret = true;
	return NULL;
}

static struct prb_error *take_strings(struct prb_ring *ring, const struct prb_cold_part *part)
{
	bool good;

	PRB_TRY(unpack(ring, part, ring->strings, ring->header.string_bytes, false, &good));
	if (good)
		return NULL;
	/* Lengths that no text has: rows that name one are damaged, too. */
	memset(ring->strings, 0xff, ring->header.string_bytes);
	ring->damaged++;
	return NULL;
}

struct prb_error *prb_cold_next_chunk(struct prb_ring *ring, const struct prb_ring_range *range,
				      bool *ret)
{
	struct prb_cold_part part;
	bool found = false;
	uint64_t got;

	*ret = false;
	while (!found && ring->offset < ring->size) {
		PRB_TRY(prb_ring_read_at(ring, &part, sizeof(part), ring->offset, &got));
		/* Half written, by a writer that was killed or is still writing. */
		if (got < sizeof(part) ||
		    !prb_inside(ring->offset + sizeof(part), part.size, ring->size))
			break;
		if (part.kind == PRB_COLD_CHUNK)
			PRB_TRY(take_chunk(ring, &part, range, &found));
		else if (part.kind == PRB_COLD_STRINGS && ring->header.string_bytes)
			PRB_TRY(take_strings(ring, &part));
		ring->offset += sizeof(part) + part.size;
	}
	*ret = found;
	return NULL;
}
