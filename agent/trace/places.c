/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/trace/places.h"

#include <stdint.h>
#include <string.h>

#include "agent/inside/libc.h"

/** Words of structs, as they are in 3.6 to 3.11: from where to where is looked. */
enum {
	CODE_FIRST = 2,
	CODE_END = 16,
	STATE_FIRST = 3,
	STATE_END = 24,
	OUTER_CALLER = 3, /* of a frame object */
	OUTER_INNER = 3,  /* the same, in 3.11 */
	INNER_CALLER = 6,
	FRAME_CODE = 4, /* of both */
	STATE_OUTER = 3,
	STATE_CALLS = 7, /* 3.11: what has the inner frame in its second word */
	CALLS_INNER = 1,
	STATE_DEPTH = STATE_OUTER + 1, /* up to 3.9: an int, and behind it a byte */
	ROOM = 200,		       /* calls of ours */
	CONTEXT_END = 11,	       /* of what is behind the thread's id, in 3.7 to 3.15 */
};

static const struct prba_python_table *const py = &prba_python;
static const char strange[] = "this build of Python does not have its structs where they are "
			      "elsewhere, so nothing was changed";

static void *word(const void *of, size_t at)
{
	void *value;

	memcpy(&value, (const char *)of + at * sizeof(value), sizeof(value));
	return value;
}

const char *prba_places_strange(void)
{
	return strange;
}

struct prba_recursion prba_places_recursion(void)
{
	struct prba_recursion found;
	const char *at = (const char *)py->PyThreadState_Get() + STATE_DEPTH * sizeof(void *);

	memcpy(&found.depth, at, sizeof(found.depth));
	memcpy(&found.overflowed, at + sizeof(found.depth), sizeof(found.overflowed));
	return found;
}

static void set_recursion(struct prba_recursion recursion)
{
	char *at = (char *)py->PyThreadState_Get() + STATE_DEPTH * sizeof(void *);

	memcpy(at, &recursion.depth, sizeof(recursion.depth));
	memcpy(at + sizeof(recursion.depth), &recursion.overflowed, sizeof(recursion.overflowed));
}

bool prba_places_has_recursion(void)
{
	const char *version = py->Py_GetVersion();
	object *frame = py->PyEval_GetFrame();
	struct prba_recursion found;

	/* 3.4 to 3.9 */
	if (strncmp(version, "3.", 2) != 0 || version[3] != '.' || !frame ||
	    word(py->PyThreadState_Get(), STATE_OUTER) != frame)
		return false;
	found = prba_places_recursion();
	return found.depth > 0 && found.overflowed <= 1;
}

struct prba_room prba_places_make_room(void)
{
	struct prba_room room = {true, prba_places_recursion()};

	set_recursion((struct prba_recursion){room.before.depth - ROOM, 0});
	return room;
}

void prba_places_leave_room(const struct prba_room *room)
{
	if (room->made)
		set_recursion(room->before);
}

const void *prba_places_frame(const struct prba_places *places, const object *frame)
{
	return places->is_inner ? word(frame, OUTER_INNER) : frame;
}

const void *prba_places_caller(const struct prba_places *places, const void *inner)
{
	return word(inner, places->is_inner ? INNER_CALLER : OUTER_CALLER);
}

object *prba_places_code(const void *inner)
{
	return word(inner, FRAME_CODE);
}

object *prba_places_file(const struct prba_places *places, const object *code)
{
	return word(code, places->file);
}

void *prba_places_first(void)
{
	void *interpreter, *next;

	if (py->PyInterpreterState_Main)
		return py->PyInterpreterState_ThreadHead(py->PyInterpreterState_Main());
	/* Newer ones are in front. */
	interpreter = py->PyInterpreterState_Head();
	while ((next = py->PyInterpreterState_Next(interpreter)) != NULL)
		interpreter = next;
	return py->PyInterpreterState_ThreadHead(interpreter);
}

void *prba_places_state_of(const object *frame)
{
	for (void *state = prba_places_first(); state; state = py->PyThreadState_Next(state)) {
		/* From 3.9 on. */
		object *top = py->PyThreadState_GetFrame ? py->PyThreadState_GetFrame(state)
							 : word(state, STATE_OUTER);

		if (top && py->PyThreadState_GetFrame)
			py->Py_DecRef(top);
		if (top == frame)
			return state;
	}
	return NULL;
}

/** The frame that a thread runs; NULL: none. */
static const void *running(const struct prba_places *places, const void *state)
{
	const void *calls;

	if (!places->is_inner)
		return word(state, STATE_OUTER);
	calls = word(state, STATE_CALLS);
	return calls ? word(calls, CALLS_INNER) : NULL;
}

object *prba_places_top(const struct prba_places *places, const void *state)
{
	const void *frame = running(places, state);

	return frame ? prba_places_code(frame) : NULL;
}

static uintptr_t function_of(const struct prba_places *places, const void *state,
			     enum prba_traces which)
{
	return (uintptr_t)word(state, places->functions[which]);
}

bool prba_places_is_foreign(const struct prba_places *places, const void *state,
			    enum prba_traces which, prba_tracer *ours)
{
	uintptr_t found = function_of(places, state, which);

	return found && found != (uintptr_t)ours;
}

/** By the interpreter's own function for other threads, or by its own for the one that runs. */
static void change(void *state, enum prba_traces which, prba_tracer *function)
{
	void *own;

	if (py->_PyEval_SetTrace && py->_PyEval_SetProfile) {
		if (which == PRBA_TRACES ? py->_PyEval_SetTrace(state, function, NULL)
					 : py->_PyEval_SetProfile(state, function, NULL))
			py->PyErr_Clear();
		return;
	}
	own = py->PyThreadState_Swap(state);
	if (which == PRBA_TRACES)
		py->PyEval_SetTrace(function, NULL);
	else
		py->PyEval_SetProfile(function, NULL);
	py->PyThreadState_Swap(own);
}

bool prba_places_set(const struct prba_places *places, void *state, enum prba_traces which,
		     prba_tracer *ours, bool on)
{
	if (function_of(places, state, which) != (on ? 0 : (uintptr_t)ours))
		return false;
	change(state, which, on ? ours : NULL);
	return true;
}

/** sys.audit() looks at its arguments only if there are hooks. */
bool prba_places_is_audited(void)
{
	object *audit = py->PySys_GetObject("audit"), *number, *result = NULL;

	if (!audit)
		return false;
	number = py->PyLong_FromVoidPtr(NULL);
	if (number) {
		result = py->PyObject_CallFunctionObjArgs(audit, number, NULL);
		py->Py_DecRef(number);
	}
	py->PyErr_Clear();
	if (result)
		py->Py_DecRef(result);
	return !result;
}

const char *prba_places_refusal(void)
{
	bool others = py->_PyEval_SetTrace && py->_PyEval_SetProfile;

	if (!py->PyEval_SetTrace || !py->PyEval_SetProfile || !py->PyThreadState_Next ||
	    !py->PyInterpreterState_ThreadHead || !py->PyInterpreterState_Head ||
	    !py->PyInterpreterState_Next || !py->PyFrame_GetLineNumber || !py->Py_IncRef ||
	    (!others && !py->PyThreadState_Swap))
		return "this build of Python hides the functions by which threads are traced";
	/* It checks that each thread is itself. */
	if (!others && py->PySys_GetObject("gettotalrefcount"))
		return "a debug build of Python before 3.9 lets no thread set the tracer of "
		       "another: use a release build";
	return NULL;
}

/** The only word in [from, to) with that value; 0: there is none, or are several. */
static size_t find(const void *of, size_t from, size_t to, uintptr_t value)
{
	size_t found = 0, count = 0;

	for (size_t at = from; at < to; at++) {
		if ((uintptr_t)word(of, at) == value) {
			found = at;
			count++;
		}
	}
	return count == 1 ? found : 0;
}

bool prba_places_main_thread(uintptr_t *ident, uintptr_t *native)
{
	const char *own = py->PyThreadState_Get(), *first = own;
	size_t at = find(own, STATE_FIRST, STATE_END, py->PyThread_get_thread_ident());
	long tid = syscall(SYS_gettid);

	if (!at || !py->PyThreadState_Next)
		return false;
	/* Newer ones are in front. */
	for (void *next = py->PyThreadState_Next((void *)own); next;
	     next = py->PyThreadState_Next(next))
		first = next;
	*ident = (uintptr_t)word(first, at);
	/* From 3.11 on the kernel's name is behind Python's. */
	*native = word(own, at + 1) == (void *)tid ? (uintptr_t)word(first, at + 1) : 0;
	return *ident;
}

/** Steals the value. */
static bool append(object *list, object *value)
{
	bool added = value && !py->PyList_Append(list, value);

	if (value)
		py->Py_DecRef(value);
	return added;
}

object *prba_places_frames(void)
{
	size_t at = find(py->PyThreadState_Get(), STATE_FIRST, STATE_END,
			 py->PyThread_get_thread_ident());
	object *frames = at && py->PyThreadState_GetFrame && py->PyInterpreterState_Main &&
					 py->PyInterpreterState_ThreadHead && py->PyThreadState_Next
				 ? py->PyList_New(0)
				 : NULL;

	for (void *state = frames ? prba_places_first() : NULL; state;
	     state = py->PyThreadState_Next(state)) {
		object *frame = py->PyThreadState_GetFrame(state);

		if (frame && !(append(frames, py->PyLong_FromVoidPtr(word(state, at))) &&
			       append(frames, frame))) {
			py->Py_DecRef(frames);
			frames = NULL;
			break;
		}
	}
	py->PyErr_Clear();
	return frames;
}

object *prba_places_context(uintptr_t thread, const object *ours)
{
	const void *own = py->PyThreadState_Get(), *state = NULL;
	size_t ident = find(own, STATE_FIRST, STATE_END, py->PyThread_get_thread_ident());
	size_t at = ident ? find(own, ident + 1, ident + CONTEXT_END, (uintptr_t)ours) : 0;
	object *found, *kinds[2];

	if (at && py->PyThreadState_Next && py->PyInterpreterState_ThreadHead &&
	    py->PyInterpreterState_Head && py->PyInterpreterState_Next)
		state = prba_places_first();
	while (state && (uintptr_t)word(state, ident) != thread)
		state = py->PyThreadState_Next((void *)state);
	found = state ? word(state, at) : NULL;
	if (!found || !py->Py_IncRef)
		return NULL;
	kinds[0] = py->PyObject_Type(found);
	kinds[1] = py->PyObject_Type((object *)ours);
	if (kinds[0] == kinds[1])
		py->Py_IncRef(found);
	else
		found = NULL;
	py->Py_DecRef(kinds[0]);
	py->Py_DecRef(kinds[1]);
	return found;
}

/** Our thread state has no function now, gets one, and has none again. */
bool prba_places_find_function(struct prba_places *ret, enum prba_traces which, prba_tracer *ours)
{
	void *state = py->PyThreadState_Get();
	size_t at;

	change(state, which, ours);
	at = find(state, STATE_FIRST, STATE_END, (uintptr_t)ours);
	change(state, which, NULL);
	ret->functions[which] = at;
	return at && !word(state, at);
}

/** Borrowed from @p of, which keeps it; NULL if it has none, also of NULL. */
static object *member(object *of, const char *name)
{
	object *value = of ? py->PyObject_GetAttrString(of, name) : NULL;

	if (!value)
		py->PyErr_Clear();
	if (value)
		py->Py_DecRef(value);
	return value;
}

static bool find_frames(struct prba_places *ret, object *frame)
{
	object *code = member(frame, "f_code"), *back = member(frame, "f_back");
	object *caller = member(back, "f_code"), *file = member(code, "co_filename");
	const void *inner;

	if (!code || !back || !caller || !file)
		return false;
	ret->is_inner = word(frame, FRAME_CODE) != code;
	inner = prba_places_frame(ret, frame);
	if (!inner || prba_places_code(inner) != code || !prba_places_caller(ret, inner) ||
	    prba_places_code(prba_places_caller(ret, inner)) != caller)
		return false;
	ret->file = find(code, CODE_FIRST, CODE_END, (uintptr_t)file);
	return ret->file && running(ret, py->PyThreadState_Get()) == inner;
}

const char *prba_places_find(struct prba_places *ret, object *frame, prba_tracer *traced,
			     prba_tracer *profiled)
{
	return find_frames(ret, frame) && prba_places_find_function(ret, PRBA_TRACES, traced) &&
			       prba_places_find_function(ret, PRBA_PROFILES, profiled)
		       ? NULL
		       : strange;
}
