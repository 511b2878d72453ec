/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Steps before 3.12: the thread has a trace function of ours, and no other thread has. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "agent/trace/breaks.h"
#include "agent/trace/places.h"
#include "agent/trace/stepping.h"
#include "agent/trace/stepping_private.h"
#include "agent/trace/tracing.h"

enum { LINE = 2, RETURNS }; /* as the interpreter has them */
enum { RETURN_VALUE = 83 }; /* its opcode in each version before 3.12 */

static const struct prba_python_table *const py = &prba_python;
static struct {
	struct prba_places at;
	const void *state; /* of the thread; only compared, and it may be another's by now */
	bool shared;	   /* breakpoints have its trace function: that one calls */
} now;

/** The frame's last instruction is another one than that which ends its function. */
static bool yields(object *frame)
{
	object *code = py->PyObject_GetAttrString(frame, "f_code"), *all = NULL, *last = NULL;
	bool does = false;
	char *bytes;
	intptr_t size, at;

	if (code)
		all = py->PyObject_GetAttrString(code, "co_code");
	if (all)
		last = py->PyObject_GetAttrString(frame, "f_lasti");
	at = last ? py->PyLong_AsLong(last) : -1;
	if (at >= 0 && py->PyBytes_AsStringAndSize(all, &bytes, &size) == 0)
		does = at < size && (unsigned char)bytes[at] != RETURN_VALUE;
	for (int i = 0; i < 3; i++) {
		object *each = (object *[]){code, all, last}[i];

		if (each)
			py->Py_DecRef(each);
	}
	py->PyErr_Clear();
	return does;
}

object *prba_stepping_returns(object *frame, object *value)
{
	return prba_stepping_left(frame, value, value && yields(frame));
}

static int traced(object *self, object *frame, int event, object *argument)
{
	object *next = NULL;
	int error = errno, result = 0;

	(void)self;
	prba_breaks_enter();
	if (prba_stepping_is_over())
		py->PyEval_SetTrace(NULL, NULL);
	else if (event == LINE && prba_stepping_is_mine())
		result = prba_stepping_line(frame) ? 0 : -1;
	else if (event == RETURNS && prba_stepping_is_mine())
		next = prba_stepping_returns(frame, argument);
	if (next)
		py->Py_DecRef(next);
	prba_breaks_exit();
	errno = error;
	return result;
}

static const char *prepare(bool into)
{
	const char *problem = prba_places_refusal();

	(void)into;
	memset(&now, 0, sizeof(now));
	if (problem)
		return problem;
	return prba_places_is_audited()
		       ? "the program has hooks for audits (sys.addaudithook()), which would be "
			 "called while its thread is changed: Python 3.12 needs no such change"
		       : NULL;
}

static const char *begin(object *frame)
{
	void *state = prba_places_state_of(frame);

	now.shared = state && prba_tracing_step(state);
	if (now.shared)
		return NULL;
	if (!state || !prba_places_find_function(&now.at, PRBA_TRACES, traced))
		return "this build of Python does not have its structs where they are elsewhere, "
		       "so nothing was changed";
	if (prba_places_is_foreign(&now.at, state, PRBA_TRACES, traced))
		return prba_stepping_tracer;
	now.state = state;
	prba_places_set(&now.at, state, PRBA_TRACES, traced, true);
	return NULL;
}

static const char *end(void)
{
	void *state = prba_places_first();

	if (now.shared) {
		prba_tracing_step(NULL);
		return "";
	}
	while (state && state != now.state)
		state = py->PyThreadState_Next(state);
	/* Without one it has left Python, as is to be seen. */
	if (!state || prba_places_set(&now.at, state, PRBA_TRACES, traced, false))
		return "";
	return "it has called sys.settrace() meanwhile, so that its lines are not told any more";
}

const struct prba_stepper prba_stepper_traced = {.prepare = prepare, .begin = begin, .end = end};
