/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/snapshot/bundle_private.h"
#include "target/snapshot/tar.h"

static struct prb_error *write_all(int fd, const void *data, size_t length)
{
	const char *at = data;

	while (length) {
		ssize_t written = write(fd, at, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return prb_error_os(errno, "cannot write the bundle");
		at += written;
		length -= (size_t)written;
	}
	return NULL;
}

static struct prb_error *write_header(int fd, const char *name, uint64_t size)
{
	struct tar_header header = {
		.mode = "0000600", .uid = "0000000", .gid = "0000000", .type = '0'};

	memcpy(header.magic, "ustar", sizeof(header.magic));
	memcpy(header.version, "00", sizeof(header.version));
	snprintf(header.name, sizeof(header.name), "%s", name);
	snprintf(header.size, sizeof(header.size), "%011llo", (unsigned long long)size);
	snprintf(header.mtime, sizeof(header.mtime), "%011llo", (unsigned long long)time(NULL));
	snprintf(header.checksum, sizeof(header.checksum), "%06o", tar_checksum(&header));
	header.checksum[7] = ' ';
	return write_all(fd, &header, sizeof(header));
}

static struct prb_error *pad(int fd, uint64_t size)
{
	static const char zeros[TAR_BLOCK];

	return write_all(fd, zeros, (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

static void make_name(enum prb_bundle_kind kind, long number, char ret[64])
{
	snprintf(ret, 64, "%s%ld%s", bundle_prefix[kind], number, bundle_suffix[kind]);
}

struct prb_error *prb_bundle_begin(int fd)
{
	PRB_TRY(write_header(fd, bundle_first, sizeof(bundle_format)));
	PRB_TRY(write_all(fd, bundle_format, sizeof(bundle_format)));
	return pad(fd, sizeof(bundle_format));
}

struct prb_error *prb_bundle_add(int fd, enum prb_bundle_kind kind, long number, int from,
				 uint64_t offset, uint64_t size)
{
	char chunk[65536], name[64];
	uint64_t done = 0;

	make_name(kind, number, name);
	PRB_TRY(write_header(fd, name, size));
	while (done < size) {
		ssize_t got = pread(from, chunk, PRB_MIN(sizeof(chunk), size - done),
				    (off_t)(offset + done));

		if (got < 0)
			return prb_error_os(errno, "cannot read what is to be saved");
		if (!got)
			return prb_error_create(PRB_ERROR_FAILED, "what is to be saved ends early");
		PRB_TRY(write_all(fd, chunk, (size_t)got));
		done += (uint64_t)got;
	}
	return pad(fd, size);
}

struct prb_error *prb_bundle_add_text(int fd, enum prb_bundle_kind kind, long number,
				      const char *text, size_t length)
{
	char name[64];

	make_name(kind, number, name);
	PRB_TRY(write_header(fd, name, length));
	PRB_TRY(write_all(fd, text, length));
	return pad(fd, length);
}

struct prb_error *prb_bundle_end(int fd)
{
	static const char zeros[2 * TAR_BLOCK];

	return write_all(fd, zeros, sizeof(zeros));
}
