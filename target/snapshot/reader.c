/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/snapshot/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/snapshot/format.h"
#include "target/snapshot/snapshot.h"

struct opening {
	const char *path;
	const struct snapshot_place *place;
	struct snapshot_header header;
	struct snapshot_body *body;
};

static struct prb_error *damaged(const struct opening *o, struct prb_error *err)
{
	return prb_error_hint(prb_error_prefix(err, "%s", o->path),
			      "the file is damaged: copy it again or take the snapshot again");
}

/* @p offset is in the decompressed body. */
static struct prb_error *damaged_at(const struct opening *o, size_t offset, const char *what)
{
	return damaged(o, prb_error_create(PRB_ERROR_BAD_DATA, "%s at byte %zu of the content",
					   what, offset));
}

static struct prb_error *read_at(const struct opening *o, void *data, size_t length, off_t offset)
{
	for (size_t done = 0; done < length;) {
		ssize_t n = pread(o->place->fd, (char *)data + done, length - done,
				  (off_t)o->place->offset + offset + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return prb_error_os(errno, "cannot read %s", o->path);
		if (n == 0)
			return damaged(o, prb_error_create(PRB_ERROR_BAD_DATA,
							   "the file ends at byte %llu",
							   (unsigned long long)offset + done));
		done += (size_t)n;
	}
	return NULL;
}

static struct prb_error *check_magic(const struct opening *o, size_t file_size)
{
	const struct snapshot_header *h = &o->header;

	if (file_size >= sizeof(h->magic) && !memcmp(h->magic, snapshot_magic, sizeof(h->magic)))
		return NULL;
	if (file_size >= sizeof(h->magic) && !memcmp(h->magic + 1, "PRBS", 4))
		return prb_error_hint(prb_error_create(PRB_ERROR_BAD_DATA,
						       "%s was changed on its way, as if it were "
						       "text",
						       o->path),
				      "copy it again, in binary mode");
	return prb_error_hint(prb_error_create(PRB_ERROR_BAD_DATA, "%s is not a snapshot", o->path),
			      "snapshots are made by 'probing snapshot'");
}

static struct prb_error *check_sizes(const struct opening *o, uint64_t file_size)
{
	const struct snapshot_header *h = &o->header;
	uint64_t most = h->body_size > h->stored_size ? h->body_size : h->stored_size, end;

	if (most > PRB_SNAPSHOT_MAX_BODY)
		return damaged(
			o, prb_error_create(PRB_ERROR_BAD_DATA,
					    "%llu bytes of content; no snapshot has more than "
					    "%d MiB",
					    (unsigned long long)most, PRB_SNAPSHOT_MAX_BODY >> 20));
	if (h->record_count > PRB_SNAPSHOT_MAX_RECORDS)
		return damaged(o, prb_error_create(PRB_ERROR_BAD_DATA,
						   "%llu records; no snapshot has more than %d",
						   (unsigned long long)h->record_count,
						   PRB_SNAPSHOT_MAX_RECORDS));
	if (!prb_add(h->header_size, h->stored_size, &end) || h->header_size < sizeof(*h) ||
	    end != file_size)
		return damaged(o, prb_error_create(PRB_ERROR_BAD_DATA,
						   "the file has %llu bytes instead of %llu",
						   (unsigned long long)file_size,
						   (unsigned long long)end));
	return NULL;
}

static struct prb_error *open_header(struct opening *o)
{
	struct snapshot_header *h = &o->header;
	struct stat st;

	if (fstat(o->place->fd, &st))
		return prb_error_os(errno, "cannot read %s", o->path);
	if (!S_ISREG(st.st_mode))
		return prb_error_create(PRB_ERROR_BAD_DATA, "%s is not a regular file", o->path);

	size_t size = o->place->part ? o->place->size : (size_t)st.st_size;
	PRB_TRY(read_at(o, h, PRB_MIN(size, sizeof(*h)), 0));
	PRB_TRY(check_magic(o, size));
	if (size < sizeof(*h))
		return damaged(o, prb_error_create(PRB_ERROR_BAD_DATA,
						   "the file ends at byte %zu, within its header",
						   size));
	if (h->format != SNAPSHOT_FORMAT)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "%s has format %u, this version reads "
						       "format %d",
						       o->path, h->format, SNAPSHOT_FORMAT),
				      "read it with the version that made it: probing %.*s",
				      (int)sizeof(h->writer), h->writer);
	if (h->crc != crc32(0, (const Bytef *)h, offsetof(struct snapshot_header, crc)))
		return damaged(o, prb_error_create(PRB_ERROR_BAD_DATA,
						   "the checksum of the header is wrong"));
	return check_sizes(o, size);
}

static struct prb_error *decompress(struct opening *o)
{
	struct snapshot_body *body = o->body;
	size_t stored = o->header.stored_size;
	prb_auto_free char *frame = malloc(stored + 1);

	body->size = o->header.body_size;
	body->data = malloc(body->size + 1);
	if (!frame || !body->data)
		return prb_error_nomem();
	PRB_TRY(read_at(o, frame, stored, o->header.header_size));
	if (o->header.stored_crc != crc32_z(0, (const Bytef *)frame, stored))
		return damaged(o, prb_error_create(PRB_ERROR_BAD_DATA,
						   "the checksum of the content, from byte %u to "
						   "the end, is wrong",
						   o->header.header_size));

	size_t size = ZSTD_decompress(body->data, body->size, frame, stored);
	if (ZSTD_isError(size))
		return damaged(o, prb_error_create(PRB_ERROR_BAD_DATA,
						   "the content from byte %u on cannot be "
						   "decompressed: %s",
						   o->header.header_size, ZSTD_getErrorName(size)));
	if (size != body->size)
		return damaged_at(o, size, "the content ends early,");
	return NULL;
}

static int compare_names(const struct snapshot_answer_ref *a, const struct snapshot_answer_ref *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;

	int order = memcmp(a->name, b->name, PRB_MIN(a->name_length, b->name_length));
	return order				 ? order
	       : a->name_length < b->name_length ? -1
						 : a->name_length > b->name_length;
}

/*
 * Each of these checks the record's @p length bytes at @p data; false if they make no sense. The
 * vectors have room for one more item.
 */
static bool take_answer(struct snapshot_body *body, char kind, const char *data, size_t length)
{
	struct snapshot_answer head;
	struct snapshot_failure failure;

	if (length < sizeof(head))
		return false;
	memcpy(&head, data, sizeof(head));
	length -= sizeof(head);
	if (head.name_length > PRB_SNAPSHOT_MAX_NAME || head.name_length > length)
		return false;

	struct snapshot_answer_ref *answer = prb_vec_push(&body->answers);
	*answer = (struct snapshot_answer_ref){
		.kind = kind,
		.status = head.status,
		.name = data + sizeof(head),
		.name_length = head.name_length,
		.value = data + sizeof(head) + head.name_length,
		.value_length = length - head.name_length,
	};
	if (head.status) {
		if (answer->value_length < sizeof(failure))
			return false;
		memcpy(&failure, answer->value, sizeof(failure));
		if (failure.message_length > answer->value_length - sizeof(failure))
			return false;
	}
	return body->answers.count < 2 || compare_names(answer - 1, answer) < 0;
}

static bool take_registers(struct snapshot_body *body, const char *data, size_t length)
{
	struct snapshot_registers head, before;

	if (length < sizeof(head))
		return false;
	memcpy(&head, data, sizeof(head));
	if (length - sizeof(head) != (size_t)head.count * sizeof(uint64_t))
		return false;

	const char **registers = prb_vec_push(&body->registers);
	*registers = data;
	if (body->registers.count < 2)
		return true;
	memcpy(&before, registers[-1], sizeof(before));
	return before.tid < head.tid;
}

static bool take_page(struct snapshot_body *body, const char *data, size_t length)
{
	struct snapshot_page head;

	if (length < sizeof(head))
		return false;
	memcpy(&head, data, sizeof(head));
	if (head.address % PRB_PAGE_SIZE || head.tid < 0 ||
	    length - sizeof(head) != (size_t)__builtin_popcountll(head.lines) * SNAPSHOT_LINE)
		return false;

	struct snapshot_page_ref *page = prb_vec_push(&body->pages);
	*page = (struct snapshot_page_ref){
		.tid = head.tid,
		.address = head.address,
		.lines = head.lines,
		.data = data + sizeof(head),
	};
	return body->pages.count < 2 || page[-1].tid < page->tid ||
	       (page[-1].tid == page->tid && page[-1].address < page->address);
}

static bool take_record(struct snapshot_body *body, uint32_t kind, const char *data, size_t length)
{
	switch (kind) {
	case 'f':
	case 'l':
	case 'd':
	case 'k':
		return take_answer(body, (char)kind, data, length);
	case 'r':
		return take_registers(body, data, length);
	case 'p':
		return take_page(body, data, length);
	default:
		/* Of a newer version, which raises the format if it has to be understood. */
		return true;
	}
}

static struct prb_error *take_records(struct opening *o)
{
	struct snapshot_body *body = o->body;
	size_t offset = 0;

	for (uint64_t i = 0; i < o->header.record_count; i++) {
		struct snapshot_record record;

		if (!prb_inside(offset, sizeof(record), body->size))
			return damaged_at(o, offset, "a record is missing");
		memcpy(&record, body->data + offset, sizeof(record));
		offset += sizeof(record);
		if (!prb_vec_reserve(&body->answers, 1) || !prb_vec_reserve(&body->registers, 1) ||
		    !prb_vec_reserve(&body->pages, 1))
			return prb_error_nomem();
		if (!prb_inside(offset, record.length, body->size))
			return damaged_at(o, offset, "a record is longer than the file");
		if (!take_record(body, record.kind, body->data + offset, record.length))
			return damaged_at(o, offset, "a record is malformed");
		offset += record.length;
	}
	if (offset != body->size)
		return damaged_at(o, offset, "the file is longer than its header says");
	return NULL;
}

struct prb_error *snapshot_body_open(const struct snapshot_place *place, struct snapshot_body *ret)
{
	struct opening o = {.path = place->path, .place = place, .body = ret};

	*ret = (struct snapshot_body){};
	PRB_TRY(open_header(&o));
	ret->machine = o.header.machine;
	ret->pid = o.header.pid;
	ret->time_ns = o.header.time_ns;
	ret->flags = o.header.flags;

	struct prb_error *err = decompress(&o);
	if (!err)
		err = take_records(&o);
	if (err)
		snapshot_body_deinit(ret);
	return err;
}

void snapshot_body_deinit(struct snapshot_body *body)
{
	free(body->data);
	prb_vec_free(&body->answers);
	prb_vec_free(&body->registers);
	prb_vec_free(&body->pages);
	*body = (struct snapshot_body){};
}

bool snapshot_body_answer(const struct snapshot_body *body, char kind, const char *name,
			  struct snapshot_answer_ref *ret)
{
	struct snapshot_answer_ref key = {.kind = kind, .name = name, .name_length = strlen(name)};
	size_t low = 0, high = body->answers.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare_names(&body->answers.items[middle], &key);

		if (order == 0) {
			*ret = body->answers.items[middle];
			return true;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

bool snapshot_body_registers(const struct snapshot_body *body, pid_t tid, struct prb_regs *ret)
{
	for (size_t i = 0; i < body->registers.count; i++) {
		struct snapshot_registers head;
		const char *record = body->registers.items[i];

		memcpy(&head, record, sizeof(head));
		if (head.tid != tid)
			continue;
		/* A newer version may know more registers. */
		size_t count = PRB_MIN((size_t)head.count, (size_t)PRB_REG_COUNT);
		*ret = (struct prb_regs){
			.machine = head.machine,
			.pc = head.pc,
			.known = head.known & ((1ULL << count) - 1),
		};
		memcpy(ret->value, record + sizeof(head), count * sizeof(uint64_t));
		return true;
	}
	return false;
}

/* The first page whose view is not below @p tid. */
static size_t first_page(const struct snapshot_body *body, pid_t tid)
{
	size_t low = 0, high = body->pages.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (body->pages.items[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct snapshot_pages snapshot_body_pages(const struct snapshot_body *body, pid_t tid)
{
	size_t first = first_page(body, tid);
	size_t end = tid == INT_MAX ? body->pages.count : first_page(body, tid + 1);

	return (struct snapshot_pages){.first = first, .count = end - first};
}

bool prb_snapshot_probe(const char *path)
{
	char magic[sizeof(snapshot_magic)];
	prb_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd >= 0 && pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	       !memcmp(magic, snapshot_magic, sizeof(magic));
}
