/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Types of the interpreter itself, known by their addresses: reading them takes requests, and a
 * stray write of an extension module may have damaged them.
 */
#include <string.h>

#include "base/cleanup.h"
#include "python/python.h"
#include "python/repr/core/repr_private.h"

const struct prb_builtin_type prb_builtin_types[PRB_BUILTIN_COUNT] = {
	[PRB_BUILTIN_TYPE] = {"PyType_Type", "type", PRB_PY_TYPE},
	[PRB_BUILTIN_DICT] = {"PyDict_Type", "dict", PRB_PY_DICT},
	[PRB_BUILTIN_STR] = {"PyUnicode_Type", "str", PRB_PY_STR},
	[PRB_BUILTIN_CODE] = {"PyCode_Type", "code", 0},
	[PRB_BUILTIN_INT] = {"PyLong_Type", "int", PRB_PY_INT},
	[PRB_BUILTIN_BOOL] = {"PyBool_Type", "bool", PRB_PY_INT},
	[PRB_BUILTIN_FLOAT] = {"PyFloat_Type", "float", 0},
	[PRB_BUILTIN_TUPLE] = {"PyTuple_Type", "tuple", PRB_PY_TUPLE},
	[PRB_BUILTIN_LIST] = {"PyList_Type", "list", PRB_PY_LIST},
	[PRB_BUILTIN_BYTES] = {"PyBytes_Type", "bytes", PRB_PY_BYTES},
	[PRB_BUILTIN_FUNCTION] = {"PyFunction_Type", "function", 0},
	[PRB_BUILTIN_OBJECT] = {"PyBaseObject_Type", "object", 0},
};

/* Without a file the symbols lie in the memory of the process: looking for them costs more. */
static void find(struct prb_python *py)
{
	struct prb_elf *elf;
	prb_auto_error struct prb_error *err = prb_module_elf(py->module, &elf);

	for (int i = 0; !err && i < PRB_BUILTIN_COUNT; i++) {
		uint64_t size;

		err = prb_module_exported_symbol(py->module, prb_builtin_types[i].symbol,
						 &py->builtins[i], &size);
	}
}

void prb_python_know_builtins(struct prb_python *py)
{
	if (!py->builtins_known && py->target && py->module)
		find(py);
	py->builtins_known = true;
}

bool prb_python_is_builtin(struct prb_python *py, uint64_t type, enum prb_builtin which)
{
	if (!py->target || !py->module || !prb_target_is_remote(py->target))
		return false;
	prb_python_know_builtins(py);
	return type && py->builtins[which] == type;
}

enum prb_builtin prb_python_builtin_at(struct prb_python *py, uint64_t type)
{
	prb_python_know_builtins(py);
	for (int i = 0; type && i < PRB_BUILTIN_COUNT; i++)
		if (py->builtins[i] == type)
			return i;
	return PRB_BUILTIN_COUNT;
}

static bool is_called(struct prb_mem *mem, uint64_t text, const char *name)
{
	prb_auto_str struct prb_str its = {};
	prb_auto_error struct prb_error *err = prb_mem_read_cstr(mem, text, 64, &its);

	return !err && !strcmp(prb_str_text(&its), name);
}

void prb_python_describe_damage(struct prb_python *py, struct prb_mem *mem, enum prb_builtin which,
				struct prb_str *ret)
{
	const struct prb_builtin_type *type = &prb_builtin_types[which];
	const struct prb_layout *l = &py->layout;
	const uint64_t must = type->flag | PRB_PY_READY;
	uint64_t address = py->builtins[which], flags, metatype, name;
	prb_auto_error struct prb_error *err =
		prb_mem_read_u64(mem, address + (uint64_t)l->type_flags, &flags);

	if (!err)
		err = prb_mem_read_u64(mem, address + (uint64_t)l->object_type, &metatype);
	if (!err)
		err = prb_mem_read_u64(mem, address + (uint64_t)l->type_name, &name);
	if (err) {
		prb_str_puts(ret, err->message);
		return;
	}
	if ((flags & (PRB_PY_KINDS | PRB_PY_READY)) != must)
		prb_str_printf(ret, "tp_flags is %#llx", (unsigned long long)flags);
	if (metatype != py->builtins[PRB_BUILTIN_TYPE])
		prb_str_printf(ret, "%sob_type is %#llx", ret->length ? ", " : "",
			       (unsigned long long)metatype);
	if (!is_called(mem, name, type->name))
		prb_str_printf(ret, "%stp_name is %#llx", ret->length ? ", " : "",
			       (unsigned long long)name);
}
