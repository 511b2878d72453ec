/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/inside/python.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "agent/inside/finalization.h"
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

bool prba_python_lacks_gil(void)
{
	return py->PyEval_ThreadsInitialized && py->PyEval_InitThreads &&
	       !py->PyEval_ThreadsInitialized();
}

static void acquire(struct prba_python_thread *thread)
{
	int now = prba_finalization_number();

	if (thread->thread_state && thread->life == now) {
		py->PyEval_RestoreThread(thread->thread_state);
	} else {
		thread->life = now;
		thread->gil = py->PyGILState_Ensure();
	}
}

void prba_python_drop(struct prba_python_thread *thread)
{
	py->PyGILState_Release(thread->gil);
	thread->thread_state = NULL;
	prba_finalization_leave();
}

bool prba_python_enter(struct prba_python_thread *thread)
{
	bool expected = thread->entered;

	if (!expected && !prba_finalization_enter())
		return false;
	/* Another interpreter by now: its thread would not hold us back, nor we it. */
	if (!expected && prba_python_lacks_gil()) {
		prba_finalization_leave();
		return false;
	}
	return true;
}

/**
 * The second half of attaching: acquires the GIL and registers our hooks with the interpreter. Not
 * @p may_wait: skips what would wait for the program's threads, which may be stopped.
 */
static bool attach_entered(struct prba_python_thread *thread, bool may_wait)
{
	bool expected = thread->entered;

	thread->entered = false;
	acquire(thread);
	if (!prba_finalization_register(may_wait))
		py->PyErr_Clear();
	if (expected || !prba_finalization_is_ending())
		return true;
	prba_python_drop(thread);
	return false;
}

bool prba_python_attach(struct prba_python_thread *thread)
{
	return prba_python_enter(thread) && attach_entered(thread, true);
}

void prba_python_detach(struct prba_python_thread *thread)
{
	/* An interpreter that does not report its end frees the thread state with it. */
	if (!prba_finalization_is_known()) {
		prba_python_drop(thread);
		return;
	}
	thread->thread_state = py->PyEval_SaveThread();
	prba_finalization_leave();
}

void prba_python_leave_place(struct prba_python_thread *thread)
{
	if (thread->entered)
		prba_finalization_leave();
	thread->entered = false;
}

bool prba_python_stops_world(void)
{
	return free_threaded;
}

bool prba_python_acquire(struct prba_python_thread *thread)
{
	return (thread->entered || !prba_python_refusal()) && prba_python_enter(thread) &&
	       attach_entered(thread, false);
}

void prba_python_stop_world(void)
{
	py->_PyEval_StopTheWorld(py->PyInterpreterState_Main());
}

void prba_python_start_world(void)
{
	py->_PyEval_StartTheWorld(py->PyInterpreterState_Main());
}

void prba_python_let_go(struct prba_python_thread *thread)
{
	if (free_threaded)
		prba_python_start_world();
	prba_python_detach(thread);
}

void prba_python_lend(struct prba_python_thread *thread)
{
	thread->thread_state = py->PyEval_SaveThread();
}

void prba_python_take_back(struct prba_python_thread *thread)
{
	acquire(thread);
}

void prba_python_take_turn(struct prba_python_thread *thread)
{
	bool first = !thread->thread_state;

	if (!attach_entered(thread, false))
		return;
	if (first)
		prba_python_drop(thread);
	else
		prba_python_detach(thread);
}

const char *prba_python_pause_refusal(void)
{
	if (free_threaded &&
	    !(py->_PyEval_StopTheWorld && py->_PyEval_StartTheWorld && py->PyInterpreterState_Main))
		return "this build without a GIL has no function to stop all its threads (3.13, or "
		       "one that hides it)";
	return NULL;
}
