/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/native/own_frames.h"

#include <stddef.h>
#include <string.h>

#include "base/checked.h"

/* Prefixes of static functions of 3.6 to 3.15, beside those of the C API. */
static const char *const begins[] = {
	"_start",
	"_TAIL_CALL_",
	"binary_iop",
	"binary_op",
	"buffer_callmethod",
	"call_",
	"callmethod",
	"cfunction_",
	"check_periodics",
	"context_run",
	"do_call_core",
	"do_richcompare",
	"eval_frame_handle_pending",
	"fast_function",
	"function_call",
	"function_code_fastcall",
	"gen_iternext",
	"gen_send",
	"import_find_and_load",
	"import_name",
	"iternext",
	"lookup_",
	"maybe_call_special",
	"method_vectorcall",
	"object_vacall",
	"partial_",
	"property_descr_get",
	"pymain_",
	"pyrun_",
	"pythread_wrapper",
	"run_",
	"slot_",
	"t_bootstrap",
	"ternary_iop",
	"ternary_op",
	"thread_excepthook",
	"thread_run",
	"tstate_",
	"type_call",
	"vectorcall_",
	"wrap_",
	"wrapper_call",
	"wrapperdescr_",
};

bool prb_is_of_interface(const char *name)
{
	return name && (!strncmp(name, "Py", 2) || !strncmp(name, "_Py", 3));
}

bool prb_is_own_function(const char *name)
{
	if (prb_is_of_interface(name))
		return true;
	for (size_t i = 0; name && i < PRB_ARRAY_SIZE(begins); i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	return !name;
}

bool prb_is_of_cython(const char *name)
{
	return name && !strncmp(name, "__Pyx_", strlen("__Pyx_"));
}

bool prb_runs_program(const char *name)
{
	static const char *const names[] = {"Py_BytesMain", "Py_Main", "_Py_UnixMain",
					    "pymain_main"};

	for (size_t i = 0; name && i < PRB_ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}
