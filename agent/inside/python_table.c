/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/inside/python_table.h"

#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/inside/libc.h"

enum { PATHS_SIZE = 1 << 20 };

static const struct {
	const char *name;
	uint16_t place;
	bool optional;
} functions[] = {
	/* First: it is known even of a Python that lacks others. */
	{"Py_IgnoreEnvironmentFlag", offsetof(struct prba_python_table, Py_IgnoreEnvironmentFlag),
	 true},
#define PRBA_ROW(result, name, arguments) {#name, offsetof(struct prba_python_table, name), false},
	PRBA_PYTHON_REQUIRED(PRBA_ROW)
#undef PRBA_ROW
#define PRBA_ROW(result, name, arguments) {#name, offsetof(struct prba_python_table, name), true},
		PRBA_PYTHON_OPTIONAL(PRBA_ROW)
#undef PRBA_ROW
			{"PyExc_KeyboardInterrupt",
			 offsetof(struct prba_python_table, PyExc_KeyboardInterrupt), false},
	{"PyExc_MemoryError", offsetof(struct prba_python_table, PyExc_MemoryError), false},
	{"PyExc_RecursionError", offsetof(struct prba_python_table, PyExc_RecursionError), true},
	{"PyExc_RuntimeError", offsetof(struct prba_python_table, PyExc_RuntimeError), false},
	{"PyExc_TypeError", offsetof(struct prba_python_table, PyExc_TypeError), false},
	{"_Py_NoneStruct", offsetof(struct prba_python_table, _Py_NoneStruct), true},
	{"_Py_TrueStruct", offsetof(struct prba_python_table, _Py_TrueStruct), true},
	{"PyBool_Type", offsetof(struct prba_python_table, PyBool_Type), true},
	{"PyLong_Type", offsetof(struct prba_python_table, PyLong_Type), true},
	{"PyFloat_Type", offsetof(struct prba_python_table, PyFloat_Type), true},
	{"PyUnicode_Type", offsetof(struct prba_python_table, PyUnicode_Type), true},
};

/** All functions, from one library and what it needs. */
static bool fill(void *handle, struct prba_python_table *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *address = dlsym(handle, functions[i].name);

		if (!address && !functions[i].optional) {
			ret->missing = functions[i].name;
			return false;
		}
		memcpy((char *)ret + functions[i].place, &address, sizeof(address));
	}
	return true;
}

/** Paths of the loaded libraries, each with its NUL; an empty one ends them. */
struct paths {
	char *text;
	size_t used;
};

static int collect(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct paths *paths = argument;
	size_t length = info->dlpi_name ? strlen(info->dlpi_name) + 1 : 0;

	(void)size;
	if (length > 1 && strstr(info->dlpi_name, "python") &&
	    length < PATHS_SIZE - 1 - paths->used) {
		memcpy(paths->text + paths->used, info->dlpi_name, length);
		paths->used += length;
	}
	return 0;
}

bool prba_python_table_find(struct prba_python_table *ret)
{
	struct paths paths = {.text = mmap(NULL, PATHS_SIZE, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
	struct prba_python_table one;
	bool found = fill(RTLD_DEFAULT, ret);

	if (paths.text == MAP_FAILED)
		return found;
	/* A Python that a plugin brought is not globally visible; and there may be two. */
	if (!found || !ret->Py_IsInitialized()) {
		dl_iterate_phdr(collect, &paths);
		for (const char *path = paths.text; *path; path += strlen(path) + 1) {
			void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);

			if (!handle || !fill(handle, &one) || (found && !one.Py_IsInitialized()))
				continue;
			*ret = one;
			found = true;
			if (one.Py_IsInitialized())
				break;
		}
	}
	munmap(paths.text, PATHS_SIZE);
	return found;
}
