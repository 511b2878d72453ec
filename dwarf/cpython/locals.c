/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Variables of a frame: names from the code object, values from the frame. */
#include <string.h>

#include "dwarf/base/checked.h"
#include "dwarf/base/cleanup.h"
#include "dwarf/cpython/object.h"
#include "dwarf/cpython/python.h"

enum {
	CO_OPTIMIZED = 0x1,
	FAST_HIDDEN = 0x10, /* 3.12+: a comprehension's own, inlined into the function */
	FAST_CELL = 0x40,
	FAST_FREE = 0x80,
	MAX_VARIABLES = 65536,
	MAX_NAME = 4096,
};

struct reader {
	struct prb_python *py;
	struct prb_mem *mem;
	const struct prb_py_frame *frame;
	struct prb_py_code code;
	struct prb_py_locals *locals;
};

static struct prb_error *read_pointer(struct reader *r, uint64_t base, int32_t offset,
				      uint64_t *ret)
{
	return prb_mem_read_u64(r->mem, base + (uint64_t)offset, ret);
}

static struct prb_error *add(struct reader *r, char *name, enum prb_local_kind kind,
			     uint64_t object)
{
	struct prb_py_local *local = prb_vec_push(&r->locals->list);

	if (!local || !name) {
		free(name);
		return prb_error_nomem();
	}
	*local = (struct prb_py_local){.name = name, .kind = kind, .object = object};
	return NULL;
}

static struct prb_error *tuple_size(struct reader *r, uint64_t tuple, uint64_t *ret)
{
	PRB_TRY(read_pointer(r, tuple, r->py->layout.var_size, ret));
	if (*ret > MAX_VARIABLES)
		return prb_error_create(PRB_ERROR_BAD_DATA, "%llu names of variables",
					(unsigned long long)*ret);
	return NULL;
}

static struct prb_error *tuple_name(struct reader *r, uint64_t tuple, uint64_t index, char **ret)
{
	prb_auto_str struct prb_str name = {};
	uint64_t object;

	PRB_TRY(read_pointer(r, tuple + 8 * index, r->py->layout.tuple_items, &object));
	PRB_TRY(prb_object_str(r->py, r->mem, object, MAX_NAME, &name));
	*ret = prb_str_take(&name);
	return *ret ? NULL : prb_error_nomem();
}

static bool is_cell(struct reader *r, uint64_t object)
{
	prb_auto_str struct prb_str type = {};
	prb_auto_error struct prb_error *err = prb_object_type_name(r->py, r->mem, object, &type);

	return !err && !strcmp(prb_str_text(&type), "cell");
}

/* The value in slot @p index of the frame; one in a cell is taken out of it. */
static struct prb_error *read_slot(struct reader *r, uint64_t slots, uint64_t index, bool may_cell,
				   uint64_t *ret)
{
	PRB_TRY(prb_mem_read_u64(r->mem, slots + 8 * index, ret));
	if (r->py->layout.behaviour->tagged_refs)
		*ret &= ~3ULL;
	if (*ret && may_cell && is_cell(r, *ret))
		return read_pointer(r, *ret, r->py->layout.object_size, ret);
	return NULL;
}

/* 3.11+: one tuple of names with a byte of flags for each. */
static struct prb_error *read_localsplus(struct reader *r)
{
	const struct prb_layout *l = &r->py->layout;
	uint64_t names, kinds, count, slots = r->frame->address + (uint64_t)l->frame_localsplus;

	PRB_TRY(read_pointer(r, r->frame->code, l->code_localsplusnames, &names));
	PRB_TRY(read_pointer(r, r->frame->code, l->code_localspluskinds, &kinds));
	PRB_TRY(tuple_size(r, names, &count));
	for (uint64_t i = 0; i < count; i++) {
		uint64_t object;
		uint8_t flags;
		char *name;

		PRB_TRY(prb_mem_read_u8(r->mem, kinds + (uint64_t)l->bytes_data + i, &flags));
		PRB_TRY(read_slot(r, slots, i, flags & (FAST_CELL | FAST_FREE), &object));
		if (!object && flags & FAST_HIDDEN)
			continue;
		PRB_TRY(tuple_name(r, names, i, &name));
		PRB_TRY(add(r, name,
			    flags & FAST_FREE	    ? PRB_LOCAL_FREE
			    : i < r->code.arg_count ? PRB_LOCAL_ARGUMENT
			    : flags & FAST_CELL	    ? PRB_LOCAL_CELL
						    : PRB_LOCAL_LOCAL,
			    object));
	}
	return NULL;
}

/* Drops an argument whose value has moved to the cell of the same name that was just added. */
static void drop_moved(struct reader *r, size_t arguments)
{
	struct prb_py_local *cell = &r->locals->list.items[r->locals->list.count - 1];

	for (size_t i = 0; i < arguments; i++) {
		struct prb_py_local *argument = &r->locals->list.items[i];

		if (argument->object || strcmp(argument->name, cell->name))
			continue;
		argument->object = cell->object;
		free(cell->name);
		r->locals->list.count--;
		return;
	}
}

/* Up to 3.10: three tuples of names, their slots one behind the other. */
static struct prb_error *read_names(struct reader *r, int32_t tuple_offset,
				    enum prb_local_kind kind, uint64_t slots, uint64_t *index)
{
	size_t arguments = PRB_MIN((size_t)r->code.arg_count, r->locals->list.count);
	uint64_t tuple, count;

	PRB_TRY(read_pointer(r, r->frame->code, tuple_offset, &tuple));
	PRB_TRY(tuple_size(r, tuple, &count));
	for (uint64_t i = 0; i < count; i++, ++*index) {
		uint64_t object;
		char *name;

		PRB_TRY(read_slot(r, slots, *index, kind != PRB_LOCAL_LOCAL, &object));
		PRB_TRY(tuple_name(r, tuple, i, &name));
		PRB_TRY(add(r, name,
			    kind == PRB_LOCAL_LOCAL && i < r->code.arg_count ? PRB_LOCAL_ARGUMENT
									     : kind,
			    object));
		if (kind == PRB_LOCAL_CELL)
			drop_moved(r, arguments);
	}
	return NULL;
}

static struct prb_error *read_fast(struct reader *r)
{
	const struct prb_layout *l = &r->py->layout;
	uint64_t slots = r->frame->address + (uint64_t)l->pyframe_localsplus, index = 0;

	if (l->behaviour->chain != PRB_CHAIN_PYFRAME)
		return read_localsplus(r);
	PRB_TRY(read_names(r, l->code_varnames, PRB_LOCAL_LOCAL, slots, &index));
	PRB_TRY(read_names(r, l->code_cellvars, PRB_LOCAL_CELL, slots, &index));
	return read_names(r, l->code_freevars, PRB_LOCAL_FREE, slots, &index);
}

struct namespace_visit {
	struct reader *reader;
	struct prb_error *err;
};

static bool add_name(void *context, uint64_t key, uint64_t value)
{
	struct namespace_visit *visit = context;
	prb_auto_str struct prb_str name = {};
	struct prb_error *err =
		prb_object_str(visit->reader->py, visit->reader->mem, key, MAX_NAME, &name);

	if (err) { /* a key that is no str */
		prb_error_destroy(err);
		return true;
	}
	/* What every module has: __name__, __builtins__ and so on. */
	if (!strncmp(prb_str_text(&name), "__", 2))
		return true;
	visit->err = add(visit->reader, prb_str_take(&name), PRB_LOCAL_NAME, value);
	return !visit->err && visit->reader->locals->list.count < MAX_VARIABLES;
}

/* Bodies of modules and classes keep their names in a dict. */
static struct prb_error *read_namespace(struct reader *r)
{
	const struct prb_layout *l = &r->py->layout;
	int32_t offset =
		l->behaviour->chain == PRB_CHAIN_PYFRAME ? l->pyframe_locals : l->frame_locals;
	struct namespace_visit visit = {.reader = r};
	uint64_t dict;

	PRB_TRY(read_pointer(r, r->frame->address, offset, &dict));
	if (l->behaviour->tagged_refs)
		dict &= ~3ULL;
	if (!dict)
		return NULL;
	PRB_TRY(prb_object_dict_each(r->py, r->mem, dict, add_name, &visit));
	return visit.err;
}

struct prb_error *prb_python_locals(struct prb_python *py, struct prb_mem *mem,
				    const struct prb_py_frame *frame, struct prb_py_locals *ret)
{
	struct reader r = {.py = py, .mem = mem, .frame = frame, .locals = ret};

	*ret = (struct prb_py_locals){};
	PRB_TRY(prb_python_code(py, mem, frame->code, &r.code));

	struct prb_error *err = read_fast(&r);
	if (!err && !(r.code.flags & CO_OPTIMIZED))
		err = read_namespace(&r);
	prb_py_code_deinit(&r.code);
	if (err)
		prb_py_locals_deinit(ret);
	return err;
}

void prb_py_locals_deinit(struct prb_py_locals *locals)
{
	struct prb_py_local *local;

	prb_vec_each (local, &locals->list)
		free(local->name);
	prb_vec_free(&locals->list);
}
