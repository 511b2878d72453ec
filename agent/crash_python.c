/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What Python's main thread does for crash records: a stack of its own for handlers, so that an
 * overflow of its stack can be recorded, and agent/crash.py. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "agent/crash_private.h"
#include "agent/python_table.h"

__asm__(".pushsection .rodata\n"
	".hidden prba_crash_text\n"
	".global prba_crash_text\n"
	"prba_crash_text:\n"
	".incbin \"agent/crash.py\"\n"
	".byte 0\n"
	".popsection\n");
extern const char prba_crash_text[];

enum { FILE_INPUT = 257, METH_VARARGS = 1, STACK = 64 << 10, GUARD = 4096 };

static const struct prba_python_table *const py = &prba_python;
static atomic_bool asked, prepared, works;

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

/** For the calling thread, unless it has one; it lives as long as the process. */
static void give_stack(void)
{
	stack_t there = {}, ours = {.ss_size = STACK};
	char *memory;

	if (sigaltstack(NULL, &there) || !(there.ss_flags & SS_DISABLE))
		return;
	memory = mmap(NULL, STACK + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (memory == MAP_FAILED)
		return;
	mprotect(memory, GUARD, PROT_NONE);
	ours.ss_sp = memory + GUARD;
	sigaltstack(&ours, NULL);
}

static void hook(void)
{
	static struct prba_method method = {"record", record, METH_VARARGS, NULL};
	object *names = py->PyDict_New(), *builtins = py->PyEval_GetBuiltins(), *code, *result;
	object *function = py->PyCFunction_NewEx(&method, NULL, NULL);

	if (names && builtins && function &&
	    !py->PyDict_SetItemString(names, "__builtins__", builtins) &&
	    !py->PyDict_SetItemString(names, "record", function)) {
		code = py->Py_CompileString(prba_crash_text, "<probing agent>", FILE_INPUT);
		result = code ? py->PyEval_EvalCode(code, names, names) : NULL;
		if (result)
			py->Py_DecRef(result);
		if (code)
			py->Py_DecRef(code);
		atomic_store(&prepared, result != NULL);
	}
	if (function)
		py->Py_DecRef(function);
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
