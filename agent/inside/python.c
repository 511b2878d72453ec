/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/inside/python.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "agent/client/connection.h"
#include "agent/inside/finalization.h"
#include "agent/eval/main_thread.h"
#include "agent/inside/python_table.h"

struct prba_python_table prba_python;
static const struct prba_python_table *const py = &prba_python;
static char version[32];
static atomic_bool found;
static bool free_threaded;
const char prba_python_ending[] = "Python is shutting down";

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
		return "no Python in this process can be reached: none is loaded, or dlmopen() "
		       "has put it into a namespace of its own";
	if (!prba_finalization_look())
		return "Python is not initialised (yet)";
	if (prba_finalization_is_ending() || (py->Py_IsFinalizing && py->Py_IsFinalizing()) ||
	    (py->_Py_IsFinalizing && py->_Py_IsFinalizing()))
		return prba_python_ending;
	return NULL;
}

static void acquire(struct prba_job *job)
{
	int now = prba_finalization_number();

	if (job->thread_state && job->life == now) {
		py->PyEval_RestoreThread(job->thread_state);
	} else {
		job->life = now;
		job->gil = py->PyGILState_Ensure();
	}
}

/** Without the thread state, what belongs to the thread is gone. */
static void drop(struct prba_job *job)
{
	py->PyGILState_Release(job->gil);
	job->thread_state = NULL;
	prba_finalization_leave();
}

/** From here on the interpreter waits for us before it ends. False if it ends already. */
static bool enter(struct prba_job *job)
{
	bool expected = job->entered;

	if (!expected && !prba_finalization_enter())
		return false;
	/* Another interpreter by now: its thread would not hold us back, nor we it. */
	if (!expected && prba_main_lacks_gil()) {
		prba_finalization_leave();
		return false;
	}
	return true;
}

/**
 * The second half of attaching: takes the GIL and has the interpreter know of us; not @p may_wait:
 * as far as that waits for none of the program's threads, which may stand.
 */
static bool attach_entered(struct prba_job *job, bool may_wait)
{
	bool expected = job->entered;

	job->entered = false;
	acquire(job);
	if (!prba_finalization_register(may_wait))
		py->PyErr_Clear();
	if (expected || !prba_finalization_is_ending())
		return true;
	drop(job);
	return false;
}

bool prba_python_attach(struct prba_connection *c)
{
	return enter(&c->job) && attach_entered(&c->job, true);
}

static void detach(struct prba_job *job)
{
	/* One that does not tell us when it ends takes the thread state with it. */
	if (!prba_finalization_is_known()) {
		drop(job);
		return;
	}
	job->thread_state = py->PyEval_SaveThread();
	prba_finalization_leave();
}

void prba_python_detach(struct prba_connection *c)
{
	detach(&c->job);
}

void prba_python_drop(struct prba_connection *c)
{
	drop(&c->job);
}

void prba_python_leave_place(struct prba_connection *c)
{
	if (c->job.entered)
		prba_finalization_leave();
	c->job.entered = false;
}

bool prba_python_stops_world(void)
{
	return free_threaded;
}

bool prba_python_acquire(struct prba_connection *c)
{
	return (c->job.entered || !prba_python_refusal()) && enter(&c->job) &&
	       attach_entered(&c->job, false);
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
	drop(&c->job);
	atomic_store(&c->job.present, false);
}

void prba_python_lend(struct prba_connection *c)
{
	c->job.thread_state = py->PyEval_SaveThread();
}

void prba_python_take_back(struct prba_connection *c)
{
	acquire(&c->job);
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
		drop(&c->job);
	else
		detach(&c->job);
}

const char *prba_python_pause_refusal(void)
{
	if (free_threaded &&
	    !(py->_PyEval_StopTheWorld && py->_PyEval_StartTheWorld && py->PyInterpreterState_Main))
		return "this build without a GIL has no function to stop all its threads (3.13, or "
		       "one that hides it)";
	return NULL;
}
