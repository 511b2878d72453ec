/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/trace/stepping.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "agent/inside/finalization.h"
#include "agent/inside/libc.h"
#include "agent/trace/breaks.h"
#include "agent/trace/standing.h"
#include "agent/inside/python.h"
#include "agent/trace/places.h"
#include "agent/trace/stepping_private.h"

enum state {
	OFF,
	ON,
	ARRIVED, /* the thread waits at its line */
};

enum {
	MOMENT_US = 100,
	OTHERS_US = 200000, /* a thread at a breakpoint waits for a step of another */
	STOP = 400,	    /* bytes of what is said of a stop */
	US_OF_MS = 1000,
};

/** Of co_flags. */
enum { CO_COROUTINE = 0x80, CO_ITERABLE_COROUTINE = 0x100, CO_ASYNC_GENERATOR = 0x200 };

static const struct prba_python_table *const py = &prba_python;
const char prba_stepping_tracer[] =
	"the program has a tracer of its own (a debugger, coverage or sys.settrace()), which steps "
	"would disturb: end it, or run the program without it";

static struct {
	_Atomic int state;
	_Atomic uint32_t *wake;			      /* changes when the thread has come */
	_Atomic uint32_t gate;			      /* changes when the thread may go on */
	_Atomic(const struct prba_stepper *) stepper; /* what the interpreter calls, or NULL */
	int life;
	unsigned long thread;
	const char *lost;   /* static: why the thread cannot come to its line any more; or "" */
	atomic_bool busy;   /* the thread changes what is called; */
	atomic_bool closed; /* it may not any more */

	/* the thread's, once it runs */
	const object *limit; /* frame that it may stop in; only compared */
	object *returned;    /* … and what was returned to it, until it stops there */
	bool into, out;	     /* it stops in each; not in the limit, before that was left */
	bool returns;	     /* what is returned is kept */
	bool alone;	     /* no pause: it stops as at a breakpoint */
	int line;	     /* nor in the limit before this line; 0: in any */
	bool to_line;	     /* of its thread, not of any thread that has a breakpoint */
} now;

static struct {
	atomic_bool owned;	  /* there is a pause */
	atomic_flag claiming;	  /* a thread ends the step */
	_Atomic uint32_t counted; /* steps */
	char text[STOP];	  /* what is said of the last stop */
	const object *frame;	  /* where a thread went on from a breakpoint; only compared */
	long at;		  /* … and from which instruction, */
	uint32_t into;		  /* … with which step */
} stop = {.claiming = ATOMIC_FLAG_INIT};

static atomic_bool was_on;

bool prba_stepping_is_mine(void)
{
	return atomic_load(&now.state) == ON && py->PyThread_get_thread_ident() == now.thread;
}

bool prba_stepping_is_over(void)
{
	return atomic_load(&now.state) == OFF;
}

bool prba_stepping_into(void)
{
	return now.into;
}

bool prba_stepping_busy(void)
{
	atomic_store(&now.busy, true);
	if (!atomic_load(&now.closed))
		return true;
	atomic_store(&now.busy, false);
	return false;
}

void prba_stepping_idle(void)
{
	atomic_store(&now.busy, false);
}

static long number_of(const object *of, const char *name)
{
	object *number = py->PyObject_GetAttrString((object *)(uintptr_t)of, name);
	long value = number ? py->PyLong_AsLong(number) : -1;

	if (number)
		py->Py_DecRef(number);
	else
		py->PyErr_Clear();
	return value;
}

/** Ends the step, of which @p text is said. False: it is over. */
static bool arrive(const char *text)
{
	int on = ON;
	bool came;

	/* Without a GIL, two threads may come at once. */
	while (atomic_flag_test_and_set(&stop.claiming))
		;
	came = atomic_load(&now.state) == ON;
	if (came) {
		snprintf(stop.text, sizeof(stop.text), "%s", text);
		came = atomic_compare_exchange_strong(&now.state, &on, ARRIVED);
	}
	atomic_flag_clear(&stop.claiming);
	if (came)
		prba_wake(now.wake);
	return came;
}

/** Without the GIL: until the pausing worker has acquired that. */
static void wait_for_release(void)
{
	while (atomic_load(&now.state) == ARRIVED) {
		uint32_t seen = atomic_load(&now.gate);

		if (atomic_load(&now.state) == ARRIVED)
			prba_wait(&now.gate, seen);
	}
}

/** A reference to it in place of the last one; NULL: to nothing. */
static void keep_returned(object *value)
{
	object *before = now.returned;

	if (value)
		py->Py_IncRef(value);
	now.returned = value;
	if (before)
		py->Py_DecRef(before);
}

/**
 * Blocks until the pausing worker has acquired the GIL, and then as long as that worker holds it.
 */
static void stop_for_step(void)
{
	int on = ON, error = errno;
	char text[STOP] = "0 "; /* the number of no breakpoint */
	object *returned = now.returned;
	void *state;

	now.returned = NULL;
	if (returned)
		snprintf(text, sizeof(text), "0 %s@%lx", now.alone ? "" : "0 ",
			 (unsigned long)(uintptr_t)returned);
	if (now.alone) {
		if (atomic_compare_exchange_strong(&now.state, &on, OFF))
			prba_breaks_stop(text);
	} else if (arrive(returned ? text : "")) {
		state = py->PyEval_SaveThread();
		wait_for_release();
		py->PyEval_RestoreThread(state);
	}
	if (returned)
		py->Py_DecRef(returned);
	errno = error;
}

/** False: with an exception that the thread was made to raise. */
static bool stand(void)
{
	prba_standing_begin();
	stop_for_step();
	return prba_standing_end();
}

enum prba_pauser prba_stepping_pauser(void)
{
	return !atomic_load(&stop.owned)	? PRBA_PAUSER_GONE
	       : atomic_load(&now.state) == OFF ? PRBA_PAUSER_HOLDS
						: PRBA_PAUSER_STEPS;
}

void prba_stepping_own(bool on)
{
	atomic_store(&stop.owned, on);
	prba_wake(&now.gate);
}

const char *prba_stepping_stop(void)
{
	return stop.text;
}

/** A step of another thread to its line is on, and has not been for long. */
static bool is_others(unsigned long self, uint32_t *step, int64_t *until_us)
{
	int64_t now_us = prba_now_ms() * US_OF_MS;

	if (*step != atomic_load(&stop.counted)) {
		*step = atomic_load(&stop.counted);
		*until_us = now_us + OTHERS_US;
	}
	return now.to_line && now.thread != self && now_us < *until_us;
}

void prba_stepping_goes_on(void)
{
	stop.frame = py->PyEval_GetFrame ? py->PyEval_GetFrame() : NULL;
	stop.at = stop.frame ? number_of(stop.frame, "f_lasti") : -1;
	stop.into = atomic_load(&stop.counted);
}

void prba_stepping_break(const char *what)
{
	unsigned long self = py->PyThread_get_thread_ident();
	uint32_t step = atomic_load(&stop.counted) - 1;
	int64_t until_us = 0;
	void *state = py->PyEval_SaveThread();

	while (atomic_load(&stop.owned)) {
		uint32_t seen = atomic_load(&now.gate);
		bool on = atomic_load(&now.state) == ON, others;
		char text[STOP];

		others = on && is_others(self, &step, &until_us);
		if (others) {
			prba_wait_for(&now.gate, seen, OTHERS_US);
		} else if (on) {
			snprintf(text, sizeof(text), "%.*s %lu%s", (int)strcspn(what, " "), what,
				 self, what + strcspn(what, " "));
			if (arrive(text)) {
				wait_for_release();
				break;
			}
		} else if (atomic_load(&stop.owned)) {
			prba_wait(&now.gate, seen);
		}
	}
	py->PyEval_RestoreThread(state);
	prba_stepping_goes_on();
}

/** It has not come as far as it was to. */
static bool is_before(const object *frame)
{
	return now.line && number_of(frame, "f_lineno") < now.line;
}

/**
 * The thread was at a breakpoint of this line, and its step began there: the interpreter tells of
 * the line once more, for the step.
 */
static bool is_same_event(const object *frame)
{
	const object *before = stop.frame;

	stop.frame = NULL;
	return before == frame && stop.into == atomic_load(&stop.counted) &&
	       number_of(frame, "f_lasti") == stop.at;
}

bool prba_stepping_line(const object *frame)
{
	if (is_same_event(frame) || (frame == now.limit && is_before(frame)))
		return true;
	return !(now.into || (frame == now.limit && !now.out)) || stand();
}

/** What is yielded by that frame is for the event loop: the frame waits in an `await`. */
static bool awaits(const object *frame, object *value)
{
	object *code = py->PyObject_GetAttrString((object *)(uintptr_t)frame, "f_code");
	long flags = code ? number_of(code, "co_flags") : 0;
	object *type, *name = NULL;
	const char *text;
	bool is = flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE);

	if (code)
		py->Py_DecRef(code);
	else
		py->PyErr_Clear();
	if (is || !(flags & CO_ASYNC_GENERATOR))
		return is;
	type = py->PyObject_Type(value);
	if (type)
		name = py->PyObject_GetAttrString(type, "__name__");
	text = name ? py->PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
	/* Of which there is one for each value that an asynchronous generator yields itself. */
	is = text && strcmp(text, "async_generator_wrapped_value") != 0;
	if (type)
		py->Py_DecRef(type);
	if (name)
		py->Py_DecRef(name);
	py->PyErr_Clear();
	return is;
}

object *prba_stepping_left(object *frame, object *value, bool yields)
{
	object *caller, *code;

	if (frame != now.limit || (yields && value && awaits(frame, value)))
		return NULL;
	if (now.returns)
		keep_returned(value);
	caller = py->PyObject_GetAttrString(frame, "f_back");
	if (!caller) {
		py->PyErr_Clear();
		return NULL;
	}
	/* None has no code. */
	code = py->PyObject_GetAttrString(caller, "f_code");
	if (code)
		py->Py_DecRef(code);
	else
		py->PyErr_Clear();
	now.limit = code ? caller : NULL;
	now.line = 0;
	now.into |= !code;
	now.out = false;
	return caller;
}

/** The same by the interpreter, which stops all threads where there is no GIL. */
static object *frame_by_interpreter(unsigned long thread)
{
	object *current = py->PySys_GetObject("_current_frames"), *number, *all = NULL,
	       *found = NULL;

	number = py->PyLong_FromVoidPtr((void *)thread);
	if (current && number)
		all = py->PyObject_CallFunctionObjArgs(current, NULL);
	if (all)
		found = py->PyDict_GetItem(all, number);
	if (found)
		py->Py_IncRef(found);
	if (all)
		py->Py_DecRef(all);
	if (number)
		py->Py_DecRef(number);
	py->PyErr_Clear();
	return found;
}

/** Where the thread is, a new reference; NULL: it runs no Python. */
static object *frame_of(unsigned long thread)
{
	bool monitored = py->PySys_GetObject("monitoring"); /* 3.12 */
	object *all = monitored && !prba_python_stops_world() ? prba_places_frames() : NULL;
	object *found = NULL;

	if (!all)
		return frame_by_interpreter(thread);
	for (intptr_t i = 0; i + 1 < py->PyList_Size(all) && !found; i += 2)
		if ((uintptr_t)py->PyLong_AsVoidPtr(py->PyList_GetItem(all, i)) == thread)
			found = py->PyList_GetItem(all, i + 1);
	if (found)
		py->Py_IncRef(found);
	py->Py_DecRef(all);
	return found;
}

static const char *begin(const struct prb_wire_step *step, _Atomic uint32_t *wake)
{
	const struct prba_stepper *stepper =
		py->PySys_GetObject("monitoring") ? &prba_stepper_monitored : &prba_stepper_traced;
	const char *problem;
	object *frame;

	if (!py->Py_IncRef || !py->PyEval_GetFrame)
		return "this build of Python hides functions that steps need";
	now.wake = wake;
	now.life = prba_finalization_number();
	now.thread = step->thread;
	now.into = step->stride == PRB_WIRE_STRIDE_INTO;
	now.out = now.returns = step->stride == PRB_WIRE_STRIDE_OUT;
	now.lost = "";
	atomic_store(&was_on, true);
	problem = stepper->prepare(now.into);
	if (problem)
		return problem;
	atomic_store(&now.stepper, stepper);
	atomic_store(&now.closed, false);
	frame = frame_of(step->thread);
	now.limit = frame;
	if (frame) {
		/* Before it is called anything. */
		atomic_store(&now.state, ON);
		problem = stepper->begin(frame);
		py->Py_DecRef(frame);
	} else {
		problem = "that thread runs no Python code, so it has no next line";
	}
	if (problem) {
		prba_stepping_end();
		prba_stepping_release();
	}
	return problem;
}

const char *prba_stepping_begin_alone(const struct prb_wire_step *step, int line)
{
	static _Atomic uint32_t nobody;

	/* An earlier one may not have come to its line. */
	prba_stepping_end();
	prba_stepping_release();
	now.alone = true;
	now.line = line;
	atomic_fetch_add(&stop.counted, 1);
	return begin(step, &nobody);
}

/** The breakpoints end it; nothing else is asked of the interpreter. */
static void begin_to_break(_Atomic uint32_t *wake)
{
	now.wake = wake;
	now.thread = 0;
	now.lost = "";
	atomic_store(&now.state, ON);
}

const char *prba_stepping_begin(const struct prb_wire_step *step, _Atomic uint32_t *wake)
{
	const char *problem = NULL;

	now.alone = false;
	now.line = (int)step->line;
	now.to_line = step->stride != PRB_WIRE_STRIDE_BREAK;
	*stop.text = '\0';
	atomic_fetch_add(&stop.counted, 1);
	if (now.to_line)
		problem = begin(step, wake);
	else
		begin_to_break(wake);
	/* Threads that came to a breakpoint meanwhile. */
	prba_wake(&now.gate);
	return problem;
}

bool prba_stepping_arrived(void)
{
	return atomic_load(&now.state) == ARRIVED;
}

void prba_stepping_end(void)
{
	static _Atomic uint32_t never;
	const struct prba_stepper *stepper = atomic_exchange(&now.stepper, NULL);

	/* Objects of an interpreter that has ended were freed with it. */
	if (now.life != prba_finalization_number())
		now.returned = NULL;
	if (!stepper || now.life != prba_finalization_number())
		return;
	atomic_store(&now.closed, true);
	while (atomic_load(&now.busy)) {
		void *state = py->PyEval_SaveThread();

		prba_wait_for(&never, 0, MOMENT_US);
		py->PyEval_RestoreThread(state);
	}
	now.lost = stepper->end();
	keep_returned(NULL);
}

bool prba_stepping_settle(void)
{
	bool over = prba_stepping_is_over();

	if (over)
		prba_stepping_end();
	return over;
}

const char *prba_stepping_lost(void)
{
	return now.lost;
}

bool prba_stepping_release(void)
{
	bool arrived = atomic_exchange(&now.state, OFF) == ARRIVED;

	prba_wake(&now.gate);
	return arrived;
}

bool prba_stepping_was_on(void)
{
	return atomic_load(&was_on);
}

void prba_stepping_forked(void)
{
	atomic_store(&now.state, OFF);
	atomic_store(&now.busy, false);
	atomic_store(&stop.owned, false);
	atomic_flag_clear(&stop.claiming);
}
