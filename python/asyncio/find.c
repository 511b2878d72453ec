/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Where asyncio keeps its tasks: a WeakSet (_all_tasks, since 3.12 _scheduled_tasks) and a set of
 * those that began to run at once (_eager_tasks) in the module asyncio.tasks; from 3.14 on lists
 * that run through the tasks themselves, one in each thread and one in the interpreter for those
 * of threads that ended.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/asyncio/private.h"

enum { TASKS_MAX = 1 << 22 };

/* One interpreter whose tasks are being collected. */
struct collection {
	struct prb_asyncio_reader *t;
	const struct prb_interp *interp;
	struct prb_error *err;
};

static struct prb_error *add(struct collection *c, uint64_t address)
{
	struct prb_asyncio_tasks *tasks = c->t->tasks;
	struct prb_asyncio_task *task;
	size_t known;

	if (prb_number_map_get(&tasks->by_address, address, &known))
		return NULL;
	if (tasks->list.count >= TASKS_MAX)
		return prb_error_create(PRB_ERROR_BAD_DATA, "too many tasks");
	if (!prb_number_map_put(&tasks->by_address, address, tasks->list.count))
		return prb_error_nomem();
	task = prb_vec_push(&tasks->list);
	if (!task)
		return prb_error_nomem();
	task->address = address;
	task->interp = c->interp->address;
	task->interp_id = c->interp->id;
	task->state = PRB_PY_TASK_UNKNOWN;
	return NULL;
}

static bool visit_task(void *context, uint64_t key)
{
	struct collection *c = context;

	c->err = add(c, key);
	return !c->err;
}

/* Weak references of which the object is gone are left out. */
static bool visit_reference(void *context, uint64_t key)
{
	struct collection *c = context;
	uint64_t object;

	c->err = prb_repr_member(&c->t->r, key, 0, &object);
	if (!c->err && object && !prb_repr_is_none(&c->t->r, object))
		c->err = add(c, object);
	return !c->err;
}

static struct prb_error *read_set(struct collection *c, uint64_t globals, const char *name,
				  bool weak)
{
	uint64_t set;
	struct prb_error *err = prb_repr_dict_get(&c->t->r, globals, name, &set);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL; /* not in this version */
	PRB_TRY(err);
	if (weak)
		PRB_TRY(prb_repr_attribute(&c->t->r, set, "data", &set));
	c->err = NULL;
	err = prb_repr_set_each(&c->t->r, set, weak ? visit_reference : visit_task, c);
	if (!err)
		err = c->err;
	c->err = NULL;
	return prb_error_prefix(err, "asyncio.tasks.%s", name);
}

static struct prb_error *add_running(struct prb_asyncio_reader *t, uint64_t task)
{
	uint64_t *slot = prb_vec_push(&t->running);

	if (!slot)
		return prb_error_nomem();
	*slot = task;
	return NULL;
}

static bool visit_current(void *context, uint64_t loop, uint64_t task)
{
	struct collection *c = context;

	(void)loop;
	c->err = add_running(c->t, task);
	return !c->err;
}

static struct prb_error *read_current(struct collection *c, uint64_t globals)
{
	uint64_t dict;
	struct prb_error *err = prb_repr_dict_get(&c->t->r, globals, "_current_tasks", &dict);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	PRB_TRY(err);
	c->err = NULL;
	err = prb_repr_dict_each(&c->t->r, dict, visit_current, c);
	if (!err)
		err = c->err;
	c->err = NULL;
	return prb_error_prefix(err, "asyncio.tasks._current_tasks");
}

/* A circle of nodes that lie inside of the tasks; the head lies in none. */
static struct prb_error *read_list(struct collection *c, uint64_t head)
{
	uint64_t node, before = head, links[2]; /* next, previous */

	PRB_TRY(prb_repr_word(&c->t->r, head, &node));
	/* All zero: the thread has not used it yet. */
	while (node && node != head) {
		PRB_TRY(prb_repr_words(&c->t->r, node, 2, links));
		if (links[1] != before)
			return prb_error_create(PRB_ERROR_BAD_DATA,
						"the list of tasks changed while it was read");
		PRB_TRY(add(c, node - (uint64_t)c->t->layout.node));
		before = node;
		node = links[0];
	}
	return NULL;
}

static struct prb_error *read_threads(struct collection *c)
{
	const struct prb_asyncio_layout *l = &c->t->layout;
	const struct prb_py_thread *thread;
	uint64_t task;

	if (l->node <= 0 || l->thread_tasks <= 0)
		return NULL;
	prb_vec_each (thread, &c->t->threads->list) {
		if (thread->interp != c->interp->address)
			continue;
		PRB_TRY(read_list(c, thread->address + (uint64_t)l->thread_tasks));
		if (l->thread_running_task <= 0)
			continue;
		PRB_TRY(prb_repr_word(&c->t->r, thread->address + (uint64_t)l->thread_running_task,
				      &task));
		if (task && !prb_repr_is_none(&c->t->r, task))
			PRB_TRY(add_running(c->t, task));
	}
	if (l->interp_tasks > 0)
		PRB_TRY(read_list(c, c->interp->address + (uint64_t)l->interp_tasks));
	return NULL;
}

/* The dict of a module is the first member of its object. */
static struct prb_error *module_dict(struct prb_asyncio_reader *t, uint64_t interp,
				     const char *name, uint64_t *ret)
{
	uint64_t modules, module;

	PRB_TRY(prb_repr_word(&t->r, interp + (uint64_t)t->r.layout->interp_modules, &modules));
	PRB_TRY(prb_repr_dict_get(&t->r, modules, name, &module));
	return prb_repr_member(&t->r, module, 0, ret);
}

/* The module of the target that _asyncio is in, by the place of a function of its Task type. */
static struct prb_module *find_module(struct prb_asyncio_reader *t, uint64_t interp)
{
	uint64_t dict, object;
	struct prb_type *type = NULL;
	prb_auto_error struct prb_error *err = module_dict(t, interp, "_asyncio", &dict);

	if (!err)
		err = prb_repr_dict_get(&t->r, dict, "Task", &object);
	if (!err)
		err = prb_repr_type(&t->r, object, &type);
	return err || !t->modules ? NULL : prb_modules_find(t->modules, type->repr);
}

/* An unreadable registry is reported, and the others are read. */
static struct prb_error *note(struct prb_asyncio_reader *t, struct prb_error *err)
{
	prb_asyncio_tolerate(&err, &t->tasks->error);
	return err;
}

struct prb_error *prb_asyncio_find_current(struct prb_asyncio_reader *t, uint64_t interp,
					   uint64_t *ret)
{
	struct prb_error *err;
	uint64_t globals;

	*ret = 0;
	PRB_TRY(module_dict(t, interp, "asyncio.tasks", &globals));
	if (!t->layout.version)
		PRB_TRY(prb_asyncio_layout_load(t->r.py, t->r.mem, find_module(t, interp),
						&t->layout));
	err = prb_repr_dict_get(&t->r, globals, "_current_tasks", ret);
	prb_error_catch(&err, PRB_ERROR_NOT_FOUND);
	return err;
}

struct prb_error *prb_asyncio_read_current(struct prb_asyncio_reader *t, uint64_t thread,
					   uint64_t dict)
{
	enum { MOST_CURRENT = 256 };
	struct collection c = {.t = t};
	uint64_t task = 0, count;

	if (t->layout.thread_running_task > 0)
		PRB_TRY(prb_repr_word(&t->r, thread + (uint64_t)t->layout.thread_running_task,
				      &task));
	if (task && !prb_repr_is_none(&t->r, task))
		PRB_TRY(add_running(t, task));
	if (!dict)
		return NULL;
	PRB_TRY(prb_repr_dict_size(&t->r, dict, &count));
	if (count > MOST_CURRENT)
		return prb_repr_bad(dict, "too many event loops");
	PRB_TRY(prb_repr_dict_each(&t->r, dict, visit_current, &c));
	return c.err;
}

static struct prb_error *read_interp(struct prb_asyncio_reader *t, const struct prb_interp *interp)
{
	struct collection c = {.t = t, .interp = interp};
	uint64_t globals;
	struct prb_error *err = module_dict(t, interp->address, "asyncio.tasks", &globals);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL; /* never imported */
	PRB_TRY(err);
	if (!t->layout.version)
		PRB_TRY(prb_asyncio_layout_load(t->r.py, t->r.mem, find_module(t, interp->address),
						&t->layout));
	PRB_TRY(note(t, read_threads(&c)));
	PRB_TRY(note(t, read_set(&c, globals, "_all_tasks", true)));
	PRB_TRY(note(t, read_set(&c, globals, "_scheduled_tasks", true)));
	PRB_TRY(note(t, read_set(&c, globals, "_eager_tasks", false)));
	return note(t, read_current(&c, globals));
}

struct prb_error *prb_asyncio_find_all(struct prb_asyncio_reader *t)
{
	const struct prb_interp *interp;

	prb_vec_each (interp, &t->threads->interps) {
		t->r.walked = 0;
		PRB_TRY(note(t, read_interp(t, interp)));
	}
	return NULL;
}
