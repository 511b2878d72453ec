/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Steps from 3.12 on: sys.monitoring calls us at the lines of the code that the thread may stop in,
 * whichever thread runs it, where such code is left, and, if the step goes into what is called,
 * where any code begins.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inside/functions.h"
#include "agent/trace/breaks.h"
#include "agent/trace/stepping.h"
#include "agent/trace/stepping_private.h"

enum {
	METH_VARARGS = 1,
	CODES = 256,
	DEBUGGER = 0, /* tools of sys.monitoring, by convention */
	COVERAGE = 1,
	BY_SETTRACE = 1 << 7, /* reserved for sys.settrace() */
};

enum event { LINE, JUMPS, RETURNS, YIELDS, UNWINDS, STARTS, RESUMES, THROWS, EVENTS };

/** Events that can be set for one code object, and events by which a step enters functions. */
enum {
	LOCAL = 1 << LINE | 1 << JUMPS | 1 << RETURNS | 1 << YIELDS,
	BEGINS = 1 << STARTS | 1 << RESUMES | 1 << THROWS,
};

static const char *const names[EVENTS] = {
	[LINE] = "LINE",	 [JUMPS] = "JUMP",	  [RETURNS] = "PY_RETURN",
	[YIELDS] = "PY_YIELD",	 [UNWINDS] = "PY_UNWIND", [STARTS] = "PY_START",
	[RESUMES] = "PY_RESUME", [THROWS] = "PY_THROW",
};
static const int tools[] = {4, 3, 5}; /* that no kind of tool has for itself, first */

static const struct prba_python_table *const py = &prba_python;
static struct {
	int tool;
	long bits[EVENTS];    /* as the interpreter has them */
	bool begins;	      /* events of BEGINS are asked for */
	object *codes[CODES]; /* that are watched, each held */
	int count;
} now;

static object *number(long value)
{
	return py->PyLong_FromVoidPtr((void *)(intptr_t)value);
}

/** Takes over the arguments, none of which is NULL. False: what was raised was dropped. */
static bool call(const char *name, object *a, object *b, object *c, object **ret)
{
	object *monitoring = py->PySys_GetObject("monitoring"), *function = NULL, *result = NULL;
	object *arguments[] = {a, b, c};

	if (monitoring)
		function = py->PyObject_GetAttrString(monitoring, name);
	if (function)
		result = py->PyObject_CallFunctionObjArgs(function, a, b, c, NULL);
	if (function)
		py->Py_DecRef(function);
	for (size_t i = 0; i < sizeof(arguments) / sizeof(*arguments); i++)
		if (arguments[i])
			py->Py_DecRef(arguments[i]);
	if (!result)
		py->PyErr_Clear();
	if (result && ret)
		*ret = result;
	else if (result)
		py->Py_DecRef(result);
	return result;
}

static long bits_of(unsigned events)
{
	long bits = 0;

	for (int i = 0; i < EVENTS; i++)
		bits |= events & 1u << i ? now.bits[i] : 0;
	return bits;
}

static void set_local(object *code, unsigned events)
{
	py->Py_IncRef(code);
	call("set_local_events", number(now.tool), code, number(bits_of(events)), NULL);
}

static void set_global(unsigned events)
{
	call("set_events", number(now.tool), number(bits_of(events)), NULL, NULL);
}

static void watch(object *code)
{
	for (int i = 0; i < now.count; i++)
		if (now.codes[i] == code)
			return;
	if (now.count == CODES)
		return; /* the step ends when its time is up */
	py->Py_IncRef(code);
	now.codes[now.count++] = code;
	set_local(code, LOCAL);
}

/** The code of a frame, watched. False if it is no frame. */
static bool watch_frame(object *frame)
{
	object *code = py->PyObject_GetAttrString(frame, "f_code");

	if (!code) {
		py->PyErr_Clear();
		return false;
	}
	watch(code);
	py->Py_DecRef(code);
	return true;
}

static void go_into(void)
{
	if (!now.begins)
		set_global(1 << UNWINDS | BEGINS);
	now.begins = true;
}

/** The thread leaves a frame. */
static void leave(object *frame, object *value, bool yields)
{
	object *next = prba_stepping_left(frame, value, yields);

	if (!next)
		return;
	if (!watch_frame(next))
		go_into();
	py->Py_DecRef(next);
}

/** A jump back within a line, which is the next turn of a loop: no LINE tells of it. */
static bool repeats_line(object *code, object *arguments)
{
	object *from = py->PyTuple_GetItem(arguments, 1), *to = py->PyTuple_GetItem(arguments, 2);
	long start, end;

	if (!from || !to || !py->PyCode_Addr2Line)
		return false;
	start = py->PyLong_AsLong(from);
	end = py->PyLong_AsLong(to);
	return end <= start &&
	       py->PyCode_Addr2Line(code, (int)start) == py->PyCode_Addr2Line(code, (int)end);
}

/** False: with an exception that was asked for. */
static bool happened(enum event event, object *code, object *arguments)
{
	object *frame = py->PyEval_GetFrame();

	if (event == LINE || event == JUMPS) {
		if (event == JUMPS && !repeats_line(code, arguments))
			return true;
		return !frame || prba_stepping_line(frame);
	}
	if (!prba_stepping_busy())
		return true;
	if (1 << event & BEGINS)
		watch(code);
	else if (frame)
		leave(frame, event == UNWINDS ? NULL : py->PyTuple_GetItem(arguments, 2),
		      event == YIELDS);
	prba_stepping_idle();
	return true;
}

/** Called by the interpreter: (code, ...); @self is the number of the event. */
static object *called(object *self, object *arguments)
{
	int error = errno;
	object *code = py->PyTuple_GetItem(arguments, 0);
	bool goes_on = code;

	prba_breaks_enter();
	if (prba_stepping_is_over())
		prba_stepping_end();
	else if (code && prba_stepping_is_mine())
		goes_on = happened((enum event)py->PyLong_AsLong(self), code, arguments);
	prba_breaks_exit();
	errno = error;
	return goes_on ? py->PyBool_FromLong(0) : NULL;
}

/** Borrowed. */
static object *none(void)
{
	return py->PyDict_GetItemString(py->PyEval_GetBuiltins(), "None");
}

static bool has_tool(int tool)
{
	object *name;

	if (!call("get_tool", number(tool), NULL, NULL, &name))
		return false;
	py->Py_DecRef(name);
	return name != none();
}

/** sys.settrace() has a tool that has no name. */
static bool is_traced(void)
{
	object *events, *tracers;
	bool is = false;

	if (!call("_all_events", NULL, NULL, NULL, &events))
		return false;
	tracers = py->PyDict_GetItemString(events, names[LINE]);
	if (tracers)
		is = py->PyLong_AsLong(tracers) & BY_SETTRACE;
	py->Py_DecRef(events);
	return is;
}

static bool learn_bits(void)
{
	object *monitoring = py->PySys_GetObject("monitoring");
	object *events = py->PyObject_GetAttrString(monitoring, "events");
	bool all = events;

	for (int i = 0; all && i < EVENTS; i++) {
		object *bit = py->PyObject_GetAttrString(events, names[i]);

		all = bit;
		if (bit) {
			now.bits[i] = py->PyLong_AsLong(bit);
			py->Py_DecRef(bit);
		}
	}
	if (events)
		py->Py_DecRef(events);
	py->PyErr_Clear();
	return all;
}

static bool take_tool(void)
{
	for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++) {
		object *name = py->PyUnicode_DecodeUTF8("probing", 7, NULL);

		now.tool = tools[i];
		/*
		 * Code that an earlier tool with this id disabled stays disabled until events are
		 * restarted.
		 */
		if (call("use_tool_id", number(now.tool), name, NULL, NULL)) {
			call("restart_events", NULL, NULL, NULL, NULL);
			return true;
		}
	}
	return false;
}

/** Has us called for what is asked for from now on, or not any more. */
static bool register_all(bool on)
{
	static struct prba_method method = {"called", called, METH_VARARGS, NULL};
	bool all = true;

	for (int i = 0; i < EVENTS; i++) {
		object *which = number(i), *function = none();

		if (on)
			function = prba_functions_make(&method, which);
		else
			py->Py_IncRef(function);
		py->Py_DecRef(which);
		all &= function && call("register_callback", number(now.tool), number(now.bits[i]),
					function, NULL);
	}
	return all;
}

static const char *end(void)
{
	/*
	 * Remove the callbacks first: without a GIL, a change of events waits for threads that are
	 * about to call them.
	 */
	register_all(false);
	set_global(0);
	for (int i = 0; i < now.count; i++) {
		set_local(now.codes[i], 0);
		py->Py_DecRef(now.codes[i]);
	}
	now.count = 0;
	call("free_tool_id", number(now.tool), NULL, NULL, NULL);
	return "";
}

static const char *prepare(bool into)
{
	if (has_tool(DEBUGGER) || has_tool(COVERAGE) || is_traced())
		return prba_stepping_tracer;
	now.count = 0;
	now.begins = into;
	if (!learn_bits())
		return "this build of Python has a sys.monitoring of another kind";
	if (!take_tool())
		return "sys.monitoring has no place left: tools of the program have them all";
	if (!register_all(true)) {
		end();
		return "the program does not let sys.monitoring be used (sys.addaudithook())";
	}
	return NULL;
}

static const char *begin(object *frame)
{
	watch_frame(frame);
	set_global(1 << UNWINDS | (now.begins ? BEGINS : 0));
	return NULL;
}

const struct prba_stepper prba_stepper_monitored = {.prepare = prepare, .begin = begin, .end = end};
