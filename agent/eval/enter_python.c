/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/eval/enter_python.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/client/connection.h"
#include "agent/eval/bootstrap.h"
#include "agent/eval/main_thread.h"
#include "agent/inside/finalization.h"
#include "agent/inside/libc.h"
#include "agent/inside/python.h"
#include "agent/inside/python_table.h"
#include "agent/inside/thread.h"
#include "agent/pause/pause.h"
#include "agent/torch/flight.h"

static const struct prba_python_table *const py = &prba_python;

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
	/* Raise a pending interrupt now: withdrawing it would leave eval_breaker set. */
	if (atomic_load(&job->interrupted))
		prba_bootstrap_settle();
	if (ran == PRBA_RAN_INTERRUPTED) {
		pressed = !atomic_load(&job->interrupted);
		*outcome = PRB_WIRE_INTERRUPTED;
		*text = "";
	}
	return prba_bootstrap_leave() || pressed;
}

/** Runs the job's code on this thread, which holds the GIL. */
static void run_as_worker(struct prba_connection *c, enum prb_wire_outcome *outcome,
			  const char **text)
{
	unsigned long thread = py->PyThread_get_thread_ident();
	uint64_t blocked = prba_thread_runs_code();

	atomic_store(&c->job.present, true);
	prba_finalization_runs(thread);
	run_here(c, outcome, text);
	prba_finalization_ran(thread);
	if (*outcome == PRB_WIRE_INTERRUPTED && prba_finalization_is_ending())
		*text = prba_python_ending;
	prba_thread_ran_code(blocked);
}

/** For the thread that holds a pause. */
static void serve(struct prba_connection *c)
{
	struct prba_job *job = &c->job;
	bool leaves = atomic_load(&job->state) == PRBA_LEAVING;

	if (leaves)
		prba_bootstrap_close(c);
	else
		run_as_worker(c, &job->outcome, &job->text);
	/* The thread is another client's, which does not know what ran on it. */
	prba_bootstrap_forget_thread();
	if (!prba_pause_note_ran(c) && !leaves && !*job->text)
		job->text = "the process is paused, but some of its threads could run while this "
			    "was evaluated";
}

static void forget(struct prba_connection *c)
{
	struct prba_job *job = &c->job;
	bool lost = job->python.thread_state && job->python.life != prba_finalization_number();

	/* Objects that were freed with their interpreter are not touched. */
	if (!lost && prba_finalization_is_known() && !prba_python_refusal() &&
	    prba_python_attach(&c->job.python)) {
		prba_bootstrap_close(c);
		prba_python_drop(&c->job.python);
	}
	job->python.thread_state = NULL;
}

void prba_work_forget(struct prba_connection *c)
{
	/* A thread state is ended by its own thread. */
	if (c->job.python.thread_state || prba_pause_serve(c, serve) == PRBA_NOT_PAUSED)
		forget(c);
}

/** Holds all Python until the client has had enough. */
static void pause_here(struct prba_connection *c, enum prb_wire_outcome *outcome, const char **text)
{
	*outcome = PRB_WIRE_REFUSED;
	*text = prba_python_pause_refusal();
	if (*text)
		return;
	*text = prba_python_ending;
	if (!prba_pause_take(c))
		return;
	*text = "";
	*outcome = PRB_WIRE_INTERRUPTED;
	atomic_store(&c->job.present, true);
	if (prba_job_begin(c, py->PyThread_get_thread_ident())) {
		*outcome = prba_pause_hold(c);
		prba_job_end(c);
	} else {
		prba_python_let_go(&c->job.python);
	}
}

/** Runs the job's code, or lets the pausing worker run it. */
static void evaluate(struct prba_connection *c, enum prb_wire_outcome *outcome, const char **text)
{
	switch (prba_pause_serve(c, serve)) {
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
		*text = "its frames go on running: it is not paused any more";
		if (c->job.eval.flags & PRB_WIRE_IN_FRAME && c->job.asked == PRBA_EVALUATES)
			return;
		*text = prba_python_ending;
		if (!prba_python_attach(&c->job.python))
			return;
		run_as_worker(c, outcome, text);
		prba_python_detach(&c->job.python);
	}
}

/** Why the interpreter cannot be entered, or NULL: it may be tried (static). */
static const char *approach(struct prba_connection *c)
{
	const char *text = *prba_python_version() ? prba_main_register(c) : NULL;

	return text || c->job.python.entered ? text : prba_python_refusal();
}

void prba_work_do(struct prba_connection *c)
{
	bool on_main = c->job.eval.flags & PRB_WIRE_ON_MAIN;
	enum prb_wire_outcome outcome = PRB_WIRE_REFUSED;
	const char *text;

	if (prba_flight_is_asked(c)) {
		prba_flight_do(c);
		return;
	}
	prba_python_find();
	text = approach(c);
	if (!text && on_main && prba_pause_held_us() >= 0)
		text = "it is paused, and its main thread with it; without --thread main code can "
		       "be run";
	if (text)
		goto end;
	if (on_main) {
		prba_python_leave_place(&c->job.python);
		prba_main_call(c, run_here, &outcome, &text);
		goto end;
	}
	while (prba_python_lacks_gil() && !c->job.python.entered) {
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
	prba_python_leave_place(&c->job.python);
	prba_pause_disclaim(c);
	prba_job_finish(c, outcome, text);
}

void prba_work_here(struct prba_connection *c)
{
	enum prb_wire_outcome outcome = PRB_WIRE_REFUSED;
	const char *text;

	prba_python_find();
	text = prba_python_refusal();
	if (!text && !(py->PyGILState_Check && py->PyGILState_Check()))
		text = "the thread does not hold the GIL of the main interpreter";
	if (!text && py->PyErr_Occurred())
		text = "an exception was raised in the thread and is not handled yet, which the "
		       "code would lose";
	if (!text)
		run_here(c, &outcome, &text);
	prba_job_finish(c, outcome, text);
}

void prba_work_interrupt(struct prba_connection *c)
{
	struct prba_job *job = &c->job;
	int gil;

	if (prba_python_refusal())
		return;
	prba_pause_open(c);
	if (!prba_finalization_enter())
		return;
	gil = py->PyGILState_Ensure();
	pthread_mutex_lock(&job->lock);
	if (atomic_load(&job->state) == PRBA_RUNNING &&
	    __atomic_load_n(&job->serial, __ATOMIC_SEQ_CST) == job->interrupts) {
		atomic_store(&job->interrupted, true);
		atomic_fetch_add(&job->interruptions, 1);
		py->PyThreadState_SetAsyncExc(job->thread, *py->PyExc_KeyboardInterrupt);
	}
	pthread_mutex_unlock(&job->lock);
	py->PyGILState_Release(gil);
	prba_finalization_leave();
}

bool prba_work_release(void)
{
	bool released;
	int gil;

	/* No calls into an interpreter that is shutting down, has ended, or is unknown to us. */
	if (prba_python_refusal() || !prba_finalization_is_known() || !prba_finalization_enter())
		return true;
	gil = py->PyGILState_Ensure();
	released = prba_bootstrap_release();
	py->PyGILState_Release(gil);
	prba_finalization_leave();
	return released;
}
