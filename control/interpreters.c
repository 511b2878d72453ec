/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/interpreters.h"

#include "base/cleanup.h"
#include "target/mem/view.h"

void prb_interpreters_look(struct prb_target *t,
			   void (*look)(void *context, struct prb_python *py,
					const struct prb_py_threads *threads),
			   void *context)
{
	struct prb_modules *modules = NULL;
	struct prb_pythons pythons = {};
	struct prb_view *view = NULL;
	prb_auto_error struct prb_error *err = prb_view_create(t->mem, &view);

	if (!err)
		err = prb_pythons_open(t, view, false, &modules, &pythons);
	for (size_t i = 0; !err && i < pythons.list.count; i++) {
		struct prb_python *py = pythons.list.items[i];
		struct prb_py_threads threads = {};
		prb_auto_error struct prb_error *unread = prb_python_threads(py, t->mem, &threads);

		look(context, py, unread ? NULL : &threads);
		prb_py_threads_deinit(&threads);
	}
	prb_pythons_deinit(&pythons);
	if (modules)
		prb_modules_destroy(modules);
	if (view)
		prb_view_destroy(view);
}
