/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The mean of the last items of a list, which may have fewer: see docs/debuggers.md. */
#include <Python.h>

static PyObject *mean(PyObject *self, PyObject *args)
{
	PyObject *rows;
	Py_ssize_t width, start, sum = 0;

	if (!PyArg_ParseTuple(args, "O!n", &PyList_Type, &rows, &width))
		return NULL;
	for (Py_ssize_t i = start = PyList_GET_SIZE(rows) - width; i < PyList_GET_SIZE(rows); i++)
		sum += PyLong_AsLong(PyList_GET_ITEM(rows, i));
	return PyFloat_FromDouble((double)sum / (double)width);
}

static PyMethodDef methods[] = {{"mean", mean, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "window",
				    .m_methods = methods};

PyMODINIT_FUNC PyInit_window(void);
PyMODINIT_FUNC PyInit_window(void)
{
	return PyModule_Create(&module);
}
