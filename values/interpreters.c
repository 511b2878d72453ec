/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "values/interpreters.h"

#include "base/cleanup.h"
#include "target/mem/view.h"
#include "values/expression.h"

struct prb_error *prb_inside_find(const struct prb_inside *inside, const char *expression,
				  uint64_t *ret)
{
	const struct prb_py_scope scope = {.interp = inside->interp};
	struct prb_py_value value;

	*ret = 0;
	PRB_TRY(prb_python_find(inside->py, inside->mem, &scope, expression, NULL, &value));
	prb_str_deinit(&value.text);
	*ret = value.object;
	return NULL;
}

static struct prb_error *each_interpreter(struct prb_python *py, struct prb_mem *mem,
					  prb_inside_reader *read, void *context)
{
	struct prb_py_threads threads;
	struct prb_error *err = NULL;

	PRB_TRY(prb_python_threads(py, mem, &threads));
	for (size_t i = 0; i < threads.interps.count && !err; i++)
		if (threads.interps.items[i].main)
			err = read(context,
				   &(struct prb_inside){py, mem, threads.interps.items[i].address});
	prb_py_threads_deinit(&threads);
	return err;
}

struct prb_error *prb_inside_each(struct prb_target *target, const struct prb_pythons *pythons,
				  prb_inside_reader *read, void *context)
{
	struct prb_modules *modules = NULL;
	struct prb_pythons own = {};
	struct prb_view *view;
	struct prb_python **py;
	struct prb_error *err = NULL;

	PRB_TRY(prb_view_create(target->mem, &view));
	if (!pythons || !pythons->list.count) {
		err = prb_pythons_open(target, view, false, &modules, &own);
		pythons = &own;
	}
	prb_vec_each (py, &pythons->list)
		if (!err)
			err = each_interpreter(*py, prb_view_mem(view), read, context);
	prb_pythons_deinit(&own);
	prb_view_destroy(view);
	prb_modules_destroy(modules);
	if (err && err->code != PRB_ERROR_NOMEM) {
		prb_error_destroy(err);
		err = NULL;
	}
	return err;
}
