/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of training_logs, of what agent/torch/logs.py sees a program tell. */
#include <errno.h>

#include "agent/inside/config.h"
#include "agent/rings/write.h"
#include "agent/torch/private.h"

static const struct prba_python_table *const py = &prba_python;

/* The same columns as in package/probing/_events.py: it is one table. */
enum column { EPOCH, STEP, LOSS, DURATION, METRICS, COLUMNS };
static const char columns[] =
	"epoch integer, step integer, loss real, duration real [ms], metrics text";

/** Looking at variables takes some 10 µs: steps that are too fast for that are left out. */
static const int64_t SPACE_NS = 10000000;

static int64_t last, step_number, duration; /* when a row was written; of the row */

void prba_torch_log(int64_t at, int64_t step)
{
	if (at - last < SPACE_NS || prba_config_number(PRB_CONFIG_TORCH_PROFILING) <= 0)
		return;
	duration = last ? at - last : 0;
	last = at;
	step_number = step;
	py->Py_DecRef(prba_torch_call(prba_torch.helpers.log, prba_torch_none(), NULL));
}

static struct probing_cell integer(object *value)
{
	if (!value || value == py->_Py_NoneStruct)
		return (struct probing_cell){};
	return (struct probing_cell){PROBING_INTEGER, 0, {.integer = prba_torch_integer(value)}};
}

static struct probing_cell real(object *value)
{
	if (!value || value == py->_Py_NoneStruct || !py->PyFloat_AsDouble)
		return (struct probing_cell){};
	return (struct probing_cell){PROBING_REAL, 0, {.real = py->PyFloat_AsDouble(value)}};
}

object *prba_torch_log_row(object *self, object *arguments)
{
	struct probing_cell cells[COLUMNS] = {
		[EPOCH] = integer(prba_torch_argument(arguments, 0)),
		[STEP] = {PROBING_INTEGER, 0, {.integer = step_number}},
		[LOSS] = real(prba_torch_argument(arguments, 1)),
		[DURATION] = {PROBING_REAL, 0, {.real = (double)duration / 1e6}},
	};
	object *metrics = prba_torch_argument(arguments, 2);
	int error = errno;
	intptr_t length, ring;
	char *data;

	(void)self;
	if (metrics && metrics != py->_Py_NoneStruct &&
	    !py->PyBytes_AsStringAndSize(metrics, &data, &length))
		cells[METRICS] =
			(struct probing_cell){PROBING_TEXT, (uint32_t)length, {.text = data}};
	if (!duration)
		cells[DURATION] = (struct probing_cell){};
	py->PyErr_Clear();
	ring = probing_ring_create("main.training_logs", columns, 0);
	if (ring > 0)
		probing_ring_append(ring, 0, cells);
	errno = error;
	return prba_torch_none();
}
