/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Variables of a frame: names from the code object, values from the frame. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/repr.h"
#include "python/python.h"

enum {
	CO_OPTIMIZED = 0x1,
	FAST_HIDDEN = 0x10, /* 3.12+: a comprehension's own, inlined into the function */
	FAST_CELL = 0x40,
	FAST_FREE = 0x80,
	MAX_VARIABLES = 65536,
	MAX_NAME = 4096,
	SLOTS = 64, /* that are read at once */
};

/* Variables of code */

struct names {
	struct prb_python *py;
	struct prb_mem *mem;
	uint64_t code;
	uint32_t arg_count;
	struct prb_py_variables *variables;
};

static struct prb_error *find_tuple(struct names *n, int32_t offset, uint64_t *ret, uint64_t *count)
{
	PRB_TRY(prb_mem_read_u64(n->mem, n->code + (uint64_t)offset, ret));
	PRB_TRY(prb_mem_read_u64(n->mem, *ret + (uint64_t)n->py->layout.var_size, count));
	if (*count > MAX_VARIABLES)
		return prb_error_create(PRB_ERROR_BAD_DATA, "%llu names of variables",
					(unsigned long long)*count);
	return NULL;
}

static struct prb_error *tuple_name(struct names *n, uint64_t tuple, uint64_t index, char **ret)
{
	prb_auto_str struct prb_str name = {};
	uint64_t object, items = tuple + (uint64_t)n->py->layout.tuple_items;

	PRB_TRY(prb_mem_read_u64(n->mem, items + 8 * index, &object));
	PRB_TRY(prb_object_str(n->py, n->mem, object, MAX_NAME, &name));
	*ret = prb_str_take(&name);
	return *ret ? NULL : prb_error_nomem();
}

static struct prb_error *add_variable(struct names *n, uint64_t tuple, uint64_t index,
				      struct prb_py_variable variable)
{
	struct prb_py_variable *slot;

	PRB_TRY(tuple_name(n, tuple, index, &variable.name));
	slot = prb_vec_push(&n->variables->list);
	if (!slot) {
		free(variable.name);
		return prb_error_nomem();
	}
	*slot = variable;
	return NULL;
}

/* 3.11+: one tuple of names with a byte of flags for each. */
static struct prb_error *read_localsplus(struct names *n)
{
	const struct prb_layout *l = &n->py->layout;
	uint64_t names, kinds, count;

	PRB_TRY(find_tuple(n, l->code_localsplusnames, &names, &count));
	PRB_TRY(prb_mem_read_u64(n->mem, n->code + (uint64_t)l->code_localspluskinds, &kinds));
	for (uint64_t i = 0; i < count; i++) {
		uint8_t flags;

		PRB_TRY(prb_mem_read_u8(n->mem, kinds + (uint64_t)l->bytes_data + i, &flags));
		PRB_TRY(add_variable(n, names, i,
				     (struct prb_py_variable){
					     .kind = flags & FAST_FREE	 ? PRB_LOCAL_FREE
						     : i < n->arg_count	 ? PRB_LOCAL_ARGUMENT
						     : flags & FAST_CELL ? PRB_LOCAL_CELL
									 : PRB_LOCAL_LOCAL,
					     .cell = flags & (FAST_CELL | FAST_FREE),
					     .hidden = flags & FAST_HIDDEN,
				     }));
	}
	return NULL;
}

/* Up to 3.10: three tuples of names, their slots one behind the other. */
static struct prb_error *read_names(struct names *n, int32_t offset, enum prb_local_kind kind)
{
	uint64_t tuple, count;

	PRB_TRY(find_tuple(n, offset, &tuple, &count));
	for (uint64_t i = 0; i < count; i++) {
		bool argument = kind == PRB_LOCAL_LOCAL && i < n->arg_count;

		PRB_TRY(add_variable(n, tuple, i,
				     (struct prb_py_variable){
					     .kind = argument ? PRB_LOCAL_ARGUMENT : kind,
					     .cell = kind != PRB_LOCAL_LOCAL,
				     }));
	}
	return NULL;
}

static struct prb_error *read_all_names(struct names *n)
{
	const struct prb_layout *l = &n->py->layout;

	if (l->behaviour->chain != PRB_CHAIN_PYFRAME)
		return read_localsplus(n);
	PRB_TRY(read_names(n, l->code_varnames, PRB_LOCAL_LOCAL));
	PRB_TRY(read_names(n, l->code_cellvars, PRB_LOCAL_CELL));
	return read_names(n, l->code_freevars, PRB_LOCAL_FREE);
}

struct prb_error *prb_python_variables(struct prb_python *py, struct prb_mem *mem, uint64_t address,
				       const struct prb_py_code *code, struct prb_py_variables *ret)
{
	struct names names = {.py = py,
			      .mem = mem,
			      .code = address,
			      .arg_count = code->arg_count,
			      .variables = ret};

	*ret = (struct prb_py_variables){.namespace = !(code->flags & CO_OPTIMIZED)};

	struct prb_error *err = read_all_names(&names);
	if (err)
		prb_py_variables_deinit(ret);
	return err;
}

void prb_py_variables_deinit(struct prb_py_variables *variables)
{
	struct prb_py_variable *variable;

	prb_vec_each (variable, &variables->list)
		free(variable->name);
	prb_vec_free(&variables->list);
}

/* Values of a frame */

struct reader {
	struct prb_python *py;
	struct prb_mem *mem;
	const struct prb_py_frame *frame;
	struct prb_py_locals *locals;
};

static bool is_cell(struct reader *r, uint64_t object)
{
	prb_auto_str struct prb_str type = {};
	prb_auto_error struct prb_error *err = prb_object_type_name(r->py, r->mem, object, &type);

	return !err && !strcmp(prb_str_text(&type), "cell");
}

/* Drops the argument whose value has moved to the cell of the same name that was just added. */
static void drop_moved(struct reader *r)
{
	struct prb_py_local *cell = &r->locals->list.items[r->locals->list.count - 1];

	for (struct prb_py_local *argument = r->locals->list.items;
	     argument < cell && argument->kind == PRB_LOCAL_ARGUMENT; argument++) {
		if (argument->object || strcmp(argument->name, cell->name))
			continue;
		argument->object = cell->object;
		r->locals->list.count--;
		return;
	}
}

/* A value in a cell is taken out of it. */
static struct prb_error *add_value(struct reader *r, const struct prb_py_variable *variable,
				   uint64_t object)
{
	struct prb_py_local *local;

	if (r->py->layout.behaviour->tagged_refs)
		object &= ~3ULL;
	if (object && variable->cell && is_cell(r, object))
		PRB_TRY(prb_mem_read_u64(r->mem, object + (uint64_t)r->py->layout.object_size,
					 &object));
	if (!object && variable->hidden)
		return NULL;
	local = prb_vec_push(&r->locals->list);
	if (!local)
		return prb_error_nomem();
	*local = (struct prb_py_local){variable->name, variable->kind, object};
	if (variable->kind == PRB_LOCAL_CELL && r->py->layout.behaviour->chain == PRB_CHAIN_PYFRAME)
		drop_moved(r);
	return NULL;
}

static uint64_t first_slot(const struct prb_python *py, const struct prb_py_frame *frame)
{
	const struct prb_layout *l = &py->layout;
	bool pyframe = l->behaviour->chain == PRB_CHAIN_PYFRAME;

	return frame->address + (uint64_t)(pyframe ? l->pyframe_localsplus : l->frame_localsplus);
}

static struct prb_error *read_slots(struct reader *r, const struct prb_py_variables *variables)
{
	uint64_t slots[SLOTS], address = first_slot(r->py, r->frame);

	for (size_t i = 0; i < variables->list.count; i++) {
		size_t count = PRB_MIN(variables->list.count - i, (size_t)SLOTS);

		if (i % SLOTS == 0)
			PRB_TRY(prb_mem_read(r->mem, address + 8 * i, slots, 8 * count));
		PRB_TRY(add_value(r, &variables->list.items[i], slots[i % SLOTS]));
	}
	return NULL;
}

struct namespace_visit {
	struct reader *reader;
	struct prb_error *err;
};

static struct prb_error *add_named(struct reader *r, char *name, uint64_t value)
{
	struct prb_py_local *local = prb_vec_push(&r->locals->list);
	char **slot = prb_vec_push(&r->locals->names);

	if (!local || !slot || !name) {
		free(name);
		return prb_error_nomem();
	}
	*slot = name;
	*local = (struct prb_py_local){name, PRB_LOCAL_NAME, value};
	return NULL;
}

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
	/* Names of every module: __name__, __builtins__ and so on. */
	if (!strncmp(prb_str_text(&name), "__", 2))
		return true;
	visit->err = add_named(visit->reader, prb_str_take(&name), value);
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

	PRB_TRY(prb_mem_read_u64(r->mem, r->frame->address + (uint64_t)offset, &dict));
	if (l->behaviour->tagged_refs)
		dict &= ~3ULL;
	if (!dict)
		return NULL;
	PRB_TRY(prb_object_dict_each(r->py, r->mem, dict, add_name, &visit));
	return visit.err;
}

struct prb_error *prb_python_values(struct prb_python *py, struct prb_mem *mem,
				    const struct prb_py_frame *frame,
				    const struct prb_py_variables *variables,
				    struct prb_py_locals *ret)
{
	struct reader r = {.py = py, .mem = mem, .frame = frame, .locals = ret};

	*ret = (struct prb_py_locals){};
	if (!prb_vec_reserve(&ret->list, variables->list.count))
		return prb_error_nomem();

	struct prb_error *err = read_slots(&r, variables);
	if (!err && variables->namespace)
		err = read_namespace(&r);
	if (err)
		prb_py_locals_deinit(ret);
	return err;
}

struct prb_error *prb_python_locals(struct prb_python *py, struct prb_mem *mem,
				    const struct prb_py_frame *frame, struct prb_py_locals *ret)
{
	struct prb_py_variables variables;
	struct prb_py_code code;

	*ret = (struct prb_py_locals){};
	PRB_TRY(prb_python_code(py, mem, frame->code, &code));

	struct prb_error *err = prb_python_variables(py, mem, frame->code, &code, &variables);
	prb_py_code_deinit(&code);
	PRB_TRY(err);
	err = prb_python_values(py, mem, frame, &variables, ret);
	if (err)
		prb_py_variables_deinit(&variables);
	else
		ret->variables = variables;
	return err;
}

struct prb_error *prb_python_first_value(struct prb_python *py, struct prb_mem *mem,
					 const struct prb_py_frame *frame, uint64_t *ret)
{
	PRB_TRY(prb_mem_read_u64(mem, first_slot(py, frame), ret));
	if (py->layout.behaviour->tagged_refs)
		*ret &= ~UINT64_C(3);
	return NULL;
}

void prb_py_locals_deinit(struct prb_py_locals *locals)
{
	char **name;

	prb_vec_free(&locals->list);
	prb_vec_each (name, &locals->names)
		free(*name);
	prb_vec_free(&locals->names);
	prb_py_variables_deinit(&locals->variables);
}
