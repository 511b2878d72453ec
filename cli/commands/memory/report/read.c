/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "cli/commands/memory/report/memory.h"
#include "command/waiting.h"
#include "dwarf/elf/module.h"
#include "target/mem/view.h"

static struct prb_error *add_interpreters(struct prb_memory *m, struct prb_python *py)
{
	struct prb_py_threads threads;
	const struct prb_interp *interp;
	struct prb_error *err = NULL;

	PRB_TRY(prb_python_threads(py, prb_view_mem(m->view), &threads));
	for (size_t i = threads.interps.count; !err && i-- > 0;) {
		struct prb_memory_interpreter *added = prb_vec_push(&m->interpreters);

		interp = &threads.interps.items[i];
		if (added)
			*added = (struct prb_memory_interpreter){.py = py, .state = *interp};
		else
			err = prb_error_nomem();
	}
	prb_py_threads_deinit(&threads);
	return err;
}

struct prb_error *prb_memory_open(struct prb_target *target, struct prb_memory *m)
{
	struct prb_python **py;

	*m = (struct prb_memory){.target = target};
	PRB_TRY(prb_view_create(m->target->mem, &m->view));
	PRB_TRY(prb_pythons_open(m->target, m->view, true, &m->modules, &m->pythons));
	prb_vec_each (py, &m->pythons.list)
		PRB_TRY(add_interpreters(m, *py));
	return NULL;
}

/*
 * An error of one interpreter is reported in its place; out of memory or an ended process ends the
 * whole reading.
 */
static struct prb_error *take(struct prb_memory *m, const struct prb_census_limits *limits)
{
	struct prb_memory_interpreter *i;

	prb_vec_each (i, &m->interpreters) {
		struct prb_error *err = prb_census_create(i->py, m->target->mem, i->state.address,
							  limits, &i->census);

		if (err && (err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS ||
			    err->code == PRB_ERROR_PERMISSION))
			return err;
		i->error = err;
	}
	return NULL;
}

struct prb_error *prb_memory_read(struct prb_target *target, const struct prb_memory_settings *s,
				  struct prb_memory *ret)
{
	const struct prb_census_limits limits = {.max_seconds = s->max_seconds};
	PRB_WAITING("walking all objects", 0);

	ret->no_python = prb_memory_open(target, ret);
	prb_memory_read_process(target, &ret->process);
	/* Of a process without Python there still are the kernel's numbers. */
	if (ret->no_python && (ret->no_python->code != PRB_ERROR_UNSUPPORTED || !ret->process.told))
		return prb_steal(&ret->no_python);
	PRB_TRY(take(ret, &limits));
	return prb_malloc_read(target, s->max_seconds > 0 ? s->max_seconds : PRB_CENSUS_SECONDS,
			       &ret->malloc);
}

void prb_memory_deinit(struct prb_memory *m)
{
	struct prb_memory_interpreter *i;

	prb_vec_each (i, &m->interpreters) {
		prb_census_destroy(i->census);
		prb_error_destroy(i->error);
	}
	prb_vec_free(&m->interpreters);
	prb_malloc_deinit(&m->malloc);
	prb_vec_free(&m->gpus);
	prb_str_deinit(&m->no_gpu);
	prb_pythons_deinit(&m->pythons);
	prb_view_destroy(m->view);
	prb_modules_destroy(m->modules);
	prb_error_destroy(m->no_python);
	*m = (struct prb_memory){};
}
