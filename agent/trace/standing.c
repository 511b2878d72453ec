/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/trace/standing.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
	METH_VARARGS = 1,
	MOST = 64, /* threads; of more, nothing can be asked */
};

static const struct prba_python_table *const py = &prba_python;
static struct {
	_Atomic unsigned long thread; /* 0: free */
	object *exception;	      /* held, or NULL */
} at[MOST];

static size_t find(unsigned long thread)
{
	size_t i = 0;

	while (i < MOST && atomic_load(&at[i].thread) != thread)
		i++;
	return i;
}

void prba_standing_begin(void)
{
	unsigned long self = py->PyThread_get_thread_ident();

	for (size_t i = 0; i < MOST; i++) {
		unsigned long free_one = 0;

		if (atomic_compare_exchange_strong(&at[i].thread, &free_one, self))
			return;
	}
}

bool prba_standing_end(void)
{
	size_t i = find(py->PyThread_get_thread_ident());
	object *exception, *kind;

	if (i == MOST)
		return true;
	exception = at[i].exception;
	at[i].exception = NULL;
	atomic_store(&at[i].thread, 0);
	if (!exception)
		return true;
	kind = py->PyObject_Type(exception);
	py->PyErr_SetObject(kind, exception);
	py->Py_DecRef(kind);
	py->Py_DecRef(exception);
	return false;
}

void prba_standing_forked(void)
{
	unsigned long self = py->PyThread_get_thread_ident ? py->PyThread_get_thread_ident() : 0;

	/* Objects of threads that are gone stay. */
	for (size_t i = 0; i < MOST; i++)
		if (atomic_load(&at[i].thread) != self) {
			at[i].exception = NULL;
			atomic_store(&at[i].thread, 0);
		}
}

static size_t asked(object *arguments)
{
	object *thread = py->PyTuple_GetItem(arguments, 0);
	unsigned long ident = thread ? (uintptr_t)py->PyLong_AsVoidPtr(thread) : 0;

	return ident ? find(ident) : (size_t)MOST;
}

static object *stands(object *self, object *arguments)
{
	(void)self;
	return py->PyBool_FromLong(asked(arguments) < MOST && py->PyErr_SetObject &&
				   py->PyObject_Type && py->Py_IncRef);
}

static object *raises(object *self, object *arguments)
{
	size_t i = asked(arguments);
	object *exception = py->PyTuple_GetItem(arguments, 1);

	(void)self;
	if (!exception)
		return NULL;
	if (i < MOST) {
		object *before = at[i].exception;

		py->Py_IncRef(exception);
		at[i].exception = exception;
		if (before)
			py->Py_DecRef(before);
	}
	return py->PyBool_FromLong(i < MOST);
}

struct prba_method prba_standing_methods[PRBA_STANDING_METHODS] = {
	{"stands", stands, METH_VARARGS, NULL},
	{"raises", raises, METH_VARARGS, NULL},
};
