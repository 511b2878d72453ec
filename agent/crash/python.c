/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What Python's threads do for crash records. The main thread, and each one that threading starts
 * from then on, gives itself a stack for handlers, so that an overflow of its own stack can be
 * recorded. The main thread runs agent/crash/crash.py. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "agent/crash/private.h"
#include "agent/inside/libc.h"
#include "agent/inside/python_table.h"

__asm__(".pushsection .rodata\n"
	".hidden prba_crash_text\n"
	".global prba_crash_text\n"
	"prba_crash_text:\n"
	".incbin \"texts/agent/crash/crash.py\"\n"
	".byte 0\n"
	".popsection\n");
extern const char prba_crash_text[];

enum { FILE_INPUT = 257, METH_VARARGS = 1, METH_NOARGS = 4, STACK = 64 << 10, GUARD = 4096 };

static const struct prba_python_table *const py = &prba_python;
static atomic_bool asked, prepared, works;
static pthread_key_t stack_key; /* what a thread has mapped for its stack */
static atomic_bool has_key;

/** record(text) */
static object *record(object *self, object *arguments)
{
	object *text = py->PyTuple_GetItem(arguments, 0);
	intptr_t length;
	char *data;

	(void)self;
	if (!text || py->PyBytes_AsStringAndSize(text, &data, &length))
		return NULL;
	if (!atomic_load(&works))
		return py->PyBool_FromLong(0);
	/* It keeps the GIL: what is recorded is this instant. */
	return py->PyBool_FromLong(!prba_crash_record(data, (size_t)length));
}

/** A thread ends. If a handler of it runs there, or another has the stack, it stays mapped. */
static void take_stack(void *memory)
{
	stack_t now = {}, none = {.ss_flags = SS_DISABLE};

	if (sigaltstack(NULL, &now) || now.ss_flags & SS_ONSTACK)
		return;
	if (now.ss_sp == (char *)memory + GUARD && sigaltstack(&none, NULL))
		return;
	munmap(memory, STACK + GUARD);
}

/** For the calling thread, unless it has one; until it ends. */
static void give_stack(void)
{
	stack_t there = {}, ours = {.ss_size = STACK};
	char *memory;

	if (!atomic_load(&has_key) || sigaltstack(NULL, &there) || !(there.ss_flags & SS_DISABLE))
		return;
	memory = mmap(NULL, STACK + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (memory == MAP_FAILED)
		return;
	mprotect(memory, GUARD, PROT_NONE);
	ours.ss_sp = memory + GUARD;
	if (pthread_setspecific(stack_key, memory) || sigaltstack(&ours, NULL)) {
		pthread_setspecific(stack_key, NULL);
		munmap(memory, STACK + GUARD);
	}
}

/** In place of _thread.get_native_id(), which threading calls in each thread that begins. */
static object *get_native_id(object *self, object *arguments)
{
	(void)self;
	(void)arguments;
	if (atomic_load(&works))
		give_stack();
	return py->PyLong_FromVoidPtr((void *)syscall(SYS_gettid));
}

static bool put_function(object *names, struct prba_method *method)
{
	object *function = py->PyCFunction_NewEx(method, NULL, NULL);
	bool put = function && !py->PyDict_SetItemString(names, method->name, function);

	if (function)
		py->Py_DecRef(function);
	return put;
}

static void hook(void)
{
	static struct prba_method methods[] = {
		{"record", record, METH_VARARGS, NULL},
		{"get_native_id", get_native_id, METH_NOARGS,
		 "Return the kernel's number of the calling thread."},
	};
	object *names = py->PyDict_New(), *builtins = py->PyEval_GetBuiltins(), *code, *result;

	if (names && builtins && !py->PyDict_SetItemString(names, "__builtins__", builtins) &&
	    put_function(names, &methods[0]) && put_function(names, &methods[1])) {
		code = py->Py_CompileString(prba_crash_text, "<probing agent>", FILE_INPUT);
		result = code ? py->PyEval_EvalCode(code, names, names) : NULL;
		if (result)
			py->Py_DecRef(result);
		if (code)
			py->Py_DecRef(code);
		atomic_store(&prepared, result != NULL);
	}
	if (names)
		py->Py_DecRef(names);
	py->PyErr_Clear();
}

/** A pending call: on the main thread, which holds the GIL. */
static int prepare(void *argument)
{
	(void)argument;
	if (!atomic_load(&works))
		return 0;
	give_stack();
	if (!atomic_load(&prepared))
		hook();
	return 0;
}

void prba_crash_prepare_main(void)
{
	if (pthread_key_create && !atomic_load(&has_key))
		atomic_store(&has_key, !pthread_key_create(&stack_key, take_stack));
	atomic_store(&works, true);
	if (!atomic_load(&prepared) && !atomic_exchange(&asked, true) &&
	    py->Py_AddPendingCall(prepare, NULL))
		atomic_store(&asked, false);
}

void prba_crash_leave_main(void)
{
	atomic_store(&works, false);
}

bool prba_crash_has_hooks(void)
{
	return atomic_load(&prepared) && atomic_load(&works);
}
