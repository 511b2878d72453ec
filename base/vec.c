/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/vec.h"

#include <stdint.h>

bool prb_vec_grow(void **items, size_t *capacity, size_t count, size_t extra, size_t size)
{
	size_t needed, bytes;

	if (__builtin_add_overflow(count, extra, &needed))
		return false;
	if (needed <= *capacity)
		return true;

	size_t grown = *capacity < SIZE_MAX / 2 ? *capacity * 2 : needed;
	if (grown < needed)
		grown = needed;
	if (grown < 8)
		grown = 8;
	if (__builtin_mul_overflow(grown, size, &bytes))
		return false;

	void *moved = realloc(*items, bytes);
	if (!moved)
		return false;
	*items = moved;
	*capacity = grown;
	return true;
}
