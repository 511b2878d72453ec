/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Code objects: names, file, arguments; and variables of a frame. */
#include "python/python.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/repr.h"

enum {
	MAX_CODE_STRUCT = 512,
	MAX_NAME = 4096, /* characters, as for paths in Linux; what is longer is cut visibly */
	CO_VARARGS = 0x4,
	CO_VARKEYWORDS = 0x8,
};

static struct prb_error *read_text(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				   char **ret)
{
	prb_auto_str struct prb_str text = {};

	PRB_TRY(prb_object_str(py, mem, object, MAX_NAME, &text));
	*ret = prb_str_take(&text);
	return *ret ? NULL : prb_error_nomem();
}

static uint64_t pointer_at(const uint8_t *data, int32_t offset)
{
	uint64_t value;

	memcpy(&value, data + offset, sizeof(value));
	return value;
}

static int32_t int_at(const uint8_t *data, int32_t offset)
{
	int32_t value;

	if (offset == PRB_ABSENT)
		return 0;
	memcpy(&value, data + offset, sizeof(value));
	return value;
}

/* An object of another type in the place of a code object (3.13+ allows any) has no names. */
static struct prb_error *check_type(struct prb_python *py, struct prb_mem *mem, const uint8_t *data,
				    uint64_t code)
{
	prb_auto_str struct prb_str name = {};
	uint64_t type = pointer_at(data, py->layout.object_type), text;

	/* While a snapshot is made, each view has to hold the type's name for itself. */
	if (type && type == py->code_type && !prb_target_is_recorded(py->target))
		return NULL;
	if (prb_python_is_builtin(py, type, PRB_BUILTIN_CODE))
		return NULL;

	struct prb_error *err = prb_mem_read_u64(mem, type + (uint64_t)py->layout.type_name, &text);
	if (!err)
		err = prb_mem_read_cstr(mem, text, 256, &name);
	if (!err && strcmp(prb_str_text(&name), "code"))
		err = prb_error_create(PRB_ERROR_BAD_DATA, "%#llx is a %s, not a code object",
				       (unsigned long long)code, prb_str_text(&name));
	if (err && prb_python_builtin_at(py, type) == PRB_BUILTIN_CODE) {
		prb_python_note_damage(py, PRB_BUILTIN_CODE);
		prb_error_destroy(prb_steal(&err));
	}
	/* A core lacks the constants of a file that is not here. */
	if (err && err->code == PRB_ERROR_FAULT && py->target && !py->target->live &&
	    prb_object_is_code_type(py, mem, type)) {
		py->code_by_members = true;
		prb_error_destroy(prb_steal(&err));
	}
	if (!err)
		py->code_type = type;
	return err;
}

/* Layouts may come from the target, too: members lie within what is read of a code object. */
static bool layout_fits(const struct prb_layout *l)
{
	const int32_t pointers[] = {l->object_type, l->code_name, l->code_filename,
				    l->behaviour->has_qualname ? l->code_qualname : 0};
	const int32_t ints[] = {l->code_firstlineno, l->code_flags, l->code_argcount,
				l->code_kwonlyargcount};

	if (l->code_size <= 0 || l->code_size > MAX_CODE_STRUCT)
		return false;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(pointers); i++)
		if (pointers[i] < 0 || pointers[i] > l->code_size - 8)
			return false;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(ints); i++)
		if (ints[i] < PRB_ABSENT || ints[i] > l->code_size - 4)
			return false;
	return true;
}

static struct prb_error *read_code(struct prb_python *py, struct prb_mem *mem, uint64_t code,
				   uint8_t *data)
{
	const struct prb_layout *l = &py->layout;

	if (code < 4096 || code % 8 || !layout_fits(l))
		return prb_error_create(PRB_ERROR_BAD_DATA, "%#llx is not a code object",
					(unsigned long long)code);
	PRB_TRY(prb_mem_read(mem, code, data, (size_t)l->code_size));
	return check_type(py, mem, data, code);
}

static struct prb_error *fill(struct prb_python *py, struct prb_mem *mem, const uint8_t *data,
			      struct prb_py_code *ret)
{
	const struct prb_layout *l = &py->layout;

	ret->first_line = int_at(data, l->code_firstlineno);
	ret->flags = (uint32_t)int_at(data, l->code_flags);
	ret->arg_count = (uint32_t)int_at(data, l->code_argcount) +
			 (uint32_t)int_at(data, l->code_kwonlyargcount) +
			 !!(ret->flags & CO_VARARGS) + !!(ret->flags & CO_VARKEYWORDS);
	PRB_TRY(read_text(py, mem, pointer_at(data, l->code_name), &ret->name));
	PRB_TRY(read_text(py, mem, pointer_at(data, l->code_filename), &ret->file));
	if (l->behaviour->has_qualname)
		PRB_TRY(read_text(py, mem, pointer_at(data, l->code_qualname), &ret->qualname));
	return NULL;
}

struct prb_error *prb_python_code(struct prb_python *py, struct prb_mem *mem, uint64_t code,
				  struct prb_py_code *ret)
{
	uint8_t data[MAX_CODE_STRUCT];

	*ret = (struct prb_py_code){};
	PRB_TRY(read_code(py, mem, code, data));

	struct prb_error *err = fill(py, mem, data, ret);
	if (err)
		prb_py_code_deinit(ret);
	return prb_error_prefix(err, "code object %#llx", (unsigned long long)code);
}

void prb_py_code_deinit(struct prb_py_code *code)
{
	free(code->name);
	free(code->qualname);
	free(code->file);
	*code = (struct prb_py_code){};
}
