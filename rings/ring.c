/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/ring.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "rings/cold.h"
#include "rings/ring_private.h"

enum {
	MAX_SLOT = 4096,
	MAX_CHUNK_SHIFT = 16,
	MAX_CHUNKS = 1 << 24,
	MAX_STRINGS = 1 << 24,
	STATE = 1 << PRB_RING_STATE_BITS,
};

struct prb_error *prb_ring_read_at(const struct prb_ring *ring, void *data, uint64_t size,
				   uint64_t offset, uint64_t *ret)
{
	uint64_t done = 0;

	while (done < size) {
		ssize_t length =
			pread(ring->fd, (char *)data + done, size - done, (off_t)(offset + done));

		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0)
			return prb_error_os(errno, "cannot read %s", ring->path);
		if (!length)
			break;
		done += (uint64_t)length;
	}
	memset((char *)data + done, 0, size - done);
	*ret = done;
	return NULL;
}

static bool is_power_of_two(uint32_t number)
{
	return number && !(number & (number - 1));
}

static struct prb_error *bad(const struct prb_ring *ring, const char *why)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_BAD_DATA, "%s is no ring: %s", ring->path, why),
		"rings are files NAME.ring that a process with the agent makes");
}

static struct prb_error *check_header(const struct prb_ring *ring)
{
	const struct prb_ring_header *h = &ring->header;
	uint64_t row = sizeof(struct prb_ring_row) + h->column_count * sizeof(uint64_t);

	if (!ring->cold && memcmp(h->magic, PRB_RING_MAGIC, sizeof(h->magic)) != 0)
		return bad(ring, "it does not begin as one");
	if (h->version != PRB_RING_VERSION)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "%s has version %u of the format, and this "
						       "program reads version %u",
						       ring->path, h->version, PRB_RING_VERSION),
				      "read it with the version of probing that wrote it");
	if (h->header_size != PRB_RING_HEADER || !h->column_count ||
	    h->column_count > PRB_RING_COLUMNS)
		return bad(ring, "its columns are out of bounds");
	if (h->slot_size < row || h->slot_size > MAX_SLOT || h->slot_size % sizeof(uint64_t))
		return bad(ring, "its slots are out of bounds");
	if (h->chunk_shift > MAX_CHUNK_SHIFT || !is_power_of_two(h->chunks) ||
	    h->chunks > MAX_CHUNKS || h->string_bytes > MAX_STRINGS ||
	    h->string_places > MAX_STRINGS)
		return bad(ring, "its chunks or strings are out of bounds");
	if (h->head > INT64_MAX)
		return bad(ring, "it claims more rows than can be counted");
	if (!memchr(h->schema, 0, sizeof(h->schema)) || !memchr(h->name, 0, sizeof(h->name)) ||
	    !*h->schema || !*h->name)
		return bad(ring, "it has no name");
	return NULL;
}

static struct prb_error *check_columns(const struct prb_ring *ring)
{
	for (uint32_t i = 0; i < ring->header.column_count; i++) {
		const struct prb_ring_column *c = &ring->columns[i];

		if (c->type >= PRB_RING_TYPES || !*c->name ||
		    !memchr(c->name, 0, sizeof(c->name)) || !memchr(c->unit, 0, sizeof(c->unit)))
			return bad(ring, "a column has no name or type");
	}
	return NULL;
}

static uint32_t find_texts_of(const struct prb_ring *ring)
{
	uint32_t result = 0, count = PRB_MIN(ring->header.column_count, PRB_RING_COLUMNS);

	for (uint32_t i = 0; i < count; i++)
		result |= (uint32_t)(ring->columns[i].type == PRB_RING_TEXT) << i;
	return result;
}

static struct prb_error *read_beginning(struct prb_ring *ring)
{
	struct prb_ring_header *h = &ring->header;
	uint64_t got, wanted;
	struct stat st;

	if (fstat(ring->fd, &st))
		return prb_error_os(errno, "cannot read %s", ring->path);
	if (!S_ISREG(st.st_mode))
		return bad(ring, "it is no regular file");
	ring->size = (uint64_t)st.st_size;
	PRB_TRY(prb_ring_read_at(ring, h, sizeof(*h), 0, &got));
	ring->cold = !memcmp(h->magic, PRB_COLD_MAGIC, sizeof(h->magic));
	PRB_TRY(check_header(ring));
	ring->parts = prb_ring_parts(h);
	wanted = h->column_count * sizeof(*ring->columns);
	PRB_TRY(prb_ring_read_at(ring, ring->columns, wanted, ring->parts.columns, &got));
	if (got < wanted)
		return bad(ring, "it ends before its columns do");
	PRB_TRY(check_columns(ring));
	ring->has_texts = find_texts_of(ring);
	ring->end = ring->cold ? UINT64_MAX : h->head;
	ring->slots = 1u << h->chunk_shift;
	ring->offset = ring->parts.columns + wanted;
	return NULL;
}

/** Room for a chunk twice, and for the strings; never more than the file is long. */
static struct prb_error *make_room(struct prb_ring *ring)
{
	uint64_t bytes = (uint64_t)ring->slots * ring->header.slot_size, got;

	if (ring->cold && bytes > PRB_COLD_CHUNK_BYTES)
		return bad(ring, "its chunks are larger than any");
	if (!ring->cold && bytes > ring->size + PRB_RING_HEADER)
		bytes = ring->size + PRB_RING_HEADER;
	bytes -= bytes % ring->header.slot_size;
	if (!bytes)
		return bad(ring, "it has no room for rows");
	ring->slots = (uint32_t)(bytes / ring->header.slot_size);
	ring->states = malloc(bytes);
	ring->data = malloc(bytes);
	if (!ring->cold && ring->header.string_bytes > ring->size)
		ring->header.string_bytes = 0;
	ring->strings = calloc(1, ring->header.string_bytes + 1);
	if (!ring->states || !ring->data || !ring->strings)
		return prb_error_nomem();
	if (ring->cold)
		return NULL;
	return prb_ring_read_at(ring, ring->strings, ring->header.string_bytes, ring->parts.strings,
				&got);
}

struct prb_error *prb_ring_open(int fd, const char *path, struct prb_ring **ret)
{
	prb_auto_close int own = fd;
	prb_auto_ring struct prb_ring *ring = calloc(1, sizeof(*ring));
	uint64_t chunk;

	if (!ring)
		return prb_error_nomem();
	ring->fd = prb_steal_fd(&own);
	ring->wanted = UINT32_MAX;
	PRB_TRY(prb_str_copy(path, &ring->path));
	PRB_TRY(read_beginning(ring));
	PRB_TRY(make_room(ring));
	ring->slot = ring->slots;
	if (ring->cold) {
		*ret = prb_steal(&ring);
		return NULL;
	}
	/* The chunk with the last slot that was reserved is in place of the oldest one. */
	chunk = ring->end ? (ring->end - 1) >> ring->header.chunk_shift : 0;
	if (chunk >= ring->header.chunks)
		ring->chunk = chunk - ring->header.chunks + 1;
	ring->dropped = ring->chunk << ring->header.chunk_shift;
	*ret = prb_steal(&ring);
	return NULL;
}

int prb_ring_column(const struct prb_ring *ring, const char *name, uint32_t type)
{
	for (uint32_t i = 0; i < ring->header.column_count; i++)
		if (!strcmp(ring->columns[i].name, name) && ring->columns[i].type == type)
			return (int)i;
	return -1;
}

const char *prb_ring_role(const struct prb_ring *ring)
{
	const char *role = ring->header.roles[ring->header.role & 1];

	return *role && memchr(role, 0, PRB_RING_ROLE) ? role : NULL;
}

void prb_ring_close(struct prb_ring *ring)
{
	if (!ring)
		return;
	close(ring->fd);
	free(ring->path);
	free(ring->states);
	free(ring->data);
	free(ring->strings);
	prb_str_deinit(&ring->text);
	prb_vec_free(&ring->gaps);
	free(ring);
}

bool prb_ring_bounds_meet(const struct prb_ring *ring, uint64_t chunk,
			  const struct prb_ring_bounds *bounds, const struct prb_ring_range *range)
{
	const uint64_t low = (1ull << PRB_RING_TIME_BITS) - 1;
	int64_t from, to;

	if ((bounds->first & ~low) != chunk << PRB_RING_TIME_BITS ||
	    (bounds->last & ~low) != chunk << PRB_RING_TIME_BITS)
		return true;
	/* The extremes stand for all that lies beyond them, and each is a whole millisecond. */
	if ((bounds->first & low) && !__builtin_mul_overflow(bounds->first & low, 1000000, &from) &&
	    !__builtin_add_overflow(from, ring->header.realtime, &from) && from > range->to)
		return false;
	return (bounds->last & low) == low ||
	       __builtin_mul_overflow((bounds->last & low) + 1, 1000000, &to) ||
	       __builtin_add_overflow(to, ring->header.realtime, &to) || to >= range->from;
}

struct prb_error *prb_ring_read_bounds(const struct prb_ring *ring, uint64_t chunk,
				       struct prb_ring_bounds *ret_bounds, bool *ret)
{
	uint64_t place = chunk & (ring->header.chunks - 1), got;

	PRB_TRY(prb_ring_read_at(ring, ret_bounds, sizeof(*ret_bounds),
				 ring->parts.bounds + place * sizeof(*ret_bounds), &got));
	*ret = got == sizeof(*ret_bounds);
	return NULL;
}

static struct prb_error *is_in_range(const struct prb_ring *ring, uint64_t chunk,
				     const struct prb_ring_range *range, bool *ret)
{
	struct prb_ring_bounds bounds;
	bool there;

	PRB_TRY(prb_ring_read_bounds(ring, chunk, &bounds, &there));
	*ret = !there || prb_ring_bounds_meet(ring, chunk, &bounds, range);
	return NULL;
}

/** Where its slots begin in the file, which may end before. */
static uint64_t place_of(const struct prb_ring *ring, uint64_t chunk)
{
	uint64_t place = chunk & (ring->header.chunks - 1);

	return ring->parts.slots + (place << ring->header.chunk_shift) * ring->header.slot_size;
}

/**
 * Copies a chunk twice. A row that is whole in the first copy is whole in the second one, unless
 * the ring has come round to its slots meanwhile, which `head` then shows.
 */
static struct prb_error *copy_chunk(struct prb_ring *ring, uint64_t chunk, bool *ret)
{
	uint64_t bytes = (uint64_t)ring->slots * ring->header.slot_size;
	uint64_t offset = place_of(ring, chunk), head, got;

	PRB_TRY(prb_ring_read_at(ring, ring->states, bytes, offset, &got));
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	PRB_TRY(prb_ring_read_at(ring, ring->data, bytes, offset, &got));
	ring->missing += (bytes - got) / ring->header.slot_size;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	PRB_TRY(prb_ring_read_at(ring, &head, sizeof(head), offsetof(struct prb_ring_header, head),
				 &got));
	*ret = got == sizeof(head) && head >= ring->end &&
	       head <= (chunk + ring->header.chunks) << ring->header.chunk_shift;
	return NULL;
}

/** True if a cold file has the chunk. They are asked for in ascending order. */
static bool is_stored(struct prb_ring *ring, uint64_t chunk)
{
	if (chunk >= ring->stored)
		return false;
	while (ring->gap < ring->gaps.count && ring->gaps.items[ring->gap].to <= chunk)
		ring->gap++;
	return ring->gap == ring->gaps.count || chunk < ring->gaps.items[ring->gap].from;
}

struct prb_error *prb_ring_next_chunk(struct prb_ring *ring, const struct prb_ring_range *range,
				      bool *ret)
{
	if (ring->cold)
		return prb_cold_next_chunk(ring, range, ret);
	*ret = false;
	while (ring->chunk << ring->header.chunk_shift < ring->end) {
		uint64_t chunk = ring->chunk++;
		bool good;

		if (is_stored(ring, chunk))
			continue;
		/* The header may promise far more: none up to the last place is there. */
		if (place_of(ring, chunk) >= ring->size) {
			uint64_t last = (ring->end - 1) >> ring->header.chunk_shift;
			uint64_t places = ring->header.chunks - (chunk & (ring->header.chunks - 1));

			places = PRB_MIN(places, last - chunk + 1);
			ring->missing += ring->slots * places;
			ring->chunk = chunk + places;
			continue;
		}
		PRB_TRY(is_in_range(ring, chunk, range, &good));
		ring->left_out += !good;
		if (!good)
			continue;
		PRB_TRY(copy_chunk(ring, chunk, &good));
		ring->overtaken += !good;
		if (!good)
			continue;
		ring->first = chunk << ring->header.chunk_shift;
		ring->slot = 0;
		prb_str_truncate(&ring->text, 0);
		*ret = true;
		return NULL;
	}
	return NULL;
}

void prb_ring_skip(struct prb_ring *ring, uint64_t chunk)
{
	if (chunk > ring->chunk)
		ring->chunk = chunk;
}

struct prb_error *prb_ring_leave_stored(struct prb_ring *ring, uint64_t chunk,
					const struct prb_ring_span *gaps, size_t count)
{
	if (!count)
		prb_ring_skip(ring, chunk);
	for (size_t i = 0; i < count; i++) {
		struct prb_ring_span *gap = prb_vec_push(&ring->gaps);

		if (!gap)
			return prb_error_nomem();
		*gap = gaps[i];
	}
	ring->stored = chunk;
	return NULL;
}

bool prb_ring_is_same(const struct prb_ring_header *ring, const struct prb_ring_header *other)
{
	return ring->pid == other->pid && ring->start_time == other->start_time &&
	       ring->realtime == other->realtime && ring->monotonic == other->monotonic &&
	       !strcmp(ring->schema, other->schema) && !strcmp(ring->name, other->name);
}

static uint64_t state_in(const char *copy, const struct prb_ring *ring, uint32_t slot)
{
	uint64_t state;

	memcpy(&state, copy + (uint64_t)slot * ring->header.slot_size, sizeof(state));
	return state;
}

uint64_t prb_ring_unfinished(const struct prb_ring *ring, uint64_t from)
{
	const uint64_t end = PRB_MIN(ring->first + ring->slots, ring->end);
	uint64_t number = PRB_MAX(from, ring->first);

	for (; number < end; number++) {
		uint64_t state = state_in(ring->states, ring, (uint32_t)(number - ring->first));

		if (state != prb_ring_state(number, PRB_RING_ROW) &&
		    state != prb_ring_state(number, PRB_RING_CONTINUE) &&
		    state != prb_ring_state(number, PRB_RING_VOID))
			break;
	}
	return number < end ? number : ring->first + ring->slots;
}

/** Collects the row's text from its slots; false if they are not its own. */
static bool take_text(struct prb_ring *ring, uint32_t slot, uint64_t used, uint32_t length)
{
	const uint64_t size = ring->header.slot_size;
	const char *data = ring->data + slot * size;
	uint64_t part = PRB_MIN(size - used, length), rest = length - part;

	prb_str_append(&ring->text, data + used, part);
	for (uint32_t i = 1; rest; i++) {
		if (i >= PRB_RING_ROW_SLOTS || slot + i >= ring->slots ||
		    state_in(ring->data, ring, slot + i) !=
			    prb_ring_state(ring->first + slot + i, PRB_RING_CONTINUE))
			return false;
		part = PRB_MIN(size - sizeof(uint64_t), rest);
		prb_str_append(&ring->text, data + i * size + sizeof(uint64_t), part);
		rest -= part;
	}
	return !ring->text.failed;
}

/** The interned string at @p place: false if it is none. Newer ones are read when met. */
static bool take_string(struct prb_ring *ring, uint64_t place, const char **text, uint32_t *length)
{
	uint32_t stored = 0;
	uint64_t got;

	for (int again = 0; again < 2; again++) {
		if (!prb_inside(place, sizeof(stored), ring->header.string_bytes))
			return false;
		memcpy(&stored, ring->strings + place, sizeof(stored));
		if (stored || ring->cold)
			break;
		prb_error_destroy(prb_ring_read_at(ring, ring->strings + place,
						   ring->header.string_bytes - place,
						   ring->parts.strings + place, &got));
	}
	if (!prb_inside(place + sizeof(stored), stored, ring->header.string_bytes))
		return false;
	*text = ring->strings + place + sizeof(stored);
	*length = stored;
	return true;
}

/** Finds the texts of a row, whose own lie in `text` of the ring. */
static bool find_texts(struct prb_ring *ring, uint32_t bytes, struct prb_ring_item *ret)
{
	const char *at = prb_str_text(&ring->text);

	for (uint32_t i = 0; i < ring->header.column_count; i++) {
		uint64_t cell = ret->cells[i];

		if (ring->columns[i].type != PRB_RING_TEXT || ret->nulls >> i & 1)
			continue;
		if (cell & PRB_RING_INTERNED && !(ring->wanted >> i & 1))
			continue;
		if (cell & PRB_RING_INTERNED) {
			if (!take_string(ring, cell & ~PRB_RING_INTERNED, &ret->texts[i],
					 &ret->lengths[i]))
				return false;
			continue;
		}
		if (cell > bytes)
			return false;
		ret->texts[i] = at;
		ret->lengths[i] = (uint32_t)cell;
		at += cell;
		bytes -= (uint32_t)cell;
	}
	return !bytes;
}

static bool take_row(struct prb_ring *ring, uint32_t slot, struct prb_ring_item *ret)
{
	const char *data = ring->data + (uint64_t)slot * ring->header.slot_size;
	const uint32_t columns = ring->header.column_count;
	struct prb_ring_row row;

	memcpy(&row, data, sizeof(row));
	ret->time = row.time;
	ret->pid = row.pid;
	ret->tid = row.tid;
	ret->nulls = row.nulls;
	ret->number = ring->first + slot;
	memcpy(ret->cells, data + sizeof(row), columns * sizeof(*ret->cells));
	if (row.state != prb_ring_state(ret->number, PRB_RING_ROW))
		return false;
	if (!ring->has_texts || !(ring->wanted & ring->has_texts))
		return true;
	memset(ret->texts, 0, columns * sizeof(*ret->texts));
	prb_str_truncate(&ring->text, 0);
	if (!take_text(ring, slot, sizeof(row) + columns * sizeof(*ret->cells), row.text))
		return false;
	return find_texts(ring, row.text, ret);
}

bool prb_ring_next_row(struct prb_ring *ring, struct prb_ring_item *ret)
{
	while (ring->slot < ring->slots && ring->first + ring->slot < ring->end) {
		uint32_t slot = ring->slot++;
		uint64_t state = state_in(ring->states, ring, slot);

		if (state == prb_ring_state(ring->first + slot, PRB_RING_BUSY))
			ring->pending++;
		if (state != prb_ring_state(ring->first + slot, PRB_RING_ROW))
			continue;
		if (take_row(ring, slot, ret))
			return true;
		ring->damaged++;
	}
	return false;
}
