/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A walk over the objects of an interpreter. */
#include "values/heap/heap.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "values/heap/private.h"
#include "target/target.h"

enum { PY_3_12 = 0x030c };

/* No object is larger than memory is. */
static const uint64_t bytes_max = UINT64_C(1) << 44;

void prb_heap_set_doubt(struct prb_heap *h, const char *reason)
{
	if (!h->doubt)
		h->doubt = reason;
}

void prb_heap_torn(struct prb_heap *h)
{
	const struct prb_target *target = h->py->target;

	if (!target || target->live)
		prb_heap_set_doubt(
			h, "objects were created or freed during the read: some may be missing");
	else if (target->partial)
		prb_heap_set_doubt(h, "the core file lacks memory, or the lists of objects are "
				      "damaged: some are missing");
	else if (target->distant)
		prb_heap_set_doubt(h, "the debugger cannot read all memory, or the lists of "
				      "objects are damaged: some are missing");
	else
		prb_heap_set_doubt(h, "the snapshot does not contain all objects");
}

const char *prb_heap_doubt(const struct prb_heap *h)
{
	return h->doubt;
}

struct prb_mem *prb_heap_mem(struct prb_heap *h)
{
	return prb_blocks_mem(h->blocks);
}

static uint64_t word_at(const void *header, int32_t offset)
{
	uint64_t word;

	memcpy(&word, (const char *)header + offset, sizeof(word));
	return word;
}

/* -1 for immortal objects. */
static int64_t reference_count(const struct prb_layout *l, const void *header)
{
	uint32_t low;

	if (l->version < PY_3_12)
		return (int64_t)word_at(header, l->object_refcnt);
	memcpy(&low, (const char *)header + l->object_refcnt, sizeof(low));
	if (l->free_threaded && l->object_refcnt_shared != PRB_ABSENT) {
		if (low == UINT32_MAX)
			return -1;
		return low + ((int64_t)word_at(header, l->object_refcnt_shared) >> 2);
	}
	return (int32_t)low < 0 ? -1 : (int64_t)low;
}

/*
 * Bytes of the items that lie in an object of variable size. Not every type that says that it has
 * items counts them where it should: what cannot be a size counts as none.
 */
static struct prb_error *item_bytes(struct prb_heap *h, uint64_t object,
				    const struct prb_heap_entry *type, uint64_t *ret)
{
	uint64_t size;

	PRB_TRY(prb_mem_read_u64(prb_blocks_mem(h->blocks),
				 object + (uint64_t)h->py->layout.var_size, &size));
	if (type->int_tag)
		size >>= 3;
	else if ((int64_t)size < 0) /* a negative int, before 3.12 */
		size = -size;
	*ret = size <= bytes_max / type->itemsize ? size * type->itemsize : 0;
	return NULL;
}

struct prb_error *prb_heap_describe(struct prb_heap *h, uint64_t address, const void *header,
				    struct prb_heap_object *ret)
{
	const struct prb_layout *l = &h->py->layout;
	struct prb_heap_entry *type;
	uint64_t items = 0;

	*ret = (struct prb_heap_object){
		.address = address,
		.type = word_at(header, l->object_type),
		.refcount = reference_count(l, header),
	};
	PRB_TRY(prb_heap_entry(h, ret->type, &type));
	if (type->itemsize)
		PRB_TRY(item_bytes(h, address, type, &items));
	ret->bytes = type->basicsize + items;
	type->count++;
	type->bytes += ret->bytes;
	if (ret->refcount > 0)
		type->references += (uint64_t)ret->refcount;
	return NULL;
}

/*
 * How often the collector has begun or ended to run; what cannot be known is no reason for doubt.
 */
static struct prb_error *count_collections(struct prb_heap *h, uint64_t *ret)
{
	struct prb_gc gc;

	PRB_TRY(prb_gc_read(h->py, h->mem, h->interp, &gc));
	*ret = gc.collecting;
	for (unsigned i = 0; i < PRB_GC_GENERATIONS; i++)
		*ret += 2 * (uint64_t)gc.generations[i].collections;
	if (gc.collecting)
		prb_heap_set_doubt(
			h,
			"the garbage collector is running: objects that it visits may be missing");
	return NULL;
}

static struct prb_error *check_layout(const struct prb_layout *l)
{
	const int32_t members[] = {l->object_type, l->object_refcnt, l->object_refcnt_shared};

	if (l->object_size <= 0 || l->object_size > 64 || l->var_size < 0 || l->object_type < 0 ||
	    l->object_refcnt < 0)
		return prb_error_create(PRB_ERROR_BAD_DATA, "the layout of objects is implausible");
	for (size_t i = 0; i < PRB_ARRAY_SIZE(members); i++)
		if (members[i] != PRB_ABSENT && members[i] > l->object_size - (i == 1 ? 4 : 8))
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"the layout of objects is implausible");
	return NULL;
}

static void heap_guard(struct prb_heap **heap)
{
	prb_heap_destroy(*heap);
}

struct prb_error *prb_heap_create(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				  struct prb_heap **ret)
{
	__attribute__((cleanup(heap_guard))) struct prb_heap *h = NULL;

	PRB_TRY(check_layout(&py->layout));
	h = calloc(1, sizeof(*h));
	if (!h)
		return prb_error_nomem();
	h->py = py;
	h->mem = mem;
	h->interp = interp;
	PRB_TRY(prb_blocks_create(mem, &h->blocks));
	PRB_TRY(py->layout.free_threaded ? prb_heap_pages_init(h) : prb_heap_lists_init(h));
	PRB_TRY(count_collections(h, &h->collections));
	*ret = prb_steal(&h);
	return NULL;
}

void prb_heap_destroy(struct prb_heap *h)
{
	struct prb_heap_entry *entry;

	if (!h)
		return;
	prb_vec_each (entry, &h->types)
		free(entry->name);
	prb_blocks_destroy(h->blocks);
	prb_vec_free(&h->types);
	prb_vec_free(&h->pages.list);
	prb_vec_free(&h->pages.segments);
	free(h->table);
	free(h);
}

struct prb_error *prb_heap_next(struct prb_heap *h, struct prb_heap_object *ret, bool *more)
{
	uint64_t collections;

	PRB_TRY(h->py->layout.free_threaded ? prb_heap_pages_next(h, ret, more)
					    : prb_heap_lists_next(h, ret, more));
	if (*more)
		return NULL;
	PRB_TRY(count_collections(h, &collections));
	if (collections != h->collections)
		prb_heap_set_doubt(h, "the garbage collector ran meanwhile: objects may be missing "
				      "or be counted twice");
	return NULL;
}
