/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows of python.comm_collective, which agent/torch/comm.py fills in. */
#include <errno.h>

#include "agent/rings/write.h"
#include "agent/torch/private.h"

static const struct prba_python_table *const py = &prba_python;

enum column {
	RECORD,
	OPERATION,
	GROUP_NAME,
	DTYPE,
	GROUP_SIZE,
	GROUP_RANK,
	SEQ,
	BYTES,
	SRC,
	DST,
	DURATION,
	STEP,
	COLUMNS,
};
static const char columns[] =
	"record text, operation text, group_name text, dtype text, group_size integer, "
	"group_rank integer, seq integer, bytes integer [bytes], src integer, dst integer, "
	"duration real [ms], step integer";

static void put_text(intptr_t ring, object *value, struct probing_cell *ret)
{
	intptr_t length;
	char *data;

	if (!value || value == py->_Py_NoneStruct ||
	    py->PyBytes_AsStringAndSize(value, &data, &length)) {
		py->PyErr_Clear();
		return;
	}
	ret->integer = probing_ring_intern(ring, data, (size_t)length);
	ret->kind = PROBING_INTERNED;
	if (ret->integer > 0)
		return;
	*ret = (struct probing_cell){PROBING_TEXT, (uint32_t)length, {.text = data}};
}

static void put_integer(object *value, struct probing_cell *ret)
{
	if (!value || value == py->_Py_NoneStruct)
		return;
	ret->kind = PROBING_INTEGER;
	ret->integer = prba_torch_integer(value);
}

object *prba_torch_comm(object *self, object *arguments)
{
	static intptr_t ring;
	struct probing_cell cells[COLUMNS] = {};
	int error = errno;

	(void)self;
	if (ring <= 0)
		ring = probing_ring_create("python.comm_collective", columns, 0);
	if (ring <= 0)
		return prba_torch_none();
	for (int i = RECORD; i <= DTYPE; i++)
		put_text(ring, prba_torch_argument(arguments, i), &cells[i]);
	for (int i = GROUP_SIZE; i <= DURATION; i++)
		put_integer(prba_torch_argument(arguments, i), &cells[i]);
	if (cells[DURATION].kind)
		cells[DURATION] = (struct probing_cell){
			PROBING_REAL, 0, {.real = (double)cells[DURATION].integer / 1e6}};
	if (prba_torch_is_on() && prba_torch.step.began)
		cells[STEP] = (struct probing_cell){
			PROBING_INTEGER, 0, {.integer = prba_torch.step.number}};
	probing_ring_append(ring, 0, cells);
	errno = error;
	return prba_torch_none();
}
