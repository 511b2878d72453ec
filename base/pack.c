/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/pack.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/cleanup.h"

static void context_guard(ZSTD_CCtx **zstd)
{
	ZSTD_freeCCtx(*zstd);
}

struct prb_error *prb_pack(const char *data, size_t size, int level, char **ret, size_t *ret_size)
{
	__attribute__((cleanup(context_guard))) ZSTD_CCtx *zstd = ZSTD_createCCtx();
	size_t room = ZSTD_compressBound(size);
	prb_auto_free char *packed = malloc(room);

	if (!zstd || !packed)
		return prb_error_nomem();
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	room = ZSTD_compress2(zstd, packed, room, data, size);
	if (ZSTD_isError(room))
		return prb_error_create(PRB_ERROR_FAILED, "cannot compress: %s",
					ZSTD_getErrorName(room));
	*ret_size = room;
	*ret = prb_steal(&packed);
	return NULL;
}
