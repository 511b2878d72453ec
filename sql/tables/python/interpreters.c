/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "values/modules.h"
#include "sql/tables/shared/interpreters.h"
#include "sql/spec/table.h"

enum {
	INTERPRETER,
	MAIN,
	VERSION,
	THREADS,
	THREADS_MADE,
	MODULES,
	OWN_GIL,
	GIL_HOLDER,
	GC,
	FINALIZING,
	FREE_THREADED,
	DEBUG_BUILD,
	LIBRARY,
	RUNTIME,
	ADDRESS,
	ERROR,
};

static const struct prb_column columns[] = {
	[INTERPRETER] = {"interpreter", PRB_COLUMN_INTEGER, "Its id; 0 is the main one",
			 .flags = PRB_COLUMN_KEY},
	[MAIN] = {"main", PRB_COLUMN_INTEGER, "1 for the main interpreter"},
	[VERSION] = {"version", PRB_COLUMN_TEXT, "Version of Python: 3.12.1"},
	[THREADS] = {"threads", PRB_COLUMN_INTEGER, "Threads that have a state in it"},
	[THREADS_MADE] = {"threads_made", PRB_COLUMN_INTEGER,
			  "Thread states made in it so far (3.7 and later)"},
	[MODULES] = {"modules", PRB_COLUMN_INTEGER, "Entries of sys.modules"},
	[OWN_GIL] = {"own_gil", PRB_COLUMN_INTEGER,
		     "1 if its GIL is its own, 0 if it is shared (3.12 and later)"},
	[GIL_HOLDER] = {"gil_holder", PRB_COLUMN_INTEGER,
			"Thread that holds its GIL; NULL if none does, or before 3.11"},
	[GC] = {"gc", PRB_COLUMN_INTEGER, "1 while it collects garbage"},
	[FINALIZING] = {"finalizing", PRB_COLUMN_INTEGER,
			"1 while it is being ended (told by 3.8 and later)"},
	[FREE_THREADED] = {"free_threaded", PRB_COLUMN_INTEGER, "1 for a build without GIL"},
	[DEBUG_BUILD] = {"debug_build", PRB_COLUMN_INTEGER, "1 for a debug build (Py_DEBUG)"},
	[LIBRARY] = {"library", PRB_COLUMN_TEXT, "File that holds the interpreter's code"},
	[RUNTIME] = {"runtime", PRB_COLUMN_INTEGER,
		     "Which Python of the process, from 0; there may be several libraries"},
	[ADDRESS] = {"address", PRB_COLUMN_INTEGER, "Where its state lies in memory"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why something of it could not be read"},
	{},
};

static struct prb_error *put(struct prb_scan *scan, const struct prb_interpreter *i)
{
	int64_t modules;

	prb_put_integer(scan, INTERPRETER, i->state.id);
	prb_put_integer(scan, MAIN, i->state.main);
	prb_put_text(scan, VERSION, i->py->version);
	prb_put_integer(scan, THREADS, i->threads);
	prb_put_natural(scan, THREADS_MADE, i->state.thread_ids);
	prb_put_natural(scan, OWN_GIL, i->state.own_gil);
	if (i->holder)
		prb_put_integer(scan, GIL_HOLDER, (int64_t)i->holder);
	prb_put_integer(scan, GC, i->state.gc_collecting);
	prb_put_integer(scan, FINALIZING, i->state.finalizing);
	prb_put_integer(scan, FREE_THREADED, i->py->layout.free_threaded);
	prb_put_integer(scan, DEBUG_BUILD, i->py->layout.debug_build);
	prb_put_text(scan, LIBRARY, i->py->module->path);
	prb_put_integer(scan, RUNTIME, i->runtime);
	prb_put_integer(scan, ADDRESS, (int64_t)i->state.address);
	if (!prb_scan_wants(scan, MODULES))
		return NULL;

	struct prb_error *err = prb_imports_count(i->py, i->mem, i->state.address, &modules);
	if (!err)
		prb_put_integer(scan, MODULES, modules);
	return prb_put_reason(scan, ERROR, err);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_interpreters *interpreters;
	const struct prb_interpreter *interpreter;

	PRB_TRY(prb_interpreters_read(scan, &interpreters));
	prb_vec_each (interpreter, &interpreters->list) {
		if (!prb_interpreter_wanted(scan, INTERPRETER, interpreter))
			continue;
		PRB_TRY(prb_scan_row(scan));
		PRB_TRY(put(scan, interpreter));
	}
	return NULL;
}

const struct prb_table prb_table_python_interpreters = {
	.schema = "python",
	.name = "interpreters",
	.doc = "Interpreters of the process: the main one, and those made in it",
	.columns = columns,
	.rows = 1,
	.scan = scan,
};
