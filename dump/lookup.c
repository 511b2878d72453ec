/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/lookup.h"

#include <string.h>

#include "base/cleanup.h"
#include "python/frames/expression.h"
#include "target/snapshot/snapshot.h"
#include "dump/owner.h"
#include "dump/tasks.h"

struct lookup {
	struct prb_target *target;
	pid_t tid;
	unsigned depth;
	const char *expression;
	uint64_t address; /* of the object, where there is no expression */
	const struct prb_repr_options *options;
	struct prb_found_object *found;

	struct prb_modules *modules;
	struct prb_view *view;
	struct prb_pythons pythons;
	struct prb_tasks tasks;
	struct prb_mem *mem;
	bool thread_seen;
	unsigned frames; /* of the thread, as far as they were counted */
};

static struct prb_error *tell(struct lookup *l, struct prb_python *py, uint64_t address)
{
	struct prb_found_object *found = l->found;

	found->address = address;
	PRB_TRY(prb_object_type_name(py, l->mem, found->address, &found->type));
	PRB_TRY(prb_object_repr(py, l->mem, found->address, l->options, &found->value));
	return found->type.failed || found->value.failed ? prb_error_nomem() : NULL;
}

static struct prb_error *evaluate(struct lookup *l, struct prb_python *py,
				  const struct prb_py_frame *frame)
{
	uint64_t address;

	PRB_TRY(prb_python_find(py, l->mem, frame, l->expression, &address));
	return tell(l, py, address);
}

static struct prb_error *search_frames(struct lookup *l, struct prb_python *py,
				       const struct prb_py_frames *frames, bool *done)
{
	const struct prb_py_frame *frame;
	unsigned depth = 0;

	prb_vec_each (frame, &frames->list) {
		if (frame->hidden)
			continue;
		if (depth++ == l->depth) {
			*done = true;
			return evaluate(l, py, frame);
		}
	}
	if (depth > l->frames)
		l->frames = depth;
	return NULL;
}

static struct prb_error *search_thread(struct lookup *l, struct prb_python *py,
				       struct prb_py_thread *state, bool *done)
{
	struct prb_py_frames frames = {};
	const struct prb_task_watch *task;

	task = state->tid ? prb_tasks_find_inner(&l->tasks, state->tid) : NULL;
	if (!task || task->tid != l->tid)
		return NULL;
	l->thread_seen = true;

	/* A chain that breaks off may still have the frame. */
	prb_auto_error struct prb_error *broken =
		prb_python_frames(py, l->mem, state->address, &frames);
	struct prb_error *err = search_frames(l, py, &frames, done);
	prb_py_frames_deinit(&frames);
	if (!err && !*done && broken)
		return prb_steal(&broken);
	return err;
}

static struct prb_error *search_python(struct lookup *l, struct prb_python *py, bool *done)
{
	struct prb_py_threads threads;
	struct prb_py_thread *state;
	struct prb_error *err = NULL;

	PRB_TRY(prb_python_threads(py, l->mem, &threads));
	err = prb_owners_name(l->modules, &l->tasks, py, l->view, &threads);
	if (err) {
		prb_py_threads_deinit(&threads);
		return err;
	}
	prb_vec_each (state, &threads.list) {
		err = search_thread(l, py, state, done);
		if (err || *done)
			break;
	}
	prb_py_threads_deinit(&threads);
	return err;
}

static struct prb_error *open_pythons(struct lookup *l)
{
	PRB_TRY(prb_view_create(l->target->mem, &l->view));
	PRB_TRY(prb_pythons_open(l->target, l->view, false, &l->modules, &l->pythons));
	l->mem = prb_view_mem(l->view);
	return NULL;
}

static struct prb_error *search(struct lookup *l)
{
	struct prb_python **py;
	struct prb_mem *own;
	bool done = false;

	PRB_TRY(open_pythons(l));
	PRB_TRY(prb_tasks_create(l->target, &l->tasks));
	own = prb_snapshot_thread_mem(l->target, l->tid);
	if (own)
		l->mem = own;
	prb_vec_each (py, &l->pythons.list) {
		PRB_TRY(search_python(l, *py, &done));
		if (done)
			return NULL;
	}
	if (!l->thread_seen)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "there is no Python thread %d",
					l->tid);
	return prb_error_create(PRB_ERROR_NOT_FOUND, "thread %d has only %u Python frames", l->tid,
				l->frames);
}

/* Whichever Python it belongs to takes it for an object. */
static struct prb_error *find_owner(struct lookup *l)
{
	prb_auto_error struct prb_error *first = NULL;
	struct prb_python **py;

	PRB_TRY(open_pythons(l));
	prb_vec_each (py, &l->pythons.list) {
		struct prb_error *err = tell(l, *py, l->address);

		if (!err)
			return NULL;
		prb_found_object_deinit(l->found);
		*l->found = (struct prb_found_object){};
		if (first)
			prb_error_destroy(err);
		else
			first = err;
	}
	return prb_error_prefix(prb_steal(&first), "there is no object at %#llx",
				(unsigned long long)l->address);
}

static struct prb_error *may_look(struct prb_target *target)
{
	if (target->moves)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"expressions need a target that does not run: a core file, "
					"a snapshot, or a process in a debugger");
	if (prb_snapshot_redacted(target))
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"values were left out when this snapshot was made "
					"(--redact)");
	return NULL;
}

static struct prb_error *look(struct lookup *l, struct prb_error *(*how)(struct lookup *l))
{
	*l->found = (struct prb_found_object){};
	PRB_TRY(may_look(l->target));

	struct prb_error *err = how(l);
	prb_tasks_deinit(&l->tasks);
	prb_pythons_deinit(&l->pythons);
	prb_view_destroy(l->view);
	prb_modules_destroy(l->modules);
	if (err)
		prb_found_object_deinit(l->found);
	return err;
}

struct prb_error *prb_lookup(struct prb_target *target, pid_t tid, unsigned depth,
			     const char *expression, const struct prb_repr_options *options,
			     struct prb_found_object *ret)
{
	return look(&(struct lookup){.target = target,
				     .tid = tid,
				     .depth = depth,
				     .expression = expression,
				     .options = options,
				     .found = ret},
		    search);
}

struct prb_error *prb_lookup_address(struct prb_target *target, uint64_t address,
				     const struct prb_repr_options *options,
				     struct prb_found_object *ret)
{
	return look(
		&(struct lookup){
			.target = target, .address = address, .options = options, .found = ret},
		find_owner);
}

void prb_found_object_deinit(struct prb_found_object *object)
{
	prb_str_deinit(&object->type);
	prb_str_deinit(&object->value);
}
