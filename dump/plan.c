/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/plan.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "dump/tasks/thread_of_state.h"

/* A thread state, with the thread that runs it. */
struct candidate {
	struct prb_python *py;
	struct prb_py_thread state;
	struct prb_found_thread thread;
};

struct plan {
	struct prb_reader *reader;
	struct prb_thread_finder finder;
	PRB_VEC(struct candidate) candidates;
};

static bool wanted(const struct plan *p, const struct prb_task_watch *task)
{
	const struct prb_dump_options *o = p->reader->options;

	if (o->tid)
		return task && task->tid == o->tid;
	if (o->main_only)
		return task ? task->tid == p->reader->dump->main_tid : !p->reader->dump->main_tid;
	return true;
}

static struct prb_error *add_thread(struct plan *p, struct prb_task_watch *task,
				    struct prb_dump_thread **ret,
				    struct prb_reader_thread **ret_thread)
{
	struct prb_dump_thread *out = prb_vec_push(&p->reader->dump->threads);
	struct prb_reader_thread *thread = prb_vec_push(&p->reader->threads);

	if (!out || !thread)
		return prb_error_nomem();
	thread->task = task;
	thread->out = p->reader->dump->threads.count - 1;
	out->tid = task ? task->tid : 0;
	out->interpreter = -1;
	out->idle_seconds = -1;
	*ret = out;
	*ret_thread = thread;
	return NULL;
}

static struct prb_error *add_candidate(struct plan *p, const struct candidate *candidate)
{
	const struct prb_py_thread *state = &candidate->state;
	const struct prb_found_thread *found = &candidate->thread;
	struct prb_reader_thread *thread;
	struct prb_dump_thread *out;

	PRB_TRY(add_thread(p, found->task, &out, &thread));
	thread->py = candidate->py;
	thread->state = *state;
	thread->self = found->self;
	thread->kept_at = found->kept_at;
	out->interpreter = state->interp_id;
	out->ident = found->self;
	out->note = found->task ? NULL : found->reason;
	return NULL;
}

static struct prb_error *add_other(struct plan *p, const struct candidate *candidate)
{
	struct prb_reader_thread *thread = prb_vec_push(&p->reader->others);

	if (!thread)
		return prb_error_nomem();
	thread->py = candidate->py;
	thread->state = candidate->state;
	thread->task = candidate->thread.task;
	thread->self = candidate->thread.self;
	return NULL;
}

/* Retries while the list changes: threads start and exit, and freed states are reused. */
static struct prb_error *read_threads(struct plan *p, struct prb_python *py,
				      struct prb_py_threads *ret)
{
	enum { ATTEMPTS = 20 };
	struct prb_error *err = NULL;

	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		prb_error_destroy(err);
		err = prb_python_threads(py, prb_view_mem(p->reader->view), ret);
		if (!err || !p->reader->target->live ||
		    (err->code != PRB_ERROR_BAD_DATA && err->code != PRB_ERROR_FAULT))
			break;
		prb_view_new_epoch(p->reader->view);
		PRB_TRY(prb_view_prefetch(p->reader->view));
	}
	return prb_error_prefix(err, "cannot read the threads of Python %s", py->version);
}

/* A state without a thread is shown if it has frames. */
static struct prb_error *add_candidates(struct plan *p, struct prb_python *py,
					const struct prb_py_threads *threads,
					const struct prb_found_thread *found, unsigned *without)
{
	for (size_t i = 0; i < threads->list.count; i++) {
		struct candidate *candidate;

		if (!found[i].task && !found[i].has_frames) {
			*without += found[i].orphan;
			continue;
		}
		candidate = prb_vec_push(&p->candidates);
		if (!candidate)
			return prb_error_nomem();
		*candidate = (struct candidate){py, threads->list.items[i], found[i]};
	}
	return NULL;
}

static struct prb_error *find_threads(struct plan *p, struct prb_python *py,
				      struct prb_py_threads *threads, unsigned *without)
{
	prb_auto_free struct prb_found_thread *found =
		calloc(threads->list.count + 1, sizeof(*found));

	if (!found)
		return prb_error_nomem();
	PRB_TRY(prb_thread_finder_run(&p->finder, py, p->reader->view, threads, found));
	return add_candidates(p, py, threads, found, without);
}

/*
 * Lists the threads of one runtime. A thread may have states in several interpreters; it is listed
 * in each in which it has frames.
 */
static struct prb_error *list_python(struct plan *p, struct prb_python *py)
{
	struct prb_py_threads threads;
	unsigned without = 0;

	PRB_TRY(read_threads(p, py, &threads));

	struct prb_error *err = find_threads(p, py, &threads, &without);
	prb_py_threads_deinit(&threads);
	PRB_TRY(err);
	if (!without)
		return NULL;
	return prb_dump_warn(
		p->reader->dump,
		prb_format("%u thread state%s without a thread of this process (left over from "
			   "a fork, or just ending)",
			   without, without == 1 ? "" : "s"));
}

/* With native frames, threads unknown to Python are shown too. */
static struct prb_error *plan_others(struct plan *p)
{
	struct prb_reader_thread *thread;
	struct prb_dump_thread *out;
	struct prb_task_watch *task;

	prb_vec_each (task, &p->reader->tasks.list) {
		bool known = false;

		for (size_t i = 0; i < p->reader->threads.count && !known; i++)
			known = p->reader->threads.items[i].task == task;
		if (!known && !prb_task_has_ended(task) && wanted(p, task))
			PRB_TRY(add_thread(p, task, &out, &thread));
	}
	return NULL;
}

/*
 * Where Python is embedded, its main thread may not be that of the process: then the thread with
 * the lowest number counts as the main thread.
 */
static pid_t find_main(const struct plan *p)
{
	const struct candidate *candidate;
	pid_t pid = p->reader->target->pid, lowest = 0;

	prb_vec_each (candidate, &p->candidates) {
		const struct prb_task_watch *task = candidate->thread.task;

		if (!task)
			continue;
		if (task->tid == pid)
			return pid;
		if (!lowest || task->tid < lowest)
			lowest = task->tid;
	}
	/* If no state has a known thread, show all states. */
	return lowest || p->candidates.count ? lowest : pid;
}

static struct prb_error *make_plan(struct plan *p)
{
	const struct prb_dump_options *o = p->reader->options;
	const struct candidate *candidate;
	struct prb_python **py;

	prb_vec_each (py, &p->reader->pythons->list)
		PRB_TRY(list_python(p, *py));
	p->reader->dump->main_tid = o->main_only ? find_main(p) : p->reader->target->pid;
	prb_vec_each (candidate, &p->candidates)
		PRB_TRY(wanted(p, candidate->thread.task) ? add_candidate(p, candidate)
							  : add_other(p, candidate));
	if (p->reader->native)
		PRB_TRY(plan_others(p));
	if (o->tid && !p->reader->threads.count)
		return prb_error_hint(prb_error_create(PRB_ERROR_NO_PROCESS,
						       "process %d has no Python thread %d",
						       p->reader->target->pid, o->tid),
				      "'dump --native' shows all threads");
	return NULL;
}

struct prb_error *prb_dump_plan(struct prb_reader *reader)
{
	struct plan plan = {
		.reader = reader,
		.finder = {.target = reader->target,
			   .modules = reader->modules,
			   .tasks = &reader->tasks},
	};
	struct prb_error *err = make_plan(&plan);

	prb_vec_free(&plan.candidates);
	prb_thread_finder_deinit(&plan.finder);
	return err;
}
