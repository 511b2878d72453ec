/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/greenlet_stacks.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "dump/tasks/consistent_read.h"

/* One stack at one instant. */
struct attempt {
	struct prb_python *py;
	struct prb_mem *mem;
	struct prb_greenlet *greenlet;
};

static struct prb_error *read_once(void *context)
{
	const struct attempt *a = context;

	return prb_greenlet_stack(a->py, a->mem, a->greenlet);
}

static bool is_own_fault(const struct prb_error *err)
{
	return err && err->code != PRB_ERROR_BAD_DATA && err->code != PRB_ERROR_FAULT;
}

static struct prb_error *give_reason(struct prb_greenlet *g, struct prb_error *reason,
				     bool consistent)
{
	prb_auto_error struct prb_error *err = reason;

	if (is_own_fault(err))
		return prb_steal(&err);
	if (err)
		return prb_str_copy(err->message, &g->error);
	return consistent ? NULL : prb_str_copy("it ran while it was read", &g->error);
}

/* Of a process that runs, with the threads that run stopped for a moment where that is needed. */
static struct prb_error *read_steadily(struct prb_target *target, struct prb_tasks *tasks,
				       struct prb_python *py, struct prb_greenlets *greenlets)
{
	enum { STACKS_OF_VIEW = 32 };
	struct prb_view *view = NULL;
	struct prb_greenlet *g;
	struct prb_error *err = NULL;

	prb_vec_each (g, &greenlets->list) {
		struct attempt a = {.py = py, .greenlet = g};
		bool consistent = false;

		if (!((g - greenlets->list.items) % STACKS_OF_VIEW)) {
			prb_view_destroy(view);
			view = NULL;
			err = prb_view_create(target->mem, &view);
		}
		if (!err)
			err = prb_tasks_update(tasks, target);
		if (err)
			break;
		a.mem = prb_view_mem(view);
		err = prb_read_consistent(target, tasks, view, read_once, &a, &consistent);
		err = give_reason(g, err, consistent);
		if (err)
			break;
	}
	prb_view_destroy(view);
	return err;
}

struct prb_error *prb_greenlet_stacks(struct prb_target *target, enum prb_dump_mode mode,
				      struct prb_python *py, struct prb_mem *mem,
				      struct prb_greenlets *greenlets)
{
	bool live = target->moves && !prb_target_is_recorded(target);
	struct prb_greenlet *g;
	struct prb_tasks tasks = {};

	if (live && greenlets->list.count && mode != PRB_DUMP_NONBLOCKING) {
		PRB_TRY(prb_tasks_create(target, &tasks));
		struct prb_error *err = read_steadily(target, &tasks, py, greenlets);

		prb_tasks_deinit(&tasks);
		return err;
	}
	prb_vec_each (g, &greenlets->list)
		PRB_TRY(give_reason(g, prb_greenlet_stack(py, mem, g), !target->moves));
	return NULL;
}
