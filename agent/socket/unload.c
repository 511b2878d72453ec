/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/socket/unload.h"

#include <stdbool.h>
#include <stdint.h>

#include "agent/eval/debugger.h"
#include "agent/eval/main_thread.h"
#include "agent/inside/finalization.h"
#include "agent/inside/python.h"
#include "agent/inside/python_table.h"
#include "agent/sites/sites.h"
#include "agent/trace/breaks.h"
#include "agent/trace/stepping.h"
#include "agent/trace/tracing.h"

static const struct prba_python_table *const py = &prba_python;

/**
 * The main thread may have marked a call as over and not have left it yet. A thread that acquires
 * the GIL afterwards knows that the call was left; without a GIL, _current_frames() stops all
 * threads outside of such code.
 */
static void see_it_off(void)
{
	object *frames, *result = NULL;
	int gil;

	if (!prba_finalization_enter())
		return;
	gil = py->PyGILState_Ensure();
	frames = prba_python_stops_world() ? py->PySys_GetObject("_current_frames") : NULL;
	if (frames)
		result = py->PyObject_CallFunctionObjArgs(frames, NULL);
	if (result)
		py->Py_DecRef(result);
	py->PyErr_Clear();
	py->PyGILState_Release(gil);
	prba_finalization_leave();
}

enum prba_left prba_unload_leave(void)
{
	const char *refusal = prba_python_refusal();
	uint32_t calls_before = prba_breaks_calls();

	if (!*prba_python_version())
		return PRBA_LEFT;
	if (prba_main_is_called() || prba_debugger_is_here() || prba_breaks_called() ||
	    prba_tracing_stays())
		return PRBA_CALLS;
	if (refusal && py->Py_IsInitialized())
		return PRBA_ENDS;
	if (prba_sites_stays())
		return PRBA_ALLOCATES;
	if (!refusal && (prba_main_was_called() || prba_debugger_was_here() || calls_before ||
			 prba_tracing_was_on() || prba_stepping_was_on() || prba_sites_was_on()))
		see_it_off();
	/* Without a GIL one may have been about to call us, and have come in only now. */
	return prba_breaks_calls() == calls_before ? PRBA_LEFT : PRBA_CALLS;
}
