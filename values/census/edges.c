/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The references of an object, and the memory that it owns, by the kind of its type. */
#include <string.h>

#include "base/checked.h"
#include "python/repr/builtin/coroutine.h"
#include "values/census/private.h"

enum { CHUNK = 64, WORD = 8, TAG = 3, PY_3_10 = 0x030a };

static const uint64_t count_max = UINT64_C(1) << 36;

static bool read_words(struct prb_census *c, uint64_t address, size_t count, uint64_t *ret)
{
	return prb_census_try(c, prb_mem_read(c->mem, address, ret, count * WORD));
}

/* A weak reference does not hold its object, and objects that have some point at them. */
static bool is_weak(struct prb_census *c, uint64_t object)
{
	uint64_t type;
	const struct prb_census_entry *entry;

	if (!prb_census_is_address(object) ||
	    !prb_census_try(
		    c,
		    prb_mem_read_u64(c->mem, object + (uint64_t)c->py->layout.object_type, &type)))
		return true;
	entry = prb_census_entry(c, type);
	return !entry || entry->kind == PRB_CENSUS_WEAKREF;
}

/* Words that are references, or 0. */
static void follow_words(struct prb_census *c, uint32_t parent, uint64_t address, uint64_t count,
			 uint64_t mask)
{
	uint64_t words[CHUNK];

	if (count > count_max || c->alone)
		return;
	for (uint64_t i = 0; i < count && !prb_census_is_late(c); i += CHUNK) {
		uint64_t n = PRB_MIN(count - i, (uint64_t)CHUNK);

		if (!read_words(c, address + i * WORD, n, words))
			return;
		prb_census_expect(c, words, n);
		for (uint64_t j = 0; j < n; j++)
			/* From 3.14 on a slot of a frame may be a number. */
			if (words[j] & mask && (words[j] & ~mask) != TAG &&
			    !prb_census_refer(c, parent, words[j] & mask))
				return;
	}
}

/* The fields of an object from @p from on, which are not all references. */
static void follow_fields(struct prb_census *c, uint32_t parent, uint64_t object, uint64_t from,
			  uint64_t to)
{
	enum { FIELDS_MAX = 512 };
	uint64_t words[FIELDS_MAX],
		count = to > from ? PRB_MIN((to - from) / WORD, (uint64_t)FIELDS_MAX) : 0;

	if (!count || c->alone || !read_words(c, object + from, count, words))
		return;
	/* A known object is either no weak reference, or has another holder already. */
	for (uint64_t i = 0; i < count; i++)
		if (prb_census_matters(c, words[i]) && !is_weak(c, words[i]) &&
		    !prb_census_refer(c, parent, words[i]))
			return;
}

/* Behind what all objects of the kind have: a list's or dict's own fields are no references. */
static uint64_t fields_from(const struct prb_census *c, enum prb_census_kind kind)
{
	const struct prb_layout *l = &c->py->layout;

	switch (kind) {
	case PRB_CENSUS_LIST:
		return (uint64_t)l->list_items + 2 * WORD; /* items, and how many fit */
	case PRB_CENSUS_DICT:
		return (uint64_t)PRB_MAX(l->dict_keys, l->dict_values) + WORD;
	default:
		return (uint64_t)l->object_size;
	}
}

/* True of what is large, of a process that runs: its table may be elsewhere by now. */
static bool moves(const struct prb_census *c, uint64_t count)
{
	return count >= CHUNK && !c->alone && c->py->target && c->py->target->live;
}

struct list_head {
	uint64_t size, items, room;
};

static bool read_list(struct prb_census *c, struct prb_mem *mem, uint64_t object,
		      struct list_head *ret)
{
	const struct prb_layout *l = &c->py->layout;
	uint64_t words[2];

	if (!prb_census_try(c, prb_mem_read_u64(mem, object + (uint64_t)l->var_size, &ret->size)) ||
	    !prb_census_try(
		    c, prb_mem_read(mem, object + (uint64_t)l->list_items, words, sizeof(words))))
		return false;
	ret->items = words[0];
	ret->room = words[1];
	return ret->size <= ret->room;
}

/* As they are now, not as they were when memory near them was first read. */
static void follow_words_now(struct prb_census *c, uint32_t parent, uint64_t address,
			     uint64_t count)
{
	enum { MANY = 2048 };
	uint64_t words[MANY];

	for (uint64_t i = 0; count <= count_max && i < count && !prb_census_is_late(c); i += MANY) {
		uint64_t n = PRB_MIN(count - i, (uint64_t)MANY);

		if (!prb_census_try(c, prb_mem_read(c->base, address + i * WORD, words, n * WORD)))
			return;
		for (uint64_t j = 0; j < n; j++)
			if (words[j] && !prb_census_refer(c, parent, words[j]))
				return;
	}
}

/*
 * A growing list soon has its items elsewhere, and the items read before are stale. A list that has
 * moved meanwhile is followed again.
 */
static void follow_growing_list(struct prb_census *c, uint32_t index, uint64_t object)
{
	enum { AGAIN = 8 };
	struct list_head head, after;

	for (int i = 0; i < AGAIN && !c->fatal && read_list(c, c->base, object, &head); i++) {
		follow_words_now(c, index, head.items, head.size);
		if (c->holder || !read_list(c, c->base, object, &after) ||
		    after.items == head.items)
			return;
	}
}

static void follow_list(struct prb_census *c, uint32_t index, uint64_t object)
{
	struct list_head head;

	if (!read_list(c, c->mem, object, &head))
		return;
	if (head.room < count_max && prb_census_is_backed(c, head.items, head.room * WORD))
		prb_census_own(c, index, head.room * WORD);
	if (moves(c, head.size))
		follow_growing_list(c, index, object);
	else
		follow_words(c, index, head.items, head.size, UINT64_MAX);
}

static void follow_tuple(struct prb_census *c, uint32_t index, uint64_t object)
{
	const struct prb_layout *l = &c->py->layout;
	uint64_t size;

	if (prb_census_try(c, prb_mem_read_u64(c->mem, object + (uint64_t)l->var_size, &size)))
		follow_words(c, index, object + (uint64_t)l->tuple_items, size, UINT64_MAX);
}

static void follow_table(struct prb_census *c, struct prb_mem *mem, uint32_t index,
			 const struct prb_dict_table *table)
{
	enum { ENTRIES = 4 * CHUNK };
	uint64_t words[3 * ENTRIES];

	for (uint64_t i = 0; !c->alone && i < table->count && !prb_census_is_late(c);
	     i += ENTRIES) {
		uint64_t n = PRB_MIN(table->count - i, (uint64_t)ENTRIES);

		if (!prb_census_try(c, prb_mem_read(mem, table->entries + i * table->words * WORD,
						    words, n * table->words * WORD)))
			return;
		for (uint64_t j = 0; j < n; j++) {
			const uint64_t *entry = words + j * table->words;
			uint64_t key = entry[table->words - 2], value = entry[table->words - 1];

			if (key && !prb_census_refer(c, index, key))
				return;
			if (value && !prb_census_refer(c, index, value))
				return;
		}
	}
}

/* The values that instances and split dicts have beside the table of their class. */
static void follow_values(struct prb_census *c, uint32_t index, uint64_t keys, uint64_t values)
{
	struct prb_dict_table table;
	uint64_t header = c->repr.traits->values == PRB_VALUES_HEADED ? PRB_VALUES_HEADER : 0;

	if (!prb_census_try(c, prb_dict_table_read(&c->repr, keys, &table)))
		return;
	follow_words(c, index, values + header, table.count, UINT64_MAX);
	prb_census_own(c, index, header + PRB_MAX(table.count, (uint64_t)1) * WORD);
}

/* As follow_growing_list(). */
static void follow_growing_dict(struct prb_census *c, uint32_t index, uint64_t object)
{
	enum { AGAIN = 8 };
	const uint64_t place = object + (uint64_t)c->py->layout.dict_keys;
	struct prb_dict_table table;
	uint64_t keys, after;

	for (int i = 0; i < AGAIN && !c->fatal; i++) {
		if (!prb_census_try(c, prb_mem_read_u64(c->base, place, &keys)))
			return;
		if (!prb_census_try(c, prb_dict_table_read(&c->fresh, keys, &table)))
			continue;
		follow_table(c, c->base, index, &table);
		if (c->holder || !prb_census_try(c, prb_mem_read_u64(c->base, place, &after)) ||
		    after == keys)
			return;
	}
}

static void follow_dict(struct prb_census *c, uint32_t index, uint64_t object)
{
	const struct prb_layout *l = &c->py->layout;
	struct prb_dict_table table;
	uint64_t keys, values;

	if (!prb_census_try(c, prb_mem_read_u64(c->mem, object + (uint64_t)l->dict_keys, &keys)) ||
	    !prb_census_try(c,
			    prb_mem_read_u64(c->mem, object + (uint64_t)l->dict_values, &values)))
		return;
	/* A table may have been freed since its address was read. */
	if (!prb_census_try(c, prb_dict_table_read(&c->repr, keys, &table))) {
		if (!c->fatal && moves(c, CHUNK))
			follow_growing_dict(c, index, object);
		return;
	}
	if (moves(c, table.count))
		follow_growing_dict(c, index, object);
	else
		follow_table(c, c->mem, index, &table);
	/* Empty dicts share a table of one slot, and in some versions values. */
	if (table.indices ? table.size <= 1 : table.count <= 1)
		return;
	if (values)
		follow_values(c, index, keys, values);
	else
		prb_census_own(c, index,
			       table.entries - keys +
				       (table.indices ? table.size * 2 / 3 : table.count) *
					       table.words * WORD);
}

static void follow_set(struct prb_census *c, uint32_t index, uint64_t object, uint64_t size)
{
	uint64_t words[4], chunk[CHUNK]; /* fill, used, mask, table */

	if (!read_words(c, object + (uint64_t)c->py->layout.object_size, 4, words) ||
	    words[2] > count_max)
		return;
	for (uint64_t i = 0; !c->alone && i <= words[2] && !prb_census_is_late(c); i += CHUNK / 2) {
		uint64_t n = PRB_MIN(words[2] + 1 - i, (uint64_t)CHUNK / 2);

		if (!read_words(c, words[3] + i * 16, n * 2, chunk))
			return;
		for (uint64_t j = 0; j < n; j++)
			if (chunk[j * 2] && chunk[j * 2 + 1] != UINT64_MAX &&
			    !prb_census_refer(c, index, chunk[j * 2]))
				return;
	}
	/* A small table lies in the set itself. */
	if (words[3] < object || words[3] >= object + size)
		prb_census_own(c, index, (words[2] + 1) * 16);
}

struct visit {
	struct prb_census *c;
	uint32_t index;
	uint64_t count;
};

static bool visit_item(void *context, uint64_t item)
{
	struct visit *v = context;

	v->count++;
	return !prb_census_is_late(v->c) && prb_census_refer(v->c, v->index, item);
}

/* The first block may begin with free places. */
static uint64_t deque_blocks(struct prb_census *c, uint64_t object, uint64_t count)
{
	uint64_t block = c->repr.traits->deque_block, left;
	uint64_t at = object + (uint64_t)c->py->layout.var_size + 3 * WORD; /* behind two links */

	if (!prb_census_try(c, prb_mem_read_u64(c->mem, at, &left)) || left > block)
		left = 0;
	return PRB_MAX((left + count + block - 1) / block, (uint64_t)1);
}

static void follow_deque(struct prb_census *c, uint32_t index, uint64_t object)
{
	struct visit v = {.c = c, .index = index};
	uint64_t block = c->repr.traits->deque_block;

	c->repr.walked = 0;
	if (prb_census_try(c, c->alone ? prb_repr_size(&c->repr, object, &v.count)
				       : prb_repr_deque_each(&c->repr, object, visit_item, &v)))
		prb_census_own(c, index, deque_blocks(c, object, v.count) * (block + 2) * WORD);
}

/* Where an instance keeps its attributes, in the versions that do so before or behind it. */
static void follow_managed(struct prb_census *c, uint32_t index, uint64_t object,
			   const struct prb_census_entry *type)
{
	const struct prb_layout *l = &c->py->layout;
	uint64_t values = 0, dict = 0, keys;
	enum prb_managed_dict managed = c->repr.traits->managed;

	if (!type->managed && !type->inline_values)
		return;
	if (type->managed &&
	    !prb_census_try(c,
			    prb_mem_read_u64(c->mem, object - (l->free_threaded ? 8 : 24), &dict)))
		return;
	if (managed == PRB_MANAGED_PAIR &&
	    !prb_census_try(c, prb_mem_read_u64(c->mem, object - 32, &values)))
		return;
	if (managed == PRB_MANAGED_TAGGED && dict & 1) {
		values = dict + 1;
		dict = 0;
	}
	if (managed == PRB_MANAGED_INLINE && type->inline_values) {
		uint64_t header;

		/* Its last byte but four says whether the values are still here. */
		if (prb_census_try(c, prb_mem_read_u64(c->mem, object + type->size, &header)) &&
		    header >> 24 & 0xff)
			values = object + type->size;
	}
	if (dict && !(dict & 1) && !prb_census_refer(c, index, dict))
		return;
	if (values && l->heap_type_cached_keys >= 0 &&
	    prb_census_try(c, prb_mem_read_u64(c->mem,
					       c->types.items[c->nodes.items[index].type].address +
						       (uint64_t)l->heap_type_cached_keys,
					       &keys)) &&
	    keys)
		follow_values(c, index, keys, values);
}

/*
 * The items on its value stack, such as what a loop iterates over, or what a coroutine awaits. Of a
 * frame that executes they are not known.
 */
static void follow_stack(struct prb_census *c, uint32_t parent, uint64_t frame, uint64_t locals,
			 uint64_t most)
{
	uint64_t start = frame + (uint64_t)c->py->layout.frame_localsplus + locals * WORD, end;

	if (prb_census_try(c, prb_frame_stack_end(&c->repr, frame, &end)) && end > start &&
	    end - start <= most * WORD && (end - start) % WORD == 0)
		follow_words(c, parent, start, (end - start) / WORD, ~(uint64_t)TAG);
}

void prb_census_follow_frame(struct prb_census *c, uint32_t parent, uint64_t frame)
{
	const struct prb_layout *l = &c->py->layout;
	const int32_t fields[] = {l->frame_code, l->frame_function, l->frame_locals,
				  l->frame_object};
	uint64_t code, globals = 0, word;
	uint32_t locals, stack;

	if (!prb_census_try(c, prb_mem_read_u64(c->mem, frame + (uint64_t)l->frame_code, &code)))
		return;
	code &= ~(uint64_t)TAG;
	if (prb_census_find(c, code) == PRB_CENSUS_NONE && is_weak(c, code))
		return;
	if (!prb_census_try(
		    c, prb_mem_read_u32(c->mem, code + (uint64_t)l->code_nlocalsplus, &locals)) ||
	    !prb_census_try(c,
			    prb_mem_read_u32(c->mem, code + (uint64_t)l->code_stacksize, &stack)) ||
	    locals > 1 << 16 || stack > 1 << 16)
		return;
	prb_census_try(c, prb_mem_read_u64(c->mem, frame + (uint64_t)l->frame_globals, &globals));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(fields); i++) {
		if (!prb_census_try(c,
				    prb_mem_read_u64(c->mem, frame + (uint64_t)fields[i], &word)))
			continue;
		word &= ~(uint64_t)TAG;
		/* The variables of a module are its own. */
		if (word && word != globals)
			prb_census_refer(c, parent, word);
	}
	follow_words(c, parent, frame + (uint64_t)l->frame_localsplus, locals, ~(uint64_t)TAG);
	follow_stack(c, parent, frame, locals, stack);
	if (parent < c->nodes.count)
		prb_census_own(c, parent, (locals + stack) * WORD);
}

/*
 * Up to 3.10: variables, then the value stack. Words above its top are leftovers. While a frame
 * executes the top is not known: all is followed, also what nothing holds any more.
 */
static void follow_pyframe(struct prb_census *c, uint32_t index, uint64_t object,
			   const struct prb_census_entry *type)
{
	const struct prb_layout *l = &c->py->layout;
	uint64_t from = object + type->size, count = 0, end;

	if (type->item)
		prb_census_try(c, prb_mem_read_u64(c->mem, object + (uint64_t)l->var_size, &count));
	follow_fields(c, index, object, (uint64_t)l->object_size, type->size);
	if (count >= 1 << 20 || !prb_census_try(c, prb_frame_stack_end(&c->repr, object, &end)))
		return;
	if (!end || end < object + (uint64_t)l->pyframe_localsplus ||
	    end > from + count * type->item)
		end = from + count * type->item;
	if (end > from)
		follow_fields(c, index, object, type->size, end - object);
}

/* Up to 3.9 a byte follows the frame, and leftovers of memory follow that. */
static void follow_old_generator(struct prb_census *c, uint32_t index, uint64_t object,
				 uint64_t size)
{
	const struct prb_layout *l = &c->py->layout;
	uint64_t behind = (uint64_t)l->generator_frame + WORD;

	follow_fields(c, index, object, (uint64_t)l->object_size, behind);
	follow_fields(c, index, object, behind + (l->version < PY_3_10 ? WORD : 0), size);
}

/* Generators and frame objects hold a frame, or a pointer to one. */
static void follow_framed(struct prb_census *c, uint32_t index, uint64_t object,
			  const struct prb_census_entry *type)
{
	const struct prb_layout *l = &c->py->layout;
	bool generator = type->kind == PRB_CENSUS_GENERATOR;
	uint64_t frame = object + (uint64_t)l->generator_frame, size = type->size;

	if (l->behaviour->chain == PRB_CHAIN_PYFRAME && !generator) {
		follow_pyframe(c, index, object, type);
		return;
	}
	if (l->behaviour->chain == PRB_CHAIN_PYFRAME) {
		follow_old_generator(c, index, object, size);
		return;
	}
	follow_fields(c, index, object, (uint64_t)l->object_size,
		      generator ? (uint64_t)l->generator_frame : size);
	if (!generator &&
	    !prb_census_try(c, prb_mem_read_u64(c->mem, object + (uint64_t)l->pyframe_interp_frame,
						&frame)))
		return;
	if (frame && frame % WORD == 0)
		prb_census_follow_frame(c, index, frame);
}

/* The fields of a bytearray, array.array or mmap: the sizes of its memory. */
static void own_buffer(struct prb_census *c, uint32_t index, uint64_t object,
		       enum prb_census_kind kind)
{
	const struct prb_layout *l = &c->py->layout;
	uint64_t words[3], at = object + (uint64_t)(kind == PRB_CENSUS_MMAP ? l->object_size
									    : l->var_size + WORD);
	uint32_t item;

	if (!read_words(c, at, 3, words))
		return;
	if (kind == PRB_CENSUS_BYTEARRAY && prb_census_is_backed(c, words[1], words[0]))
		prb_census_own(c, index, words[0]);
	else if (kind == PRB_CENSUS_MMAP && words[0])
		prb_census_own(c, index, words[1]);
	else if (kind == PRB_CENSUS_ARRAY && words[1] < count_max &&
		 prb_census_try(c, prb_mem_read_u32(c->mem, words[2] + 4, &item)) && item <= 16)
		prb_census_own(c, index, words[1] * item);
}

static void own_ndarray(struct prb_census *c, uint32_t index, uint64_t object)
{
	struct prb_ndarray_memory memory;

	if (!prb_census_try(c, prb_repr_ndarray_memory(&c->repr, object, &memory)))
		return;
	if (memory.owned && prb_census_is_backed(c, memory.data, memory.bytes))
		prb_census_own(c, index, memory.bytes);
	if (memory.owned && memory.objects)
		follow_words(c, index, memory.data, memory.bytes / WORD, UINT64_MAX);
}

static void follow_weakref(struct prb_census *c, uint32_t index, uint64_t object, uint64_t size)
{
	enum { FIELDS = 7 }; /* object, callback, hash, links; what a class adds follows */
	uint64_t head = (uint64_t)c->py->layout.object_size, callback;

	if (prb_census_try(c, prb_mem_read_u64(c->mem, object + head + WORD, &callback)) &&
	    callback)
		prb_census_refer(c, index, callback);
	follow_fields(c, index, object, head + FIELDS * WORD, size);
}

/* Its dict; its state is C's, and what lies behind both may be a subclass's. */
static void follow_module(struct prb_census *c, uint32_t index, uint64_t object, uint64_t size)
{
	enum { FIELDS = 5 }; /* dict, definition, state, weak references, name */
	uint64_t head = (uint64_t)c->py->layout.object_size;

	follow_fields(c, index, object, head, head + WORD);
	follow_fields(c, index, object, head + FIELDS * WORD, size);
}

/* Follows the special parts of objects of a kind; fields and attributes are followed elsewhere. */
static void follow_kind(struct prb_census *c, uint32_t index, uint64_t object,
			const struct prb_census_entry *type)
{
	switch (type->kind) {
	case PRB_CENSUS_LIST:
		follow_list(c, index, object);
		break;
	case PRB_CENSUS_TUPLE:
		follow_tuple(c, index, object);
		break;
	case PRB_CENSUS_DICT:
		follow_dict(c, index, object);
		break;
	case PRB_CENSUS_SET:
		follow_set(c, index, object, type->size);
		break;
	case PRB_CENSUS_DEQUE:
		follow_deque(c, index, object);
		break;
	case PRB_CENSUS_BYTEARRAY:
	case PRB_CENSUS_ARRAY:
	case PRB_CENSUS_MMAP:
		own_buffer(c, index, object, type->kind);
		break;
	case PRB_CENSUS_NDARRAY:
		own_ndarray(c, index, object);
		break;
	case PRB_CENSUS_TENSOR:
		if (!c->holder)
			prb_census_note_tensor(c, index);
		break;
	default:
		break;
	}
}

/* Types of C are shorter than classes: what lies behind them is something else. */
static bool is_short_type(struct prb_census *c, uint64_t object,
			  const struct prb_census_entry *type)
{
	uint64_t flags;

	return type->of_types &&
	       prb_census_try(c,
			      prb_mem_read_u64(c->mem, object + (uint64_t)c->py->layout.type_flags,
					       &flags)) &&
	       !(flags & PRB_PY_HEAP_TYPE);
}

void prb_census_follow(struct prb_census *c, uint32_t index)
{
	uint64_t object = c->nodes.items[index].address;
	/* A copy: others may be added to the vector meanwhile. */
	struct prb_census_entry type = c->types.items[c->nodes.items[index].type];
	uint64_t head = (uint64_t)c->py->layout.object_size, size = type.size;

	/* A class that nothing else refers to lives as long as its instances. */
	if (c->holder || !type.followed) {
		c->types.items[c->nodes.items[index].type].followed = true;
		prb_census_refer(c, index, type.address);
	}
	/* Instances of classes that add nothing to a kind without references have none. */
	if (type.kind == PRB_CENSUS_LEAF || type.kind == PRB_CENSUS_STR) {
		follow_managed(c, index, object, &type);
		return;
	}
	if (type.kind == PRB_CENSUS_WEAKREF) {
		follow_weakref(c, index, object, size);
		follow_managed(c, index, object, &type);
		return;
	}
	if (type.kind == PRB_CENSUS_MODULE) {
		follow_module(c, index, object, size);
		follow_managed(c, index, object, &type);
		return;
	}
	if (type.kind == PRB_CENSUS_GENERATOR || type.kind == PRB_CENSUS_FRAME) {
		follow_framed(c, index, object, &type);
		return;
	}
	if (is_short_type(c, object, &type)) {
		follow_fields(c, index, object, head, (uint64_t)c->py->layout.type_mro + WORD);
		return;
	}
	follow_managed(c, index, object, &type);
	follow_kind(c, index, object, &type);
	/* From 3.15 on a bytearray keeps its bytes in an object, which is no other's. */
	if (type.kind == PRB_CENSUS_TUPLE || type.kind == PRB_CENSUS_BYTEARRAY)
		return;
	follow_fields(c, index, object, fields_from(c, type.kind), size);
	/* Slots that a metaclass's or C type's instances have behind their fields. */
	if (type.kind == PRB_CENSUS_WORDS && type.item == WORD) {
		uint64_t count;

		if (prb_census_try(c, prb_mem_read_u64(c->mem,
						       object + (uint64_t)c->py->layout.var_size,
						       &count)) &&
		    count < 1 << 16)
			follow_fields(c, index, object, size, size + count * WORD);
	}
}
