/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/ring_make.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/own_file.h"

static int64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static struct prb_error *write_at(int fd, const void *data, size_t size, uint64_t offset)
{
	while (size) {
		ssize_t length = pwrite(fd, data, size, (off_t)offset);

		if (length < 0 && errno == EINTR)
			continue;
		if (length <= 0)
			return prb_error_os(length ? errno : EIO, "cannot write to a ring");
		data = (const char *)data + length;
		size -= (size_t)length;
		offset += (uint64_t)length;
	}
	return NULL;
}

/** Bounds that belong to no chunk, so that readers look at all of them. */
static struct prb_error *write_bounds(const struct prb_ring_maker *maker)
{
	const size_t size = maker->header.chunks * sizeof(struct prb_ring_bounds);
	prb_auto_free void *bounds = malloc(size);

	if (!bounds)
		return prb_error_nomem();
	memset(bounds, 0xff, size);
	return write_at(maker->fd, bounds, size, maker->parts.bounds);
}

struct prb_error *prb_ring_make(int folder, const char *name, const struct prb_ring_shape *shape,
				struct prb_ring_maker *ret)
{
	struct prb_ring_header *h = &ret->header;

	*ret = (struct prb_ring_maker){.fd = -1};
	memcpy(h->magic, PRB_RING_MAGIC, sizeof(h->magic));
	h->version = PRB_RING_VERSION;
	h->header_size = PRB_RING_HEADER;
	h->column_count = shape->column_count;
	h->slot_size = shape->slot_size;
	h->chunk_shift = shape->chunk_shift;
	h->chunks = shape->chunks;
	h->realtime = read_clock(CLOCK_REALTIME);
	h->monotonic = read_clock(CLOCK_MONOTONIC);
	h->boottime = read_clock(CLOCK_BOOTTIME);
	h->pid = (uint32_t)getpid();
	snprintf(h->schema, sizeof(h->schema), "%s", shape->schema);
	snprintf(h->name, sizeof(h->name), "%s", shape->name);
	ret->parts = prb_ring_parts(h);
	h->file_size = ret->parts.end;
	ret->fd = prb_own_file_new(folder, name, O_RDWR, 0600);
	if (ret->fd < 0)
		return prb_error_os(errno, "cannot make the ring %s", name);
	if (ftruncate(ret->fd, (off_t)ret->parts.end))
		return prb_error_os(errno, "cannot make the ring %s", name);
	PRB_TRY(write_at(ret->fd, shape->columns, shape->column_count * sizeof(*shape->columns),
			 ret->parts.columns));
	PRB_TRY(write_bounds(ret));
	/* The header comes last: without it the file is no ring. */
	return write_at(ret->fd, h, sizeof(*h), 0);
}

void prb_ring_maker_deinit(struct prb_ring_maker *maker)
{
	prb_close_guard(&maker->fd);
}

/** Puts the row together; false if it does not fit. */
static bool pack(const struct prb_ring_maker *maker, const struct prb_ring_item *item,
		 uint64_t number, char *slot)
{
	const uint32_t count = maker->header.column_count;
	struct prb_ring_row *row = (struct prb_ring_row *)slot;
	size_t used = sizeof(*row) + count * sizeof(uint64_t);

	row->state = prb_ring_state(number, PRB_RING_ROW);
	row->time = item->time;
	row->pid = item->pid;
	row->tid = item->tid;
	row->nulls = item->nulls;
	for (uint32_t i = 0; i < count; i++) {
		row->cells[i] = item->cells[i];
		if (!item->texts[i] || item->nulls >> i & 1)
			continue;
		if (used + item->lengths[i] > maker->header.slot_size)
			return false;
		memcpy(slot + used, item->texts[i], item->lengths[i]);
		row->cells[i] = item->lengths[i];
		row->text += item->lengths[i];
		used += item->lengths[i];
	}
	return true;
}

struct prb_error *prb_ring_make_row(struct prb_ring_maker *maker, const struct prb_ring_item *item)
{
	const struct prb_ring_header *h = &maker->header;
	const uint64_t number = h->head, slots = (uint64_t)h->chunks << h->chunk_shift;
	prb_auto_free char *slot = calloc(1, h->slot_size);

	if (!slot)
		return prb_error_nomem();
	if (!pack(maker, item, number, slot))
		return prb_error_create(PRB_ERROR_BAD_DATA, "a row is too long for its ring");
	maker->header.head++;
	PRB_TRY(write_at(maker->fd, &h->head, sizeof(h->head),
			 offsetof(struct prb_ring_header, head)));
	return write_at(maker->fd, slot, h->slot_size,
			maker->parts.slots + (number & (slots - 1)) * h->slot_size);
}
