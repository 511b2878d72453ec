/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "base/str.h"
#include "sql/tables/shared/greenlets.h"

enum { GREENLET, TYPE, STATE, WAITS_FOR, CHAIN, DEPTH, FUNC, FILE_, LINENO, INTERPRETER, ERROR };

static const struct prb_column columns[] = {
	[GREENLET] = {"greenlet", PRB_COLUMN_INTEGER, "Address of the greenlet: its id()"},
	[TYPE] = {"type", PRB_COLUMN_TEXT, "Name of its type, with the module"},
	[STATE] = {"state", PRB_COLUMN_TEXT,
		   "suspended, or other: it runs, was not started, or has ended"},
	[WAITS_FOR] = {"waits_for", PRB_COLUMN_TEXT,
		       "The event, semaphore or the like of gevent that it waits for, or the "
		       "function of gevent or eventlet that it called"},
	[CHAIN] = {"chain", PRB_COLUMN_TEXT,
		   "Its functions from the outermost to the innermost, as in "
		   "python.greenlet_frames"},
	[DEPTH] = {"depth", PRB_COLUMN_INTEGER, "How many frames that are"},
	[FUNC] = {"func", PRB_COLUMN_TEXT, "Name of the innermost function"},
	[FILE_] = {"file", PRB_COLUMN_TEXT, "Source file of the innermost function"},
	[LINENO] = {"lineno", PRB_COLUMN_INTEGER, "Line where that is, from 1"},
	[INTERPRETER] = {"interpreter", PRB_COLUMN_INTEGER, "Id of the interpreter"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why the stack could not be read"},
	{},
};

static void put_chain(struct prb_scan *scan, const struct prb_greenlet *g)
{
	prb_auto_str struct prb_str text = {};

	for (size_t i = g->frames.count; i-- > 0;) {
		const struct prb_greenlet_frame *frame = &g->frames.items[i];

		prb_str_printf(&text, "%s%s", text.length ? " → " : "",
			       frame->qualname ? frame->qualname : frame->code.name);
	}
	prb_put_bytes(scan, CHAIN, prb_str_text(&text), text.length);
}

static struct prb_error *put(struct prb_scan *scan, const struct prb_greenlet *g,
			     const struct prb_interpreter *of)
{
	PRB_TRY(prb_scan_row(scan));
	prb_put_integer(scan, GREENLET, (int64_t)g->address);
	prb_put_static(scan, TYPE, g->type);
	prb_put_static(scan, STATE, g->frames.count || g->error ? "suspended" : "other");
	prb_put_static(scan, WAITS_FOR, !g->frames.count ? NULL : g->linked ? g->linked : g->call);
	prb_put_integer(scan, INTERPRETER, of->state.id);
	prb_put_static(scan, ERROR, g->error);
	if (!g->frames.count)
		return NULL;
	put_chain(scan, g);
	prb_put_integer(scan, DEPTH, (int64_t)g->frames.count);
	prb_put_static(scan, FUNC, g->frames.items[0].code.name);
	prb_put_static(scan, FILE_, g->frames.items[0].code.file);
	prb_put_natural(scan, LINENO, g->frames.items[0].location.line);
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	return prb_greenlets_scan(scan, "python.greenlets", put);
}

const struct prb_table prb_table_python_greenlets = {
	.schema = "python",
	.name = "greenlets",
	.doc = "Greenlets, also gevent's, with the stacks of those that are suspended",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 100,
	.scan = scan,
};
