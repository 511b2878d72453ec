/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Mutates whole snapshot files for their fuzzers: unpacks the content, changes one record,
 * and corrects sizes, count and checksums, so that the code behind those checks is reached. Inputs
 * remain files for `probing -t FILE`.
 */
#ifndef PRB_TESTS_SNAPSHOT_FILE_H
#define PRB_TESTS_SNAPSHOT_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/snapshot/snapshot.h"
#include "target/snapshot/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

enum { CONTENT_MAX = 1 << 20 };

struct content {
	struct snapshot_header header;
	uint8_t *bytes; /* from malloc(), CONTENT_MAX of them */
	size_t size;
};

static inline bool content_unpack(const uint8_t *data, size_t size, struct content *ret)
{
	struct snapshot_header *h = &ret->header;

	*ret = (struct content){};
	if (size < sizeof(*h))
		return false;
	memcpy(h, data, sizeof(*h));
	if (memcmp(h->magic, snapshot_magic, sizeof(h->magic)) ||
	    !prb_inside(h->header_size, h->stored_size, size))
		return false;
	ret->bytes = malloc(CONTENT_MAX);
	ret->size = ret->bytes ? ZSTD_decompress(ret->bytes, CONTENT_MAX, data + h->header_size,
						 h->stored_size)
			       : 0;
	return ret->bytes && !ZSTD_isError(ret->size);
}

/** Number of bytes written, 0 if there is no room. */
static inline size_t content_pack(struct content *content, uint8_t *data, size_t room)
{
	struct snapshot_header *h = &content->header;

	if (room < sizeof(*h))
		return 0;

	size_t stored = ZSTD_compress(data + sizeof(*h), room - sizeof(*h), content->bytes,
				      content->size, 1);
	if (ZSTD_isError(stored))
		return 0;
	h->header_size = sizeof(*h);
	h->stored_size = stored;
	h->body_size = content->size;
	h->stored_crc = (uint32_t)crc32(0, data + sizeof(*h), (uInt)stored);
	h->crc = (uint32_t)crc32(0, (const Bytef *)h, offsetof(struct snapshot_header, crc));
	memcpy(data, h, sizeof(*h));
	return sizeof(*h) + stored;
}

/** Offset of the @p index-th record; false if it is incomplete. */
static inline bool content_record(const struct content *content, size_t index, size_t *at,
				  struct snapshot_record *ret)
{
	for (*at = 0;; index--, *at += sizeof(*ret) + ret->length) {
		if (!prb_inside(*at, sizeof(*ret), content->size))
			return false;
		memcpy(ret, content->bytes + *at, sizeof(*ret));
		if (!prb_inside(*at + sizeof(*ret), ret->length, content->size))
			return false;
		if (!index)
			return true;
	}
}

/** Replaces @p old bytes at @p at by @p length bytes. */
static inline bool content_replace(struct content *content, size_t at, size_t old,
				   const uint8_t *bytes, size_t length)
{
	if (content->size - old + length > CONTENT_MAX)
		return false;
	memmove(content->bytes + at + length, content->bytes + at + old, content->size - at - old);
	if (length)
		memcpy(content->bytes + at, bytes, length);
	content->size += length - old;
	return true;
}

/** Changes a record behind its head: of an answer the value, whose size may change. */
static inline void content_mutate_record(struct content *content, size_t at,
					 struct snapshot_record record, unsigned seed)
{
	size_t head = record.kind == 'p'   ? sizeof(struct snapshot_page)
		      : record.kind == 'r' ? sizeof(struct snapshot_registers)
					   : sizeof(struct snapshot_answer);
	struct snapshot_answer answer;
	bool fixed = record.kind == 'p' || record.kind == 'r';
	static uint8_t bytes[1 << 16];

	at += sizeof(record);
	if (seed % 16 == 0 || head > record.length)
		head = 0;
	if (head == sizeof(answer) && !fixed) {
		memcpy(&answer, content->bytes + at, sizeof(answer));
		if (seed % 16 != 1 && prb_inside(head, answer.name_length, record.length))
			head += answer.name_length;
	}

	size_t size = record.length - head;
	if (size > sizeof(bytes) || (fixed && !size))
		return;
	memcpy(bytes, content->bytes + at + head, size);

	size_t length = LLVMFuzzerMutate(bytes, size, fixed ? size : sizeof(bytes));
	if (!content_replace(content, at + head, fixed ? length : size, bytes, length) || fixed)
		return;
	record.length = (uint32_t)(head + length);
	memcpy(content->bytes + at - sizeof(record), &record, sizeof(record));
}

static inline void content_mutate(struct content *content, unsigned seed)
{
	size_t count = 0, at;
	struct snapshot_record record;

	while (content_record(content, count, &at, &record))
		count++;
	if (!count || seed % 64 == 0) {
		content->size = LLVMFuzzerMutate(content->bytes, content->size, CONTENT_MAX);
	} else if (content_record(content, seed / 64 % count, &at, &record)) {
		if (seed % 64 == 1) {
			count -= content_replace(content, at, sizeof(record) + record.length, NULL,
						 0);
		} else {
			content_mutate_record(content, at, record, seed / 7);
		}
	}
	content->header.record_count = count;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	struct content content = {};
	size_t length;

	if (seed % 32 && content_unpack(data, size, &content)) {
		content_mutate(&content, seed / 32);
		length = content_pack(&content, data, max_size);
		free(content.bytes);
		return length ? length : LLVMFuzzerMutate(data, size, max_size);
	}
	free(content.bytes);
	return LLVMFuzzerMutate(data, size, max_size);
}

/** Opens the bytes as a snapshot; NULL if invalid. */
static inline struct prb_target *open_snapshot(const uint8_t *data, size_t size)
{
	prb_auto_close int fd = memfd_create("snapshot", MFD_CLOEXEC);
	struct prb_target *t = NULL;
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	struct prb_error *err = prb_target_open_snapshot(path, &t);
	if (err)
		t = NULL;
	prb_error_destroy(err);
	return t;
}

#endif
