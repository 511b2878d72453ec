/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Types of the interpreter itself, known by their addresses: reading them takes requests. */
#include "base/cleanup.h"
#include "python/python.h"

static const char *const symbols[PRB_BUILTIN_COUNT] = {
	[PRB_BUILTIN_TYPE] = "PyType_Type",
	[PRB_BUILTIN_DICT] = "PyDict_Type",
	[PRB_BUILTIN_STR] = "PyUnicode_Type",
	[PRB_BUILTIN_CODE] = "PyCode_Type",
};

/* Without a file the symbols lie in the memory of the process: looking for them costs more. */
static void find(struct prb_python *py)
{
	struct prb_elf *elf;
	prb_auto_error struct prb_error *err = prb_module_elf(py->module, &elf);

	for (int i = 0; !err && i < PRB_BUILTIN_COUNT; i++) {
		uint64_t size;

		err = prb_module_exported_symbol(py->module, symbols[i], &py->builtins[i], &size);
	}
}

bool prb_python_is_builtin(struct prb_python *py, uint64_t type, enum prb_builtin which)
{
	if (!py->target || !py->module || !prb_target_is_remote(py->target))
		return false;
	if (!py->builtins_known)
		find(py);
	py->builtins_known = true;
	return type && py->builtins[which] == type;
}
