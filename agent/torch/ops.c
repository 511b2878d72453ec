/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows of python.torch_ops and python.torch_kernels, which the client of a profile sends, and
 * of python.torch_nan; and that Kineto prints nothing into the program's stderr. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rings/write.h"
#include "agent/torch/flight.h"
#include "agent/torch/private.h"

static const struct prba_python_table *const py = &prba_python;

enum { MOST_COLUMNS = 16, NUMBER_LENGTH = 24 };

/** A letter for each cell: text, integer, nanoseconds that become milliseconds; or the number of
 * the step that runs, which is in no line. */
static const struct {
	const char *ring, *columns, *kinds;
	uint64_t bytes;
} tables[] = {
	{"python.torch_ops",
	 "step integer, name text, part text, module text, class text, file text, lineno integer, "
	 "shapes text, flops integer, duration real [ms], self real [ms], time_offset real [ms], "
	 "thread integer, depth integer, op integer",
	 "itttttitimmmiii", 8 << 20},
	{"python.torch_kernels",
	 "step integer, name text, kind text, part text, module text, operator text, op integer, "
	 "duration real [ms], time_offset real [ms], device integer, stream integer, "
	 "correlation integer",
	 "itttttimmiii", 2 << 20},
	{"python.torch_nan",
	 "step integer, kind text, module text, class text, nan integer, inf integer, "
	 "elements integer, inputs_odd integer, inputs text, parameters text",
	 "stttiiiitt", 1 << 20},
};

/** A cell of a line: what is empty is NULL. */
static struct probing_cell cell_of(intptr_t ring, char kind, const char *text, size_t length)
{
	char number[NUMBER_LENGTH] = "";
	struct probing_cell cell = {};
	int64_t value;

	if (!length)
		return cell;
	if (kind == 't') {
		value = probing_ring_intern(ring, text, length);
		if (value > 0)
			return (struct probing_cell){PROBING_INTERNED, 0, {.integer = value}};
		return (struct probing_cell){PROBING_TEXT, (uint32_t)length, {.text = text}};
	}
	memcpy(number, text, length < sizeof(number) ? length : sizeof(number) - 1);
	value = strtoll(number, NULL, 10);
	if (kind == 'm')
		return (struct probing_cell){PROBING_REAL, 0, {.real = (double)value / 1e6}};
	return (struct probing_cell){PROBING_INTEGER, 0, {.integer = value}};
}

/** One line; 0 or a negative errno value. */
static int put_row(intptr_t ring, const char *kinds, const char *line, const char *end)
{
	struct probing_cell cells[MOST_COLUMNS] = {};

	for (unsigned i = 0; kinds[i]; i++) {
		if (kinds[i] == 's') {
			cells[i] = (struct probing_cell){
				PROBING_INTEGER, 0, {.integer = prba_torch.step.number}};
			continue;
		}

		const char *tab = memchr(line, '\t', (size_t)(end - line));
		const char *to = tab ? tab : end;

		cells[i] = cell_of(ring, kinds[i], line, (size_t)(to - line));
		line = tab ? tab + 1 : end;
	}
	return probing_ring_append(ring, 0, cells);
}

/** op_rows(table, lines), a number and bytes: 0 or an errno value. */
object *prba_torch_op_rows(object *self, object *arguments)
{
	int64_t table = prba_torch_integer(prba_torch_argument(arguments, 0));
	object *lines = prba_torch_argument(arguments, 1);
	intptr_t length, ring;
	int error = errno, rc = 0;
	char *data, *end;

	(void)self;
	if (table < 0 || table >= (int64_t)(sizeof(tables) / sizeof(*tables)) || !lines ||
	    py->PyBytes_AsStringAndSize(lines, &data, &length)) {
		py->PyErr_Clear();
		return py->PyLong_FromVoidPtr((void *)(intptr_t)EINVAL);
	}
	ring = probing_ring_create(tables[table].ring, tables[table].columns, tables[table].bytes);
	if (ring <= 0)
		rc = (int)ring;
	for (end = data + length; !rc && data < end;) {
		char *stop = memchr(data, '\n', (size_t)(end - data));

		stop = stop ? stop : end;
		/* A row of long texts is lost, and no others. */
		rc = put_row(ring, tables[table].kinds, data, stop);
		rc = rc == -EMSGSIZE || rc == -EAGAIN ? 0 : rc;
		data = stop + (stop < end);
	}
	errno = error;
	return py->PyLong_FromVoidPtr((void *)(intptr_t)-rc);
}

/**
 * hush(level): Kineto prints only what is of that level or above. The level before; -1: this torch
 * does not let us.
 */
object *prba_torch_hush(object *self, object *arguments)
{
	int *level = prba_torch_symbol("_ZN9libkineto6Logger14severityLevel_E"), before = -1;

	(void)self;
	if (level)
		before = __atomic_exchange_n(
			level, (int)prba_torch_integer(prba_torch_argument(arguments, 0)),
			__ATOMIC_SEQ_CST);
	return py->PyLong_FromLongLong ? py->PyLong_FromLongLong(before) : NULL;
}
