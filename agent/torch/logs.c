/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of training_logs, of what agent/torch/logs.py sees a program tell. */
#include <errno.h>

#include "agent/inside/config.h"
#include "agent/rings/write.h"
#include "agent/torch/private.h"

static const struct prba_python_table *const py = &prba_python;

/* The same columns as in package/probing/_events.py: it is one table. */
enum column { EPOCH, STEP, LOSS, LR, GRAD_NORM, DURATION, METRICS, COLUMNS };
static const char columns[] =
	"epoch integer, step integer, loss real, lr real, grad_norm real, duration real [ms], "
	"metrics text";

/** A row is worth a thousandth of the time: of fast steps only some have one, at least one a
 * second. */
enum { WORTH = 1000, SLOWEST_NS = 1000000, FIRST_NS = 20000, STEADY = 8 };

static struct {
	int64_t last;	  /* when a row was written */
	int64_t cost;	  /* ns that one takes, mostly */
	int64_t step;	  /* of the row */
	int64_t ended;	  /* when the step before it ended; 0: not known */
	int64_t duration; /* of its step; 0: not known */
} now;

/** The first one also compiles what it calls, and others are interrupted by other programs. */
static void note_cost(int64_t took)
{
	if (!now.cost)
		took = FIRST_NS;
	if (took > SLOWEST_NS)
		took = SLOWEST_NS;
	now.cost += now.cost ? (took - now.cost) / STEADY : took;
}

void prba_torch_log(int64_t at, int64_t step)
{
	int64_t ended = now.ended;

	now.ended = at;
	if (at - now.last < now.cost * WORTH || prba_config_number(PRB_CONFIG_TORCH_PROFILING) <= 0)
		return;
	now.duration = ended ? at - ended : 0;
	now.last = at;
	now.step = step;
	py->Py_DecRef(prba_torch_call(prba_torch.helpers.log, prba_torch_none(), NULL));
	note_cost(prba_torch_now() - at);
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
		[STEP] = {PROBING_INTEGER, 0, {.integer = now.step}},
		[LOSS] = real(prba_torch_argument(arguments, 1)),
		[LR] = real(prba_torch_argument(arguments, 2)),
		[GRAD_NORM] = real(prba_torch_argument(arguments, 3)),
		[DURATION] = {PROBING_REAL, 0, {.real = (double)now.duration / 1e6}},
	};
	object *metrics = prba_torch_argument(arguments, 4);
	int error = errno;
	intptr_t length, ring;
	char *data;

	(void)self;
	if (metrics && metrics != py->_Py_NoneStruct &&
	    !py->PyBytes_AsStringAndSize(metrics, &data, &length))
		cells[METRICS] =
			(struct probing_cell){PROBING_TEXT, (uint32_t)length, {.text = data}};
	if (!now.duration)
		cells[DURATION] = (struct probing_cell){};
	py->PyErr_Clear();
	ring = probing_ring_create("main.training_logs", columns, 0);
	if (ring > 0)
		probing_ring_append(ring, 0, cells);
	errno = error;
	return prba_torch_none();
}
