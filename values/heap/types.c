/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The types that a walk over objects meets: what their objects' sizes are, names, and sums. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "values/heap/private.h"
#include "python/repr/core/repr_private.h"

enum { TYPES_MAX = 1 << 20, MANAGED_WEAKREF = 1 << 3 };

static size_t slot_of(uint64_t address, size_t size)
{
	return (size_t)(address * 0x9e3779b97f4a7c15u >> 32) & (size - 1);
}

static bool grow(struct prb_heap *h)
{
	size_t size = h->table_size ? h->table_size * 2 : 1024;
	uint32_t *table = calloc(size, sizeof(*table));

	if (!table)
		return false;
	for (size_t i = 0; i < h->types.count; i++) {
		size_t slot = slot_of(h->types.items[i].address, size);

		while (table[slot])
			slot = (slot + 1) & (size - 1);
		table[slot] = (uint32_t)i + 1;
	}
	free(h->table);
	h->table = table;
	h->table_size = size;
	return true;
}

/* Bytes before each object of the type that are its own. */
static uint64_t bytes_before(const struct prb_heap *h, const struct prb_object_traits *traits,
			     uint64_t flags)
{
	uint64_t head = h->py->layout.free_threaded ? 0 : (uint64_t)h->py->layout.gc_head_size;
	uint64_t managed = PRB_PY_MANAGED_DICT;

	if (traits->managed == PRB_MANAGED_NONE)
		return head;
	if (traits->managed != PRB_MANAGED_PAIR) /* 3.12+: dict and weak references */
		managed |= MANAGED_WEAKREF;
	return head + (flags & managed ? 2 * sizeof(uint64_t) : 0);
}

/* Since 3.11 generators and frame objects hold a frame of unknown length, which counts as 0. */
static bool holds_frame(const struct prb_heap *h, const struct prb_type *type)
{
	static const char *const names[] = {"generator", "coroutine", "async_generator", "frame"};

	if (h->py->layout.behaviour->chain == PRB_CHAIN_PYFRAME)
		return false;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++)
		if (prb_type_is(type, names[i]))
			return true;
	return false;
}

static struct prb_error *read_entry(struct prb_heap *h, uint64_t address,
				    struct prb_heap_entry *ret)
{
	prb_auto_repr struct prb_repr r;
	struct prb_type *type;

	prb_repr_init(&r, h->py, prb_blocks_mem(h->blocks), NULL, NULL);
	PRB_TRY(prb_repr_type(&r, address, &type));
	*ret = (struct prb_heap_entry){
		.address = address,
		.basicsize = (uint64_t)type->basicsize + bytes_before(h, r.traits, type->flags),
		.itemsize = holds_frame(h, type) ? 0 : (uint64_t)type->itemsize,
		.int_tag = r.traits->int_tag && type->flags & PRB_PY_INT,
	};
	return NULL;
}

struct prb_error *prb_heap_entry(struct prb_heap *h, uint64_t address, struct prb_heap_entry **ret)
{
	struct prb_heap_entry entry;

	if (h->last_type < h->types.count && h->types.items[h->last_type].address == address) {
		*ret = &h->types.items[h->last_type];
		return NULL;
	}
	if (h->types.count * 2 >= h->table_size && !grow(h))
		return prb_error_nomem();

	size_t slot = slot_of(address, h->table_size);
	for (; h->table[slot]; slot = (slot + 1) & (h->table_size - 1)) {
		h->last_type = h->table[slot] - 1;
		*ret = &h->types.items[h->last_type];
		if ((*ret)->address == address)
			return NULL;
	}
	if (h->types.count >= TYPES_MAX)
		return prb_error_create(PRB_ERROR_BAD_DATA, "too many types");
	PRB_TRY(read_entry(h, address, &entry));
	*ret = prb_vec_push(&h->types);
	if (!*ret)
		return prb_error_nomem();
	**ret = entry;
	h->last_type = h->types.count - 1;
	h->table[slot] = (uint32_t)h->types.count;
	return NULL;
}

static struct prb_error *put_name(struct prb_heap *h, uint64_t address, struct prb_str *ret)
{
	prb_auto_repr struct prb_repr r;
	struct prb_type *type;

	prb_repr_init(&r, h->py, prb_blocks_mem(h->blocks), NULL, ret);
	PRB_TRY(prb_repr_type(&r, address, &type));
	PRB_TRY(prb_repr_put_module(&r, type));
	return prb_repr_put_qualname(&r, type);
}

struct prb_error *prb_heap_type_name(struct prb_heap *h, uint64_t address, const char **ret)
{
	prb_auto_str struct prb_str name = {};
	struct prb_heap_entry *entry;

	PRB_TRY(prb_heap_entry(h, address, &entry));
	if (!entry->name) {
		struct prb_error *err = put_name(h, address, &name);

		if (prb_error_catch(&err, PRB_ERROR_FAULT) ||
		    prb_error_catch(&err, PRB_ERROR_BAD_DATA))
			prb_str_truncate(&name, 0);
		PRB_TRY(err);
		/* A class may also be called "". */
		if (!name.length)
			prb_str_printf(&name, "<type at %#llx>", (unsigned long long)address);
		entry->name = prb_str_take(&name);
		if (!entry->name)
			return prb_error_nomem();
	}
	*ret = entry->name;
	return NULL;
}

static struct prb_error *sum_up(struct prb_heap *h, struct prb_heap_types *ret)
{
	struct prb_heap_object object;
	bool more = true;

	while (more)
		PRB_TRY(prb_heap_next(h, &object, &more));
	for (size_t i = 0; i < h->types.count; i++) {
		const struct prb_heap_entry *entry = &h->types.items[i];
		const char *name;

		if (!entry->count)
			continue;
		PRB_TRY(prb_heap_type_name(h, entry->address, &name));
		struct prb_heap_type *type = prb_vec_push(&ret->list);
		if (!type)
			return prb_error_nomem();
		*type = (struct prb_heap_type){
			.type = entry->address,
			.count = entry->count,
			.bytes = entry->bytes,
			.references = entry->references,
			.name = strdup(name),
		};
		if (!type->name)
			return prb_error_nomem();
	}
	ret->doubt = prb_heap_doubt(h);
	return NULL;
}

struct prb_error *prb_heap_types_read(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				      struct prb_heap_types *ret)
{
	struct prb_heap *heap;

	*ret = (struct prb_heap_types){};
	PRB_TRY(prb_heap_create(py, mem, interp, &heap));

	struct prb_error *err = sum_up(heap, ret);
	prb_heap_destroy(heap);
	if (err)
		prb_heap_types_deinit(ret);
	return err;
}

void prb_heap_types_deinit(struct prb_heap_types *types)
{
	struct prb_heap_type *type;

	prb_vec_each (type, &types->list)
		free(type->name);
	prb_vec_free(&types->list);
}
