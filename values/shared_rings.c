/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "values/shared_rings.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "values/heap/heap.h"
#include "values/interpreters.h"
#include "values/part.h"

enum {
	MOST_READERS = 1024,
	MOST_CHUNKS = 4096,
	MOST_FOUND = 256, /* objects */
	MOST_TYPES = 16,
};

static const char RING[] = "ShmRingBuffer", QUEUE[] = "MessageQueue", FOLDER[] = "/dev/shm/";

/* The types of that name, and the objects found. */
struct wanted {
	const char *name;
	uint64_t types[MOST_TYPES];
	unsigned type_count;
	PRB_VEC(uint64_t) objects;
};

struct reading {
	struct prb_target *t;
	const struct prb_maps *maps;
	struct prb_parts *parts;
	struct wanted rings, queues;
	struct prb_shared_rings *ret;
};

void prb_shared_rings_deinit(struct prb_shared_rings *rings)
{
	struct prb_shared_ring *ring;

	prb_vec_each (ring, &rings->list) {
		prb_str_deinit(&ring->name);
		free(ring->flags);
	}
	prb_vec_free(&rings->list);
}

bool prb_shared_ring_is_unread(const struct prb_shared_ring *ring, int64_t chunk, int64_t reader)
{
	const uint8_t *flags;

	if (chunk < 0 || chunk >= ring->chunks || reader < 0 || reader >= ring->readers)
		return false;
	flags = &ring->flags[chunk * (1 + ring->readers)];
	return flags[0] && !flags[1 + reader];
}

int64_t prb_shared_ring_unread(const struct prb_shared_ring *ring, int64_t reader)
{
	int64_t count = 0;

	for (int64_t chunk = 0; chunk < ring->chunks; chunk++)
		count += prb_shared_ring_is_unread(ring, chunk, reader);
	return count;
}

bool prb_shared_ring_same(const struct prb_shared_ring *a, const struct prb_shared_ring *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

static bool is_of(const struct wanted *wanted, uint64_t type)
{
	for (unsigned i = 0; i < wanted->type_count; i++)
		if (wanted->types[i] == type)
			return true;
	return false;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), wanted = strlen(end);

	return length > wanted && text[length - wanted - 1] == '.' &&
	       !strcmp(text + length - wanted, end);
}

static struct prb_error *note(struct wanted *wanted, uint64_t address)
{
	uint64_t *place;

	if (wanted->objects.count >= MOST_FOUND)
		return NULL;
	place = prb_vec_push(&wanted->objects);
	if (!place)
		return prb_error_nomem();
	*place = address;
	return NULL;
}

/* Most types are asked about once only, since the walk meets the same ones again and again. */
static struct prb_error *find_types(struct prb_heap *heap, struct reading *r)
{
	struct wanted *const wanted[] = {&r->rings, &r->queues};
	struct prb_heap_object object;
	uint64_t others[64] = {};
	bool more;

	for (;;) {
		uint64_t *other;
		const char *name;

		PRB_TRY(prb_heap_next(heap, &object, &more));
		if (!more)
			return NULL;
		other = &others[object.type / 16 % PRB_ARRAY_SIZE(others)];
		if (*other == object.type)
			continue;
		for (size_t i = 0; i < PRB_ARRAY_SIZE(wanted); i++)
			if (is_of(wanted[i], object.type))
				PRB_TRY(note(wanted[i], object.address));
		if (is_of(&r->rings, object.type) || is_of(&r->queues, object.type))
			continue;
		*other = object.type;
		PRB_TRY(prb_heap_type_name(heap, object.type, &name));
		for (size_t i = 0; i < PRB_ARRAY_SIZE(wanted); i++) {
			if (!ends_with(name, wanted[i]->name) ||
			    wanted[i]->type_count >= MOST_TYPES)
				continue;
			wanted[i]->types[wanted[i]->type_count++] = object.type;
			*other = 0;
			PRB_TRY(note(wanted[i], object.address));
		}
	}
}

static struct prb_error *find_objects(struct reading *r, const struct prb_inside *inside)
{
	struct prb_heap *heap;
	struct prb_error *err;

	/* Of a whole heap, a view would keep a copy. */
	PRB_TRY(prb_heap_create(inside->py, prb_target_is_recorded(r->t) ? inside->mem : r->t->mem,
				inside->interp, &heap));
	err = find_types(heap, r);
	prb_heap_destroy(heap);
	return err;
}

/* What the attribute of an object is; NULL: there is none. */
static struct prb_error *attribute(struct reading *r, uint64_t object, const char *name,
				   const struct prb_part_answer **ret)
{
	const struct prb_part_wanted wanted = {
		.object = object, .part = PRB_PART_ATTRIBUTE, .name = name, .text_max = 256};
	bool needs_code;
	struct prb_error *err = prb_parts_read(r->parts, &wanted, ret, &needs_code);

	if (err)
		*ret = NULL;
	return prb_error_tolerate(err, NULL);
}

static struct prb_error *number(struct reading *r, uint64_t object, const char *name, int64_t *ret)
{
	const struct prb_part_answer *answer;

	*ret = -1;
	PRB_TRY(attribute(r, object, name, &answer));
	if (answer && (answer->kind == PRB_PART_INT || answer->kind == PRB_PART_BOOL))
		*ret = answer->integer;
	return NULL;
}

static struct prb_error *text(struct reading *r, uint64_t object, struct prb_str *ret)
{
	const struct prb_part_wanted wanted = {
		.object = object, .part = PRB_PART_TEXT, .text_max = 256};
	const struct prb_part_answer *answer;
	bool needs_code;

	PRB_TRY(prb_parts_read(r->parts, &wanted, &answer, &needs_code));
	prb_str_puts(ret, prb_str_text(&answer->text));
	return ret->failed ? prb_error_nomem() : NULL;
}

static const struct prb_map *find_map(const struct prb_maps *maps, const char *name)
{
	const struct prb_map *map;

	prb_vec_each (map, &maps->list) {
		const char *end = strrchr(map->path, '/');

		if (end && map->shared && map->read && !map->offset && strstr(map->path, FOLDER) &&
		    !strcmp(end + 1, name))
			return map;
	}
	return NULL;
}

/* The flags lie behind the chunks. */
static struct prb_error *read_flags(struct reading *r, const struct prb_map *map,
				    struct prb_shared_ring *ring)
{
	size_t size = (size_t)ring->chunks * (size_t)(1 + ring->readers);
	uint64_t offset;

	if (!prb_mul((uint64_t)ring->chunks, (uint64_t)ring->chunk_bytes, &offset) ||
	    !prb_inside(offset, size, map->end - map->start))
		return prb_error_create(PRB_ERROR_BAD_DATA, "the ring is larger than its memory");
	ring->flags = malloc(size);
	if (!ring->flags)
		return prb_error_nomem();
	return prb_mem_read(r->t->mem, map->start + offset, ring->flags, size);
}

static struct prb_error *read_ring(struct reading *r, uint64_t address,
				   struct prb_shared_ring *ring)
{
	const struct prb_part_answer *answer;
	prb_auto_str struct prb_str name = {};
	const struct prb_map *map;

	*ring = (struct prb_shared_ring){.address = address, .reader = -1, .current = -1};
	PRB_TRY(number(r, address, "n_reader", &ring->readers));
	PRB_TRY(number(r, address, "max_chunks", &ring->chunks));
	PRB_TRY(number(r, address, "max_chunk_bytes", &ring->chunk_bytes));
	PRB_TRY(attribute(r, address, "shared_memory", &answer));
	if (answer && answer->object)
		PRB_TRY(attribute(r, answer->object, "_name", &answer));
	if (!answer || answer->kind != PRB_PART_STR || ring->readers < 0 ||
	    ring->readers > MOST_READERS || ring->chunks < 1 || ring->chunks > MOST_CHUNKS ||
	    ring->chunk_bytes < 0)
		return prb_error_create(PRB_ERROR_BAD_DATA, "no ring");
	PRB_TRY(text(r, answer->object, &name));
	prb_str_puts(&ring->name, prb_str_text(&name) + (*prb_str_text(&name) == '/'));
	if (ring->name.failed)
		return prb_error_nomem();
	map = find_map(r->maps, prb_str_text(&ring->name));
	if (!map)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "the ring is not mapped");
	ring->inode = map->inode;
	ring->major = map->major;
	ring->minor = map->minor;
	return read_flags(r, map, ring);
}

static struct prb_error *add_ring(struct reading *r, uint64_t address)
{
	struct prb_shared_ring ring, *place;
	struct prb_error *err = read_ring(r, address, &ring);

	place = err ? NULL : prb_vec_push(&r->ret->list);
	if (place) {
		*place = ring;
		return NULL;
	}
	if (!err)
		err = prb_error_nomem();
	prb_str_deinit(&ring.name);
	free(ring.flags);
	return prb_error_tolerate(err, NULL);
}

/* What the queue around a ring knows of this process's part in it. */
static struct prb_error *read_queue(struct reading *r, uint64_t address)
{
	const struct prb_part_answer *answer;
	struct prb_shared_ring *ring;
	uint64_t buffer;
	int64_t writes;

	PRB_TRY(attribute(r, address, "buffer", &answer));
	buffer = answer ? answer->object : 0;
	prb_vec_each (ring, &r->ret->list) {
		if (!buffer || ring->address != buffer)
			continue;
		PRB_TRY(number(r, address, "_is_writer", &writes));
		PRB_TRY(number(r, address, "current_idx", &ring->current));
		PRB_TRY(number(r, address, "local_reader_rank", &ring->reader));
		ring->has_queue = true;
		ring->writes = writes == 1;
		if (ring->writes || ring->reader >= ring->readers)
			ring->reader = -1;
		if (ring->current >= ring->chunks)
			ring->current = -1;
	}
	return NULL;
}

static struct prb_error *read_inside(void *context, const struct prb_inside *inside)
{
	struct reading *r = context;
	const uint64_t *object;
	struct prb_error *err = NULL;

	r->rings.objects.count = r->queues.objects.count = 0;
	r->rings.type_count = r->queues.type_count = 0;
	PRB_TRY(find_objects(r, inside));
	if (!r->rings.objects.count)
		return NULL;
	PRB_TRY(prb_parts_create(inside->py, inside->mem, &r->parts));
	prb_vec_each (object, &r->rings.objects)
		if (!err)
			err = add_ring(r, *object);
	prb_vec_each (object, &r->queues.objects)
		if (!err)
			err = read_queue(r, *object);
	prb_parts_destroy(r->parts);
	return err;
}

static bool has_shared(const struct prb_maps *maps)
{
	const struct prb_map *map;

	prb_vec_each (map, &maps->list)
		if (map->shared && strstr(map->path, FOLDER))
			return true;
	return false;
}

struct prb_error *prb_shared_rings_read(struct prb_target *t, struct prb_shared_rings *ret)
{
	struct prb_maps maps = {};
	struct reading r = {.t = t, .maps = &maps, .rings = {RING}, .queues = {QUEUE}, .ret = ret};
	struct prb_error *err;

	*ret = (struct prb_shared_rings){};
	PRB_TRY(prb_target_read_maps(t, &maps));
	err = has_shared(&maps) ? prb_inside_each(t, NULL, read_inside, &r) : NULL;
	prb_maps_deinit(&maps);
	prb_vec_free(&r.rings.objects);
	prb_vec_free(&r.queues.objects);
	if (err)
		prb_shared_rings_deinit(ret);
	return err;
}
