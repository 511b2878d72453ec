/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cores and sections of cores that are compressed: zstd, gzip, xz. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/room.h"
#include "target/core/file.h"

enum {
	IN_SIZE = 256 << 10,
	OUT_SIZE = 1 << 20,
	HOLE_SIZE = 4096, /* runs of zeros of this size are not written */
	XZ_MEMORY = 256 << 20,
	COMPRESS_ZSTD = 2,     /* ELFCOMPRESS_ZSTD, which older elf.h lack */
	LOOK_AGAIN = 16 << 20, /* bytes that are written until free space is looked at again */
	MOST_FACTOR = 1000,    /* a core has no more to write, besides FREE_OF_IT, than its file */
	FREE_OF_IT = 256 << 20,
};

/* Where it is unpacked to: others need the disk, too. */
struct unpacked {
	int fd;
	uint64_t written, most; /* bytes that are no holes */
	uint64_t room;		/* of them before free space is looked at again */
};

/* A decoder takes from `in`, gives to `out`, and says when the stream has come to its end. */
struct stream {
	ZSTD_DCtx *zstd;
	z_stream zlib;
	lzma_stream lzma;
	const unsigned char *in;
	size_t in_left;
	unsigned char *out;
	size_t out_left;
	bool end;
	const char *error; /* what is wrong with the data; NULL: nothing */
};

struct format {
	const char *name;
	unsigned char magic[6];
	size_t magic_length;
	bool (*init)(struct stream *s); /* NULL: not supported */
	void (*step)(struct stream *s);
	void (*deinit)(struct stream *s);
	const char *by_hand; /* command that unpacks it */
};

static bool zstd_init(struct stream *s)
{
	s->zstd = ZSTD_createDCtx();
	return s->zstd != NULL;
}

static void zstd_step(struct stream *s)
{
	ZSTD_inBuffer in = {s->in, s->in_left, 0};
	ZSTD_outBuffer out = {s->out, s->out_left, 0};
	size_t left = ZSTD_decompressStream(s->zstd, &out, &in);

	if (ZSTD_isError(left)) {
		s->error = ZSTD_getErrorName(left);
		return;
	}
	s->in += in.pos;
	s->in_left -= in.pos;
	s->out += out.pos;
	s->out_left -= out.pos;
	s->end = left == 0;
}

static void zstd_deinit(struct stream *s)
{
	ZSTD_freeDCtx(s->zstd);
}

static bool zlib_init(struct stream *s)
{
	/* 32: a gzip or zlib header, whichever is there. */
	return inflateInit2(&s->zlib, 15 + 32) == Z_OK;
}

static void zlib_step(struct stream *s)
{
	s->zlib.next_in = (Bytef *)s->in;
	s->zlib.avail_in = (uInt)s->in_left;
	s->zlib.next_out = s->out;
	s->zlib.avail_out = (uInt)s->out_left;

	int rc = inflate(&s->zlib, Z_NO_FLUSH);
	s->in = s->zlib.next_in;
	s->in_left = s->zlib.avail_in;
	s->out = s->zlib.next_out;
	s->out_left = s->zlib.avail_out;
	s->end = rc == Z_STREAM_END;
	if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
		s->error = s->zlib.msg ? s->zlib.msg : "bad data";
	/* Another member may follow. */
	if (s->end && s->in_left && inflateReset(&s->zlib) != Z_OK)
		s->error = "bad data";
}

static void zlib_deinit(struct stream *s)
{
	inflateEnd(&s->zlib);
}

static bool xz_init(struct stream *s)
{
	s->lzma = (lzma_stream)LZMA_STREAM_INIT;
	return lzma_stream_decoder(&s->lzma, XZ_MEMORY, 0) == LZMA_OK;
}

static void xz_step(struct stream *s)
{
	s->lzma.next_in = s->in;
	s->lzma.avail_in = s->in_left;
	s->lzma.next_out = s->out;
	s->lzma.avail_out = s->out_left;

	lzma_ret rc = lzma_code(&s->lzma, LZMA_RUN);
	s->in = s->lzma.next_in;
	s->in_left = s->lzma.avail_in;
	s->out = s->lzma.next_out;
	s->out_left = s->lzma.avail_out;
	s->end = rc == LZMA_STREAM_END;
	if (rc == LZMA_MEMLIMIT_ERROR)
		s->error = "it needs too much memory";
	else if (rc != LZMA_OK && rc != LZMA_STREAM_END && rc != LZMA_BUF_ERROR)
		s->error = "bad data";
}

static void xz_deinit(struct stream *s)
{
	lzma_end(&s->lzma);
}

static const struct format formats[] = {
	{"zstd", {0x28, 0xb5, 0x2f, 0xfd}, 4, zstd_init, zstd_step, zstd_deinit, "zstd -d"},
	{"gzip", {0x1f, 0x8b, 0x08}, 3, zlib_init, zlib_step, zlib_deinit, "gzip -d"},
	{"xz", {0xfd, '7', 'z', 'X', 'Z', 0}, 6, xz_init, xz_step, xz_deinit, "xz -d"},
	{"lz4", {0x04, 0x22, 0x4d, 0x18}, 4, NULL, NULL, NULL, "lz4 -d"},
	{"bzip2", {'B', 'Z', 'h'}, 3, NULL, NULL, NULL, "bzip2 -d"},
};

static const struct format *format_of(int fd)
{
	unsigned char magic[6] = {};

	if (pread(fd, magic, sizeof(magic), 0) < (ssize_t)sizeof(magic))
		return NULL;
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!memcmp(magic, formats[i].magic, formats[i].magic_length))
			return &formats[i];
	return NULL;
}

bool core_is_packed(int fd)
{
	return format_of(fd) != NULL;
}

/* A file without a name, where large files may be put. */
static struct prb_error *create_temporary(int *ret_fd)
{
	const char *const folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		if (!folders[i] || folders[i][0] != '/')
			continue;
		*ret_fd = prb_nameless_file(folders[i]);
		if (*ret_fd >= 0)
			return NULL;
	}
	return prb_error_hint(prb_error_os(errno, "cannot create a temporary file"),
			      "set TMPDIR to a folder with room for the core");
}

static bool is_zero(const unsigned char *data, size_t length)
{
	return !data[0] && !memcmp(data, data + 1, length - 1);
}

/* Is there room for @p part more? */
static struct prb_error *take_room(struct unpacked *to, size_t part)
{
	to->written += part;
	if (to->written > to->most)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"it has over %d times as much content as it is long",
					MOST_FACTOR);
	if (to->room < part) {
		const uint64_t room = prb_room(to->fd);

		if (room < part)
			return prb_error_hint(
				prb_error_create(PRB_ERROR_FAILED,
						 "after %llu MiB the disk would have no room left "
						 "for others",
						 (unsigned long long)to->written >> 20),
				"set TMPDIR to a folder with room for it");
		to->room = PRB_MIN(room, (uint64_t)LOOK_AGAIN);
	}
	to->room -= part;
	return NULL;
}

/* Writes at @p offset, but leaves holes for zeros. */
static struct prb_error *write_sparse(struct unpacked *to, const unsigned char *data, size_t length,
				      uint64_t offset)
{
	while (length) {
		size_t part = HOLE_SIZE - offset % HOLE_SIZE;

		if (part > length)
			part = length;
		if (!is_zero(data, part)) {
			PRB_TRY(take_room(to, part));
			if (pwrite(to->fd, data, part, (off_t)offset) != (ssize_t)part)
				return prb_error_hint(
					prb_error_os(errno ? errno : ENOSPC, "cannot write it"),
					"set TMPDIR to a folder with room for it");
		}
		data += part;
		length -= part;
		offset += part;
	}
	return NULL;
}

static struct prb_error *unpack(const char *path, const struct format *format, struct stream *s,
				int from, struct unpacked *to)
{
	prb_auto_free unsigned char *in = malloc(IN_SIZE), *out = malloc(OUT_SIZE);
	uint64_t size = 0;

	if (!in || !out)
		return prb_error_nomem();
	for (off_t offset = 0;;) {
		if (!s->in_left) {
			ssize_t n = pread(from, in, IN_SIZE, offset);

			if (n < 0)
				return prb_error_os(errno, "cannot read %s", path);
			/* A truncated file gives what it can. */
			if (n == 0)
				break;
			offset += n;
			s->in = in;
			s->in_left = (size_t)n;
		}
		const unsigned char *before = s->in;

		s->out = out;
		s->out_left = OUT_SIZE;
		format->step(s);
		if (s->in == before && s->out == out && !s->end && !s->error)
			s->error = "it stalls";
		if (s->error && !size && s->out_left == OUT_SIZE)
			return prb_error_create(PRB_ERROR_BAD_DATA, "%s is damaged %s data: %s",
						path, format->name, s->error);
		PRB_TRY(prb_error_prefix(write_sparse(to, out, OUT_SIZE - s->out_left, size),
					 "cannot unpack %s", path));
		size += OUT_SIZE - s->out_left;
		if (size >> 30 >= PRB_CORE_MAX_UNPACKED_GIB)
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"%s is over %d GiB when unpacked", path,
						PRB_CORE_MAX_UNPACKED_GIB);
		if (s->error || (s->end && format->step == xz_step))
			break;
	}
	return ftruncate(to->fd, (off_t)size) ? prb_error_os(errno, "cannot unpack %s", path)
					      : NULL;
}

struct prb_error *core_unpack(const char *path, int *fd)
{
	const struct format *format = format_of(*fd);
	struct stream stream = {};

	if (!format)
		return NULL;
	if (!format->init)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "%s is compressed with %s", path,
						       format->name),
				      "unpack it first: %s '%s'", format->by_hand, path);

	prb_auto_close int temporary = -1;
	struct stat st;

	if (fstat(*fd, &st))
		return prb_error_os(errno, "cannot read %s", path);
	PRB_TRY(create_temporary(&temporary));
	if (!format->init(&stream))
		return prb_error_nomem();
	struct unpacked to = {.fd = temporary,
			      .most = (uint64_t)st.st_size * MOST_FACTOR + FREE_OF_IT};
	struct prb_error *err = unpack(path, format, &stream, *fd, &to);
	format->deinit(&stream);
	if (err && to.written > to.most)
		return prb_error_hint(err, "if it is what it should be, unpack it first: %s '%s'",
				      format->by_hand, path);
	if (err)
		return err;
	close(*fd);
	*fd = prb_steal_fd(&temporary);
	return NULL;
}

struct prb_error *core_inflate(uint32_t type, const void *data, size_t length, uint64_t size,
			       struct prb_str *ret)
{
	prb_auto_free char *out = malloc(size + 1);
	uLongf got = size;
	bool good;

	if (!out)
		return prb_error_nomem();
	if (type == ELFCOMPRESS_ZLIB) {
		good = uncompress((Bytef *)out, &got, data, length) == Z_OK;
	} else if (type == COMPRESS_ZSTD) {
		got = ZSTD_decompress(out, size, data, length);
		good = !ZSTD_isError(got);
	} else {
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "compressed in an unknown way (%u)",
					type);
	}
	if (!good || got != size)
		return prb_error_create(PRB_ERROR_BAD_DATA, "the compressed data is damaged");
	prb_str_append(ret, out, size);
	return ret->failed ? prb_error_nomem() : NULL;
}
