/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/trace/logpoints.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/inside/libc.h"
#include "agent/rings/events.h"
#include "agent/rings/write.h"

enum { METH_VARARGS = 1, FUNCTION = 0, FILE_NAME, LINE, NAME, VALUE, TYPE, COLUMNS };
enum { PID_SHIFT = 32, NS_OF_MS = 1000000 };

static const struct prba_python_table *const py = &prba_python;
static const char columns[] = "function_name text, filename text, lineno integer, "
			      "variable_name text, value text, value_type text";
/* As package/probing/_events.py makes it. */
static const char events[] = "record text, name text, span_id integer, parent_id integer, "
			     "step integer, duration real [ms], attributes text";

/** The bytes are borrowed from the tuple. False with an exception. */
static bool take_text(object *arguments, int i, struct probing_cell *ret)
{
	object *text = py->PyTuple_GetItem(arguments, i);
	intptr_t length;
	char *data;

	if (!text || py->PyBytes_AsStringAndSize(text, &data, &length))
		return false;
	ret->kind = PROBING_TEXT;
	ret->length = (uint32_t)length;
	ret->text = data;
	return true;
}

/** Few different ones: kept once, as long as there is room. */
static void intern(intptr_t ring, struct probing_cell *cell)
{
	int64_t place = probing_ring_intern(ring, cell->text, cell->length);

	if (place <= 0)
		return;
	cell->kind = PROBING_INTERNED;
	cell->length = 0;
	cell->integer = place;
}

static object *put_row(object *self, object *arguments)
{
	struct probing_cell cells[COLUMNS] = {[LINE] = {.kind = PROBING_INTEGER}};
	object *line = py->PyTuple_GetItem(arguments, LINE);
	int error = errno;
	intptr_t ring;

	(void)self;
	if (!line)
		return NULL;
	cells[LINE].integer = py->PyLong_AsLong(line);
	for (int i = 0; i < COLUMNS; i++)
		if (i != LINE && !take_text(arguments, i, &cells[i]))
			return NULL;
	/* A ring that exists is found by its name. */
	ring = probing_ring_create("python.trace_variables", columns, 0);
	if (ring > 0) {
		intern(ring, &cells[FUNCTION]);
		intern(ring, &cells[FILE_NAME]);
		intern(ring, &cells[NAME]);
		intern(ring, &cells[TYPE]);
		probing_ring_append(ring, 0, cells);
	}
	errno = error;
	return py->PyBool_FromLong(ring > 0);
}

/** Numbers for calls, beyond the numbers of the process's spans. */
static object *span_number(object *self, object *arguments)
{
	static _Atomic int64_t last;
	int64_t process = (int64_t)syscall(SYS_getpid) << PID_SHIFT | 1ll << (PID_SHIFT - 1);
	int64_t number = atomic_load(&last);

	(void)self, (void)arguments;
	/* In a child after fork() it is the parent's. */
	if (number >> PID_SHIFT != process >> PID_SHIFT)
		atomic_compare_exchange_strong(&last, &number, process);
	return py->PyLong_FromVoidPtr((void *)(intptr_t)(atomic_fetch_add(&last, 1) + 1));
}

static object *span_parent(object *self, object *arguments)
{
	int64_t parent = prba_recorder.inner ? prba_recorder_parent() : 0;

	(void)self, (void)arguments;
	return py->PyLong_FromVoidPtr((void *)(intptr_t)(parent > 0 ? parent : 0));
}

static bool take_number(object *arguments, int i, int64_t *ret)
{
	object *number = py->PyTuple_GetItem(arguments, i);

	*ret = number ? py->PyLong_AsLong(number) : 0;
	return number && !py->PyErr_Occurred();
}

static struct probing_cell integer(int64_t value, bool known)
{
	return (struct probing_cell){known ? PROBING_INTEGER : PROBING_NULL, 0, {.integer = value}};
}

static object *put_span(object *self, object *arguments)
{
	enum { KIND, SPAN_NAME, SPAN, PARENT, TOOK, ATTRIBUTES };
	static const char *const kinds[] = {"", "span_begin", "span_end"};
	struct probing_cell cells[7];
	int64_t kind, span, parent, took, step = prba_recorder_step();
	int error = errno;
	intptr_t ring;

	(void)self;
	if (!take_number(arguments, KIND, &kind) || !take_text(arguments, SPAN_NAME, &cells[1]) ||
	    !take_number(arguments, SPAN, &span) || !take_number(arguments, PARENT, &parent) ||
	    !take_number(arguments, TOOK, &took) || !take_text(arguments, ATTRIBUTES, &cells[6]))
		return NULL;
	cells[0] = (struct probing_cell){
		PROBING_TEXT, (uint32_t)strlen(kinds[kind]), {.text = kinds[kind]}};
	cells[2] = integer(span, true);
	cells[3] = integer(parent, parent != 0);
	cells[4] = integer(step, step != INT64_MIN);
	cells[5] = (struct probing_cell){
		took < 0 ? PROBING_NULL : PROBING_REAL, 0, {.real = (double)took / NS_OF_MS}};
	ring = probing_ring_create("python.trace_event", events, 0);
	if (ring > 0 && kind) {
		intern(ring, &cells[0]);
		intern(ring, &cells[1]);
		probing_ring_append(ring, 0, cells);
	}
	errno = error;
	return py->PyBool_FromLong(ring > 0);
}

struct prba_method prba_logpoints_methods[PRBA_LOGPOINTS_METHODS] = {
	{"put_row", put_row, METH_VARARGS, NULL},
	{"put_span", put_span, METH_VARARGS, NULL},
	{"span_number", span_number, METH_VARARGS, NULL},
	{"span_parent", span_parent, METH_VARARGS, NULL},
};
