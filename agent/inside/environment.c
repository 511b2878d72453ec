/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/inside/environment.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inside/python_table.h"

/** A Python without that variable, which all have up to 3.15, cannot be asked without its GIL. */
static bool python_ignores_it(void)
{
	return prba_python.Py_IgnoreEnvironmentFlag ? *prba_python.Py_IgnoreEnvironmentFlag != 0
						    : prba_python.Py_GetVersion != NULL;
}

const char *prba_environment(const char *name)
{
	bool ours = !strncmp(name, "PROB", strlen("PROB"));

	return ours && python_ignores_it() ? NULL : secure_getenv(name);
}
