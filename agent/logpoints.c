/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/logpoints.h"

#include <errno.h>

#include "agent/ring_write.h"

enum { METH_VARARGS = 1, FUNCTION = 0, FILE_NAME, LINE, NAME, VALUE, TYPE, COLUMNS };

static const struct prba_python_table *const py = &prba_python;
static const char columns[] = "function_name text, filename text, lineno integer, "
			      "variable_name text, value text, value_type text";

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
	/* One that exists is found by its name. */
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

struct prba_method prba_logpoints_method = {"put_row", put_row, METH_VARARGS, NULL};
