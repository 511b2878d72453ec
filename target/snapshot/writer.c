/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes what a recorder holds: sorted, redacted if asked to, compressed as it is produced. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/text.h"
#include "target/snapshot/format.h"
#include "target/snapshot/recorder.h"
#include "target/snapshot/snapshot.h"

enum { COMPRESSION_LEVEL = 3, BUFFER_SIZE = 128 << 10 };

struct writer {
	const struct prb_recorder *recorder;
	int fd;
	const char *path; /* of the temporary file */
	ZSTD_CCtx *zstd;
	uint64_t stored, body, records;
	uint32_t stored_crc;
	char buffer[BUFFER_SIZE];
};

static void zstd_guard(ZSTD_CCtx **zstd)
{
	ZSTD_freeCCtx(*zstd);
}

static struct prb_error *write_all(struct writer *w, const void *data, size_t length, off_t offset)
{
	while (length) {
		ssize_t n = pwrite(w->fd, data, length, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return prb_error_os(n ? errno : ENOSPC, "cannot write %s", w->path);
		data = (const char *)data + n;
		length -= (size_t)n;
		offset += n;
	}
	return NULL;
}

static struct prb_error *feed(struct writer *w, const void *data, size_t length, bool end)
{
	ZSTD_inBuffer in = {data, length, 0};
	size_t left;

	w->body += length;
	do {
		ZSTD_outBuffer out = {w->buffer, sizeof(w->buffer), 0};

		left = ZSTD_compressStream2(w->zstd, &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return prb_error_create(PRB_ERROR_FAILED, "cannot compress: %s",
						ZSTD_getErrorName(left));
		PRB_TRY(write_all(w, w->buffer, out.pos,
				  (off_t)(sizeof(struct snapshot_header) + w->stored)));
		w->stored += out.pos;
		w->stored_crc =
			(uint32_t)crc32(w->stored_crc, (const Bytef *)w->buffer, (uInt)out.pos);
	} while (end ? left != 0 : in.pos < in.size);
	return NULL;
}

static struct prb_error *put_record(struct writer *w, char kind, const struct prb_block *parts,
				    size_t count)
{
	struct snapshot_record record = {.kind = (unsigned char)kind};

	for (size_t i = 0; i < count; i++)
		record.length += (uint32_t)parts[i].length;
	w->records++;
	PRB_TRY(feed(w, &record, sizeof(record), false));
	for (size_t i = 0; i < count; i++)
		PRB_TRY(feed(w, parts[i].buffer, parts[i].length, false));
	return w->body <= PRB_SNAPSHOT_MAX_BODY
		       ? NULL
		       : prb_error_create(PRB_ERROR_BAD_DATA,
					  "more than %d MiB were read, too much for a snapshot",
					  PRB_SNAPSHOT_MAX_BODY >> 20);
}

static bool named(const struct entry *e, const char *name)
{
	return e->kind == 'f' && e->key_length == strlen(name) &&
	       !memcmp(e->key, name, e->key_length);
}

static struct prb_error *put_answer(struct writer *w, const struct entry *e)
{
	prb_auto_str struct prb_str replaced = {};
	struct snapshot_answer head = {.name_length = e->key_length, .status = e->status};
	struct prb_block parts[] = {
		{.buffer = &head, .length = sizeof(head)},
		{.buffer = e->key, .length = e->key_length},
		{.buffer = e->value, .length = e->value_length},
	};

	if (w->recorder->redact && named(e, "environ"))
		return NULL;
	if (w->recorder->redact && named(e, "cmdline") && !e->status) {
		prb_text_cut_command(&replaced, e->value, e->value_length);
		if (replaced.failed)
			return prb_error_nomem();
		parts[2].buffer = replaced.data;
		parts[2].length = replaced.length;
	}
	if (e->value_length > PRB_SNAPSHOT_MAX_BODY)
		return prb_error_create(PRB_ERROR_BAD_DATA, "'%.*s' is too long for a snapshot",
					(int)e->key_length, (const char *)e->key);
	return put_record(w, e->kind, parts, PRB_ARRAY_SIZE(parts));
}

/* The lines that have something that was read. */
static uint64_t lines_read(const struct prb_page_marks *read)
{
	uint64_t lines = 0;

	for (unsigned i = 0; i < SNAPSHOT_LINES_PER_PAGE; i++)
		if (read->bits[i / 8] >> (i % 8 * 8) & 0xff)
			lines |= 1ULL << i;
	return lines;
}

static bool was_read(const struct entry *e, size_t word)
{
	return e && e->read.bits[word / 64] >> (word % 64) & 1;
}

/*
 * Unread words in a line may hold any value. In an overlay, they are taken from the shared image,
 * as for lines that the overlay lacks.
 */
static void clear_unread(char *page, const struct entry *e, const struct entry *shared)
{
	for (size_t i = 0; i < PRB_PAGE_WORDS; i++) {
		size_t at = i * PRB_WORD_SIZE;

		if (was_read(e, i))
			continue;
		if (was_read(shared, i))
			memcpy(page + at, (const char *)shared->value + at, PRB_WORD_SIZE);
		else
			memset(page + at, 0, PRB_WORD_SIZE);
	}
}

static bool has_more_than(const struct prb_page_marks *read, const struct prb_page_marks *other)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(read->bits); i++)
		if (read->bits[i] & ~other->bits[i])
			return true;
	return false;
}

/* The page of the shared image that lies below a page of an overlay. */
static const struct entry *page_below(const struct writer *w, const struct entry *e)
{
	struct page_key key;

	memcpy(&key, e->key, sizeof(key));
	if (!key.tid)
		return NULL;
	key.tid = 0;
	return recorder_find(w->recorder, 'p', &key, sizeof(key));
}

/* True if the overlay page says nothing that the shared image does not say. */
static bool same_as_shared(const struct writer *w, const struct entry *e,
			   const struct entry *shared)
{
	return shared && (!w->recorder->redact || !has_more_than(&e->read, &shared->read)) &&
	       !memcmp(shared->value, e->value, PRB_PAGE_SIZE);
}

static struct prb_error *put_page(struct writer *w, const struct entry *e)
{
	struct page_key key;
	struct prb_block parts[1 + SNAPSHOT_LINES_PER_PAGE];
	size_t count = 1;
	uint64_t lines = w->recorder->redact ? lines_read(&e->read) : UINT64_MAX;
	const struct entry *shared = page_below(w, e);
	char data[PRB_PAGE_SIZE];

	if (!lines || same_as_shared(w, e, shared))
		return NULL;
	memcpy(data, e->value, sizeof(data));
	if (w->recorder->redact)
		clear_unread(data, e, shared);
	memcpy(&key, e->key, sizeof(key));

	struct snapshot_page head = {.tid = key.tid, .address = key.address, .lines = lines};
	parts[0] = (struct prb_block){.buffer = &head, .length = sizeof(head)};
	for (unsigned i = 0; i < SNAPSHOT_LINES_PER_PAGE; i++) {
		if (!(lines >> i & 1))
			continue;
		char *line = data + (size_t)i * SNAPSHOT_LINE;
		/* Neighbours are written as one piece. */
		if (count > 1 && (char *)parts[count - 1].buffer + parts[count - 1].length == line)
			parts[count - 1].length += SNAPSHOT_LINE;
		else
			parts[count++] =
				(struct prb_block){.buffer = line, .length = SNAPSHOT_LINE};
	}
	return put_record(w, 'p', parts, count);
}

static struct prb_error *put_entry(struct writer *w, const struct entry *e)
{
	struct prb_block value = {.buffer = e->value, .length = e->value_length};

	switch (e->kind) {
	case 'p':
		return put_page(w, e);
	case 'r':
		return put_record(w, 'r', &value, 1);
	default:
		return put_answer(w, e);
	}
}

/* The order of the file: by kind, then names as bytes, numbers as numbers. */
static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = *(const struct entry *const *)left;
	const struct entry *b = *(const struct entry *const *)right;
	struct page_key x = {}, y = {};

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->kind == 'p' || a->kind == 'r') {
		memcpy(&x, a->key, a->key_length);
		memcpy(&y, b->key, b->key_length);
		if (x.tid != y.tid)
			return x.tid < y.tid ? -1 : 1;
		return x.address < y.address ? -1 : x.address > y.address;
	}
	int order = memcmp(a->key, b->key, PRB_MIN(a->key_length, b->key_length));
	return order ? order : a->key_length < b->key_length ? -1 : a->key_length > b->key_length;
}

static struct prb_error *put_body(struct writer *w)
{
	size_t count = w->recorder->entries.count;
	prb_auto_free const struct entry **order = malloc((count + 1) * sizeof(*order));

	if (!order)
		return prb_error_nomem();
	for (size_t i = 0; i < count; i++)
		order[i] = &w->recorder->entries.items[i];
	qsort(order, count, sizeof(*order), compare_entries);
	for (size_t i = 0; i < count; i++)
		PRB_TRY(put_entry(w, order[i]));
	return feed(w, NULL, 0, true);
}

static struct prb_error *put_header(struct writer *w, const struct prb_target *target)
{
	struct snapshot_header header = {
		.format = SNAPSHOT_FORMAT,
		.machine = target->machine,
		.pid = target->pid,
		.time_ns = target->time > 0 ? (uint64_t)(target->time * 1e9) : 0,
		.flags = w->recorder->redact ? SNAPSHOT_FLAG_REDACTED : 0,
		.header_size = sizeof(header),
		.stored_size = w->stored,
		.body_size = w->body,
		.record_count = w->records,
		.stored_crc = w->stored_crc,
	};

	memcpy(header.magic, snapshot_magic, sizeof(header.magic));
	snprintf(header.writer, sizeof(header.writer), "%s", PRB_VERSION);
	header.crc =
		(uint32_t)crc32(0, (const Bytef *)&header, offsetof(struct snapshot_header, crc));
	return write_all(w, &header, sizeof(header), 0);
}

static struct prb_error *write_file(const struct prb_recorder *r, const struct prb_target *target,
				    int fd, const char *path)
{
	__attribute__((cleanup(zstd_guard))) ZSTD_CCtx *zstd = ZSTD_createCCtx();
	prb_auto_free struct writer *w = calloc(1, sizeof(*w));

	if (!zstd || !w)
		return prb_error_nomem();
	w->recorder = r;
	w->fd = fd;
	w->path = path;
	w->zstd = zstd;
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, COMPRESSION_LEVEL);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
	PRB_TRY(put_body(w));
	return put_header(w, target);
}

struct prb_error *prb_recorder_write_to(struct prb_recorder *r, const struct prb_target *target,
					int fd, const char *name)
{
	if (r->failure)
		return prb_error_create(r->failure->code, "cannot make a snapshot: %s",
					r->failure->message);
	return write_file(r, target, fd, name);
}

struct prb_error *prb_recorder_write(struct prb_recorder *r, const struct prb_target *target,
				     const char *path)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;

	PRB_TRY(prb_new_file_open(&file, path));
	PRB_TRY(prb_recorder_write_to(r, target, file.fd, file.temporary));
	return prb_new_file_finish(&file);
}
