/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The functions of CPython that the agent calls, all exported by every version from 3.4 on,
 * but for those that are optional. Objects are opaque, and the one struct of Python's that is
 * needed (of a method) has not changed since 3.0.
 */
#ifndef PRB_AGENT_INSIDE_PYTHON_TABLE_H
#define PRB_AGENT_INSIDE_PYTHON_TABLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct prba_object object;

struct prba_method {
	const char *name;
	object *(*function)(object *self, object *arguments);
	int flags;
	const char *doc;
};

/** What PyType_FromSpec() takes. */
struct prba_slot {
	int slot;
	void *function;
};
struct prba_type_spec {
	const char *name;
	int size, item_size;
	unsigned flags;
	struct prba_slot *slots;
};

/** A trace or profile function: called by the interpreter for an event. */
typedef int prba_tracer(object *self, object *frame, int event, object *argument);

/* X(result, name, arguments) */
#define PRBA_PYTHON_REQUIRED(X)                                                    \
	X(int, Py_IsInitialized, (void))                                           \
	X(const char *, Py_GetVersion, (void))                                     \
	X(int, PyGILState_Ensure, (void))                                          \
	X(void, PyGILState_Release, (int))                                         \
	X(void *, PyEval_SaveThread, (void))                                       \
	X(void, PyEval_RestoreThread, (void *))                                    \
	X(int, Py_AddPendingCall, (int (*)(void *), void *))                       \
	X(int, PyThreadState_SetAsyncExc, (unsigned long, object *))               \
	X(unsigned long, PyThread_get_thread_ident, (void))                        \
	X(object *, PyDict_New, (void))                                            \
	X(int, PyDict_SetItemString, (object *, const char *, object *))           \
	X(object *, PyDict_GetItemString, (object *, const char *))                \
	X(object *, PyDict_GetItem, (object *, object *))                          \
	X(void, PyDict_Clear, (object *))                                          \
	X(object *, PyList_New, (intptr_t))                                        \
	X(int, PyList_Append, (object *, object *))                                \
	X(intptr_t, PyList_Size, (object *))                                       \
	X(object *, PyList_GetItem, (object *, intptr_t))                          \
	X(int, PyList_SetItem, (object *, intptr_t, object *))                     \
	X(object *, PyWeakref_NewRef, (object *, object *))                        \
	X(object *, PyCFunction_NewEx, (struct prba_method *, object *, object *)) \
	X(object *, PyEval_GetBuiltins, (void))                                    \
	X(object *, Py_CompileString, (const char *, const char *, int))           \
	X(object *, PyEval_EvalCode, (object *, object *, object *))               \
	X(object *, PyObject_CallFunctionObjArgs, (object *, ...))                 \
	X(object *, PyBytes_FromStringAndSize, (const char *, intptr_t))           \
	X(int, PyBytes_AsStringAndSize, (object *, char **, intptr_t *))           \
	X(object *, PyUnicode_DecodeUTF8, (const char *, intptr_t, const char *))  \
	X(object *, PyTuple_GetItem, (object *, intptr_t))                         \
	X(object *, PyLong_FromVoidPtr, (void *))                                  \
	X(void *, PyLong_AsVoidPtr, (object *))                                    \
	X(long, PyLong_AsLong, (object *))                                         \
	X(object *, PyBool_FromLong, (long))                                       \
	X(object *, PySys_GetObject, (const char *))                               \
	X(int, PySys_SetObject, (const char *, object *))                          \
	X(object *, PyImport_ImportModule, (const char *))                         \
	X(object *, PyObject_GetAttrString, (object *, const char *))              \
	X(void *, PyThreadState_Get, (void))                                       \
	X(void *, PyGILState_GetThisThreadState, (void))                           \
	X(object *, PyErr_Occurred, (void))                                        \
	X(int, PyErr_ExceptionMatches, (object *))                                 \
	X(void, PyErr_SetNone, (object *))                                         \
	X(void, PyErr_Clear, (void))                                               \
	X(void, Py_DecRef, (object *))

/* Before 3.7 the GIL is made only when there is a second thread; the next two are of 3.7 to 3.12
 * and of 3.13 on. A build without a GIL stops its world instead. The next ones trace, before 3.12;
 * the last ones record, from 3.7 on. */
#define PRBA_PYTHON_OPTIONAL(X)                                           \
	X(int, PyEval_ThreadsInitialized, (void))                         \
	X(void, PyEval_InitThreads, (void))                               \
	X(int, _Py_IsFinalizing, (void))                                  \
	X(int, Py_IsFinalizing, (void))                                   \
	X(void *, PyInterpreterState_Main, (void))                        \
	X(void, _PyEval_StopTheWorld, (void *))                           \
	X(void, _PyEval_StartTheWorld, (void *))                          \
	X(void *, PyInterpreterState_Head, (void))                        \
	X(void *, PyInterpreterState_Next, (void *))                      \
	X(void *, PyInterpreterState_ThreadHead, (void *))                \
	X(void *, PyThreadState_Next, (void *))                           \
	X(void *, PyThreadState_Swap, (void *))                           \
	X(void, PyEval_SetTrace, (prba_tracer *, object *))               \
	X(void, PyEval_SetProfile, (prba_tracer *, object *))             \
	X(int, _PyEval_SetTrace, (void *, prba_tracer *, object *))       \
	X(int, _PyEval_SetProfile, (void *, prba_tracer *, object *))     \
	X(int, PyFrame_GetLineNumber, (object *))                         \
	X(int, PyCode_Addr2Line, (object *, int))                         \
	X(object *, PyThreadState_GetFrame, (void *))                     \
	X(object *, PyEval_GetFrame, (void))                              \
	X(void, Py_IncRef, (object *))                                    \
	X(void, PyObject_GC_UnTrack, (void *))                            \
	X(intptr_t, PyTuple_Size, (object *))                             \
	X(intptr_t, PyDict_Size, (object *))                              \
	X(object *, PyDict_Copy, (object *))                              \
	X(int, PyDict_Next, (object *, intptr_t *, object **, object **)) \
	X(int, PyDict_SetItem, (object *, object *, object *))            \
	X(const char *, PyUnicode_AsUTF8AndSize, (object *, intptr_t *))  \
	X(object *, PyLong_FromLongLong, (long long))                     \
	X(long long, PyLong_AsLongLongAndOverflow, (object *, int *))     \
	X(double, PyFloat_AsDouble, (object *))                           \
	X(char *, PyOS_double_to_string, (double, char, int, int, int *)) \
	X(void, PyMem_Free, (void *))                                     \
	X(object *, PyObject_Type, (object *))                            \
	X(object *, PyObject_Call, (object *, object *, object *))        \
	X(int, PyContextVar_Get, (object *, object *, object **))         \
	X(object *, PyContextVar_Set, (object *, object *))               \
	X(object *, PyType_FromSpec, (struct prba_type_spec *))           \
	X(object *, PyType_GenericNew, (object *, object *, object *))    \
	X(void, PyObject_Free, (void *))                                  \
	X(void, PyErr_SetString, (object *, const char *))                \
	X(void, PyErr_SetObject, (object *, object *))                    \
	X(void, PyMem_GetAllocator, (int, void *))                        \
	X(void, PyMem_SetAllocator, (int, void *))                        \
	X(long long, PyInterpreterState_GetID, (void *))                  \
	X(void *, PyThreadState_New, (void *))                            \
	X(void, PyThreadState_Clear, (void *))                            \
	X(void, PyThreadState_DeleteCurrent, (void))                      \
	X(void *, _PyInterpreterState_LookUpID, (int64_t))                \
	X(int, PyGILState_Check, (void))                                  \
	X(void *, PyThreadState_GetUnchecked, (void))                     \
	X(void *, _PyThreadState_UncheckedGet, (void))

struct prba_python_table {
#define PRBA_MEMBER(result, name, arguments) result(*name) arguments;
	PRBA_PYTHON_REQUIRED(PRBA_MEMBER)
	PRBA_PYTHON_OPTIONAL(PRBA_MEMBER)
#undef PRBA_MEMBER
	object **PyExc_KeyboardInterrupt, **PyExc_MemoryError;
	object **PyExc_RecursionError; /**< from 3.5 on, else NULL */
	object **PyExc_RuntimeError, **PyExc_TypeError;
	/* Objects themselves. */
	object *_Py_NoneStruct, *_Py_TrueStruct, *PyBool_Type, *PyLong_Type, *PyFloat_Type;
	object *PyUnicode_Type;
	const int *Py_IgnoreEnvironmentFlag; /**< -E, -I; not from 3.16 on */
	const char *missing;		     /**< what a Python that was found lacks, or NULL */
};

/** The Python that was found; filled in once, before any function is called. */
extern struct prba_python_table prba_python;

/**
 * Fills in the table. False if no library of the process has all of it; of several Pythons the
 * one that is initialised is taken. Calls the loader.
 */
bool prba_python_table_find(struct prba_python_table *ret);

#endif
