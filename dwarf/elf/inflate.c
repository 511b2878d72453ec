/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/elf/inflate.h"

#include <elf.h>
#include <lzma.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/checked.h"
#include "base/cleanup.h"

/* elf.h has these since glibc 2.36 only. */
enum { COMPRESS_ZLIB = 1, COMPRESS_ZSTD = 2 };

/* The largest debug sections known have a few gigabytes; a header that says more is a bomb. */
#define MAX_SECTION (16ULL << 30)
/* No compressor reaches more than this factor on real debug information. */
#define MAX_FACTOR 2048
#define MAX_XZ (256ULL << 20)
#define XZ_MEMORY (256ULL << 20)

static struct prb_error *inflate_zlib(const uint8_t *data, uint64_t size, void *out,
				      uint64_t out_size)
{
	uLongf length = out_size;

	if (uncompress(out, &length, data, size) != Z_OK || length != out_size)
		return prb_error_create(PRB_ERROR_BAD_DATA, "broken zlib data");
	return NULL;
}

static struct prb_error *inflate_zstd(const uint8_t *data, uint64_t size, void *out,
				      uint64_t out_size)
{
	size_t length = ZSTD_decompress(out, out_size, data, size);

	if (ZSTD_isError(length) || length != out_size)
		return prb_error_create(PRB_ERROR_BAD_DATA, "broken zstd data");
	return NULL;
}

uint64_t prb_inflate_size(const void *data, uint64_t size)
{
	Elf64_Chdr header;

	if (size < sizeof(header))
		return 0;
	memcpy(&header, data, sizeof(header));
	return header.ch_size;
}

struct prb_error *prb_inflate_section(const void *data, uint64_t size, void **ret,
				      uint64_t *ret_size)
{
	Elf64_Chdr header;

	if (size < sizeof(header))
		return prb_error_create(PRB_ERROR_BAD_DATA, "compressed section without header");
	memcpy(&header, data, sizeof(header));
	const uint8_t *content = (const uint8_t *)data + sizeof(header);
	size -= sizeof(header);
	if (!header.ch_size || header.ch_size > MAX_SECTION || header.ch_size / MAX_FACTOR > size)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"compressed section claims %llu bytes of content",
					(unsigned long long)header.ch_size);

	prb_auto_free void *out = malloc(header.ch_size);
	if (!out)
		return prb_error_nomem();
	switch (header.ch_type) {
	case COMPRESS_ZLIB:
		PRB_TRY(inflate_zlib(content, size, out, header.ch_size));
		break;
	case COMPRESS_ZSTD:
		PRB_TRY(inflate_zstd(content, size, out, header.ch_size));
		break;
	default:
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "unknown section compression %u",
					header.ch_type);
	}
	*ret = prb_steal(&out);
	*ret_size = header.ch_size;
	return NULL;
}

static void end_xz(lzma_stream *stream)
{
	lzma_end(stream);
}

struct prb_error *prb_inflate_xz(const void *data, uint64_t size, void **ret, uint64_t *ret_size)
{
	__attribute__((cleanup(end_xz))) lzma_stream stream = LZMA_STREAM_INIT;
	prb_auto_free uint8_t *out = NULL;
	uint64_t capacity = 0;
	lzma_ret status = lzma_stream_decoder(&stream, XZ_MEMORY, 0);

	stream.next_in = data;
	stream.avail_in = size;
	while (status == LZMA_OK) {
		if (!stream.avail_out) {
			uint64_t grown = capacity ? capacity * 2 : 64 << 10;

			if (grown > MAX_XZ)
				return prb_error_create(PRB_ERROR_BAD_DATA,
							"xz data grows beyond all bounds");
			uint8_t *moved = realloc(out, grown);
			if (!moved)
				return prb_error_nomem();
			out = moved;
			stream.next_out = out + capacity;
			stream.avail_out = grown - capacity;
			capacity = grown;
		}
		status = lzma_code(&stream, LZMA_FINISH);
	}
	if (status == LZMA_MEM_ERROR)
		return prb_error_nomem();
	if (status != LZMA_STREAM_END)
		return prb_error_create(PRB_ERROR_BAD_DATA, "broken xz data");
	*ret = prb_steal(&out);
	*ret_size = stream.total_out;
	return NULL;
}
