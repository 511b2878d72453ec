/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/eval/bootstrap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/client/connection.h"
#include "agent/eval/subinterpreter.h"
#include "agent/inside/finalization.h"
#include "agent/inside/functions.h"
#include "agent/inside/libc.h"
#include "agent/inside/python.h"
#include "agent/inside/python_table.h"
#include "agent/sites/sites.h"
#include "agent/torch/torch.h"
#include "agent/trace/standing.h"
#include "agent/trace/breaks.h"
#include "agent/trace/logpoints.h"
#include "agent/trace/quick.h"
#include "agent/trace/places.h"
#include "agent/trace/tracing.h"

/* The files as text, one behind the other. */
__asm__(".pushsection .rodata\n"
	".hidden prba_bootstrap_text, prba_prompt_text, prba_complete_text\n"
	".hidden prba_breaks_text, prba_monitoring_text, prba_tracing_text, prba_loop_text\n"
	".hidden prba_texts_end, prba_pausing_text, prba_torch_ops_text, prba_torch_nan_text\n"
	".hidden prba_logpoints_text, prba_calls_text, prba_torch_text\n"
	".hidden prba_torch_comm_text, prba_torch_watch_text, prba_sites_text, prba_frame_text\n"
	".global prba_torch_comm_text, prba_torch_watch_text, prba_sites_text, prba_frame_text\n"
	".global prba_logpoints_text, prba_calls_text, prba_torch_text\n"
	".global prba_bootstrap_text, prba_prompt_text, prba_complete_text\n"
	".global prba_breaks_text, prba_monitoring_text, prba_tracing_text, prba_loop_text\n"
	".global prba_texts_end, prba_pausing_text, prba_torch_ops_text\n"
	".hidden prba_torch_logs_text, prba_torch_history_text\n"
	".global prba_torch_nan_text, prba_torch_logs_text, prba_torch_history_text\n"
	"prba_bootstrap_text:\n"
	".incbin \"texts/package/probing/_locals.py\"\n"
	".incbin \"texts/agent/eval/bootstrap.py\"\n"
	".byte 0\n"
	"prba_prompt_text:\n"
	".incbin \"texts/agent/eval/prompt.py\"\n"
	"prba_complete_text:\n"
	".incbin \"texts/agent/eval/complete.py\"\n"
	"prba_breaks_text:\n"
	".incbin \"texts/agent/trace/breaks.py\"\n"
	"prba_monitoring_text:\n"
	".incbin \"texts/agent/trace/monitoring.py\"\n"
	"prba_tracing_text:\n"
	".incbin \"texts/agent/trace/tracing.py\"\n"
	"prba_loop_text:\n"
	".incbin \"texts/agent/eval/loop.py\"\n"
	"prba_logpoints_text:\n"
	".incbin \"texts/agent/trace/logpoints.py\"\n"
	"prba_calls_text:\n"
	".incbin \"texts/agent/trace/calls.py\"\n"
	"prba_torch_text:\n"
	".incbin \"texts/agent/torch/torch.py\"\n"
	"prba_torch_comm_text:\n"
	".incbin \"texts/agent/torch/comm.py\"\n"
	"prba_torch_watch_text:\n"
	".incbin \"texts/package/probing/_watched.py\"\n"
	".incbin \"texts/agent/torch/watch.py\"\n"
	"prba_sites_text:\n"
	".incbin \"texts/agent/sites/sites.py\"\n"
	"prba_frame_text:\n"
	".incbin \"texts/package/probing/_variables.py\"\n"
	".incbin \"texts/agent/eval/frame.py\"\n"
	"prba_pausing_text:\n"
	".incbin \"texts/agent/trace/pausing.py\"\n"
	"prba_torch_ops_text:\n"
	".incbin \"texts/agent/torch/ops.py\"\n"
	"prba_torch_nan_text:\n"
	".incbin \"texts/agent/torch/nan.py\"\n"
	"prba_torch_logs_text:\n"
	".incbin \"texts/agent/torch/logs.py\"\n"
	"prba_torch_history_text:\n"
	".incbin \"texts/agent/torch/history.py\"\n"
	"prba_texts_end:\n"
	".popsection\n");
extern const char prba_bootstrap_text[], prba_prompt_text[], prba_complete_text[];
extern const char prba_breaks_text[], prba_monitoring_text[], prba_tracing_text[];
extern const char prba_loop_text[], prba_logpoints_text[], prba_calls_text[], prba_torch_text[];
extern const char prba_torch_comm_text[], prba_torch_watch_text[], prba_sites_text[];
extern const char prba_frame_text[], prba_pausing_text[], prba_torch_ops_text[];
extern const char prba_torch_nan_text[], prba_torch_logs_text[], prba_torch_history_text[],
	prba_texts_end[];

enum {
	FILE_INPUT = 257, /* Py_file_input */
	METH_VARARGS = 1,
};

static const struct prba_python_table *const py = &prba_python;
static object *names;	  /* of the bootstrap */
static object *inherited; /* the same of the process that forked this one */
static atomic_int names_life, inherited_life, forks;

int prba_bootstrap_forks(void)
{
	return atomic_load(&forks);
}

void prba_bootstrap_forked(void)
{
	if (names) {
		inherited = names;
		inherited_life = names_life;
	}
	names = NULL;
	prba_torch_forked();
	prba_quick_forked();
	prba_sites_forked();
	atomic_fetch_add(&forks, 1);
}

/** Sends what was printed, or waits until the client follows. */
static void send_all(struct prba_connection *c, uint16_t type, const char *data, size_t length)
{
	while (length > 0) {
		size_t part = length < PRB_WIRE_MAX_REPLY ? length : PRB_WIRE_MAX_REPLY;

		if (prba_connection_send(c, type, c->job.request, data, part) == PRBA_SENT) {
			data += part;
			length -= part;
		} else if (c->keeps || (c->job.eval.flags & PRB_WIRE_ON_MAIN) ||
			   prba_finalization_is_ending()) {
			/* The program's own thread does not wait for a client, nor does its end. */
			atomic_fetch_add(&c->job.lost, (uint64_t)length);
			return;
		} else {
			void *state = py->PyEval_SaveThread();

			prba_connection_wait(c);
			py->PyEval_RestoreThread(state);
		}
	}
}

/** emit(job, kind, bytes): False if there is no client, as in a child after fork(). */
static object *emit(object *self, object *arguments)
{
	static const uint16_t types[] = {PRB_WIRE_STDOUT, PRB_WIRE_STDERR, PRB_WIRE_VALUE,
					 PRB_WIRE_TRACEBACK, PRB_WIRE_CANDIDATES};
	object *job = py->PyTuple_GetItem(arguments, 0), *kind = py->PyTuple_GetItem(arguments, 1);
	object *bytes = py->PyTuple_GetItem(arguments, 2);
	intptr_t length;
	char *data;
	int error = errno;

	(void)self;
	if (!job || !kind || !bytes || py->PyBytes_AsStringAndSize(bytes, &data, &length))
		return NULL;

	struct prba_connection *c = py->PyLong_AsVoidPtr(job);
	long number = py->PyLong_AsLong(kind);

	if (!c || number < 1 || number > 5 || c->job.forks != atomic_load(&forks) ||
	    atomic_load(&c->job.state) != PRBA_RUNNING)
		return py->PyBool_FromLong(0);
	if (!atomic_load(&c->job.answered))
		send_all(c, types[number - 1], data, (size_t)length);
	errno = error;
	return py->PyBool_FromLong(1);
}

/**
 * part(number): the text of 1 agent/eval/prompt.py, 2 agent/eval/complete.py, 3
 * agent/trace/breaks.py, 4 agent/trace/monitoring.py, 5 agent/trace/tracing.py, 6
 * agent/eval/loop.py, 7 agent/trace/logpoints.py, 8 agent/trace/calls.py, 9 agent/torch/torch.py,
 * 10 agent/torch/comm.py, 11 agent/torch/watch.py behind package/probing/_watched.py, 12
 * agent/sites/sites.py, 13 agent/eval/frame.py behind package/probing/_variables.py, 14
 * agent/trace/pausing.py, 15 agent/torch/ops.py, 16
 * agent/torch/nan.py, 17 agent/torch/logs.py, 18 agent/torch/history.py.
 */
static object *part(object *self, object *arguments)
{
	object *number = py->PyTuple_GetItem(arguments, 0);
	const char *texts[] = {prba_prompt_text,     prba_complete_text,    prba_breaks_text,
			       prba_monitoring_text, prba_tracing_text,	    prba_loop_text,
			       prba_logpoints_text,  prba_calls_text,	    prba_torch_text,
			       prba_torch_comm_text, prba_torch_watch_text, prba_sites_text,
			       prba_frame_text,	     prba_pausing_text,	    prba_torch_ops_text,
			       prba_torch_nan_text,  prba_torch_logs_text,  prba_torch_history_text,
			       prba_texts_end};
	long i = number ? py->PyLong_AsLong(number) - 1 : 0;

	(void)self;
	return number ? py->PyBytes_FromStringAndSize(texts[i], texts[i + 1] - texts[i]) : NULL;
}

/** main_thread(which): what Python (0) or the kernel (1) calls the main thread, 0 if that is
 * unknown. */
static object *main_thread(object *self, object *arguments)
{
	object *which = py->PyTuple_GetItem(arguments, 0);
	uintptr_t found[2] = {};

	(void)self;
	if (!which)
		return NULL;
	/* Without a GIL, threads start and exit while we look. */
	if (prba_python_stops_world() || !prba_places_main_thread(&found[0], &found[1]))
		found[0] = found[1] = 0;
	if (!found[1] && !prba_finalization_is_embedded())
		found[1] = (uintptr_t)getpid();
	return py->PyLong_FromVoidPtr((void *)found[py->PyLong_AsLong(which) == 1]);
}

/** thread_context(thread, context): returns the contextvars.Context of the thread, None if it is
 * unknown. The second argument is the caller's own context. */
static object *thread_context(object *self, object *arguments)
{
	object *thread = py->PyTuple_GetItem(arguments, 0);
	object *ours = thread ? py->PyTuple_GetItem(arguments, 1) : NULL, *found = NULL;

	(void)self;
	if (!ours)
		return NULL;
	/* Without a GIL, a thread may switch contexts while we read its state. */
	if (!prba_python_stops_world())
		found = prba_places_context((uintptr_t)py->PyLong_AsVoidPtr(thread), ours);
	if (!found) {
		found = py->PyDict_GetItemString(py->PyEval_GetBuiltins(), "None");
		py->Py_IncRef(found);
	}
	return found;
}

/** thread_frames(): [ident, frame, …], None if sys._current_frames() has to do. */
static object *thread_frames(object *self, object *arguments)
{
	object *found = prba_python_stops_world() ? NULL : prba_places_frames();

	(void)self, (void)arguments;
	if (!found) {
		found = py->PyDict_GetItemString(py->PyEval_GetBuiltins(), "None");
		py->Py_IncRef(found);
	}
	return found;
}

static bool put_function(object *into, struct prba_method *method)
{
	object *function = prba_functions_make(method, NULL);
	bool put = function && !py->PyDict_SetItemString(into, method->name, function);

	/* Free-threaded 3.15 leaves to garbage collections what several threads call often. */
	if (function && prba_python_stops_world() && py->PyObject_GC_UnTrack)
		py->PyObject_GC_UnTrack(function);
	if (function)
		py->Py_DecRef(function);
	return put;
}

/** Its functions go now, not when the program collects garbage. */
static void discard(object *fresh)
{
	py->PyDict_Clear(fresh);
	py->Py_DecRef(fresh);
}

static object *load(void)
{
	static struct prba_method methods[] = {
		{"emit", emit, METH_VARARGS, NULL},
		{"part", part, METH_VARARGS, NULL},
		{"main_thread", main_thread, METH_VARARGS, NULL},
		{"thread_context", thread_context, METH_VARARGS, NULL},
		{"thread_frames", thread_frames, METH_VARARGS, NULL}};
	const struct {
		struct prba_method *methods;
		size_t count;
	} parts[] = {{methods, sizeof(methods) / sizeof(*methods)},
		     {prba_breaks_methods, PRBA_BREAKS_METHODS},
		     {prba_standing_methods, PRBA_STANDING_METHODS},
		     {prba_subinterpreter_methods, PRBA_SUBINTERPRETER_METHODS},
		     {prba_tracing_methods, PRBA_TRACING_METHODS},
		     {prba_logpoints_methods, PRBA_LOGPOINTS_METHODS},
		     {prba_quick_methods, PRBA_QUICK_METHODS},
		     {prba_torch_methods, PRBA_TORCH_METHODS},
		     {prba_sites_methods, PRBA_SITES_METHODS}};
	object *fresh = py->PyDict_New(), *code = NULL, *result = NULL;
	object *builtins = py->PyEval_GetBuiltins();
	bool put = fresh && builtins && !py->PyDict_SetItemString(fresh, "__builtins__", builtins);

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		for (size_t j = 0; put && j < parts[i].count; j++)
			put = put_function(fresh, &parts[i].methods[j]);
	if (put)
		code = py->Py_CompileString(prba_bootstrap_text, "<probing agent>", FILE_INPUT);
	if (code)
		result = py->PyEval_EvalCode(code, fresh, fresh);
	if (code)
		py->Py_DecRef(code);
	if (result) {
		py->Py_DecRef(result);
		return fresh;
	}
	if (fresh)
		discard(fresh);
	return NULL;
}

/** Borrowed; NULL if this interpreter has none. */
static object *known_names(void)
{
	object *known = __atomic_load_n(&names, __ATOMIC_SEQ_CST);

	/* The names of an interpreter that has ended were freed with it. */
	if (known && atomic_load(&names_life) != prba_finalization_number() &&
	    __atomic_compare_exchange_n(&names, &known, NULL, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST))
		known = NULL;
	return known;
}

/** Calls a function of what load() returned. False with an exception. */
static bool call_plain(object *known, const char *name)
{
	object *called = py->PyDict_GetItemString(known, name);
	object *result = called ? py->PyObject_CallFunctionObjArgs(called, NULL) : NULL;

	if (result)
		py->Py_DecRef(result);
	return result;
}

/**
 * Python itself is calling on a thread, maybe while it imports site: from 3.15 on it is not
 * "initialized" before that is over.
 */
static atomic_int called_on; /* its number; 0: none */

/** The bootstrap's function @p name, borrowed; NULL with an exception. */
static object *function(const char *name)
{
	object *known = known_names(), *fresh;

	if (!known && atomic_load(&called_on) != syscall(SYS_gettid) && !py->Py_IsInitialized()) {
		/* The interpreter did not wait for us. */
		py->PyErr_SetNone(*py->PyExc_KeyboardInterrupt);
		return NULL;
	}
	if (!known) {
		/* It runs Python, so another worker may come in between. */
		fresh = load();
		if (!fresh)
			return NULL;
		atomic_store(&names_life, prba_finalization_number());
		if (__atomic_compare_exchange_n(&names, &known, fresh, false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST)) {
			known = fresh;
			if (!call_plain(known, "install"))
				return NULL;
		} else {
			discard(fresh);
		}
	}
	return py->PyDict_GetItemString(known, name);
}

/** Calls it with up to four arguments, which are taken over; NULL with an exception. */
static object *call(const char *name, size_t count, object *a, object *b, object *c, object *d)
{
	object *arguments[] = {a, b, c, d};
	object *called = function(name), *result = NULL;
	bool whole = called != NULL;

	for (size_t i = 0; i < count; i++)
		whole = whole && arguments[i];
	if (whole)
		result = py->PyObject_CallFunctionObjArgs(called, a, b, c, d, NULL);
	for (size_t i = 0; i < count; i++)
		if (arguments[i])
			py->Py_DecRef(arguments[i]);
	return result;
}

enum prba_ran prba_bootstrap_run(struct prba_connection *c)
{
	const struct prb_wire_eval *eval = &c->job.eval;
	object *job = py->PyLong_FromVoidPtr(c), *result;
	object *text = py->PyBytes_FromStringAndSize(eval->code, eval->code_length);
	long outcome = PRBA_RAN_FAILED;

	if (c->job.asked == PRBA_COMPLETES) {
		result = call("complete", 2, job, text, NULL, NULL);
	} else if (c->job.asked == PRBA_BREAKS) {
		result = call("breakpoints", 2, job, text, NULL, NULL);
	} else {
		object *name = py->PyUnicode_DecodeUTF8(eval->name, eval->name_length, "replace");
		object *flags = py->PyLong_FromVoidPtr((void *)(uintptr_t)eval->flags);

		result = call("run", 4, job, text, name, flags);
	}
	if (result) {
		outcome = py->PyLong_AsLong(result);
		py->Py_DecRef(result);
	}
	return outcome < PRBA_RAN_FAILED || outcome > PRBA_RAN_EXIT ? PRBA_RAN_FAILED
								    : (enum prba_ran)outcome;
}

void prba_bootstrap_settle(void)
{
	object *result = call("settle", 0, NULL, NULL, NULL, NULL);

	if (result)
		py->Py_DecRef(result);
	py->PyErr_Clear();
}

bool prba_bootstrap_leave(void)
{
	bool came = false;

	for (int i = 0; i < 3; i++) {
		object *result = call("leave", 0, NULL, NULL, NULL, NULL);

		if (result) {
			py->Py_DecRef(result);
			break;
		}
		came |= py->PyErr_ExceptionMatches(*py->PyExc_KeyboardInterrupt);
		py->PyErr_Clear();
	}
	return came;
}

void prba_bootstrap_forget_thread(void)
{
	object *result = call("forget_thread", 0, NULL, NULL, NULL, NULL);

	if (result)
		py->Py_DecRef(result);
	else
		py->PyErr_Clear();
}

void prba_bootstrap_close(struct prba_connection *c)
{
	object *result;

	if (!known_names())
		return;
	result = call("close", 1, py->PyLong_FromVoidPtr(c), NULL, NULL, NULL);
	if (result)
		py->Py_DecRef(result);
	else
		py->PyErr_Clear();
}

/** Does what the settings say of torch (agent/torch/torch.py). False, without an exception, if it
 * failed. */
static bool apply_torch(void)
{
	object *result = call("apply_torch", 0, NULL, NULL, NULL, NULL);

	if (result)
		py->Py_DecRef(result);
	else
		py->PyErr_Clear();
	return result;
}

PRBA_EXPORT int probing_torch_apply(void)
{
	bool done;
	int state;

	if (!prba_python_find())
		return -ENOSYS;
	state = py->PyGILState_Ensure();
	atomic_store(&called_on, (int)syscall(SYS_gettid));
	done = apply_torch();
	atomic_store(&called_on, 0);
	py->PyGILState_Release(state);
	return done ? 0 : -EINVAL;
}

/** Of what load() returned, which is taken over. */
static bool release(object *known)
{
	bool released = call_plain(known, "release");

	py->PyErr_Clear();
	py->Py_DecRef(known);
	return released;
}

bool prba_bootstrap_release(void)
{
	object *known = known_names(), *before = inherited;
	bool released = true;

	prba_sites_stop();
	names = inherited = NULL;
	if (known)
		released &= release(known);
	if (before && inherited_life == prba_finalization_number())
		released &= release(before);
	prba_finalization_part();
	return prba_functions_are_gone() && released;
}
