/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Entries of four numbers: start, length and handler in units of 2 bytes, and twice the depth of
 * the value stack plus a flag. The ranges do not overlap and are sorted.
 */
#include "python/frames/exception_table.h"

struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

/* Six bits a byte, most significant first; bit 6 says that more follow, bit 7 that an entry begins.
 */
static uint32_t take_number(struct cursor *c)
{
	enum { MOST_BYTES = 5 };
	uint32_t value = 0;

	for (unsigned i = 0; i < MOST_BYTES && c->at < c->end; i++) {
		uint8_t byte = *c->at++;

		value = value << 6 | (byte & 63);
		if (!(byte & 64))
			return value;
	}
	c->bad = true;
	return 0;
}

bool prb_exception_table_find(const uint8_t *table, size_t size, int64_t position,
			      struct prb_exception_handler *ret)
{
	struct cursor c = {.at = table, .end = table + size};

	while (c.at < c.end) {
		int64_t start = 2 * (int64_t)take_number(&c);
		int64_t end = start + 2 * (int64_t)take_number(&c);
		int64_t handler = 2 * (int64_t)take_number(&c);
		uint32_t depth = take_number(&c) >> 1;

		if (c.bad || position < start)
			return false;
		if (position >= end)
			continue;
		*ret = (struct prb_exception_handler){handler, depth};
		return true;
	}
	return false;
}
