/* SPDX-License-Identifier: GPL-3.0-or-later */
/* C functions among Python functions: loaded by native_calls.py through ctypes, or as a module
 * when compiled with -DMODULE against an interpreter's headers. */
#ifdef MODULE
#include <Python.h>
#else
/* Any interpreter's, resolved when the library is loaded into it. */
typedef struct object PyObject;
PyObject *PyObject_CallFunctionObjArgs(PyObject *callable, ...);
void Py_DecRef(PyObject *object);
void Py_IncRef(PyObject *object);
extern PyObject _Py_NoneStruct;
#endif

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define KEEP(call)                                 \
	({                                         \
		__typeof__(call) value = call;     \
		__asm__ volatile("" ::: "memory"); \
		value;                             \
	})

static int handler_fd;
static __thread PyObject *callable_of_sort;

NOINLINE PyObject *native_inner(PyObject *callable)
{
	return KEEP(PyObject_CallFunctionObjArgs(callable, NULL));
}

NOINLINE PyObject *native_outer(PyObject *callable)
{
	return KEEP(native_inner(callable));
}

/* Frames of a size that is known only when it runs. */
NOINLINE PyObject *native_alloca(PyObject *callable, int size)
{
	volatile char *room = __builtin_alloca((size_t)size);

	room[0] = 1;
	return KEEP(native_inner(callable));
}

static int native_compare(const void *a, const void *b)
{
	(void)a;
	(void)b;
	Py_DecRef(native_inner(callable_of_sort));
	return 0;
}

PyObject *native_sort(PyObject *callable)
{
	int numbers[2] = {2, 1};

	callable_of_sort = callable;
	qsort(numbers, 2, sizeof(*numbers), native_compare);
	Py_IncRef(&_Py_NoneStruct);
	return &_Py_NoneStruct;
}

static void native_handler(int number)
{
	char byte;

	(void)number;
	while (read(handler_fd, &byte, 1) < 0)
		;
}

static volatile int spinning = 1;

static void native_spinning_handler(int number)
{
	(void)number;
	while (spinning)
		;
}

/* Sends this thread a signal that it handles by reading from @fd, or by spinning if there is none.
 */
int native_raise(int number, int fd)
{
	struct sigaction action = {.sa_handler = fd < 0 ? native_spinning_handler : native_handler};

	handler_fd = fd;
	sigaction(number, &action, NULL);
	return KEEP(raise(number));
}

static NOINLINE long native_thread_work(int fd)
{
	char byte;

	return KEEP(read(fd, &byte, 1));
}

static void *native_thread(void *fd)
{
	return (void *)KEEP(native_thread_work((int)(long)fd));
}

typedef int creator(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/*
 * Starts a thread that knows nothing of Python. @create is pthread_create(), which by name would be
 * one that older C libraries than the compiler's do not have.
 */
int native_start_thread(creator *create, int fd)
{
	pthread_t thread;

	return create(&thread, NULL, native_thread, (void *)(long)fd);
}

#ifdef MODULE
static PyObject *module_call(PyObject *self, PyObject *callable)
{
	(void)self;
	return KEEP(native_outer(callable));
}

static PyMethodDef methods[] = {{"call", module_call, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT, "native_module", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_native_module(void);
PyMODINIT_FUNC PyInit_native_module(void)
{
	return PyModule_Create(&definition);
}
#endif
