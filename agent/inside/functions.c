/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/inside/functions.h"

#include <stdatomic.h>
#include <stddef.h>

#include "agent/inside/finalization.h"
#include "agent/inside/python.h"

static const struct prba_python_table *const py = &prba_python;
static object *made; /* a list of weak references, or of functions before 3.5 */
static atomic_int made_life;
static atomic_bool is_strong;
static intptr_t looked; /* under the GIL */

static object *list(void)
{
	object *known = __atomic_load_n(&made, __ATOMIC_SEQ_CST), *fresh;

	/* The list of an interpreter that has ended was freed with it. */
	if (known && atomic_load(&made_life) == prba_finalization_number())
		return known;
	fresh = py->PyList_New(0);
	if (!fresh)
		return NULL;
	atomic_store(&made_life, prba_finalization_number());
	if (__atomic_compare_exchange_n(&made, &known, fresh, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST))
		return fresh;
	py->Py_DecRef(fresh);
	return known;
}

static bool is_gone(object *noted)
{
	enum { OURS = 2 }; /* the list's reference and the arguments' */
	bool strong = atomic_load(&is_strong), gone;
	object *count = strong ? py->PySys_GetObject("getrefcount") : NULL, *answer = NULL;

	if (!strong)
		answer = py->PyObject_CallFunctionObjArgs(noted, NULL);
	else if (count)
		answer = py->PyObject_CallFunctionObjArgs(count, noted, NULL);
	gone = answer &&
	       (strong ? py->PyLong_AsLong(answer) <= OURS : answer == py->_Py_NoneStruct);
	if (answer)
		py->Py_DecRef(answer);
	py->PyErr_Clear();
	return gone;
}

/**
 * Takes @p noted over. Reuses the slot of a freed function, since each step of a debugger makes
 * some.
 */
static bool put(object *all, object *noted)
{
	enum { LOOKS = 2 }; /* for each that comes, so that the list stays short */
	intptr_t size = py->PyList_Size(all);
	bool done;

	for (int i = 0; i < LOOKS && size > 0 && !prba_python_stops_world(); i++) {
		intptr_t at = looked++ % size;

		if (is_gone(py->PyList_GetItem(all, at)))
			return !py->PyList_SetItem(all, at, noted);
	}
	done = !py->PyList_Append(all, noted);
	py->Py_DecRef(noted);
	return done;
}

static bool note(object *function)
{
	object *all = list(), *noted = all ? py->PyWeakref_NewRef(function, NULL) : NULL;

	if (!noted && all) { /* there are none to functions before 3.5 */
		py->PyErr_Clear();
		atomic_store(&is_strong, true);
		return !py->PyList_Append(all, function);
	}
	return noted && put(all, noted);
}

object *prba_functions_make(struct prba_method *method, object *self)
{
	object *function = py->PyCFunction_NewEx(method, self, NULL);

	if (!function || note(function))
		return function;
	py->Py_DecRef(function);
	return NULL;
}

bool prba_functions_are_gone(void)
{
	object *all = __atomic_load_n(&made, __ATOMIC_SEQ_CST);

	if (!all || atomic_load(&made_life) != prba_finalization_number())
		return true;
	for (intptr_t i = py->PyList_Size(all); i-- > 0;)
		if (!is_gone(py->PyList_GetItem(all, i)))
			return false;
	made = NULL;
	py->Py_DecRef(all);
	return true;
}

object *prba_functions_call(object *of, const char *name, object *argument)
{
	object *function = py->PyObject_GetAttrString(of, name), *result = NULL;

	if (function) {
		result = py->PyObject_CallFunctionObjArgs(function, argument, NULL);
		py->Py_DecRef(function);
	}
	return result;
}
