/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/inspect.h"

#include <string.h>

#include "base/cleanup.h"
#include "values/expression.h"
#include "target/custom.h"
#include "target/snapshot/snapshot.h"
#include "dump/tasks/thread_of_state.h"
#include "dump/tasks/consistent_read.h"
#include "dump/tasks/tasks.h"

/* A state of the thread; most threads have only one. */
struct subject {
	struct prb_python *py;
	struct prb_py_thread state;
};

struct inspection {
	struct prb_target *target;
	pid_t tid;
	unsigned depth;
	const char *expression;
	bool names;	  /* list the names that may continue the expression */
	uint64_t address; /* of the object, if there is no expression */
	struct prb_repr_options options;
	struct prb_inspected *found;

	struct prb_modules *modules;
	struct prb_view *view;
	struct prb_pythons pythons;
	struct prb_tasks tasks;
	struct prb_mem *mem;
	PRB_VEC(struct subject) subjects;
	uint64_t interp; /* the first interpreter */
	unsigned frames; /* of the thread, as far as counted */
};

static struct prb_error *tell(struct inspection *l, struct prb_python *py, uint64_t address)
{
	struct prb_inspected *found = l->found;

	found->address = address;
	PRB_TRY(prb_object_type_name(py, l->mem, found->address, &found->type));
	PRB_TRY(prb_object_repr(py, l->mem, found->address, &l->options, &found->value));
	return found->type.failed || found->value.failed ? prb_error_nomem() : NULL;
}

static struct prb_error *evaluate(struct inspection *l, struct prb_python *py, uint64_t interp,
				  const struct prb_py_frame *frame, size_t callers)
{
	struct prb_py_scope scope = {
		.frame = frame, .interp = interp, .callers = callers, .depth = l->depth};
	struct prb_py_value value;

	if (l->names)
		return prb_python_names(py, l->mem, &scope, l->expression, &l->found->value);
	PRB_TRY(prb_python_find(py, l->mem, &scope, l->expression, &l->options, &value));
	if (value.object) {
		prb_str_deinit(&value.text);
		return tell(l, py, value.object);
	}
	l->found->value = value.text;
	prb_str_puts(&l->found->type, value.type);
	return l->found->type.failed ? prb_error_nomem() : NULL;
}

static struct prb_error *search_frames(struct inspection *l, const struct subject *subject,
				       const struct prb_py_frames *frames, bool *done)
{
	const struct prb_py_frame *frame;
	unsigned depth = 0;

	prb_vec_each (frame, &frames->list) {
		if (frame->hidden)
			continue;
		if (depth++ == l->depth) {
			*done = true;
			return evaluate(l, subject->py, subject->state.interp, frame,
					frames->list.count - 1 -
						(size_t)(frame - frames->list.items));
		}
	}
	if (depth > l->frames)
		l->frames = depth;
	return NULL;
}

/* The state may have been freed and reused since the threads were listed. */
static struct prb_error *check_state(struct inspection *l, const struct subject *subject)
{
	int32_t place = subject->py->layout.thread_id;
	uint64_t pthread;

	if (place < 0)
		return NULL;
	PRB_TRY(prb_mem_read_u64(l->mem, subject->state.address + (uint64_t)place, &pthread));
	return pthread == subject->state.pthread
		       ? NULL
		       : prb_error_create(PRB_ERROR_NOT_FOUND, "thread %d has ended", l->tid);
}

static struct prb_error *search_subject(struct inspection *l, const struct subject *subject,
					bool *done)
{
	struct prb_py_frames frames = {};

	PRB_TRY(check_state(l, subject));

	/* A broken chain of frames may still have the frame. */
	prb_auto_error struct prb_error *broken =
		prb_python_frames(subject->py, l->mem, subject->state.address, &frames);
	struct prb_error *err = search_frames(l, subject, &frames, done);
	prb_py_frames_deinit(&frames);
	if (!err && !*done && broken)
		return prb_steal(&broken);
	return err;
}

static struct prb_error *no_frame(struct inspection *l)
{
	/* Names of modules need no frame. */
	if (!l->frames && !l->depth && l->pythons.list.count)
		return evaluate(l, l->pythons.list.items[0], l->interp, NULL, 0);
	return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND,
					       "thread %d has only %u Python frames", l->tid,
					       l->frames),
			      "'probing TARGET backtrace --tid %d' shows them", l->tid);
}

static void forget(struct inspection *l)
{
	prb_inspected_deinit(l->found);
	*l->found = (struct prb_inspected){};
	l->frames = 0;
}

static struct prb_error *search_once(void *context)
{
	struct inspection *l = context;
	const struct subject *subject;
	bool done = false;

	forget(l);
	prb_vec_each (subject, &l->subjects) {
		PRB_TRY(search_subject(l, subject, &done));
		if (done)
			return NULL;
	}
	return no_frame(l);
}

static struct prb_error *list_states(struct inspection *l, struct prb_python *py,
				     struct prb_py_threads *threads)
{
	const struct prb_py_thread *state;

	PRB_TRY(prb_find_tids(l->modules, &l->tasks, py, l->view, threads));
	if (!l->interp && threads->interps.count)
		l->interp = threads->interps.items[0].address;
	prb_vec_each (state, &threads->list) {
		const struct prb_task_watch *task =
			state->tid ? prb_tasks_find_inner(&l->tasks, state->tid) : NULL;
		struct subject *subject;

		if (!task || task->tid != l->tid)
			continue;
		subject = prb_vec_push(&l->subjects);
		if (!subject)
			return prb_error_nomem();
		*subject = (struct subject){.py = py, .state = *state};
	}
	return NULL;
}

static struct prb_error *list_subjects(struct inspection *l)
{
	struct prb_python **py;

	prb_vec_each (py, &l->pythons.list) {
		struct prb_py_threads threads;

		PRB_TRY(prb_python_threads(*py, l->mem, &threads));

		struct prb_error *err = list_states(l, *py, &threads);
		prb_py_threads_deinit(&threads);
		PRB_TRY(err);
	}
	return NULL;
}

static struct prb_error *open_pythons(struct inspection *l)
{
	PRB_TRY(prb_view_create(l->target->mem, &l->view));
	PRB_TRY(prb_pythons_open(l->target, l->view, false, &l->modules, &l->pythons));
	l->mem = prb_view_mem(l->view);
	return NULL;
}

static struct prb_error *search(struct inspection *l)
{
	bool main = !l->tid, consistent;
	struct prb_mem *own;

	PRB_TRY(open_pythons(l));
	PRB_TRY(prb_tasks_create(l->target, &l->tasks));
	if (main)
		l->tid = l->target->pid;
	own = prb_snapshot_thread_mem(l->target, l->tid);
	if (own)
		l->mem = own;
	PRB_TRY(list_subjects(l));
	if (!l->subjects.count && !main)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "there is no Python thread %d",
					l->tid);

	struct prb_error *err =
		prb_read_consistent(l->target, &l->tasks, l->view, search_once, l, &consistent);
	l->found->changed = !consistent;
	return err;
}

/* Tries each Python until one decodes the address as an object. */
static struct prb_error *find_object(struct inspection *l)
{
	prb_auto_error struct prb_error *first = NULL;
	struct prb_python **py;

	PRB_TRY(open_pythons(l));
	prb_vec_each (py, &l->pythons.list) {
		struct prb_error *err = tell(l, *py, l->address);

		if (!err)
			return NULL;
		prb_inspected_deinit(l->found);
		*l->found = (struct prb_inspected){};
		if (first)
			prb_error_destroy(err);
		else
			first = err;
	}
	return prb_error_prefix(prb_steal(&first), "there is no object at %#llx",
				(unsigned long long)l->address);
}

/* A bare address is safe only if the target does not run: nothing else keeps the object alive. */
static struct prb_error *may_look(const struct inspection *l)
{
	struct prb_target *target = l->target;

	if (!l->expression && target->moves)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"objects are looked up by address only in what does not "
					"run: a core file, a snapshot, or a process in a debugger");
	if (prb_snapshot_redacted(target))
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"values were left out when this snapshot was made "
					"(--redact)");
	return NULL;
}

/* Says that the snapshot did not record the memory. */
static struct prb_error *explain(const struct inspection *l, struct prb_error *err)
{
	if (!err || !l->target->replayed || err->code != PRB_ERROR_FAULT)
		return err;
	return prb_error_hint(
		prb_error_prefix(err, "it was not recorded in this snapshot"),
		"a snapshot has the variables of frames with their attributes, not all "
		"that hangs on them; a core file has everything");
}

static struct prb_error *look(struct inspection *l, struct prb_error *(*how)(struct inspection *l))
{
	*l->found = (struct prb_inspected){};
	PRB_TRY(may_look(l));

	struct prb_error *err = explain(l, how(l));
	prb_tasks_deinit(&l->tasks);
	prb_vec_free(&l->subjects);
	prb_pythons_deinit(&l->pythons);
	prb_view_destroy(l->view);
	prb_modules_destroy(l->modules);
	if (!err)
		err = prb_custom_expand(l->target->custom, &l->found->value);
	if (err)
		prb_inspected_deinit(l->found);
	return err;
}

/* The options with marks: extensions replace the marked texts afterwards. */
static struct prb_repr_options marked(const struct prb_repr_options *options)
{
	struct prb_repr_options result = *options;

	result.marked = true;
	return result;
}

struct prb_error *prb_inspect(struct prb_target *target, pid_t tid, unsigned depth,
			      const char *expression, const struct prb_repr_options *options,
			      struct prb_inspected *ret)
{
	return look(&(struct inspection){.target = target,
					 .tid = tid,
					 .depth = depth,
					 .expression = expression,
					 .options = marked(options),
					 .found = ret},
		    search);
}

struct prb_error *prb_inspect_names(struct prb_target *target, pid_t tid, unsigned depth,
				    const char *prefix, struct prb_inspected *ret)
{
	return look(&(struct inspection){.target = target,
					 .tid = tid,
					 .depth = depth,
					 .expression = prefix,
					 .names = true,
					 .found = ret},
		    search);
}

struct prb_error *prb_inspect_address(struct prb_target *target, uint64_t address,
				      const struct prb_repr_options *options,
				      struct prb_inspected *ret)
{
	return look(&(struct inspection){.target = target,
					 .address = address,
					 .options = marked(options),
					 .found = ret},
		    find_object);
}

void prb_inspected_deinit(struct prb_inspected *object)
{
	prb_str_deinit(&object->type);
	prb_str_deinit(&object->value);
}
