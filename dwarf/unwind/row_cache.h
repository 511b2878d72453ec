/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Rows by pc: what was interpreted once is not interpreted again. Internal to dwarf/unwind/.
 *
 * Rows are packed one after another; when there is no more room all are forgotten.
 */
#ifndef PRB_DWARF_UNWIND_ROW_CACHE_H
#define PRB_DWARF_UNWIND_ROW_CACHE_H

#include "dwarf/unwind/cfi.h"

enum { PRB_ROW_CACHE_BUCKETS = 2048 };

struct prb_row_cache {
	uint32_t buckets[PRB_ROW_CACHE_BUCKETS]; /**< offset of the newest entry plus one */
	uint8_t *bytes;
	size_t used, capacity;
};

void prb_row_cache_deinit(struct prb_row_cache *cache);

/** The row of @p pc and its section, valid until the next put; NULL if it is not there. */
const struct prb_cfi_row *prb_row_cache_find(const struct prb_row_cache *cache, uint64_t pc,
					     const struct prb_cfi_section **section);

/** Keeps a copy, if there is memory for it. */
void prb_row_cache_put(struct prb_row_cache *cache, uint64_t pc,
		       const struct prb_cfi_section *section, const struct prb_cfi_row *row);

#endif
