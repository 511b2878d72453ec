/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/inside/finalization.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>

#include "agent/inside/functions.h"
#include "agent/inside/libc.h"
#include "agent/inside/python_table.h"

/** Of the state; what is above counts the interpreters. */
enum { ENDING = 1, KNOWN = 2, ONE = 4 };

enum {
	METH_VARARGS = 1,
	RUNNERS = 32,
	WAITERS_MS = 5000, /* for threads that only wait for the GIL, which they get */
	GRACE_MS = 200,	   /* for code, before it is interrupted, */
	AGAIN_MS = 800,	   /* before each time after that, */
	RUNNERS_MS = 3000, /* and in all */
	LOOK_US = 10000,
};

static const struct prba_python_table *const py = &prba_python;
static const char mark[] = "_probing_ending"; /* in sys, of an interpreter that has called us */
static _Atomic uint32_t life;
static atomic_bool lives, returns;
static object *hook; /* under the GIL; of the interpreter that is known */
static _Atomic int inside;
static _Atomic unsigned long runners[RUNNERS]; /* 0: unused */
static _Atomic uint32_t moved;		       /* changes when one of these does while it ends */

int prba_finalization_number(void)
{
	return (int)(atomic_load(&life) / ONE);
}

bool prba_finalization_is_known(void)
{
	return atomic_load(&life) & KNOWN;
}

bool prba_finalization_is_ending(void)
{
	return atomic_load(&life) & ENDING;
}

bool prba_finalization_returns(void)
{
	return atomic_load(&returns);
}

/** Begins the life that follows @p seen, unless another thread did. */
static bool begin_next(uint32_t seen)
{
	return atomic_compare_exchange_strong(&life, &seen, (seen / ONE + 1) * ONE);
}

bool prba_finalization_look(void)
{
	uint32_t seen = atomic_load(&life);

	if (py->Py_IsInitialized()) {
		atomic_store(&lives, true);
		return true;
	}
	/* A restarted interpreter has none of our hooks. */
	if (atomic_exchange(&lives, false)) {
		atomic_store(&returns, true);
		begin_next(seen);
	} else if (seen & (KNOWN | ENDING)) {
		begin_next(seen);
	}
	return false;
}

bool prba_finalization_is_embedded(void)
{
	static const char name[] = "python";
	const char *path = (const char *)getauxval(AT_EXECFN), *base;
	char link[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", link, sizeof(link) - 1);

	/* Without /proc, what was executed: a link to it, or a script. */
	if (length > 0) {
		link[length] = '\0';
		path = link;
	}
	base = path ? strrchr(path, '/') : NULL;
	return !path || strncmp(base ? base + 1 : path, name, sizeof(name) - 1) != 0;
}

bool prba_finalization_enter(void)
{
	atomic_fetch_add(&inside, 1);
	if (!prba_finalization_is_ending())
		return true;
	prba_finalization_leave();
	return false;
}

/** Wakes the waiters for our threads. */
static void tell(void)
{
	if (prba_finalization_is_ending())
		prba_wake(&moved);
}

void prba_finalization_leave(void)
{
	atomic_fetch_sub(&inside, 1);
	tell();
}

static void replace_runner(unsigned long old, unsigned long fresh)
{
	for (int i = 0; i < RUNNERS; i++) {
		unsigned long known = old;

		if (atomic_compare_exchange_strong(&runners[i], &known, fresh))
			break;
	}
	tell();
}

void prba_finalization_runs(unsigned long thread)
{
	replace_runner(0, thread);
}

void prba_finalization_ran(unsigned long thread)
{
	replace_runner(thread, 0);
}

/** How many of our threads run code, but for the calling one, and whether it does. */
static int count_runners(bool *self)
{
	unsigned long own = py->PyThread_get_thread_ident();
	int others = 0;

	*self = false;
	for (int i = 0; i < RUNNERS; i++) {
		unsigned long runner = atomic_load(&runners[i]);

		others += runner && runner != own;
		*self |= runner == own;
	}
	return others;
}

/**
 * Counts the threads that must leave before the interpreter ends: GIL waiters, and threads that run
 * code.
 */
static void count_inside(int *waiters, int *others)
{
	bool self;

	*others = count_runners(&self);
	*waiters = atomic_load(&inside) - *others - self;
}

/** The caller holds the GIL. */
static void interrupt_runners(void)
{
	unsigned long own = py->PyThread_get_thread_ident();

	for (int i = 0; i < RUNNERS; i++) {
		unsigned long runner = atomic_load(&runners[i]);

		if (runner && runner != own)
			py->PyThreadState_SetAsyncExc(runner, *py->PyExc_KeyboardInterrupt);
	}
}

/** The caller holds the GIL, which is released meanwhile. */
static void wait_until_out(bool all)
{
	int64_t begun = prba_now_ms(), next = begun + GRACE_MS;
	void *state = py->PyEval_SaveThread();

	for (;;) {
		uint32_t seen = atomic_load(&moved);
		int64_t now = prba_now_ms();
		int waiters, others;

		count_inside(&waiters, &others);
		if (waiters <= 0 && (!all || !others))
			break;
		if (now - begun >= (waiters > 0 ? WAITERS_MS : RUNNERS_MS))
			break;
		if (all && others && now >= next) {
			py->PyEval_RestoreThread(state);
			interrupt_runners();
			state = py->PyEval_SaveThread();
			next = now + AGAIN_MS;
		}
		prba_wait_for(&moved, seen, LOOK_US);
	}
	py->PyEval_RestoreThread(state);
}

/** Called by the interpreter that is about to end. */
static object *end(object *self, object *arguments)
{
	object *yes = py->PyBool_FromLong(1);
	bool all = prba_finalization_is_embedded();
	int error = errno, waiters, others;

	(void)self;
	(void)arguments;
	atomic_fetch_or(&life, ENDING);
	if (py->PySys_SetObject(mark, yes))
		py->PyErr_Clear();
	count_inside(&waiters, &others);
	if (waiters > 0 || (all && others))
		wait_until_out(all);
	errno = error;
	return yes;
}

/**
 * The calling thread is where importlib notes that it waits for the lock of a module. Before 3.12
 * that fails if another module is imported just then, as by a pending call.
 */
static bool is_importing(void)
{
	object *modules = py->PySys_GetObject("modules"), *importlib = NULL, *noted = NULL;
	object *own = py->PyLong_FromVoidPtr((void *)py->PyThread_get_thread_ident());
	bool is = true;

	if (modules)
		importlib = py->PyDict_GetItemString(modules, "_frozen_importlib");
	if (importlib)
		noted = py->PyObject_GetAttrString(importlib, "_blocking_on");
	if (noted && own)
		is = py->PyDict_GetItem(noted, own);
	if (noted)
		py->Py_DecRef(noted);
	if (own)
		py->Py_DecRef(own);
	py->PyErr_Clear();
	return is;
}

/** True if atexit has to be imported, while another thread has the lock of all imports. */
static bool would_wait(void)
{
	object *modules = py->PySys_GetObject("modules"), *imp, *held;
	bool would;

	if (!modules || py->PyDict_GetItemString(modules, "atexit"))
		return false;
	imp = py->PyDict_GetItemString(modules, "_imp");
	held = imp ? prba_functions_call(imp, "lock_held", NULL) : NULL;
	would = held && py->PyLong_AsLong(held) == 1;
	if (held)
		py->Py_DecRef(held);
	py->PyErr_Clear();
	return would;
}

/** Calls a function of atexit. */
static bool call_atexit(const char *name, object *argument)
{
	object *module = py->PyImport_ImportModule("atexit");
	object *result = module ? prba_functions_call(module, name, argument) : NULL;

	if (module)
		py->Py_DecRef(module);
	if (result)
		py->Py_DecRef(result);
	return result;
}

bool prba_finalization_register(bool may_wait)
{
	static struct prba_method method = {"ending", end, METH_VARARGS, NULL};
	uint32_t now = atomic_load(&life);
	object *fresh;
	bool first;

	/* Its functions at exit are still called, or else it is another one by now. */
	if (now & ENDING && (py->PySys_GetObject(mark) || !begin_next(now)))
		return false;
	now = atomic_load(&life);
	if (now & (ENDING | KNOWN))
		return now & KNOWN;
	/* Subinterpreters have exit functions of their own. */
	if (py->PyThreadState_Get() != py->PyGILState_GetThisThreadState())
		return false;
	if (is_importing() || (!may_wait && would_wait()))
		return false;
	fresh = prba_functions_make(&method, NULL);
	if (!fresh)
		return false;
	if (!call_atexit("register", fresh)) {
		py->Py_DecRef(fresh);
		return false;
	}
	first = atomic_compare_exchange_strong(&life, &now, now | KNOWN);
	if (first) {
		hook = fresh;
		return true;
	}
	/* Python ran in between, and another thread registered first. */
	call_atexit("unregister", fresh);
	py->Py_DecRef(fresh);
	return prba_finalization_is_known();
}

void prba_finalization_part(void)
{
	object *known = hook;

	if (!prba_finalization_is_known() || !known)
		return;
	hook = NULL;
	atomic_fetch_and(&life, ~(uint32_t)KNOWN);
	call_atexit("unregister", known);
	py->PyErr_Clear();
	py->Py_DecRef(known);
}

void prba_finalization_forked(void)
{
	atomic_store(&inside, 0);
	for (int i = 0; i < RUNNERS; i++)
		atomic_store(&runners[i], 0);
}
