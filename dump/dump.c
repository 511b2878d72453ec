/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Making a dump: finds Python and its threads, has them read, and says what each is doing. */
#include "dump/dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/pool.h"
#include "target/core/core.h"
#include "target/task.h"
#include "target/snapshot/snapshot.h"
#include "dump/read/reader.h"
#include "dump/read/gc_thread.h"
#include "dump/read/extensions.h"
#include "dump/native/cython.h"
#include "dump/read/decode.h"
#include "dump/read/describe.h"
#include "dump/tasks/thread_of_state.h"
#include "dump/read/source_text.h"
#include "dump/read/python_locks.h"

/* A thread state, with the thread that runs it. */
struct candidate {
	struct prb_python *py;
	struct prb_py_thread state;
	struct prb_found_thread owner;
};

struct maker {
	struct prb_reader capture;
	struct prb_dump_found own, *found; /* `own`, or the caller's */
	PRB_VEC(struct candidate) candidates;
	struct prb_thread_finder owners;
	pid_t main_tid; /* of the thread that stands first: the main one, if it runs Python */
	struct prb_view
		*view; /* the shared one: everything that is not read from a stopped thread */
};

static struct prb_error *warn(struct prb_dump *dump, char *text)
{
	char **slot = prb_vec_push(&dump->warnings);

	if (!text || !slot) {
		free(text);
		return prb_error_nomem();
	}
	*slot = text;
	return NULL;
}

static bool wanted(const struct maker *m, const struct prb_task_watch *task)
{
	const struct prb_dump_options *o = m->capture.options;

	if (o->tid)
		return task && task->tid == o->tid;
	if (o->main_only)
		return task ? task->tid == m->main_tid : !m->main_tid;
	return true;
}

static struct prb_error *add_thread(struct maker *m, struct prb_task_watch *task,
				    struct prb_dump_thread **ret,
				    struct prb_reader_thread **ret_thread)
{
	struct prb_dump_thread *out = prb_vec_push(&m->capture.dump->threads);
	struct prb_reader_thread *thread = prb_vec_push(&m->capture.threads);

	if (!out || !thread)
		return prb_error_nomem();
	thread->task = task;
	thread->out = m->capture.dump->threads.count - 1;
	out->tid = task ? task->tid : 0;
	out->interpreter = -1;
	out->idle_seconds = -1;
	*ret = out;
	*ret_thread = thread;
	return NULL;
}

static struct prb_error *add_candidate(struct maker *m, const struct candidate *candidate)
{
	const struct prb_py_thread *state = &candidate->state;
	const struct prb_found_thread *owner = &candidate->owner;
	struct prb_reader_thread *thread;
	struct prb_dump_thread *out;

	PRB_TRY(add_thread(m, owner->task, &out, &thread));
	thread->py = candidate->py;
	thread->state = *state;
	thread->self = owner->self;
	thread->kept_at = owner->kept_at;
	out->interpreter = state->interp_id;
	out->ident = owner->self;
	out->note = owner->task ? NULL : owner->reason;
	return NULL;
}

/* The list changes while it is read: threads come and go, and what was freed is used again. */
static struct prb_error *read_threads(struct maker *m, struct prb_python *py,
				      struct prb_py_threads *ret)
{
	enum { ATTEMPTS = 20 };
	struct prb_error *err = NULL;

	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		prb_error_destroy(err);
		err = prb_python_threads(py, prb_view_mem(m->view), ret);
		if (!err || !m->capture.target->live ||
		    (err->code != PRB_ERROR_BAD_DATA && err->code != PRB_ERROR_FAULT))
			break;
		prb_view_new_epoch(m->view);
		PRB_TRY(prb_view_prefetch(m->view));
	}
	return prb_error_prefix(err, "cannot read the threads of Python %s", py->version);
}

/* A state without a thread is worth showing if it has frames. */
static struct prb_error *add_candidates(struct maker *m, struct prb_python *py,
					const struct prb_py_threads *threads,
					const struct prb_found_thread *owners, unsigned *without)
{
	for (size_t i = 0; i < threads->list.count; i++) {
		struct candidate *candidate;

		if (!owners[i].task && !owners[i].has_frames) {
			*without += owners[i].orphan;
			continue;
		}
		candidate = prb_vec_push(&m->candidates);
		if (!candidate)
			return prb_error_nomem();
		*candidate = (struct candidate){py, threads->list.items[i], owners[i]};
	}
	return NULL;
}

static struct prb_error *list_owners(struct maker *m, struct prb_python *py,
				     struct prb_py_threads *threads, unsigned *without)
{
	prb_auto_free struct prb_found_thread *owners =
		calloc(threads->list.count + 1, sizeof(*owners));

	if (!owners)
		return prb_error_nomem();
	PRB_TRY(prb_thread_finder_run(&m->owners, py, m->view, threads, owners));
	return add_candidates(m, py, threads, owners, without);
}

/* The threads of one runtime. A thread may have states in several interpreters; it is listed in
 * each that it has frames in. */
static struct prb_error *list_python(struct maker *m, struct prb_python *py)
{
	struct prb_py_threads threads;
	unsigned without = 0;

	PRB_TRY(read_threads(m, py, &threads));

	struct prb_error *err = list_owners(m, py, &threads, &without);
	prb_py_threads_deinit(&threads);
	PRB_TRY(err);
	if (!without)
		return NULL;
	return warn(m->capture.dump,
		    prb_format("%u thread state%s without a thread of this process (left over from "
			       "a fork, or just ending)",
			       without, without == 1 ? "" : "s"));
}

/* With native frames, threads that Python does not know are worth showing too. */
static struct prb_error *plan_others(struct maker *m)
{
	struct prb_reader_thread *thread;
	struct prb_dump_thread *out;
	struct prb_task_watch *task;

	prb_vec_each (task, &m->capture.tasks.list) {
		bool known = false;

		for (size_t i = 0; i < m->capture.threads.count && !known; i++)
			known = m->capture.threads.items[i].task == task;
		if (!known && !prb_task_has_ended(task) && wanted(m, task))
			PRB_TRY(add_thread(m, task, &out, &thread));
	}
	return NULL;
}

/*
 * Where Python is embedded, its main thread need not be that of the process: then the thread with
 * the lowest number is taken for it.
 */
static pid_t find_main(const struct maker *m)
{
	const struct candidate *candidate;
	pid_t pid = m->capture.target->pid, lowest = 0;

	prb_vec_each (candidate, &m->candidates) {
		const struct prb_task_watch *task = candidate->owner.task;

		if (!task)
			continue;
		if (task->tid == pid)
			return pid;
		if (!lowest || task->tid < lowest)
			lowest = task->tid;
	}
	/* If no thread of any state is known, all that there is has to be shown. */
	return lowest || m->candidates.count ? lowest : pid;
}

static struct prb_error *plan(struct maker *m)
{
	const struct prb_dump_options *o = m->capture.options;
	const struct candidate *candidate;
	struct prb_python **py;

	prb_vec_each (py, &m->found->pythons.list)
		PRB_TRY(list_python(m, *py));
	m->main_tid = o->main_only ? find_main(m) : m->capture.target->pid;
	prb_vec_each (candidate, &m->candidates)
		if (wanted(m, candidate->owner.task))
			PRB_TRY(add_candidate(m, candidate));
	if (m->capture.native)
		PRB_TRY(plan_others(m));
	if (o->tid && !m->capture.threads.count)
		return prb_error_hint(prb_error_create(PRB_ERROR_NO_PROCESS,
						       "process %d has no Python thread %d",
						       m->capture.target->pid, o->tid),
				      "'dump --native' shows all threads");
	return NULL;
}

/* What nothing more can be asked about. */
static struct prb_error *tell_doubt(struct maker *m, struct prb_reader_thread *thread)
{
	struct prb_dump_thread *out = prb_reader_out(&m->capture, thread);

	if (thread->doubt != PRB_NATIVE_BARE_LOOP || thread->recorded || out->error)
		return NULL;
	return prb_str_copy("it enters or leaves a call, or its Python stack is switched: Python "
			    "frames may stand one call too far out among the native ones",
			    &out->error);
}

/* Threads of a core or snapshot, or in a debugger, do not move: read as they are. */
static struct prb_error *read_still(struct maker *m)
{
	struct prb_reader *c = &m->capture;
	struct prb_reader_thread *thread;

	prb_vec_each (thread, &c->threads) {
		pid_t tid = thread->task ? thread->task->tid : 0;
		struct prb_mem *mem = tid ? prb_snapshot_thread_mem(c->target, tid) : NULL;

		if (!mem)
			mem = prb_view_mem(m->view);
		if (c->native && tid)
			prb_error_destroy(prb_target_registers(c->target, tid, &thread->regs));
		PRB_TRY(prb_read_recorded(c, thread));
		if (tid && (c->native || !c->options->no_waits))
			PRB_TRY(prb_read_call(c, thread));
		PRB_TRY(prb_read_wait(c, thread, c->target->mem));
		if (!thread->frames.list.count)
			PRB_TRY(prb_reader_walk(thread, mem));
		PRB_TRY(prb_reader_decode(c, thread, mem));
		PRB_TRY(tell_doubt(m, thread));
	}
	return NULL;
}

static struct prb_error *read_live(struct maker *m)
{
	struct prb_reader *c = &m->capture;
	struct prb_reader_thread *thread;

	if (c->options->mode == PRB_DUMP_FREEZE)
		return prb_read_frozen(c);
	PRB_TRY(prb_read_sleeping(c, m->view));
	prb_vec_each (thread, &c->threads)
		if (!thread->done && thread->task)
			PRB_TRY(prb_read_running(c, thread));
	return prb_read_threadless(c);
}

static struct prb_error *describe(struct maker *m)
{
	struct prb_reader *c = &m->capture;
	struct prb_reader_thread *thread;

	prb_vec_each (thread, &c->threads)
		PRB_TRY(prb_read_thread_state(c, thread));
	PRB_TRY(prb_read_gc_thread(c));

	struct prb_python **py;
	prb_vec_each (py, &m->found->pythons.list)
		PRB_TRY(prb_read_thread_names(c, *py, m->view));
	if (!c->options->no_waits) {
		PRB_TRY(prb_python_locks_gather(c, m->view));
		prb_vec_each (thread, &c->threads)
			PRB_TRY(prb_python_locks_explain(c, thread, m->view));
	}
	return prb_read_process(c, &m->found->pythons);
}

static int compare_threads(const void *a, const void *b, void *pid)
{
	const struct prb_dump_thread *x = a, *y = b;
	pid_t main_tid = *(pid_t *)pid;

	if ((x->tid == main_tid) != (y->tid == main_tid))
		return x->tid == main_tid ? -1 : 1;
	if (!x->tid != !y->tid) /* states without a thread come last */
		return x->tid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->interpreter < y->interpreter ? -1 : x->interpreter > y->interpreter;
}

/* A thread of the agent that has done what it was started for; nobody asked about it. */
static bool is_ended_helper(const struct prb_dump_thread *thread)
{
	return thread->ended && thread->os_name &&
	       !strncmp(thread->os_name, PRB_AGENT_THREAD, strlen(PRB_AGENT_THREAD));
}

static void drop_ended_helpers(struct prb_dump *dump)
{
	size_t kept = 0;

	for (size_t i = 0; i < dump->threads.count; i++) {
		struct prb_dump_thread *thread = &dump->threads.items[i];

		if (is_ended_helper(thread))
			prb_dump_thread_deinit(thread);
		else
			dump->threads.items[kept++] = *thread;
	}
	dump->threads.count = kept;
}

static void finish(struct maker *m)
{
	struct prb_dump *dump = m->capture.dump;
	struct prb_dump_thread *thread;

	drop_ended_helpers(dump);
	dump->main_tid = m->main_tid;
	prb_vec_each (thread, &dump->threads) {
		dump->own_frames += thread->own_frames;
		/* Frozen threads stand still at the same time. */
		if (m->capture.options->mode == PRB_DUMP_FREEZE)
			dump->pause_us = PRB_MAX(dump->pause_us, thread->pause_us);
		else
			dump->pause_us += thread->pause_us;
		dump->paused_threads += thread->tid && thread->read == PRB_READ_STOPPED;
	}
	if (dump->threads.count)
		qsort_r(dump->threads.items, dump->threads.count, sizeof(*dump->threads.items),
			compare_threads, &m->main_tid);
}

static bool is_said(const struct prb_dump *dump, const char *text)
{
	char *const *warning;

	prb_vec_each (warning, &dump->warnings)
		if (!strncmp(*warning, text, strlen(text)))
			return true;
	return false;
}

/* Files that hold what a core lacks. */
static struct prb_error *warn_missing(struct prb_dump *dump, const struct prb_target *target)
{
	enum { MAX_NAMED = 8 };
	const char *reason;
	unsigned named = 0;

	for (size_t i = 0; (reason = prb_core_missing(target, i)); i++) {
		if (is_said(dump, reason))
			continue;
		if (++named > MAX_NAMED)
			return warn(dump, strdup("more files are missing; '-v' names all"));
		PRB_TRY(warn(dump, prb_format("%s, and the core file lacks what was mapped from "
					      "it; --sysroot or --library-path says where it is",
					      reason)));
	}
	return NULL;
}

/* A core without the interpreter's file, in which the names of types lie. */
static struct prb_error *warn_nameless(struct maker *m)
{
	struct prb_python **py;

	prb_vec_each (py, &m->found->pythons.list)
		if ((*py)->code_by_members)
			PRB_TRY(warn(m->capture.dump,
				     prb_format("the names of types cannot be read without %s: "
						"code was recognised by its members",
						(*py)->module->path)));
	return NULL;
}

/* What a stray write left of the interpreter's own types. */
static struct prb_error *warn_damaged(struct maker *m)
{
	struct prb_python **py;

	prb_vec_each (py, &m->found->pythons.list)
		for (int i = 0; (*py)->damaged && i < PRB_BUILTIN_COUNT; i++) {
			prb_auto_str struct prb_str what = {};

			if (!((*py)->damaged >> i & 1))
				continue;
			prb_python_describe_damage(*py, prb_view_mem(m->view), i, &what);
			if (what.failed)
				return prb_error_nomem();
			if (what.length)
				PRB_TRY(warn(m->capture.dump,
					     prb_format("the type '%s' (%s at %#llx) is damaged: "
							"%s; it was recognised by its address",
							prb_builtin_types[i].name,
							prb_builtin_types[i].symbol,
							(unsigned long long)(*py)->builtins[i],
							prb_str_text(&what))));
		}
	return NULL;
}

/* Modules are enough for the caller if they are all. */
static bool may_share(const struct prb_target *target, const struct prb_dump_options *options,
		      const struct prb_dump_found *found)
{
	if (prb_target_is_recorded(target))
		return false;
	return found->modules || options->native || !prb_target_is_remote(target);
}

static struct prb_error *find_pythons(struct maker *m)
{
	struct prb_reader *c = &m->capture;
	struct prb_dump_found *found = m->found;
	struct prb_error *err = NULL;

	if (!found->modules)
		err = prb_pythons_open(c->target, m->view, c->options->native, &found->modules,
				       &found->pythons);
	else if (!found->pythons.list.count)
		err = prb_pythons_find(found->modules, m->view, &found->pythons);
	c->modules = found->modules;
	return err;
}

static struct prb_error *make(struct maker *m)
{
	struct prb_reader *c = &m->capture;

	PRB_TRY(prb_view_create(c->target->mem, &m->view));
	PRB_TRY(find_pythons(m));
	if (c->options->native)
		PRB_TRY(prb_native_create(c->modules, c->dump->pool, c->options->native_all,
					  &c->native));
	/* Counters are noted before anything is read (see tasks.h): of what was read to find
	 * Python only the places are still good, but they are those that are needed now. */
	PRB_TRY(prb_tasks_create(c->target, &c->tasks));
	prb_view_new_epoch(m->view);
	PRB_TRY(prb_view_prefetch(m->view));
	PRB_TRY(prb_wait_context_create(c->target, &c->waits));
	m->owners = (struct prb_thread_finder){
		.target = c->target, .modules = c->modules, .tasks = &c->tasks};
	PRB_TRY(plan(m));
	PRB_TRY(c->target->moves ? read_live(m) : read_still(m));
	PRB_TRY(describe(m));
	if (c->native)
		PRB_TRY(prb_cython_fill(c->target, c->dump));
	if (c->options->source || c->options->source_innermost)
		PRB_TRY(prb_source_fill(c->target, c->dump, !c->options->source));
	PRB_TRY(warn_missing(c->dump, c->target));
	PRB_TRY(warn_damaged(m));
	PRB_TRY(warn_nameless(m));
	prb_modules_remember(c->modules);
	prb_target_note_pages(c->target, 0, m->view);
	finish(m);
	return NULL;
}

static void unmake(struct maker *m)
{
	struct prb_reader_thread *thread;

	prb_reader_share(&m->capture, NULL);
	prb_vec_each (thread, &m->capture.threads)
		prb_reader_clear(thread);
	prb_vec_free(&m->capture.threads);
	prb_vec_free(&m->candidates);
	prb_thread_finder_deinit(&m->owners);
	prb_wait_context_destroy(m->capture.waits);
	prb_tasks_deinit(&m->capture.tasks);
	prb_view_destroy(m->view);
	prb_native_destroy(m->capture.native);
	prb_dump_found_deinit(&m->own);
}

void prb_dump_found_deinit(struct prb_dump_found *found)
{
	prb_pythons_deinit(&found->pythons);
	prb_modules_destroy(found->modules);
}

struct prb_error *prb_dump_create(struct prb_target *target, const struct prb_dump_options *options,
				  struct prb_dump **ret)
{
	struct prb_dump_found found = {};
	struct prb_error *err = prb_dump_create_with(target, options, &found, ret);

	prb_dump_found_deinit(&found);
	return err;
}

struct prb_error *prb_dump_create_with(struct prb_target *target,
				       const struct prb_dump_options *options,
				       struct prb_dump_found *found, struct prb_dump **ret)
{
	struct prb_dump_options actual = *options;
	struct maker m = {
		.capture = {.target = target, .options = &actual, .patience = PRB_STOP_PATIENCE}};

	m.found = may_share(target, options, found) ? found : &m.own;
	m.capture.dump = calloc(1, sizeof(*m.capture.dump));
	if (!m.capture.dump)
		return prb_error_nomem();

	struct prb_error *err = prb_pool_create(&m.capture.dump->pool);
	if (!err && actual.locals && prb_snapshot_redacted(target)) {
		actual.locals = false;
		err = warn(m.capture.dump, strdup("values were left out when this snapshot was "
						  "made (--redact)"));
	}
	if (!err)
		err = prb_target_same_program(target, make(&m));
	unmake(&m);
	if (!err && target->custom)
		err = prb_dump_customise(target, &actual, m.capture.dump);
	if (err)
		prb_dump_destroy(m.capture.dump);
	else
		*ret = m.capture.dump;
	return err;
}
