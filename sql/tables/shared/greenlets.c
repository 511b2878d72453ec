/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/tables/shared/greenlets.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dump/tasks/consistent_read.h"

struct state {
	PRB_VEC(struct prb_greenlets_of) list;
};

static void end(void *pointer)
{
	struct state *s = pointer;
	struct prb_greenlets_of *of;

	prb_vec_each (of, &s->list)
		prb_greenlets_deinit(&of->greenlets);
	prb_vec_free(&s->list);
	free(s);
}

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

static struct prb_error *read_stacks(struct prb_scan *scan, const struct prb_interpreter *i,
				     struct prb_greenlets *greenlets)
{
	struct prb_target *target = prb_instant_target(scan->instant);
	bool live = target->moves && !prb_target_is_recorded(target);
	struct prb_greenlet *g;
	struct prb_tasks tasks = {};

	if (live && greenlets->list.count &&
	    prb_instant_mode(scan->instant) != PRB_DUMP_NONBLOCKING) {
		PRB_TRY(prb_tasks_create(target, &tasks));
		struct prb_error *err = read_steadily(target, &tasks, i->py, greenlets);

		prb_tasks_deinit(&tasks);
		return err;
	}
	prb_vec_each (g, &greenlets->list)
		PRB_TRY(give_reason(g, prb_greenlet_stack(i->py, prb_interpreter_bulk(scan, i), g),
				    !target->moves));
	return NULL;
}

static struct prb_error *read_all(struct prb_scan *scan, struct state *s, const char *table)
{
	const struct prb_interpreters *interpreters;
	const struct prb_interpreter *i;
	size_t count = 0;
	bool missing = false;

	PRB_TRY(prb_interpreters_read(scan, &interpreters));
	prb_vec_each (i, &interpreters->list) {
		struct prb_greenlets_of *of = prb_vec_push(&s->list);

		if (!of)
			return prb_error_nomem();
		of->interpreter = i;
		PRB_TRY(prb_greenlets_read(i->py, prb_interpreter_bulk(scan, i), i->state.address,
					   &of->greenlets));
		PRB_TRY(read_stacks(scan, i, &of->greenlets));
		missing |= of->greenlets.doubt != NULL;
		if (of->greenlets.doubt)
			prb_scan_note(scan, "%s: %s", table, of->greenlets.doubt);
		count += of->greenlets.list.count;
	}
	if (!count && !missing)
		prb_scan_note(scan, "%s: this process has no greenlets", table);
	return NULL;
}

struct prb_error *prb_greenlets_scan(struct prb_scan *scan, const char *table,
				     struct prb_error *(*put)(struct prb_scan *scan,
							      const struct prb_greenlet *greenlet,
							      const struct prb_interpreter *of))
{
	const struct prb_greenlets_of *of;
	const struct prb_greenlet *greenlet;
	uint64_t place = 0;

	if (!scan->state) {
		scan->state = calloc(1, sizeof(struct state));
		if (!scan->state)
			return prb_error_nomem();
		scan->end = end;
		PRB_TRY(read_all(scan, scan->state, table));
	}
	struct state *s = scan->state;

	prb_vec_each (of, &s->list) {
		prb_vec_each (greenlet, &of->greenlets.list) {
			if (place++ < scan->position)
				continue;
			if (prb_scan_full(scan)) {
				scan->more = true;
				return NULL;
			}
			scan->position++;
			PRB_TRY(put(scan, greenlet, of->interpreter));
		}
	}
	return NULL;
}
