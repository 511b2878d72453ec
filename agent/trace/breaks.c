/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/trace/breaks.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/inside/functions.h"
#include "agent/inside/libc.h"
#include "agent/inside/status.h"
#include "agent/trace/standing.h"
#include "agent/trace/stepping.h"

enum {
	METH_VARARGS = 1,
	CODE = 16,     /* bytes of the function, within which debuggers set their breakpoint */
	LOOK_MS = 100, /* how often it is looked for the debugger, at least */
	US_OF_MS = 1000,
	PAUSES = 'P', /* what a breakpoint of a pause says begins with this */
};

/** The results of listener(), as in agent/trace/breaks.py. */
enum listener { NOBODY, LISTENS, NOT_NOW };

/** What it is asked. */
enum { GLANCE, SURE, BEGINS };

static const struct prba_python_table *const py = &prba_python;
PRBA_EXPORT _Atomic uint32_t probing_agent_break_quiet;
static uint8_t original[CODE];
static bool remembers, sees_tracer;
static atomic_int inside;
static _Atomic uint32_t entered;

__attribute__((noinline, aligned(CODE))) PRBA_EXPORT void probing_agent_break_stops(
	const char *what)
{
	__asm__ volatile("nop\n nop\n nop\n nop\n nop\n nop\n nop\n nop\n"
			 "nop\n nop\n nop\n nop\n nop\n nop\n nop\n nop\n"
			 :
			 : "r"(what)
			 : "memory");
}

void prba_breaks_remember(void)
{
	if (!remembers)
		memcpy(original, (const void *)probing_agent_break_stops, CODE);
	remembers = true;
}

/** 1 if a process traces us; 0: none, or one outside our pid namespace; -1: unknown. */
static int tracer(void)
{
	char by[PRBA_STATUS_VALUE];

	return prba_status_read(PRBA_STATUS_PROCESS, "TracerPid", by) ? *by != '0' : -1;
}

/** True if it was seen to trace us, and does not any more. */
static bool tracer_left(void)
{
	int now = tracer();

	sees_tracer |= now == 1;
	return sees_tracer && now == 0;
}

/** True if the debugger has its breakpoint in our function; @p sure: and lives. */
static bool is_heard(bool sure)
{
	static _Atomic int64_t looked;
	int64_t now = prba_now_ms();

	/* A condition may never become true: look for the tracer from time to time in any case. */
	if (now - atomic_load(&looked) >= LOOK_MS) {
		atomic_store(&looked, now);
		sure = true;
	}
	return memcmp(original, (const void *)probing_agent_break_stops, CODE) &&
	       !(sure && tracer_left());
}

/**
 * A thread that is at a breakpoint stays while the debugger makes threads run for itself. False if
 * it would stay for good, since there is no debugger.
 */
static bool stay(void)
{
	while (atomic_load(&probing_agent_break_quiet)) {
		if (tracer_left() || !sees_tracer)
			return false;
		prba_wait_for(&probing_agent_break_quiet, 1, LOOK_MS * US_OF_MS);
	}
	return true;
}

/** The caller holds the GIL, which is released meanwhile. */
static void stop_here(const char *what)
{
	void *state = py->PyEval_SaveThread();

	if (stay() && is_heard(true)) {
		probing_agent_break_stops(what);
		stay();
	}
	py->PyEval_RestoreThread(state);
}

void prba_breaks_stop(const char *what)
{
	stop_here(what);
}

/** listener(how): whether a hit would stop us. */
static object *listener(object *self, object *arguments)
{
	object *how = py->PyTuple_GetItem(arguments, 0);
	long asked = how ? py->PyLong_AsLong(how) : BEGINS;
	enum listener found = LISTENS;
	int error = errno;

	(void)self;
	if (!how)
		return NULL;
	if (asked == BEGINS)
		sees_tracer = tracer() == 1;
	else if (atomic_load(&probing_agent_break_quiet))
		found = tracer_left() ? NOBODY : NOT_NOW;
	else if (!is_heard(asked == SURE))
		found = NOBODY;
	errno = error;
	return py->PyLong_FromVoidPtr((void *)(uintptr_t)found);
}

static bool no_room(void)
{
	return py->PyErr_ExceptionMatches(*py->PyExc_MemoryError) ||
	       (py->PyExc_RecursionError && py->PyErr_ExceptionMatches(*py->PyExc_RecursionError));
}

bool prba_breaks_heard(void)
{
	/* Its breakpoint is out while it makes threads run for itself. */
	return atomic_load(&probing_agent_break_quiet) ? !tracer_left() : is_heard(false);
}

void prba_breaks_enter(void)
{
	atomic_fetch_add(&inside, 1);
	atomic_fetch_add(&entered, 1);
}

void prba_breaks_exit(void)
{
	atomic_fetch_sub(&inside, 1);
}

object *prba_breaks_call(object *function, object *first, object *second)
{
	object *result;
	int error = errno;
	intptr_t length;
	char *what;

	prba_breaks_enter();
	result = py->PyObject_CallFunctionObjArgs(function, first, second, NULL);
	if (!result && no_room()) {
		/* The program has room for its own call, and not for ours: it goes on. */
		py->PyErr_Clear();
		result = py->PyBool_FromLong(0);
	} else if (result && !py->PyBytes_AsStringAndSize(result, &what, &length)) {
		prba_standing_begin();
		if (*what == PAUSES) {
			prba_stepping_break(what + 1);
		} else {
			stop_here(what);
			prba_stepping_goes_on();
		}
		if (!prba_standing_end()) {
			py->Py_DecRef(result);
			result = NULL;
		}
	} else if (result) {
		py->PyErr_Clear(); /* it is no text: the line is none of ours */
	}
	prba_breaks_exit();
	errno = error;
	return result;
}

/** Called by the interpreter: (code, line or offset), and (code, offset, value or exception), of
 * which the value counts. @self is a function of agent/trace/breaks.py. */
static object *called(object *self, object *arguments)
{
	intptr_t last = py->PyTuple_Size ? py->PyTuple_Size(arguments) - 1 : 1;
	object *code = py->PyTuple_GetItem(arguments, 0);
	object *at = py->PyTuple_GetItem(arguments, last > 1 ? last : 1);

	return code && at ? prba_breaks_call(self, code, at) : NULL;
}

/** guard(function): what the interpreter may call in its place. */
static object *guard(object *self, object *arguments)
{
	static struct prba_method method = {"called", called, METH_VARARGS, NULL};
	object *function = py->PyTuple_GetItem(arguments, 0);

	(void)self;
	return function ? prba_functions_make(&method, function) : NULL;
}

/** pauser(): enum prba_pauser. */
static object *pauser(object *self, object *arguments)
{
	(void)self, (void)arguments;
	return py->PyLong_FromVoidPtr((void *)(uintptr_t)prba_stepping_pauser());
}

/** step(thread, stride, line): why not, b"" if that thread will stop. */
static object *step(object *self, object *arguments)
{
	unsigned long long numbers[3];
	const char *problem;

	(void)self;
	for (int i = 0; i < 3; i++) {
		object *number = py->PyTuple_GetItem(arguments, i);

		numbers[i] = number ? (uintptr_t)py->PyLong_AsVoidPtr(number) : 0;
		if (!number)
			return NULL;
	}
	problem = prba_stepping_begin_alone(
		&(struct prb_wire_step){.thread = numbers[0], .stride = (uint32_t)numbers[1]},
		(int)numbers[2]);
	problem = problem ? problem : "";
	return py->PyBytes_FromStringAndSize(problem, (intptr_t)strlen(problem));
}

struct prba_method prba_breaks_methods[PRBA_BREAKS_METHODS] = {
	{"guard", guard, METH_VARARGS, NULL},
	{"listener", listener, METH_VARARGS, NULL},
	{"step", step, METH_VARARGS, NULL},
	{"pauser", pauser, METH_VARARGS, NULL},
};

bool prba_breaks_called(void)
{
	return atomic_load(&inside) > 0;
}

uint32_t prba_breaks_calls(void)
{
	return atomic_load(&entered);
}

void prba_breaks_forked(void)
{
	atomic_store(&inside, 0);
	atomic_store(&probing_agent_break_quiet, 0);
}
