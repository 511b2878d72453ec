/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory with changed bytes, for tests of readers of hostile data. */
#ifndef TESTS_UNIT_LIAR_H
#define TESTS_UNIT_LIAR_H

#include <stdint.h>

#include "base/cleanup.h"
#include "target/mem/mem.h"

/* A source that returns the bytes of another one, some of them changed. */
struct liar {
	struct prb_mem mem;
	struct prb_mem *base;
	uint64_t random;
	unsigned rate; /* one byte of this many is changed; 0 for none */
};

static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline struct prb_error *liar_read(struct prb_mem *mem, uint64_t address, void *buffer,
					  size_t length)
{
	struct liar *liar = (struct liar *)mem;
	uint8_t *bytes = buffer;

	PRB_TRY(prb_mem_read(liar->base, address, buffer, length));
	if (!liar->rate)
		return NULL;
	for (uint64_t at = next_random(&liar->random) % liar->rate; at < length;
	     at += 1 + next_random(&liar->random) % liar->rate) {
		uint64_t random = next_random(&liar->random);

		/* One bit, the sign of a size, a small number, or anything. */
		bytes[at] = random & 1	 ? (uint8_t)(bytes[at] ^ 1u << (random >> 8 & 7))
			    : random & 2 ? 0xff
			    : random & 4 ? (uint8_t)(random >> 8 & 7)
					 : (uint8_t)(random >> 8);
	}
	return NULL;
}

static inline void liar_destroy(struct prb_mem *mem)
{
	(void)mem;
}

static const struct prb_mem_ops liar_ops = {.read = liar_read, .destroy = liar_destroy};

#endif
