/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/python.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "agent/bootstrap.h"
#include "agent/breaks.h"
#include "agent/connection.h"
#include "agent/libc.h"
#include "agent/life.h"
#include "agent/main_thread.h"
#include "agent/pause.h"
#include "agent/python_table.h"
#include "agent/stepping.h"
#include "agent/tracing.h"

struct prba_python_table prba_python;
static const struct prba_python_table *const py = &prba_python;
static char version[32];
static atomic_bool found;
static bool free_threaded;
static const char ending[] = "Python is shutting down";

bool prba_python_find(void)
{
	if (!atomic_load(&found) && prba_python_table_find(&prba_python)) {
		const char *text = py->Py_GetVersion();
		size_t length = strcspn(text, " ");

		if (length >= sizeof(version))
			length = sizeof(version) - 1;
		memcpy(version, text, length);
		free_threaded = strstr(text, "free-threading") != NULL;
		atomic_store(&found, true);
	}
	return atomic_load(&found);
}

const char *prba_python_version(void)
{
	return atomic_load(&found) ? version : "";
}

const char *prba_python_refusal(void)
{
	if (!atomic_load(&found))
		return "there is no Python in this process";
	if (!prba_life_look())
		return "Python is not initialised (yet)";
	if (prba_life_is_ending() || (py->Py_IsFinalizing && py->Py_IsFinalizing()) ||
	    (py->_Py_IsFinalizing && py->_Py_IsFinalizing()))
		return ending;
	return NULL;
}

void prba_python_forked(void)
{
	prba_pause_forked();
	prba_stepping_forked();
	prba_bootstrap_forked();
	prba_main_forked();
	prba_life_forked();
}

/** Runs the job on this thread, which holds the GIL. True if the program's own Ctrl-C came. */
static bool run_here(struct prba_connection *c, enum prb_wire_outcome *outcome, const char **text)
{
	static const enum prb_wire_outcome outcomes[] = {
		[PRBA_RAN_FAILED + 1] = PRB_WIRE_FAILED,
		[PRBA_RAN + 1] = PRB_WIRE_OK,
		[PRBA_RAN_RAISED + 1] = PRB_WIRE_RAISED,
		[PRBA_RAN_INTERRUPTED + 1] = PRB_WIRE_INTERRUPTED,
		[PRBA_RAN_INCOMPLETE + 1] = PRB_WIRE_INCOMPLETE,
		[PRBA_RAN_EXIT + 1] = PRB_WIRE_EXIT,
	};
	struct prba_job *job = &c->job;
	bool pressed = false;

	*text = "";
	*outcome = PRB_WIRE_REFUSED;
	if (!py->PySys_GetObject("__stdout__")) {
		*text = "Python is not initialised (yet)";
		return false;
	}
	if (!prba_job_begin(c, py->PyThread_get_thread_ident())) {
		*outcome = PRB_WIRE_INTERRUPTED;
		return false;
	}

	/* A child that the code forks has no client: what it prints goes where it always went. */
	job->forks = prba_bootstrap_forks();
	atomic_store(&job->present, true);

	enum prba_ran ran = prba_bootstrap_run(c);

	*outcome = outcomes[ran + 1];
	if (ran == PRBA_RAN_FAILED) {
		*text = "the code of the agent failed in this interpreter";
		if (atomic_load(&job->interrupted) ||
		    py->PyErr_ExceptionMatches(*py->PyExc_KeyboardInterrupt))
			ran = PRBA_RAN_INTERRUPTED;
		py->PyErr_Clear();
	}
	prba_job_end(c);
	/* One that was not raised yet is now; taken back, it would slow the interpreter for ever.
	 */
	if (atomic_load(&job->interrupted))
		prba_bootstrap_settle();
	if (ran == PRBA_RAN_INTERRUPTED) {
		pressed = !atomic_load(&job->interrupted);
		*outcome = PRB_WIRE_INTERRUPTED;
		*text = "";
	}
	return prba_bootstrap_leave() || pressed;
}

static void take_gil(struct prba_job *job)
{
	int now = prba_life_number();

	if (job->thread_state && job->life == now) {
		py->PyEval_RestoreThread(job->thread_state);
	} else {
		job->life = now;
		job->gil = py->PyGILState_Ensure();
	}
}

/** Without the thread state, what belongs to the thread is gone. */
static void give_up_gil(struct prba_job *job)
{
	py->PyGILState_Release(job->gil);
	job->thread_state = NULL;
	prba_life_leave();
}

/** From here on the interpreter waits for us before it ends. False if it ends already. */
static bool enter(struct prba_job *job)
{
	bool expected = job->entered;

	if (!expected && !prba_life_enter())
		return false;
	/* Another interpreter by now: its thread would not hold us back, nor we it. */
	if (!expected && prba_main_lacks_gil()) {
		prba_life_leave();
		return false;
	}
	return true;
}

/**
 * The second half of attach(): takes the GIL and has the interpreter know of us; not @p may_wait:
 * as far as that waits for none of the program's threads, which may stand.
 */
static bool attach_entered(struct prba_job *job, bool may_wait)
{
	bool expected = job->entered;

	job->entered = false;
	take_gil(job);
	if (!prba_life_greet(may_wait))
		py->PyErr_Clear();
	if (expected || !prba_life_is_ending())
		return true;
	give_up_gil(job);
	return false;
}

/**
 * Takes the GIL on the worker's thread, whose thread state lives as long as the connection, and
 * with it what threading.local has. False if the interpreter ends.
 */
static bool attach(struct prba_job *job)
{
	return enter(job) && attach_entered(job, true);
}

static void detach(struct prba_job *job)
{
	/* One that does not tell us when it ends takes the thread state with it. */
	if (!prba_life_is_known()) {
		give_up_gil(job);
		return;
	}
	job->thread_state = py->PyEval_SaveThread();
	prba_life_leave();
}

static void forget(struct prba_connection *c)
{
	struct prba_job *job = &c->job;
	bool lost = job->thread_state && job->life != prba_life_number();

	/* What is gone with its interpreter is not touched. */
	if (!lost && prba_life_is_known() && !prba_python_refusal() && attach(job)) {
		prba_bootstrap_close(c);
		give_up_gil(job);
	}
	job->thread_state = NULL;
}

void prba_python_forget(struct prba_connection *c)
{
	/* A thread state is ended by its own thread. */
	if (c->job.thread_state || prba_pause_serve(c) == PRBA_NOT_PAUSED)
		forget(c);
}

bool prba_python_stops_world(void)
{
	return free_threaded;
}

bool prba_python_take(struct prba_connection *c)
{
	if ((!c->job.entered && prba_python_refusal()) || !enter(&c->job) ||
	    !attach_entered(&c->job, false))
		return false;
	/* Which takes a world that runs, where there is no GIL. */
	prba_stepping_end();
	if (free_threaded)
		prba_python_stop_world();
	return true;
}

void prba_python_stop_world(void)
{
	py->_PyEval_StopTheWorld(py->PyInterpreterState_Main());
}

void prba_python_start_world(void)
{
	py->_PyEval_StartTheWorld(py->PyInterpreterState_Main());
}

void prba_python_let_go(struct prba_connection *c)
{
	if (free_threaded)
		prba_python_start_world();
	detach(&c->job);
}

void prba_python_end_pause(struct prba_connection *c)
{
	if (__atomic_load_n(&c->job.serial, __ATOMIC_SEQ_CST) != 1) {
		prba_python_let_go(c);
		return;
	}
	if (free_threaded)
		prba_python_start_world();
	give_up_gil(&c->job);
	atomic_store(&c->job.present, false);
}

void prba_python_lend(struct prba_connection *c)
{
	c->job.thread_state = py->PyEval_SaveThread();
}

void prba_python_take_back(struct prba_connection *c)
{
	take_gil(&c->job);
}

bool prba_python_enter(struct prba_connection *c)
{
	return enter(&c->job);
}

void prba_python_take_turn(struct prba_connection *c)
{
	bool first = !c->job.thread_state;

	if (!attach_entered(&c->job, false))
		return;
	if (first)
		give_up_gil(&c->job);
	else
		detach(&c->job);
}

/** Why this Python cannot stand still, or NULL (static). */
static const char *pause_refusal(void)
{
	if (free_threaded &&
	    !(py->_PyEval_StopTheWorld && py->_PyEval_StartTheWorld && py->PyInterpreterState_Main))
		return "this build without a GIL has no function to stop all its threads (3.13, or "
		       "one that hides it)";
	return NULL;
}

/** Holds all Python until the client has had enough. */
static void pause_here(struct prba_connection *c, enum prb_wire_outcome *outcome, const char **text)
{
	*outcome = PRB_WIRE_REFUSED;
	*text = pause_refusal();
	if (*text)
		return;
	*text = ending;
	if (!prba_python_take(c))
		return;
	*text = "";
	*outcome = PRB_WIRE_INTERRUPTED;
	atomic_store(&c->job.present, true);
	if (prba_job_begin(c, py->PyThread_get_thread_ident())) {
		*outcome = prba_pause_hold(c);
		prba_job_end(c);
	} else {
		prba_python_let_go(c);
	}
}

/** Runs the job's code on this thread, which holds the GIL. */
static void run_as_worker(struct prba_connection *c, enum prb_wire_outcome *outcome,
			  const char **text)
{
	unsigned long thread = py->PyThread_get_thread_ident();
	uint64_t blocked = prba_thread_runs_code();

	atomic_store(&c->job.present, true);
	prba_life_runs(thread);
	run_here(c, outcome, text);
	prba_life_ran(thread);
	if (*outcome == PRB_WIRE_INTERRUPTED && prba_life_is_ending())
		*text = ending;
	prba_thread_ran_code(blocked);
}

void prba_python_serve(struct prba_connection *c)
{
	struct prba_job *job = &c->job;
	bool leaves = atomic_load(&job->state) == PRBA_LEAVING;

	if (leaves)
		prba_bootstrap_close(c);
	else
		run_as_worker(c, &job->outcome, &job->text);
	if (!prba_pause_note_ran(c) && !leaves && !*job->text)
		job->text = "the process is paused, but some of its threads could run while this "
			    "was evaluated";
}

/** Runs the job's code, or has it run by who pauses the program. */
static void evaluate(struct prba_connection *c, enum prb_wire_outcome *outcome, const char **text)
{
	switch (prba_pause_serve(c)) {
	case PRBA_SERVED:
		*outcome = c->job.outcome;
		*text = c->job.text;
		return;
	case PRBA_NOT_SERVED:
		*outcome = PRB_WIRE_INTERRUPTED;
		*text = "";
		return;
	case PRBA_NOT_PAUSED:
		*outcome = PRB_WIRE_REFUSED;
		*text = ending;
		if (!attach(&c->job))
			return;
		run_as_worker(c, outcome, text);
		detach(&c->job);
	}
}

/** The GIL is not taken, although it was entered for it. */
static void leave_place(struct prba_job *job)
{
	if (job->entered)
		prba_life_leave();
	job->entered = false;
}

/** Why the interpreter cannot be entered, or NULL: it may be tried (static). */
static const char *approach(struct prba_connection *c)
{
	const char *text = atomic_load(&found) ? prba_main_greet(c) : NULL;

	return text || c->job.entered ? text : prba_python_refusal();
}

void prba_python_do(struct prba_connection *c)
{
	bool on_main = c->job.eval.flags & PRB_WIRE_ON_MAIN;
	enum prb_wire_outcome outcome = PRB_WIRE_REFUSED;
	const char *text;

	prba_python_find();
	text = approach(c);
	if (!text && on_main && prba_pause_held_us() >= 0)
		text = "it is paused, and its main thread with it; without --thread main code can "
		       "be run";
	if (text)
		goto end;
	if (on_main) {
		leave_place(&c->job);
		prba_main_call(c, run_here, &outcome, &text);
		goto end;
	}
	while (prba_main_lacks_gil() && !c->job.entered) {
		if (!prba_main_call(c, NULL, &outcome, &text))
			goto end;
		text = approach(c);
		outcome = PRB_WIRE_REFUSED;
		if (text)
			goto end;
	}
	atomic_store(&c->job.needs_main, false);
	if (c->job.asked == PRBA_PAUSES && !prba_pause_await(c))
		outcome = PRB_WIRE_INTERRUPTED;
	else if (c->job.asked == PRBA_PAUSES)
		pause_here(c, &outcome, &text);
	else if (c->job.asked == PRBA_STEPS)
		outcome = prba_pause_step(c, &text);
	else
		evaluate(c, &outcome, &text);
end:
	leave_place(&c->job);
	prba_pause_disclaim(c);
	prba_job_finish(c, outcome, text);
}

void prba_python_interrupt(struct prba_connection *c)
{
	struct prba_job *job = &c->job;
	int gil;

	if (prba_python_refusal())
		return;
	prba_pause_open(c);
	if (!prba_life_enter())
		return;
	gil = py->PyGILState_Ensure();
	pthread_mutex_lock(&job->lock);
	if (atomic_load(&job->state) == PRBA_RUNNING &&
	    __atomic_load_n(&job->serial, __ATOMIC_SEQ_CST) == job->interrupts) {
		atomic_store(&job->interrupted, true);
		py->PyThreadState_SetAsyncExc(job->thread, *py->PyExc_KeyboardInterrupt);
	}
	pthread_mutex_unlock(&job->lock);
	py->PyGILState_Release(gil);
	prba_life_leave();
}

bool prba_python_release(void)
{
	bool released;
	int gil;

	/* One that is shutting down, or has ended, calls nothing; nor does one that we are not in.
	 */
	if (prba_python_refusal() || !prba_life_is_known() || !prba_life_enter())
		return true;
	gil = py->PyGILState_Ensure();
	released = prba_bootstrap_release();
	py->PyGILState_Release(gil);
	prba_life_leave();
	return released;
}

/**
 * The main thread may have said that a call is over and not have left it yet. Whoever holds the GIL
 * after it knows that it has; without a GIL, all threads are stopped outside of such code for
 * _current_frames().
 */
static void see_it_off(void)
{
	object *frames, *result = NULL;
	int gil;

	if (!prba_life_enter())
		return;
	gil = py->PyGILState_Ensure();
	frames = py->PySys_GetObject("_current_frames");
	if (frames)
		result = py->PyObject_CallFunctionObjArgs(frames, NULL);
	if (result)
		py->Py_DecRef(result);
	py->PyErr_Clear();
	py->PyGILState_Release(gil);
	prba_life_leave();
}

enum prba_python_left prba_python_leave(void)
{
	const char *refusal = prba_python_refusal();
	uint32_t calls_before = prba_breaks_calls();

	if (!atomic_load(&found))
		return PRBA_PYTHON_LEFT;
	if (prba_main_is_called() || prba_breaks_called() || prba_tracing_stays())
		return PRBA_PYTHON_CALLS;
	if (refusal && py->Py_IsInitialized())
		return PRBA_PYTHON_ENDS;
	if (!refusal && (prba_main_was_called() || calls_before || prba_tracing_was_on() ||
			 prba_stepping_was_on()))
		see_it_off();
	/* Without a GIL one may have been about to call us, and have come in only now. */
	return prba_breaks_calls() == calls_before ? PRBA_PYTHON_LEFT : PRBA_PYTHON_CALLS;
}
