/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Compressing with zstd. Any thread may call this. */
#ifndef PRB_BASE_PACK_H
#define PRB_BASE_PACK_H

#include <stddef.h>

#include "base/error.h"

/**
 * Compresses @p data to a zstd frame with a checksum, so that decompressing a damaged frame fails.
 * The caller frees *ret, which has *ret_size bytes. PRB_ERROR_NOMEM, PRB_ERROR_FAILED.
 */
struct prb_error *prb_pack(const char *data, size_t size, int level, char **ret,
			   size_t *ret_size) PRB_MUST_CHECK;

#endif
