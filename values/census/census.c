/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The walk over all objects, and the table of those that were found. */
#include "values/census/census.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "values/census/private.h"
#include "values/heap/heap.h"

enum {
	PY_3_12 = 0x030c,
	FIRST_TABLE = 1 << 16,
	INDEX = (1 << 26) - 1, /* the bits of a slot that are the index of a node, plus 1 */
};

static const uint64_t mix = 0x9e3779b97f4a7c15u;

/* Addresses of objects. */
struct known {
	uint64_t *items;
	size_t count, capacity;
};

void prb_census_set_doubt(struct prb_census *c, const char *reason)
{
	if (!c->doubt)
		c->doubt = reason;
}

bool prb_census_try(struct prb_census *c, struct prb_error *err)
{
	if (!err)
		return true;
	/* Of one object nothing may be missing. */
	if (c->alone || (!prb_error_catch(&err, PRB_ERROR_FAULT) &&
			 !prb_error_catch(&err, PRB_ERROR_BAD_DATA) &&
			 !prb_error_catch(&err, PRB_ERROR_NOT_FOUND))) {
		if (c->fatal)
			prb_error_destroy(err);
		else
			c->fatal = err;
	}
	return false;
}

/* Objects that lie beside each other have slots in the same line of the processor's cache. */
static size_t slot_of(uint64_t address, size_t size)
{
	enum { NEAR = 256, STEP = 16, LINE = NEAR / STEP };
	size_t line = (size_t)(address / NEAR * mix >> 24);

	return (line * LINE + address / STEP % LINE) & (size - 1);
}

/* A tag beside the index in a slot, so that nodes are rarely compared in vain. */
static uint32_t tag_of(uint64_t address)
{
	return (uint32_t)(address * mix >> 32) & ~(uint32_t)INDEX;
}

static bool grow_table(struct prb_census *c)
{
	size_t size = c->table_size ? c->table_size * 2 : FIRST_TABLE;
	uint32_t *table = calloc(size, sizeof(*table));

	if (!table)
		return false;
	for (size_t i = 0; i < c->nodes.count; i++) {
		uint64_t address = c->nodes.items[i].address;
		size_t slot = slot_of(address, size);

		while (table[slot])
			slot = (slot + 1) & (size - 1);
		table[slot] = tag_of(address) | ((uint32_t)i + 1);
	}
	free(c->table);
	c->table = table;
	c->table_size = size;
	return true;
}

/* The slot of an object, or the empty one where it belongs. */
static size_t find_slot(const struct prb_census *c, uint64_t address)
{
	uint32_t tag = tag_of(address), found;
	size_t slot = slot_of(address, c->table_size);

	for (; (found = c->table[slot]); slot = (slot + 1) & (c->table_size - 1))
		if ((found & ~(uint32_t)INDEX) == tag &&
		    c->nodes.items[(found & INDEX) - 1].address == address)
			break;
	return slot;
}

void prb_census_expect(const struct prb_census *c, const uint64_t *objects, size_t count)
{
	for (size_t i = 0; !c->holder && i < count; i++)
		__builtin_prefetch(&c->table[slot_of(objects[i], c->table_size)]);
}

uint32_t prb_census_find(const struct prb_census *c, uint64_t address)
{
	size_t slot = c->table_size ? find_slot(c, address) : 0;

	return c->table_size && c->table[slot] ? (c->table[slot] & INDEX) - 1 : PRB_CENSUS_NONE;
}

/*
 * Freed memory still holds the type of what was there; the word of the count then is a pointer to
 * the next free block, or 0. So it is in memory of C that begins with two types.
 */
static bool plausible_count(const struct prb_layout *l, uint64_t count)
{
	const uint64_t count_max = UINT64_C(1) << 40;

	if (l->free_threaded)
		return true;
	if (l->version < PY_3_12)
		return count && count < count_max;
	return (uint32_t)count && !(count >> 32 & 0xffff);
}

/* A program that is not position-independent has objects at addresses as low as counts are. */
static bool is_object(struct prb_census *c, uint64_t count)
{
	uint64_t type;

	return prb_census_is_address(count) && !c->alone &&
	       prb_census_try(c,
			      prb_mem_read_u64(c->mem, count + (uint64_t)c->py->layout.object_type,
					       &type)) &&
	       prb_census_entry(c, type);
}

struct prb_census_entry *prb_census_look_at(struct prb_census *c, uint64_t object)
{
	const struct prb_layout *l = &c->py->layout;
	uint8_t copy[64];
	const uint8_t *header;
	uint64_t type, count;

	if (!prb_census_is_address(object))
		return NULL;
	header = c->alone ? NULL : prb_blocks_at(c->blocks, object, (size_t)l->object_size);
	if (!header) {
		if (!prb_census_try(c, prb_mem_read(c->mem, object, copy, (size_t)l->object_size)))
			return NULL;
		header = copy;
	}
	memcpy(&type, header + l->object_type, sizeof(type));
	memcpy(&count, header + l->object_refcnt, sizeof(count));
	return plausible_count(l, count) && !is_object(c, count) ? prb_census_entry(c, type) : NULL;
}

bool prb_census_is_backed(struct prb_census *c, uint64_t address, uint64_t bytes)
{
	const uint64_t unchecked = 1 << 18, bytes_max = UINT64_C(1) << 44;
	uint8_t byte;

	/* A snapshot may have a large object without its contents. */
	if (bytes <= unchecked || c->alone)
		return bytes < bytes_max;
	return bytes < bytes_max && address < PRB_CENSUS_ADDRESS_MAX &&
	       prb_census_try(c, prb_mem_read_u8(c->mem, address + bytes - 1, &byte)) &&
	       prb_census_try(c, prb_mem_read_u8(c->mem, address + bytes / 2, &byte));
}

static bool add(struct prb_census *c, uint32_t parent, uint64_t object, size_t slot)
{
	struct prb_census_entry *type = prb_census_look_at(c, object);
	struct prb_census_node *node;
	uint64_t bytes;

	if (!type)
		return !c->fatal;
	if (c->nodes.count >= c->max_objects) {
		prb_census_set_doubt(
			c, "there are more objects than are counted: the rest is missing");
		return false;
	}
	bytes = prb_census_own_bytes(c, type, object);
	if (!prb_census_is_backed(c, object, bytes))
		return !c->fatal;
	node = prb_vec_push(&c->nodes);
	if (!node) {
		prb_census_try(c, prb_error_nomem());
		return false;
	}
	*node = (struct prb_census_node){
		.address = object, .type = (uint32_t)(type - c->types.items), .parent = parent};
	c->table[slot] = tag_of(object) | (uint32_t)c->nodes.count;
	type->count++;
	prb_census_note_pool(c, object - type->before, bytes);
	type->bytes += bytes;
	node->bytes = bytes;
	c->bytes += bytes;
	if (c->nodes.count * 3 > c->table_size * 2 && !grow_table(c)) {
		prb_census_try(c, prb_error_nomem());
		return false;
	}
	return true;
}

/* Reports a reference to a known object, if it is of interest. */
static bool tell(struct prb_census *c, uint32_t parent, uint64_t object)
{
	uint32_t index = c->wanted;

	if (index == PRB_CENSUS_NONE)
		index = prb_census_find(c, object);
	else if (object != c->nodes.items[index].address)
		return true;
	if (index != PRB_CENSUS_NONE && !c->fatal)
		c->fatal = c->holder(c->context, parent, index);
	return !c->fatal;
}

bool prb_census_refer(struct prb_census *c, uint32_t parent, uint64_t object)
{
	size_t slot;

	if (c->alone)
		return true;
	if (c->holder)
		return tell(c, parent, object);
	slot = find_slot(c, object);
	return c->table[slot] ? true : add(c, parent, object, slot);
}

bool prb_census_matters(const struct prb_census *c, uint64_t object)
{
	if (!prb_census_is_address(object))
		return false;
	if (c->holder && c->wanted != PRB_CENSUS_NONE)
		return object == c->nodes.items[c->wanted].address;
	return (prb_census_find(c, object) == PRB_CENSUS_NONE) == !c->holder;
}

void prb_census_own(struct prb_census *c, uint32_t index, uint64_t bytes)
{
	const uint64_t bytes_max = UINT64_C(1) << 44;
	struct prb_census_entry *type = &c->types.items[c->nodes.items[index].type];

	if (c->holder || bytes > bytes_max)
		return;
	c->nodes.items[index].bytes += bytes;
	type->bytes += bytes;
	type->owned += bytes;
	c->bytes += bytes;
}

bool prb_census_is_late(struct prb_census *c)
{
	enum { LOOK_EACH = 256 };

	if (!c->late && ++c->pieces >= LOOK_EACH) {
		c->pieces = 0;
		c->late = prb_clock_seconds() > c->deadline;
	}
	if (c->late)
		prb_census_set_doubt(c, "the walk took too long: the rest is missing");
	return c->late;
}

/* Follows the references of all that was found and not followed yet. */
static void follow_all(struct prb_census *c, size_t *next)
{
	for (; *next < c->nodes.count && !c->fatal && !prb_census_is_late(c); ++*next)
		prb_census_follow(c, (uint32_t)*next);
}

/*
 * Lists the collector's objects before the walk: holders of newer objects may have been visited
 * already.
 */
static bool list_known(struct prb_census *c, struct known *ret)
{
	struct prb_heap_object object;
	struct prb_heap *heap;
	bool more = true;
	struct prb_error *err = prb_heap_create(c->py, c->base, c->interp, &heap);

	if (prb_error_catch(&err, PRB_ERROR_UNSUPPORTED)) {
		prb_census_set_doubt(c, "where the garbage collector has its objects is unknown: "
					"what no module or frame leads to is missing");
		return true;
	}
	if (!prb_census_try(c, err))
		return !c->fatal;
	while (!err && more && ret->count < c->max_objects && !prb_census_is_late(c)) {
		uint64_t *known;

		err = prb_heap_next(heap, &object, &more);
		if (err || !more)
			break;
		known = prb_vec_push(ret);
		if (known)
			*known = object.address;
		else
			err = prb_error_nomem();
	}
	if (prb_heap_doubt(heap) && !(c->py->target && c->py->target->live))
		prb_census_set_doubt(c, "not all memory is there: objects are missing");
	prb_heap_destroy(heap);
	prb_census_try(c, err);
	return !c->fatal;
}

static void add_unheld(struct prb_census *c, const struct known *known, size_t *next)
{
	enum { AHEAD = 16 };

	for (size_t i = 0; i < known->count && !c->fatal && *next == c->nodes.count; i++) {
		if (i % AHEAD == 0)
			prb_census_expect(c, known->items + i,
					  PRB_MIN(known->count - i, (size_t)AHEAD));
		if (prb_census_find(c, known->items[i]) == PRB_CENSUS_NONE &&
		    prb_census_refer(c, PRB_CENSUS_NONE, known->items[i]))
			follow_all(c, next);
	}
}

static struct prb_error *walk(struct prb_census *c)
{
	struct known known = {};
	uint64_t bytes;
	size_t next = 0;

	if (!grow_table(c))
		return prb_error_nomem();
	if (list_known(c, &known)) {
		prb_census_add_modules(c);
		follow_all(c, &next);
		/*
		 * Named ways first: a value without a name says little, and leftovers on the stack
		 * of a frame up to 3.10 hold nothing.
		 */
		for (int i = PRB_CENSUS_FRAMES_OUTSIDE; i <= PRB_CENSUS_FRAMES_WHOLE; i++) {
			prb_census_add_frames(c, (enum prb_census_frames)i);
			follow_all(c, &next);
		}
		c->unheld_from = c->nodes.count;
		bytes = c->bytes;
		add_unheld(c, &known, &next);
		c->unheld_bytes = c->bytes - bytes;
		prb_census_share_storages(c);
		if (!c->fatal)
			prb_census_find_garbage(c);
	}
	prb_vec_free(&known);
	return prb_steal(&c->fatal);
}

struct prb_error *prb_census_create(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				    const struct prb_census_limits *limits, struct prb_census **ret)
{
	prb_auto_census struct prb_census *c = calloc(1, sizeof(*c));
	double start = prb_clock_seconds();

	if (!c)
		return prb_error_nomem();
	c->py = py;
	c->base = mem;
	c->interp = interp;
	c->max_objects = limits && limits->max_objects
				 ? PRB_MIN(limits->max_objects, (uint64_t)INDEX)
				 : PRB_CENSUS_OBJECTS;
	c->deadline =
		start + (limits && limits->max_seconds ? limits->max_seconds : PRB_CENSUS_SECONDS);
	PRB_TRY(prb_blocks_create(mem, &c->blocks));
	c->mem = prb_blocks_mem(c->blocks);
	prb_repr_init(&c->repr, py, c->mem, NULL, NULL);
	prb_repr_init(&c->fresh, py, c->base, NULL, NULL);
	prb_repr_init(&c->classes, py, c->mem, NULL, NULL);
	PRB_TRY(walk(c));
	c->seconds = prb_clock_seconds() - start;
	/* Paths and names read little. */
	prb_blocks_drop(c->blocks);
	*ret = prb_steal(&c);
	return NULL;
}

void prb_census_destroy(struct prb_census *c)
{
	struct prb_census_entry *type;
	struct prb_census_root *root;

	if (!c)
		return;
	prb_vec_each (type, &c->types)
		free(type->name);
	prb_vec_each (root, &c->roots) {
		free(root->name);
		free(root->place);
	}
	if (c->mem) {
		prb_repr_deinit(&c->repr);
		prb_repr_deinit(&c->fresh);
		prb_repr_deinit(&c->classes);
	}
	prb_blocks_destroy(c->blocks);
	prb_vec_free(&c->nodes);
	prb_vec_free(&c->types);
	prb_vec_free(&c->roots);
	prb_vec_free(&c->tensors);
	prb_census_forget_places(c);
	free(c->table);
	free(c->type_table);
	free(c->pools);
	free(c->garbage);
	prb_error_destroy(c->fatal);
	free(c);
}

const char *prb_census_doubt(const struct prb_census *c)
{
	return c->doubt;
}

struct prb_census_totals prb_census_totals(const struct prb_census *c)
{
	return (struct prb_census_totals){
		.objects = c->nodes.count,
		.bytes = c->bytes,
		.unheld = c->nodes.count - c->unheld_from,
		.unheld_bytes = c->unheld_bytes,
		.garbage = c->garbage_count,
		.garbage_bytes = c->garbage_bytes,
		.seconds = c->seconds,
	};
}

bool prb_census_object(const struct prb_census *c, uint32_t index, struct prb_census_object *ret)
{
	const struct prb_census_node *node;

	if (index >= c->nodes.count)
		return false;
	node = &c->nodes.items[index];
	*ret = (struct prb_census_object){
		.address = node->address,
		.bytes = node->bytes,
		.type = node->type,
		.parent = node->parent < c->nodes.count ? node->parent : PRB_CENSUS_NONE,
		.held = index < c->unheld_from,
	};
	return true;
}

struct prb_error *prb_census_referrers(struct prb_census *c, uint32_t object,
				       prb_census_holder *visit, void *context)
{
	c->wanted = object;
	c->holder = visit;
	c->context = context;
	c->deadline = prb_clock_seconds() + PRB_CENSUS_SECONDS;
	c->late = false;
	for (size_t i = 0; i < c->nodes.count && !c->fatal && !prb_census_is_late(c); i++)
		prb_census_follow(c, (uint32_t)i);
	c->holder = NULL;
	return prb_steal(&c->fatal);
}
