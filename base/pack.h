/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Compressing with zstd. Any thread may call this. */
#ifndef PRB_BASE_PACK_H
#define PRB_BASE_PACK_H

#include <stddef.h>

#include "base/error.h"

/**
 * *ret is a zstd frame of @p data, for the caller to free, and *ret_size its size. It ends with a
 * checksum, so that whoever decompresses it is told of damage. PRB_ERROR_NOMEM, PRB_ERROR_FAILED.
 */
struct prb_error *prb_pack(const char *data, size_t size, int level, char **ret,
			   size_t *ret_size) PRB_MUST_CHECK;

#endif
