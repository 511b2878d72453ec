/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/trace/tracing.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/inside/finalization.h"
#include "agent/inside/identity_cache.h"
#include "agent/trace/breaks.h"
#include "agent/trace/places.h"
#include "agent/trace/stepping.h"
#include "agent/trace/stepping_private.h"

/** Events, as the interpreter has them. */
enum { STARTS, RAISES, LINE, RETURNS, C_STARTS, C_RAISES, C_RETURNS };

/** Kinds of code, from agent/trace/tracing.py; 0: none. The last two may be added. */
enum kind { FAILED = -1, OTHER = 1, PLAIN = 2, HAS = 4, CALLS = 8 };

enum {
	METH_VARARGS = 1,
	LINES = 1024,
	BYTE = 8,
	LOOK_EACH = 1024, /* starts of functions */
	FUNCTIONS = 7,	  /* of agent/trace/tracing.py */
};

static const struct prba_python_table *const py = &prba_python;

static struct {
	bool on, makes_room;
	int life;
	object *on_trace, *on_code, *on_gone, *on_call, *on_return, *on_raise, *on_catch;
	object *starts[2]; /* functions that start a thread; only compared */
	struct prba_places at;
	uint32_t started, asked_anew;
	uint8_t lines[LINES / BYTE];
	bool catches;		 /* it is asked at exceptions, wherever these are raised */
	struct prba_cache known; /* code, and names of files that are OTHER */
	void *stepping; /* state of the thread that steps, only compared; NULL: none does */
} now;

static atomic_bool was_on, stays;

/** A thread that asks. What runs there meanwhile is not traced, also what is none of ours. */
struct asking {
	unsigned long thread;
	struct asking *next;
};

static struct asking *asking;

static void asks_no_more(struct asking *self)
{
	struct asking **at = &asking;

	while (*at && *at != self)
		at = &(*at)->next;
	if (*at)
		*at = self->next;
}

static struct asking *find_asking(void)
{
	unsigned long self = py->PyThread_get_thread_ident();
	struct asking *found = asking;

	while (found && found->thread != self)
		found = found->next;
	return found;
}

bool prba_tracing_asks(void)
{
	return find_asking();
}

static object *ask(object *function, object *first, object *second)
{
	struct asking self = {py->PyThread_get_thread_ident(), asking};
	struct prba_room room = {};
	object *result;

	/* It may be forgotten meanwhile. */
	py->Py_IncRef(function);
	asking = &self;
	if (now.makes_room)
		room = prba_places_make_room();
	result = prba_breaks_call(function, first, second);
	prba_places_leave_room(&room);
	asks_no_more(&self);
	py->Py_DecRef(function);
	return result;
}

/** FAILED: with an exception. */
static enum kind ask_of(object *code)
{
	uint32_t asked = now.asked_anew;
	object *result = ask(now.on_code, code, NULL);
	long kind;

	if (!result)
		return FAILED;
	kind = py->PyLong_AsLong(result);
	py->Py_DecRef(result);
	if (kind < OTHER || kind > (HAS | CALLS))
		return PLAIN; /* there was no room to ask */
	if (now.on && asked == now.asked_anew)
		prba_cache_put(&now.known, kind == OTHER ? prba_places_file(&now.at, code) : code,
			       (int)kind);
	return (enum kind)kind;
}

static enum kind kind_of(object *code)
{
	int kind = prba_cache_get(&now.known, prba_places_file(&now.at, code));

	if (!kind)
		kind = prba_cache_get(&now.known, code);
	return kind ? (enum kind)kind : ask_of(code);
}

/** Has our function called in that thread, unless there is another one; or not any more. */
static void set_trace(void *state, bool on);
static void set_profile(void *state, bool on);

/** Turns lines on or off for the calling thread, which goes on in that code. */
static int follow(object *code)
{
	enum kind kind = kind_of(code);

	if (kind == FAILED)
		return -1;
	if (now.on)
		set_trace(py->PyThreadState_Get(), now.catches || (kind & (HAS | CALLS)));
	return 0;
}

/** Reports a start, end or exception of a function if its calls are recorded; -1 with an exception.
 */
static int report(object *code, object *function, object *frame, object *argument)
{
	enum kind kind = kind_of(code);
	object *result;

	if (kind == FAILED)
		return -1;
	if (!now.on || !(kind & CALLS))
		return 0;
	result = ask(function, frame, argument);
	if (result)
		py->Py_DecRef(result);
	return result ? 0 : -1;
}

/** Also threads that began meanwhile. */
static void cover_all(void)
{
	struct prba_room room = {};
	bool audited;

	if (now.makes_room)
		room = prba_places_make_room();
	audited = prba_places_is_audited();
	prba_places_leave_room(&room);
	if (audited)
		return;
	for (void *state = prba_places_first(); state; state = py->PyThreadState_Next(state))
		set_profile(state, true);
	for (void *state = now.catches ? prba_places_first() : NULL; state;
	     state = py->PyThreadState_Next(state))
		set_trace(state, true);
}

/** Looks for a debugger from time to time; 0, or -1 with an exception. */
static int look(void)
{
	int error = errno;
	object *result;
	bool heard;

	cover_all();
	heard = prba_breaks_heard();
	errno = error;
	if (heard)
		return 0;
	result = ask(now.on_gone, NULL, NULL);
	if (result)
		py->Py_DecRef(result);
	return result ? 0 : -1;
}

/** The profile function of each thread. */
static int profiled(object *self, object *frame, int event, object *argument)
{
	const void *inner, *caller;

	(void)self;
	if (!now.on) {
		py->PyEval_SetProfile(NULL, NULL);
		return 0;
	}
	if (event == C_RETURNS && (argument == now.starts[0] || argument == now.starts[1]))
		cover_all();
	if (event != STARTS && event != RETURNS)
		return 0;
	inner = prba_places_frame(&now.at, frame);
	if (event == STARTS) {
		if (++now.started % LOOK_EACH == 0 && look())
			return -1;
		if (now.on && report(prba_places_code(inner), now.on_call, frame, NULL))
			return -1;
		return now.on ? follow(prba_places_code(inner)) : 0;
	}
	if (report(prba_places_code(inner), now.on_return, frame, argument))
		return -1;
	if (!now.on)
		return 0;
	caller = prba_places_caller(&now.at, inner);
	if (caller)
		return follow(prba_places_code(caller));
	set_trace(py->PyThreadState_Get(), now.catches);
	return 0;
}

/** The thread steps. -1: with an exception that was asked for. */
static int step(object *frame, int event, object *argument)
{
	object *next = NULL;
	int rc = 0;

	if (prba_stepping_is_over()) {
		now.stepping = NULL;
	} else if (prba_stepping_is_mine()) {
		if (event == LINE)
			rc = prba_stepping_line(frame) ? 0 : -1;
		else if (event == RETURNS)
			next = prba_stepping_returns(frame, argument);
	}
	if (next)
		py->Py_DecRef(next);
	return rc;
}

/** An exception is raised in the frame, or comes to it. */
static int look_for_catch(object *code, object *frame, object *argument)
{
	object *result;

	if (now.catches) {
		result = ask(now.on_catch, frame, argument);
		if (!result)
			return -1;
		py->Py_DecRef(result);
	}
	return now.on ? report(code, now.on_raise, frame, py->PyTuple_GetItem(argument, 0)) : 0;
}

/** For a thread that is in code with a breakpoint, or just was. */
static int look_for_break(object *frame, int event, object *argument)
{
	object *code, *number, *result;
	enum kind kind;
	unsigned line;

	if (event != LINE && event != RAISES)
		return 0;
	code = prba_places_code(prba_places_frame(&now.at, frame));
	if (event == RAISES)
		return look_for_catch(code, frame, argument);
	kind = kind_of(code);
	if (kind == FAILED || !(kind & (HAS | CALLS))) {
		if (kind != FAILED && now.on && !now.catches)
			set_trace(py->PyThreadState_Get(), false);
		return kind == FAILED ? -1 : 0;
	}
	if (!(kind & HAS))
		return 0;
	line = (unsigned)py->PyFrame_GetLineNumber(frame);
	if (!(now.lines[line % LINES / BYTE] & 1u << line % BYTE))
		return 0;
	number = py->PyLong_FromVoidPtr((void *)(uintptr_t)line);
	result = number && now.on ? ask(now.on_trace, frame, number) : NULL;
	if (number)
		py->Py_DecRef(number);
	if (result)
		py->Py_DecRef(result);
	return py->PyErr_Occurred() ? -1 : 0;
}

/** The trace function of such a thread, and of one that steps. */
static int traced(object *self, object *frame, int event, object *argument)
{
	int rc;

	(void)self;
	if (!now.on) {
		py->PyEval_SetTrace(NULL, NULL);
		return 0;
	}
	rc = look_for_break(frame, event, argument);
	if (!rc && now.stepping)
		rc = step(frame, event, argument);
	return rc;
}

bool prba_tracing_step(void *state)
{
	if (!now.on || now.life != prba_finalization_number() ||
	    (state && prba_places_is_foreign(&now.at, state, PRBA_TRACES, traced)))
		return false;
	now.stepping = state;
	if (state)
		set_trace(state, true);
	return true;
}

static void set_trace(void *state, bool on)
{
	if (on || state != now.stepping)
		prba_places_set(&now.at, state, PRBA_TRACES, traced, on);
}

static void set_profile(void *state, bool on)
{
	prba_places_set(&now.at, state, PRBA_PROFILES, profiled, on);
}

/** Threads that have a function of others. */
static intptr_t deaf(void)
{
	intptr_t found = 0;

	for (void *state = prba_places_first(); state; state = py->PyThreadState_Next(state))
		found += prba_places_is_foreign(&now.at, state, PRBA_TRACES, traced) ||
			 prba_places_is_foreign(&now.at, state, PRBA_PROFILES, profiled);
	return found;
}

/** Why there can be no breakpoints; NULL if there can. */
static const char *refusal(object *frame)
{
	const char *problem = prba_places_refusal();

	if (problem)
		return problem;
	if (prba_places_is_audited())
		return "the program has hooks for audits (sys.addaudithook()), which would be "
		       "called while its threads are changed: Python 3.12 needs no such change";
	if (!prba_stepping_settle())
		return "a step is on, which takes the same place before Python 3.12: let its "
		       "thread come to its line first";
	problem = prba_places_find(&now.at, frame, traced, profiled);
	if (!problem && deaf())
		problem = "the program has a tracer or profiler of its own in some thread "
			  "(sys.settrace(), sys.setprofile(): coverage, cProfile or another "
			  "debugger), which leaves no place for ours before Python 3.12: end it, "
			  "or run the program without it";
	return problem;
}

/** Functions of agent/trace/tracing.py, in the order of trace_begin(). */
static void functions(object **ret[FUNCTIONS])
{
	object **all[] = {&now.on_trace,  &now.on_code,	 &now.on_gone, &now.on_call,
			  &now.on_return, &now.on_raise, &now.on_catch};

	memcpy(ret, all, sizeof(all));
}

/** trace_begin(the functions, frame, start, start, makes_room); the last is -1 if there can be none
 */
static object *trace_begin(object *self, object *arguments)
{
	enum { FRAME = FUNCTIONS, START, OTHER_START, MAKES_ROOM, ARGUMENTS };
	object *given[ARGUMENTS], **called[FUNCTIONS];
	const char *problem;
	long makes_room;

	(void)self;
	functions(called);
	for (int i = 0; i < ARGUMENTS; i++) {
		given[i] = py->PyTuple_GetItem(arguments, i);
		if (!given[i])
			return NULL;
	}
	if (now.on && now.life == prba_finalization_number())
		return py->PyUnicode_DecodeUTF8("", 0, NULL);
	/* Objects of an interpreter that has ended were freed with it: forget them. */
	if (now.life != prba_finalization_number())
		memset(&now, 0, sizeof(now));
	makes_room = py->PyLong_AsLong(given[MAKES_ROOM]);
	problem = makes_room < 0 ? prba_places_strange() : refusal(given[FRAME]);
	if (problem)
		return py->PyUnicode_DecodeUTF8(problem, (intptr_t)strlen(problem), NULL);
	for (int i = 0; i < FUNCTIONS; i++) {
		*called[i] = given[i];
		py->Py_IncRef(given[i]);
	}
	now.starts[0] = given[START];
	now.starts[1] = given[OTHER_START];
	now.makes_room = makes_room > 0;
	now.life = prba_finalization_number();
	now.on = true;
	atomic_store(&was_on, true);
	cover_all();
	return py->PyUnicode_DecodeUTF8("", 0, NULL);
}

/** trace_lines(bits, catches, code, kind...): the lines, and code as far as it is known. */
static object *trace_lines(object *self, object *arguments)
{
	object *bits = py->PyTuple_GetItem(arguments, 0), *code, *kind;
	object *catches = bits ? py->PyTuple_GetItem(arguments, 1) : NULL;
	intptr_t length;
	char *data;

	(void)self;
	if (!catches || py->PyBytes_AsStringAndSize(bits, &data, &length))
		return NULL;
	if (!now.on)
		return py->PyBool_FromLong(0);
	if ((size_t)length == sizeof(now.lines))
		memcpy(now.lines, data, sizeof(now.lines));
	now.catches = py->PyLong_AsLong(catches) > 0;
	now.asked_anew++;
	prba_cache_clear(&now.known);
	for (int i = 2; (code = py->PyTuple_GetItem(arguments, i)) != NULL &&
			(kind = py->PyTuple_GetItem(arguments, i + 1)) != NULL;
	     i += 2)
		prba_cache_put(&now.known, code, (int)py->PyLong_AsLong(kind));
	py->PyErr_Clear();
	/* Threads already inside such code will not call it again first. */
	for (void *state = prba_places_first(); state; state = py->PyThreadState_Next(state)) {
		object *top = prba_places_top(&now.at, state);

		if (now.catches || (top && prba_cache_get(&now.known, top) & (HAS | CALLS)))
			set_trace(state, true);
	}
	return py->PyBool_FromLong(1);
}

static object *trace_deaf(object *self, object *arguments)
{
	(void)self, (void)arguments;
	return py->PyLong_FromVoidPtr((void *)(now.on ? deaf() : 0));
}

static object *trace_depth(object *self, object *arguments)
{
	(void)self, (void)arguments;
	return py->PyLong_FromVoidPtr((void *)(uintptr_t)prba_places_recursion().depth);
}

static object *trace_end(object *self, object *arguments)
{
	object **called[FUNCTIONS], *used[FUNCTIONS];

	(void)self, (void)arguments;
	if (!now.on || now.life != prba_finalization_number())
		return py->PyBool_FromLong(0);
	now.on = now.catches = false;
	now.stepping = NULL;
	now.asked_anew++;
	functions(called);
	for (int i = 0; i < FUNCTIONS; i++) {
		used[i] = *called[i];
		*called[i] = NULL;
	}
	/* Else each thread takes its own out when it comes to it. */
	if (prba_places_is_audited())
		atomic_store(&stays, true);
	for (void *state = atomic_load(&stays) ? NULL : prba_places_first(); state;
	     state = py->PyThreadState_Next(state)) {
		set_trace(state, false);
		set_profile(state, false);
	}
	prba_cache_clear(&now.known);
	for (int i = 0; i < FUNCTIONS; i++)
		py->Py_DecRef(used[i]);
	return py->PyBool_FromLong(1);
}

struct prba_method prba_tracing_methods[PRBA_TRACING_METHODS] = {
	{"trace_begin", trace_begin, METH_VARARGS, NULL},
	{"trace_lines", trace_lines, METH_VARARGS, NULL},
	{"trace_deaf", trace_deaf, METH_VARARGS, NULL},
	{"trace_depth", trace_depth, METH_VARARGS, NULL},
	{"trace_end", trace_end, METH_VARARGS, NULL},
};

bool prba_tracing_was_on(void)
{
	return atomic_load(&was_on);
}

bool prba_tracing_stays(void)
{
	return atomic_load(&stays);
}

void prba_tracing_forked(void)
{
	/* Other threads are gone, and what they had on their stacks may be overwritten. */
	asking = asking ? find_asking() : NULL;
	if (asking)
		asking->next = NULL;
	now.started = LOOK_EACH - 1;
}
