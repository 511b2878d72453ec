/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Making a dump: finds Python and its threads, has them read, and says what each is doing. */
#include "injector/dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf/base/checked.h"
#include "dwarf/base/cleanup.h"
#include "dwarf/base/pool.h"
#include "dwarf/core/core.h"
#include "dwarf/proc/task.h"
#include "dwarf/snapshot/snapshot.h"
#include "injector/capture.h"
#include "injector/collector.h"
#include "injector/decode.h"
#include "injector/describe.h"
#include "injector/idle.h"
#include "injector/source.h"
#include "injector/waits.h"

/* A thread of this process that has a state in a runtime. */
struct candidate {
	struct prb_python *py;
	struct prb_py_thread state;
	struct prb_task_watch *task;
};

struct maker {
	struct prb_capture capture;
	struct prb_pythons pythons;
	PRB_VEC(struct candidate) candidates;
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

static bool wanted(const struct maker *m, pid_t tid)
{
	const struct prb_dump_options *o = m->capture.options;

	if (o->tid)
		return tid == o->tid;
	return !o->main_only || tid == m->main_tid;
}

static struct prb_error *add_thread(struct maker *m, struct prb_python *py,
				    const struct prb_py_thread *state, struct prb_task_watch *task)
{
	struct prb_dump_thread *out = prb_vec_push(&m->capture.dump->threads);
	struct prb_capture_thread *thread = prb_vec_push(&m->capture.threads);

	if (!out || !thread)
		return prb_error_nomem();
	thread->py = py;
	thread->task = task;
	thread->out = m->capture.dump->threads.count - 1;
	out->tid = task->tid;
	out->interpreter = -1;
	out->idle_seconds = -1;
	if (state) {
		thread->state = *state;
		out->interpreter = state->interp_id;
		out->ident = state->pthread;
		out->gc = state->gc;
		out->gil = state->holds_gil ? "holds" : NULL;
	}
	return NULL;
}

static struct prb_task_watch *find_task(struct maker *m, struct prb_py_thread *state)
{
	if (!state->tid)
		state->tid =
			prb_describe_tid(prb_view_mem(m->view), &m->capture.tasks, state->pthread);
	return state->tid ? prb_tasks_find_inner(&m->capture.tasks, state->tid) : NULL;
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
		if (!err || m->capture.target->kind != PRB_TARGET_PROCESS ||
		    (err->code != PRB_ERROR_BAD_DATA && err->code != PRB_ERROR_FAULT))
			break;
		prb_view_new_epoch(m->view);
		PRB_TRY(prb_view_prefetch(m->view));
	}
	return prb_error_prefix(err, "cannot read the threads of Python %s", py->version);
}

/*
 * Up to 3.11 a new thread's state carries the number of the thread that made it, until it begins
 * to run. It is the newer of two states with the same number, and lists begin with the newest.
 * What it holds changes although the other thread sleeps, so it must not pass for that one's.
 */
static bool has_not_begun(const struct prb_py_threads *threads, const struct prb_py_thread *state)
{
	const struct prb_py_thread *end = threads->list.items + threads->list.count;

	for (const struct prb_py_thread *other = state + 1; other < end; other++)
		if (other->pthread == state->pthread && other->interp == state->interp)
			return true;
	return false;
}

struct nameless {
	struct maker *m;
	const struct prb_py_threads *threads;
};

/* Up to 3.10 a state says by itself only which pthread it belongs to. */
static struct prb_error *try_tids(void *context)
{
	struct nameless *nameless = context;
	struct maker *m = nameless->m;
	const struct prb_py_thread *state;

	prb_vec_each (state, &nameless->threads->list)
		if (!state->tid)
			prb_describe_tid(prb_view_mem(m->view), &m->capture.tasks, state->pthread);
	return NULL;
}

static struct prb_error *add_candidates(struct maker *m, struct prb_python *py,
					const struct prb_py_threads *threads, unsigned *without)
{
	struct prb_py_thread *state;

	PRB_TRY(prb_view_gather(m->view, try_tids, &(struct nameless){m, threads}));
	prb_vec_each (state, &threads->list) {
		struct prb_task_watch *task;

		if (py->layout.version < 0x030c && has_not_begun(threads, state))
			continue;
		task = find_task(m, state);
		*without += !task;
		if (!task)
			continue;

		struct candidate *candidate = prb_vec_push(&m->candidates);
		if (!candidate)
			return prb_error_nomem();
		*candidate = (struct candidate){py, *state, task};
	}
	return NULL;
}

/* The threads of one runtime. A thread may have states in several interpreters; it is listed in
 * each that it has frames in. */
static struct prb_error *list_python(struct maker *m, struct prb_python *py)
{
	struct prb_py_threads threads;
	unsigned without = 0;

	PRB_TRY(read_threads(m, py, &threads));

	struct prb_error *err = add_candidates(m, py, &threads, &without);
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
	struct prb_task_watch *task;

	prb_vec_each (task, &m->capture.tasks.list) {
		bool known = false;

		for (size_t i = 0; i < m->capture.threads.count && !known; i++)
			known = m->capture.threads.items[i].task == task;
		if (!known && !prb_task_has_ended(task) && wanted(m, task->tid))
			PRB_TRY(add_thread(m, NULL, NULL, task));
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
		if (candidate->task->tid == pid)
			return pid;
		if (!lowest || candidate->task->tid < lowest)
			lowest = candidate->task->tid;
	}
	return lowest ? lowest : pid;
}

static struct prb_error *plan(struct maker *m)
{
	const struct prb_dump_options *o = m->capture.options;
	const struct candidate *candidate;
	struct prb_python **py;

	prb_vec_each (py, &m->pythons.list)
		PRB_TRY(list_python(m, *py));
	m->main_tid = o->main_only ? find_main(m) : m->capture.target->pid;
	prb_vec_each (candidate, &m->candidates)
		if (wanted(m, candidate->task->tid))
			PRB_TRY(add_thread(m, candidate->py, &candidate->state, candidate->task));
	if (m->capture.native)
		PRB_TRY(plan_others(m));
	if (o->tid && !m->capture.threads.count)
		return prb_error_create(PRB_ERROR_NO_PROCESS, "process %d has no Python thread %d",
					m->capture.target->pid, o->tid);
	return NULL;
}

static bool moves(const struct prb_target *target)
{
	return target->kind == PRB_TARGET_PROCESS && !target->held;
}

/* Threads of a core or snapshot, or in a debugger, do not move: read as they are. */
static struct prb_error *read_still(struct maker *m)
{
	struct prb_capture *c = &m->capture;
	struct prb_capture_thread *thread;

	prb_vec_each (thread, &c->threads) {
		struct prb_mem *mem = prb_snapshot_thread_mem(c->target, thread->task->tid);

		if (!mem)
			mem = prb_view_mem(m->view);
		if (c->native)
			prb_error_destroy(
				prb_target_registers(c->target, thread->task->tid, &thread->regs));
		PRB_TRY(prb_describe_recall(c, thread));
		if (c->native || !c->options->no_waits)
			PRB_TRY(prb_describe_read_call(c, thread));
		PRB_TRY(prb_describe_wait(c, thread, c->target->mem));
		if (!thread->frames.list.count)
			PRB_TRY(prb_capture_walk(thread, mem));
		PRB_TRY(prb_capture_decode(c, thread, mem));
	}
	return NULL;
}

static struct prb_error *read_live(struct maker *m)
{
	struct prb_capture *c = &m->capture;
	struct prb_capture_thread *thread;

	if (c->options->mode == PRB_DUMP_FREEZE)
		return prb_capture_frozen(c);
	PRB_TRY(prb_capture_sleeping(c, m->view));
	prb_vec_each (thread, &c->threads)
		if (!thread->done)
			PRB_TRY(prb_capture_running(c, thread));
	return NULL;
}

static struct prb_error *describe(struct maker *m)
{
	struct prb_capture *c = &m->capture;
	struct prb_capture_thread *thread;

	prb_vec_each (thread, &c->threads)
		PRB_TRY(prb_describe_thread(c, thread));
	PRB_TRY(prb_collector_find(c));

	struct prb_python **py;
	prb_vec_each (py, &m->pythons.list)
		PRB_TRY(prb_describe_names(c, *py, m->view));
	if (!c->options->no_waits) {
		PRB_TRY(prb_waits_gather(c, m->view));
		prb_vec_each (thread, &c->threads)
			PRB_TRY(prb_waits_explain(c, thread, m->view));
	}
	return prb_describe_target(c, &m->pythons);
}

static int compare_threads(const void *a, const void *b, void *pid)
{
	const struct prb_dump_thread *x = a, *y = b;
	pid_t main_tid = *(pid_t *)pid;

	if ((x->tid == main_tid) != (y->tid == main_tid))
		return x->tid == main_tid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->interpreter < y->interpreter ? -1 : x->interpreter > y->interpreter;
}

static void free_thread(struct prb_dump_thread *thread)
{
	prb_dump_frames_clear(thread);
	free(thread->name);
	free(thread->os_name);
	free(thread->waits_for);
	free(thread->error);
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
			free_thread(thread);
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
		/* Frozen threads stand still at the same time. */
		if (m->capture.options->mode == PRB_DUMP_FREEZE)
			dump->pause_us = PRB_MAX(dump->pause_us, thread->pause_us);
		else
			dump->pause_us += thread->pause_us;
		dump->paused_threads += thread->read == PRB_READ_STOPPED;
	}
	if (dump->threads.count)
		qsort_r(dump->threads.items, dump->threads.count, sizeof(*dump->threads.items),
			compare_threads, &m->main_tid);
}

static struct prb_error *fill_idle(struct maker *m)
{
	struct prb_capture *c = &m->capture;
	const struct prb_dump_options *o = c->options;
	size_t count = c->dump->threads.count;
	prb_auto_free bool *wanted = NULL;

	if (o->want_idle && !c->target->recorder) {
		wanted = calloc(count + 1, sizeof(*wanted));
		if (!wanted)
			return prb_error_nomem();
		PRB_TRY(o->want_idle(c->dump, wanted));
	}
	return prb_idle_fill(c->target, c->dump, wanted);
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

static struct prb_error *make(struct maker *m)
{
	struct prb_capture *c = &m->capture;

	PRB_TRY(prb_view_create(c->target->mem, &m->view));
	PRB_TRY(prb_pythons_open(c->target, m->view, c->options->native, &c->modules, &m->pythons));
	if (c->options->native)
		PRB_TRY(prb_native_create(c->modules, c->dump->pool, &c->native));
	/* Counters are noted before anything is read (see tasks.h): of what was read to find
	 * Python only the places are still good, but they are those that are needed now. */
	PRB_TRY(prb_tasks_create(c->target, &c->tasks));
	prb_view_new_epoch(m->view);
	PRB_TRY(prb_view_prefetch(m->view));
	PRB_TRY(prb_wait_context_create(c->target, &c->waits));
	PRB_TRY(plan(m));
	PRB_TRY(moves(c->target) ? read_live(m) : read_still(m));
	PRB_TRY(describe(m));
	if (c->options->source)
		PRB_TRY(prb_source_fill(c->target, c->dump));
	PRB_TRY(warn_missing(c->dump, c->target));
	prb_modules_remember(c->modules);
	if (c->target->recorder)
		prb_recorder_pages(c->target->recorder, 0, m->view);
	finish(m);
	return fill_idle(m);
}

static void unmake(struct maker *m)
{
	struct prb_capture_thread *thread;

	prb_capture_share(&m->capture, NULL);
	prb_vec_each (thread, &m->capture.threads)
		prb_capture_clear(thread);
	prb_vec_free(&m->capture.threads);
	prb_vec_free(&m->candidates);
	prb_wait_context_destroy(m->capture.waits);
	prb_tasks_deinit(&m->capture.tasks);
	prb_view_destroy(m->view);
	prb_native_destroy(m->capture.native);
	prb_pythons_deinit(&m->pythons);
	prb_modules_destroy(m->capture.modules);
}

struct prb_error *prb_dump_create(struct prb_target *target, const struct prb_dump_options *options,
				  struct prb_dump **ret)
{
	struct prb_dump_options actual = *options;
	struct maker m = {.capture = {.target = target, .options = &actual}};

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
	if (err)
		prb_dump_destroy(m.capture.dump);
	else
		*ret = m.capture.dump;
	return err;
}

void prb_dump_destroy(struct prb_dump *dump)
{
	struct prb_dump_thread *thread;
	char **text;

	if (!dump)
		return;
	prb_vec_each (thread, &dump->threads)
		free_thread(thread);
	prb_vec_free(&dump->threads);
	prb_vec_each (text, &dump->argv)
		free(*text);
	prb_vec_free(&dump->argv);
	prb_vec_each (text, &dump->warnings)
		free(*text);
	prb_vec_free(&dump->warnings);
	prb_pool_destroy(dump->pool);
	free(dump->exe);
	free(dump->python_version);
	free(dump->build_id);
	free(dump);
}
