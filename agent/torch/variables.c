/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Watched expressions: python.variables, whose rows agent/torch/watch.py fills in. */
#include <errno.h>

#include "agent/inside/config.h"
#include "agent/rings/write.h"
#include "agent/torch/private.h"

static const struct prba_python_table *const py = &prba_python;

/* The same columns as in package/probing/_watch.py: it is one table. */
enum column { NAME, FUNCTION, NUMBER, VALUE, TYPE, STEP, COLUMNS };
static const char columns[] = "name text, function text, number real, value text, type text, "
			      "step integer";

/** The length of what probing.watch says. */
static int watched(char *ret, int size)
{
	int length = probing_config_get("probing.watch", ret, (size_t)size);

	return length < 0 ? 0 : length;
}

void prba_torch_watch(int64_t step)
{
	static unsigned changes;
	static bool known, any;
	char text[PRB_CONFIG_TEXT_SIZE];
	unsigned now = probing_config_changes();

	if (!known || changes != now) {
		known = true;
		changes = now;
		any = watched(text, sizeof(text)) > 0;
	}
	if (any)
		py->Py_DecRef(prba_torch_call(prba_torch.helpers.watch,
					      py->PyLong_FromVoidPtr((void *)(intptr_t)step),
					      NULL));
}

object *prba_torch_watched(object *self, object *arguments)
{
	char text[PRB_CONFIG_TEXT_SIZE];

	(void)self, (void)arguments;
	return py->PyBytes_FromStringAndSize(text, watched(text, sizeof(text)));
}

object *prba_torch_variable(object *self, object *arguments)
{
	static const enum column texts[] = {NAME, FUNCTION, VALUE, TYPE};
	struct probing_cell cells[COLUMNS] = {};
	int error = errno;
	object *number = prba_torch_argument(arguments, 4);
	intptr_t ring = probing_ring_create("python.variables", columns, 0);

	(void)self;
	for (int i = 0; i < 4; i++) {
		object *text = prba_torch_argument(arguments, i);
		intptr_t length;
		char *data;

		if (!text || py->PyBytes_AsStringAndSize(text, &data, &length))
			return NULL;
		cells[texts[i]] =
			(struct probing_cell){PROBING_TEXT, (uint32_t)length, {.text = data}};
	}
	if (number && number != py->_Py_NoneStruct && py->PyFloat_AsDouble)
		cells[NUMBER] = (struct probing_cell){
			PROBING_REAL, 0, {.real = py->PyFloat_AsDouble(number)}};
	cells[STEP] = (struct probing_cell){
		PROBING_INTEGER,
		0,
		{.integer = prba_torch_integer(prba_torch_argument(arguments, 5))}};
	if (ring > 0)
		probing_ring_append(ring, 0, cells);
	errno = error;
	return py->PyBool_FromLong(ring > 0);
}
