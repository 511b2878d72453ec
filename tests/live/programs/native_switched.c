/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Calls a Python function with a Python stack of its own, on top of the C stack: what greenlets do
 * when they start. For Python 3.7 to 3.11, whose thread states say where the frames are.
 */
#include <Python.h>

PyObject *call_aside(PyObject *function)
{
	PyThreadState *state = PyThreadState_Get();
	PyObject *result;

#if PY_VERSION_HEX >= 0x030b0000
	_PyCFrame own = *state->cframe, *before = state->cframe;

	own.current_frame = NULL;
	own.previous = &state->root_cframe;
	state->cframe = &own;
	result = PyObject_CallObject(function, NULL);
	state->cframe = before;
#else
	struct _frame *before = state->frame;

	state->frame = NULL;
	result = PyObject_CallObject(function, NULL);
	state->frame = before;
#endif
	return result;
}
