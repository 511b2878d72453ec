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
	pid_t tid;
};

struct inspection {
	struct prb_target *target;
	struct prb_inspect_place place;
	pid_t tid;
	const char *expression;
	struct prb_str missing; /* the name, if there was no such variable */
	bool no_function;	/* the thread runs no function of that name */
	bool names;		/* list the names that may continue the expression */
	uint64_t address;	/* of the object, if there is no expression */
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

static struct prb_error *evaluate(struct inspection *l, struct prb_python *py,
				  struct prb_py_scope scope)
{
	struct prb_py_value value;

	prb_str_truncate(&l->missing, 0);
	scope.missing = &l->missing;
	if (l->names)
		return prb_python_names(py, l->mem, &scope, l->expression, &l->found->value);
	PRB_TRY(prb_python_find(py, l->mem, &scope, l->expression, &l->options, &value));
	memcpy(l->found->computed_by, value.computed_by, sizeof(value.computed_by));
	if (value.object) {
		prb_str_deinit(&value.text);
		return tell(l, py, value.object);
	}
	l->found->value = value.text;
	prb_str_puts(&l->found->type, value.type);
	return l->found->type.failed ? prb_error_nomem() : NULL;
}

/* Whether the frame's function has that name, or a qualified one that ends with it. */
static struct prb_error *is_function(struct inspection *l, const struct subject *subject,
				     const struct prb_py_frame *frame, bool *ret)
{
	const char *wanted = l->place.function;
	__attribute__((cleanup(prb_py_code_deinit))) struct prb_py_code code = {};
	prb_auto_free char *found = NULL;
	const char *name;

	*ret = false;
	if (!frame->code)
		return NULL;
	PRB_TRY(prb_python_code(subject->py, l->mem, frame->code, &code));
	*ret = code.name && !strcmp(code.name, wanted);
	if (*ret || !strchr(wanted, '.'))
		return NULL;
	if (!code.qualname)
		PRB_TRY(prb_python_qualname(subject->py, l->mem, frame, &code, &found));
	name = code.qualname ? code.qualname : found;
	if (!name || strlen(name) < strlen(wanted))
		return NULL;

	const char *end = name + strlen(name) - strlen(wanted);
	*ret = !strcmp(end, wanted) && (end == name || end[-1] == '.');
	return NULL;
}

static struct prb_error *is_wanted(struct inspection *l, const struct subject *subject,
				   const struct prb_py_frame *frame, unsigned depth, bool *ret)
{
	if (l->place.function)
		return is_function(l, subject, frame, ret);
	*ret = depth == l->place.depth;
	return NULL;
}

static struct prb_py_scope scope_of(const struct subject *subject,
				    const struct prb_py_frames *frames,
				    const struct prb_py_frame *frame, unsigned depth)
{
	return (struct prb_py_scope){
		.frame = frame,
		.interp = subject->state.interp,
		.callers = frames->list.count - 1 - (size_t)(frame - frames->list.items),
		.depth = depth,
	};
}

static void put_function(struct inspection *l, const struct subject *subject,
			 const struct prb_py_frame *frame, unsigned depth, struct prb_str *ret)
{
	__attribute__((cleanup(prb_py_code_deinit))) struct prb_py_code code = {};
	struct prb_py_location at = {};
	prb_auto_error struct prb_error *err =
		prb_python_code(subject->py, l->mem, frame->code, &code);

	if (!err)
		err = prb_python_location(subject->py, l->mem, frame, &at);
	prb_str_printf(ret, "%s%s", code.name ? code.name : "a function",
		       code.name && code.name[0] == '<' ? "" : "()");
	if (!err && code.file) {
		const char *slash = strrchr(code.file, '/');

		prb_str_printf(ret, " %s:%d", slash ? slash + 1 : code.file, at.line);
	}
	prb_str_printf(ret, " (frame %u)", depth);
}

/* False: no variable has the name, and the search goes on elsewhere. */
static bool is_found(struct inspection *l, struct prb_error **err)
{
	return !l->missing.length || !prb_error_catch(err, PRB_ERROR_NOT_FOUND);
}

/* In `__main__`, then among builtins and modules. */
static struct prb_error *search_behind_frames(struct inspection *l, const struct subject *subject,
					      struct prb_py_scope innermost)
{
	struct prb_error *err = evaluate(
		l, subject->py,
		(struct prb_py_scope){.interp = innermost.interp, .names = PRB_NAMES_MAIN});

	if (is_found(l, &err)) {
		prb_str_puts(&l->found->found_in, "__main__");
		return err;
	}
	innermost.names = PRB_NAMES_ELSEWHERE;
	return evaluate(l, subject->py, innermost);
}

static struct prb_error *search_outwards(struct inspection *l, const struct subject *subject,
					 const struct prb_py_frames *frames, bool whole, bool *done)
{
	struct prb_py_scope innermost = {};
	const struct prb_py_frame *frame;

	l->frames = 0;
	prb_vec_each (frame, &frames->list) {
		struct prb_py_scope scope = scope_of(subject, frames, frame, l->frames);

		if (frame->hidden)
			continue;
		if (!l->frames++)
			innermost = scope;
		scope.names = PRB_NAMES_FRAME;

		struct prb_error *err = evaluate(l, subject->py, scope);

		if (!is_found(l, &err))
			continue;
		*done = true;
		if (scope.depth)
			put_function(l, subject, frame, scope.depth, &l->found->found_in);
		return err;
	}
	if (!innermost.frame || !whole)
		return NULL;
	*done = true;
	return search_behind_frames(l, subject, innermost);
}

static struct prb_error *search_frames(struct inspection *l, const struct subject *subject,
				       const struct prb_py_frames *frames, bool *done)
{
	const struct prb_py_frame *frame;
	unsigned depth = 0;

	prb_vec_each (frame, &frames->list) {
		if (frame->hidden)
			continue;
		PRB_TRY(is_wanted(l, subject, frame, depth, done));
		if (*done)
			return evaluate(l, subject->py, scope_of(subject, frames, frame, depth));
		depth++;
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
	struct prb_error *err = l->place.outwards
					? search_outwards(l, subject, &frames, !broken, done)
					: search_frames(l, subject, &frames, done);
	prb_py_frames_deinit(&frames);
	if (!err && !*done && broken)
		return prb_steal(&broken);
	return err;
}

static struct prb_error *no_frame(struct inspection *l)
{
	l->no_function = l->place.function;
	if (l->no_function)
		return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND,
						       "no function '%.200s' runs in %s",
						       l->place.function,
						       l->place.tid ? "this thread" : "any thread"),
				      "'probing TARGET dump' shows those that do");
	/* Names of modules need no frame. */
	if (!l->frames && !l->place.depth && l->pythons.list.count)
		return evaluate(l, l->pythons.list.items[0],
				(struct prb_py_scope){.interp = l->interp});
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
	l->no_function = false;
}

static struct prb_error *search_once(void *context)
{
	struct inspection *l = context;
	const struct subject *subject;
	bool done = false;

	forget(l);
	prb_vec_each (subject, &l->subjects) {
		if (subject->tid != l->tid)
			continue;
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

		if (!task)
			continue;
		subject = prb_vec_push(&l->subjects);
		if (!subject)
			return prb_error_nomem();
		*subject = (struct subject){.py = py, .state = *state, .tid = task->tid};
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

static void use_memory_of(struct inspection *l, pid_t tid)
{
	struct prb_mem *own = prb_snapshot_thread_mem(l->target, tid);

	l->mem = own ? own : prb_view_mem(l->view);
}

static struct prb_error *search_thread(struct inspection *l, pid_t tid)
{
	bool consistent = false;

	l->tid = tid;
	use_memory_of(l, tid);

	struct prb_error *err =
		prb_read_consistent(l->target, &l->tasks, l->view, search_once, l, &consistent);
	l->found->changed = !consistent;
	return err;
}

static bool has_variable(struct inspection *l, const struct subject *subject,
			 const struct prb_py_frame *frame)
{
	const char *name = prb_str_text(&l->missing);
	const struct prb_py_local *local;
	struct prb_py_locals locals;
	bool found = false;
	prb_auto_error struct prb_error *err =
		frame->hidden || !frame->code
			? prb_error_create(PRB_ERROR_NOT_FOUND, "no frame of Python")
			: prb_python_locals(subject->py, l->mem, frame, &locals);

	if (err)
		return false;
	prb_vec_each (local, &locals.list)
		found |= local->object && !strcmp(local->name, name);
	prb_py_locals_deinit(&locals);
	return found;
}

/* Says in the hint which frame of the thread has the name, as far as it can be read. */
static bool hint_at_frame(struct inspection *l, const struct subject *subject,
			  struct prb_error **err)
{
	struct prb_py_frames frames = {};
	const struct prb_py_frame *frame;
	unsigned depth = 0;
	bool found = false;

	use_memory_of(l, subject->tid);
	prb_error_destroy(prb_python_frames(subject->py, l->mem, subject->state.address, &frames));
	prb_vec_each (frame, &frames.list) {
		prb_auto_str struct prb_str where = {};

		found = has_variable(l, subject, frame);
		if (!found) {
			depth += !frame->hidden;
			continue;
		}
		put_function(l, subject, frame, depth, &where);
		*err = subject->tid == l->tid
			       ? prb_error_hint(*err, "%s has it: '--frame %u'",
						prb_str_text(&where), depth)
			       : prb_error_hint(*err, "thread %d has it in %s: '--tid %d'",
						(int)subject->tid, prb_str_text(&where),
						(int)subject->tid);
		break;
	}
	prb_py_frames_deinit(&frames);
	return found;
}

static struct prb_error *hint_at_holder(struct inspection *l, struct prb_error *err)
{
	const struct subject *subject;

	if (!err || !l->missing.length || l->names)
		return err;
	prb_view_new_epoch(l->view);
	for (int others = 0; others < 2; others++)
		prb_vec_each (subject, &l->subjects)
			if ((subject->tid != l->tid) == others && hint_at_frame(l, subject, &err))
				return err;
	return err;
}

static bool has_subject(const struct inspection *l, pid_t tid)
{
	const struct subject *subject;

	prb_vec_each (subject, &l->subjects)
		if (subject->tid == tid)
			return true;
	return false;
}

static struct prb_error *search(struct inspection *l)
{
	pid_t first = l->place.tid ? l->place.tid : l->target->pid, last = 0;
	const struct subject *subject;

	PRB_TRY(open_pythons(l));
	PRB_TRY(prb_tasks_create(l->target, &l->tasks));
	use_memory_of(l, first);
	PRB_TRY(list_subjects(l));
	if (l->place.tid && !has_subject(l, first))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "there is no Python thread %d",
					(int)first);

	struct prb_error *err = search_thread(l, first);

	/* A function is looked for in all threads. */
	prb_vec_each (subject, &l->subjects) {
		if (!l->no_function || l->place.tid)
			break;
		if (subject->tid == first || subject->tid == last)
			continue;
		last = subject->tid;
		prb_error_destroy(err);
		err = search_thread(l, last);
	}
	return hint_at_holder(l, err);
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
	prb_str_deinit(&l->missing);
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

/* Takes "@FUNCTION" from the end of an expression; false if there is none. */
static bool split_function(struct prb_str *expression, const char **ret)
{
	char *at = expression->length ? strrchr(expression->data, '@') : NULL;

	if (!at || at == expression->data || !at[1])
		return false;
	for (const char *c = at + 1; *c; c++)
		if (strchr(" \t()[]'\"", *c))
			return false;
	*at = '\0';
	*ret = at + 1;
	return true;
}

struct prb_error *prb_inspect(struct prb_target *target, const struct prb_inspect_place *place,
			      const char *expression, const struct prb_repr_options *options,
			      struct prb_inspected *ret)
{
	prb_auto_str struct prb_str copy = {};
	struct inspection l = {
		.target = target, .place = *place, .options = marked(options), .found = ret};

	*ret = (struct prb_inspected){};
	prb_str_puts(&copy, expression);
	if (copy.failed)
		return prb_error_nomem();
	if (split_function(&copy, &l.place.function) && place->function)
		return prb_error_create(PRB_ERROR_USAGE,
					"the function is named twice: '%.200s' and '%.200s'",
					place->function, l.place.function);
	l.place.outwards &= !l.place.function;
	l.expression = prb_str_text(&copy);
	return look(&l, search);
}

struct prb_error *prb_inspect_names(struct prb_target *target, pid_t tid, unsigned depth,
				    const char *prefix, struct prb_inspected *ret)
{
	return look(&(struct inspection){.target = target,
					 .place = {.tid = tid, .depth = depth},
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
	prb_str_deinit(&object->found_in);
}
