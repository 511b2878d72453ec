/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/eval/subinterpreter.h"

#include <stdbool.h>
#include <stddef.h>

#include "agent/inside/functions.h"

enum { FILE_INPUT = 257, /* Py_file_input */ METH_VARARGS = 1 };

static const struct prba_python_table *const py = &prba_python;

static void *find(long number)
{
	void *interp;

	/* This one holds the lock of the list, in which interpreters come and go. */
	if (py->_PyInterpreterState_LookUpID) {
		interp = py->_PyInterpreterState_LookUpID(number);
		py->PyErr_Clear();
		return interp;
	}
	if (!py->PyInterpreterState_Head || !py->PyInterpreterState_GetID)
		return NULL;
	interp = py->PyInterpreterState_Head();
	while (interp && py->PyInterpreterState_GetID(interp) != number)
		interp = py->PyInterpreterState_Next(interp);
	return interp;
}

/** The result, or NULL without an exception. */
static object *call(object *of, const char *name, object *argument)
{
	object *result = of ? prba_functions_call(of, name, argument) : NULL;

	py->PyErr_Clear();
	return result;
}

static bool is_false(object *made)
{
	bool answer = made && py->PyLong_AsLong(made) == 0;

	if (made)
		py->Py_DecRef(made);
	py->PyErr_Clear();
	return answer;
}

/** Adds the lock to the set, or discards it; not while Python code is at the set. */
static bool change(const char *how, object *lock)
{
	object *modules = py->PySys_GetObject("modules");
	object *threading = modules ? py->PyDict_GetItemString(modules, "threading") : NULL;
	object *guard =
		threading ? py->PyObject_GetAttrString(threading, "_shutdown_locks_lock") : NULL;
	object *locks = guard ? py->PyObject_GetAttrString(threading, "_shutdown_locks") : NULL;
	object *main = locks ? py->PyObject_GetAttrString(threading, "_main_thread") : NULL;
	object *is_over = main ? py->PyObject_GetAttrString(main, "_is_stopped") : NULL;
	object *changed = NULL;

	py->PyErr_Clear();
	if (is_over && is_false(is_over) && is_false(call(guard, "locked", NULL)))
		changed = call(locks, how, lock);
	for (size_t i = 0; i < 4; i++) {
		object *made = i == 0 ? guard : i == 1 ? locks : i == 2 ? main : changed;

		if (made)
			py->Py_DecRef(made);
	}
	return changed;
}

/**
 * Python aborts the process if it ends an interpreter that has our thread state. It ends none
 * before threading has waited for its threads: a lock like theirs makes it wait for us, too. All
 * this is C code, in which no other thread gets the GIL. NULL: it ends already, or is not known to
 * wait.
 */
static object *keep_alive(void)
{
	object *modules = py->PySys_GetObject("modules");
	object *thread = modules ? py->PyDict_GetItemString(modules, "_thread") : NULL;
	object *lock = call(thread, "allocate_lock", NULL);
	object *acquired = call(lock, "acquire", NULL);
	bool kept = acquired && change("add", lock);

	if (acquired)
		py->Py_DecRef(acquired);
	if (!kept && lock)
		py->Py_DecRef(lock);
	return kept ? lock : NULL;
}

static void let_go(object *lock)
{
	object *released;

	change("discard", lock);
	released = call(lock, "release", NULL);
	if (released)
		py->Py_DecRef(released);
	py->Py_DecRef(lock);
}

/** In the interpreter that the thread is attached to. */
static bool run_here(const char *text)
{
	object *names = py->PyDict_New(), *builtins = py->PyEval_GetBuiltins();
	object *code = NULL, *result = NULL;

	if (names && builtins && !py->PyDict_SetItemString(names, "__builtins__", builtins))
		code = py->Py_CompileString(text, "<probing>", FILE_INPUT);
	if (code)
		result = py->PyEval_EvalCode(code, names, names);
	for (size_t i = 0; i < 3; i++) {
		object *made = i == 0 ? result : i == 1 ? code : names;

		if (made)
			py->Py_DecRef(made);
	}
	py->PyErr_Clear();
	return result;
}

/**
 * With a thread state of our own. It has the same GIL: from its creation on until threading waits
 * for us, no other thread runs, nor at the end from the release of the lock to its deletion.
 */
static bool run_with(void *ours, const char *text, bool *ret_begun)
{
	void *before = py->PyThreadState_Swap(ours);
	object *lock = keep_alive();
	bool ran = lock && run_here(text);

	*ret_begun = lock;

	py->PyThreadState_Clear(ours);
	if (lock)
		let_go(lock);
	py->PyThreadState_DeleteCurrent();
	py->PyEval_RestoreThread(before);
	return ran;
}

/** Python's own modules run nothing in an interpreter that has several threads, before 3.12. */
static object *run_beside(object *self, object *arguments)
{
	object *number = py->PyTuple_GetItem(arguments, 0);
	object *bytes = number ? py->PyTuple_GetItem(arguments, 1) : NULL;
	void *interp, *ours = NULL;
	intptr_t length;
	char *text;

	bool begun = false, ran;

	(void)self;
	if (!bytes || py->PyBytes_AsStringAndSize(bytes, &text, &length))
		return NULL;
	interp = find(py->PyLong_AsLong(number));
	if (interp && py->PyThreadState_New && py->PyThreadState_Clear &&
	    py->PyThreadState_DeleteCurrent && py->PyThreadState_Swap)
		ours = py->PyThreadState_New(interp);
	ran = ours && run_with(ours, text, &begun);
	return py->PyLong_FromLongLong(!begun ? 0 : ran ? 1 : -1);
}

struct prba_method prba_subinterpreter_methods[PRBA_SUBINTERPRETER_METHODS] = {
	{"run_beside", run_beside, METH_VARARGS, NULL},
};
