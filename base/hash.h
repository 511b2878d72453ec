/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file FNV-1a, a hash that nobody has to be kept from guessing. Any thread; never fails. */
#ifndef PRB_BASE_HASH_H
#define PRB_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** The hash of nothing. */
#define PRB_HASH_START UINT64_C(0xcbf29ce484222325)

/** The hash of what @p hash is of, with these bytes behind it. */
static inline uint64_t prb_hash_bytes(uint64_t hash, const void *data, size_t length)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/** The same with a text. */
static inline uint64_t prb_hash_text(uint64_t hash, const char *text)
{
	return prb_hash_bytes(hash, text, strlen(text));
}

#endif
