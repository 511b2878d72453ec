/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The types of objects: how their references are found, and how large they are. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "values/census/private.h"

enum {
	TYPES_MAX = 1 << 20,
	FIRST_TABLE = 1 << 12,
	BASES_MAX = 64,
	HAVE_GC = 1 << 14,
};
static const uint64_t bytes_max = UINT64_C(1) << 44;

static const struct {
	const char *name;
	enum prb_census_kind kind;
} kinds[] = {
	{"NoneType", PRB_CENSUS_LEAF},
	{"array.array", PRB_CENSUS_ARRAY},
	{"async_generator", PRB_CENSUS_GENERATOR},
	{"bytearray", PRB_CENSUS_BYTEARRAY},
	{"collections.deque", PRB_CENSUS_DEQUE},
	{"complex", PRB_CENSUS_LEAF},
	{"coroutine", PRB_CENSUS_GENERATOR},
	{"float", PRB_CENSUS_LEAF},
	{"frame", PRB_CENSUS_FRAME},
	{"frozenset", PRB_CENSUS_SET},
	{"generator", PRB_CENSUS_GENERATOR},
	{"mmap.mmap", PRB_CENSUS_MMAP},
	{"module", PRB_CENSUS_MODULE},
	{"numpy.ndarray", PRB_CENSUS_NDARRAY},
	{"set", PRB_CENSUS_SET},
	{"torch._C.TensorBase", PRB_CENSUS_TENSOR},
	{"torch._C._TensorBase", PRB_CENSUS_TENSOR},
	{"weakcallableproxy", PRB_CENSUS_WEAKREF},
	{"weakproxy", PRB_CENSUS_WEAKREF},
	{"weakref", PRB_CENSUS_WEAKREF},
	{"weakref.CallableProxyType", PRB_CENSUS_WEAKREF},
	{"weakref.ProxyType", PRB_CENSUS_WEAKREF},
	{"weakref.ReferenceType", PRB_CENSUS_WEAKREF},
};

static bool by_flags(const struct prb_type *type, enum prb_census_kind *ret)
{
	static const struct {
		uint64_t flag;
		enum prb_census_kind kind;
	} flags[] = {
		{PRB_PY_STR, PRB_CENSUS_STR},	  {PRB_PY_DICT, PRB_CENSUS_DICT},
		{PRB_PY_TUPLE, PRB_CENSUS_TUPLE}, {PRB_PY_LIST, PRB_CENSUS_LIST},
		{PRB_PY_BYTES, PRB_CENSUS_LEAF},  {PRB_PY_INT, PRB_CENSUS_LEAF},
	};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(flags); i++)
		if (type->flags & flags[i].flag) {
			*ret = flags[i].kind;
			return true;
		}
	return false;
}

/* The nearest base class that says what its objects are. */
static enum prb_census_kind find_kind(struct prb_census *c, const struct prb_type *type)
{
	enum prb_census_kind kind;

	if (by_flags(type, &kind))
		return kind;
	for (unsigned n = 0; n < BASES_MAX; n++) {
		struct prb_type *base;

		for (size_t i = 0; i < PRB_ARRAY_SIZE(kinds); i++)
			if (prb_type_is(type, kinds[i].name))
				return kinds[i].kind;
		if (!type->base ||
		    !prb_census_try(c, prb_repr_type(&c->classes, type->base, &base)))
			break;
		type = base;
	}
	return PRB_CENSUS_WORDS;
}

static uint32_t bytes_before(const struct prb_census *c, const struct prb_type *type, bool *managed)
{
	enum { MANAGED_WEAKREF = 1 << 3 };
	const struct prb_layout *l = &c->py->layout;
	uint32_t head = !l->free_threaded && type->flags & HAVE_GC ? (uint32_t)l->gc_head_size : 0;
	uint64_t flags = PRB_PY_MANAGED_DICT;

	*managed = c->repr.traits->managed != PRB_MANAGED_NONE && type->flags & PRB_PY_MANAGED_DICT;
	if (c->repr.traits->managed == PRB_MANAGED_NONE)
		return head;
	if (c->repr.traits->managed != PRB_MANAGED_PAIR)
		flags |= MANAGED_WEAKREF;
	return head + (type->flags & flags ? 2 * (uint32_t)sizeof(uint64_t) : 0);
}

/* A reader knows a limited number of types, and becomes slower with each. */
static void renew_reader(struct prb_census *c)
{
	enum { ENOUGH = 1024 };

	if (c->classes.types.count < ENOUGH)
		return;
	prb_repr_deinit(&c->classes);
	prb_repr_init(&c->classes, c->py, c->mem, NULL, NULL);
}

/* Memory that is taken for a type by mistake may have a type's flags, but hardly a name. */
static bool is_name(const char *name)
{
	enum { WHOLE = 120 }; /* a longer one may have been cut within a character */
	uint32_t code_point = 0;

	for (const char *at = name; *at; at += prb_text_decode(at, &code_point))
		if (code_point == PRB_TEXT_INVALID && at - name < WHOLE)
			return false;
	return *name && code_point != PRB_TEXT_INVALID;
}

static bool read_entry(struct prb_census *c, uint64_t address, struct prb_census_entry *ret)
{
	struct prb_type *type;

	renew_reader(c);
	if (!prb_census_try(c, prb_repr_type(&c->classes, address, &type)) ||
	    type->basicsize < c->py->layout.object_size || !is_name(type->name))
		return false;
	*ret = (struct prb_census_entry){
		.address = address,
		.kind = find_kind(c, type),
		.size = (uint32_t)type->basicsize,
		.item = (uint32_t)type->itemsize,
		.int_tag = c->repr.traits->int_tag && type->flags & PRB_PY_INT,
	};
	ret->before = bytes_before(c, type, &ret->managed);
	ret->of_types = type->flags & PRB_PY_TYPE;
	ret->inline_values =
		c->repr.traits->managed == PRB_MANAGED_INLINE && type->flags & PRB_PY_INLINE_VALUES;
	return true;
}

static size_t slot_of(uint64_t address, size_t size)
{
	return (size_t)(address * 0x9e3779b97f4a7c15u >> 32) & (size - 1);
}

static bool grow(struct prb_census *c)
{
	size_t size = c->type_table_size ? c->type_table_size * 2 : FIRST_TABLE;
	uint32_t *table = calloc(size, sizeof(*table));

	if (!table)
		return false;
	for (size_t i = 0; i < c->types.count; i++) {
		size_t slot = slot_of(c->types.items[i].address, size);

		while (table[slot])
			slot = (slot + 1) & (size - 1);
		table[slot] = (uint32_t)i + 1;
	}
	free(c->type_table);
	c->type_table = table;
	c->type_table_size = size;
	return true;
}

struct prb_census_entry *prb_census_entry(struct prb_census *c, uint64_t address)
{
	uint64_t *rejected = &c->rejected[address / 16 % PRB_CENSUS_REJECTED];
	struct prb_census_entry entry, *pushed;
	size_t slot;

	if (address % sizeof(uint64_t) || address < 1 << 16 || *rejected == address)
		return NULL;
	if (c->types.count * 2 >= c->type_table_size && !grow(c)) {
		prb_census_try(c, prb_error_nomem());
		return NULL;
	}
	for (slot = slot_of(address, c->type_table_size); c->type_table[slot];
	     slot = (slot + 1) & (c->type_table_size - 1))
		if (c->types.items[c->type_table[slot] - 1].address == address)
			return &c->types.items[c->type_table[slot] - 1];
	if (c->types.count >= TYPES_MAX || !read_entry(c, address, &entry)) {
		*rejected = address;
		return NULL;
	}
	pushed = prb_vec_push(&c->types);
	if (!pushed) {
		prb_census_try(c, prb_error_nomem());
		return NULL;
	}
	*pushed = entry;
	c->type_table[slot] = (uint32_t)c->types.count;
	return pushed;
}

/* A str is as long as its state says; only one that is not compact has its text elsewhere. */
static uint64_t str_bytes(struct prb_census *c, const struct prb_census_entry *type,
			  uint64_t object)
{
	enum { KIND = 7, COMPACT = 1 << 3, ASCII = 1 << 4 };
	const struct prb_layout *l = &c->py->layout;
	uint64_t length;
	uint32_t state;

	if (!prb_census_try(
		    c, prb_mem_read_u64(c->mem, object + (uint64_t)l->unicode_length, &length)) ||
	    !prb_census_try(
		    c, prb_mem_read_u32(c->mem, object + (uint64_t)l->unicode_state, &state)) ||
	    length > bytes_max)
		return type->size;
	state >>= prb_repr_str_state_shift(l);
	if (!(state & COMPACT))
		return type->size;
	return (uint64_t)(state & ASCII ? l->unicode_ascii_size : l->unicode_compact_size) +
	       (length + 1) * PRB_MAX(state & KIND, 1u);
}

static uint64_t item_bytes(struct prb_census *c, const struct prb_census_entry *type,
			   uint64_t object)
{
	uint64_t size;

	if (!prb_census_try(
		    c, prb_mem_read_u64(c->mem, object + (uint64_t)c->py->layout.var_size, &size)))
		return 0;
	if (type->int_tag)
		size >>= 3;
	else if ((int64_t)size < 0)
		size = -size;
	return size <= bytes_max / type->item ? size * type->item : 0;
}

uint64_t prb_census_own_bytes(struct prb_census *c, const struct prb_census_entry *type,
			      uint64_t object)
{
	bool frame = type->kind == PRB_CENSUS_GENERATOR || type->kind == PRB_CENSUS_FRAME;

	if (type->kind == PRB_CENSUS_STR)
		return type->before + str_bytes(c, type, object);
	/* Since 3.11 these hold a frame whose length is not stored in this way. */
	if (!type->item || (frame && c->py->layout.behaviour->chain != PRB_CHAIN_PYFRAME))
		return type->before + type->size;
	return type->before + type->size + item_bytes(c, type, object);
}

static void read_name(struct prb_census *c, struct prb_census_entry *entry)
{
	prb_auto_str struct prb_str name = {};
	prb_auto_repr struct prb_repr r;
	struct prb_type *type;

	prb_repr_init(&r, c->py, c->mem, NULL, &name);
	if (!prb_census_try(c, prb_repr_type(&r, entry->address, &type)) ||
	    !prb_census_try(c, prb_repr_put_module(&r, type)) ||
	    !prb_census_try(c, prb_repr_put_qualname(&r, type))) {
		prb_str_truncate(&name, 0);
		prb_str_printf(&name, "<type at %#llx>", (unsigned long long)entry->address);
	}
	entry->name = prb_str_take(&name);
}

bool prb_census_type(struct prb_census *c, size_t index, struct prb_census_type *ret)
{
	struct prb_census_entry *entry;

	if (index >= c->types.count)
		return false;
	entry = &c->types.items[index];
	if (!entry->name)
		read_name(c, entry);
	*ret = (struct prb_census_type){
		.address = entry->address,
		.name = entry->name ? entry->name : "?",
		.count = entry->count,
		.bytes = entry->bytes,
		.owned = entry->owned,
	};
	return true;
}
