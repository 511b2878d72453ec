/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/asyncio_tasks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "target/mem/view.h"
#include "target/snapshot/snapshot.h"
#include "target/ptrace/stop.h"
#include "dump/tasks/tasks.h"
#include "dump/tasks/thread_of_state.h"

enum {
	IDLE_ATTEMPTS = 3,
	STOP_ATTEMPTS = 6,
	STOP_TIMEOUT_MS = 2000,
	TASKS_VIEW = 1 << 30,
	PYTHONS_MAX = 1 << 16,
	DOUBTS = 3, /* stops that are repeated because tasks could not be decoded */
};

/* The reading of one runtime, repeated until no event loop thread ran during a reading. */
struct attempt {
	struct prb_target *target;
	struct prb_modules *modules;
	struct prb_python *py;
	bool values;
	struct prb_view *view;
	struct prb_tasks tasks; /* the kernel's threads */
	struct prb_asyncio_reading *reading;
	PRB_VEC(struct prb_task_watch *) watched; /* threads that may change asyncio's tasks */
	PRB_VEC(struct prb_stop) stops;
	double patience; /* towards other commands that read the target */
};

static const char clock_key[] = "clock:monotonic";

/* The clock that event loops use, noted for snapshots. */
static double read_clock(struct prb_target *target)
{
	prb_auto_str struct prb_str text = {};
	struct timespec now;
	double seconds;

	if (prb_target_recall(target, clock_key, &text))
		return strtod(prb_str_text(&text), NULL);
	if (!target->local || clock_gettime(CLOCK_MONOTONIC, &now))
		return 0;
	seconds = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	prb_str_printf(&text, "%.6f", seconds);
	prb_target_remember(target, clock_key, prb_str_text(&text), text.length);
	return seconds;
}

static struct prb_error *watch(struct attempt *a, pid_t tid)
{
	struct prb_task_watch *task = prb_tasks_find_inner(&a->tasks, tid), **slot;

	prb_vec_each (slot, &a->watched)
		if (*slot == task)
			return NULL;
	slot = task ? prb_vec_push(&a->watched) : NULL;
	if (task && !slot)
		return prb_error_nomem();
	if (slot)
		*slot = task;
	return NULL;
}

/* Watches the threads that run loops, or all Python threads if those are not known. */
static struct prb_error *watch_threads(struct attempt *a, const struct prb_py_threads *threads)
{
	const struct prb_py_thread *thread;
	const struct prb_asyncio_task *task;
	bool all = a->reading->tasks.error;

	prb_vec_each (task, &a->reading->tasks.list) {
		if (task->tid)
			PRB_TRY(watch(a, task->tid));
		else if (task->state != PRB_PY_TASK_DONE && task->state != PRB_PY_TASK_FAILED &&
			 task->state != PRB_PY_TASK_CANCELLED)
			all = true;
	}
	if (all)
		prb_vec_each (thread, &threads->list)
			PRB_TRY(watch(a, thread->tid));
	return NULL;
}

static struct prb_error *read_tasks(struct attempt *a)
{
	struct prb_mem *mem = prb_view_mem(a->view);
	struct prb_py_threads threads;
	struct prb_py_thread *thread;

	prb_asyncio_tasks_deinit(&a->reading->tasks);
	PRB_TRY(prb_python_threads(a->py, mem, &threads));
	prb_vec_each (thread, &threads.list)
		if (!prb_tasks_find_inner(
			    &a->tasks,
			    thread->tid)) /* not noted, or noted by the parent before a fork */
			thread->tid = prb_pthread_tid(mem, &a->tasks, thread->pthread);

	struct prb_error *err = prb_asyncio_tasks_read(a->py, a->modules, mem, &threads, a->values,
						       &a->reading->tasks);

	if (!err)
		err = watch_threads(a, &threads);
	prb_py_threads_deinit(&threads);
	return err;
}

static void note_watched(struct attempt *a)
{
	struct prb_task_watch **task;

	prb_vec_each (task, &a->watched)
		prb_task_note(&a->tasks, *task);
}

static bool is_stopped(const struct attempt *a, const struct prb_task_watch *task)
{
	const struct prb_stop *stop;

	prb_vec_each (stop, &a->stops)
		if (stop->tid == task->tid && stop->stopped)
			return true;
	return false;
}

/* True if all watched threads that are not stopped have slept since they were noted. */
static bool all_slept(struct attempt *a)
{
	struct prb_task_watch **task;

	prb_vec_each (task, &a->watched)
		if (!is_stopped(a, *task) && !prb_task_slept(&a->tasks, *task, false))
			return false;
	return true;
}

/* The list of threads may contradict itself while it changes. */
static bool is_passing(const struct prb_error *err)
{
	return err && (err->code == PRB_ERROR_BAD_DATA || err->code == PRB_ERROR_FAULT);
}

static struct prb_error *read_asleep(struct attempt *a, bool *ret)
{
	*ret = false;
	for (int i = 0; i < IDLE_ATTEMPTS && !*ret; i++) {
		size_t before = a->watched.count;

		if (i) {
			note_watched(a);
			prb_view_new_epoch(a->view);
			PRB_TRY(prb_view_prefetch(a->view));
		}

		struct prb_error *err = read_tasks(a);

		*ret = !err && (!i || a->watched.count == before) && all_slept(a);
		if (!is_passing(err) || i + 1 == IDLE_ATTEMPTS)
			PRB_TRY(err);
		else
			prb_error_destroy(err);
	}
	return NULL;
}

/*
 * Stops watched threads that do not sleep, or all. Requests all stops first, so that threads stop
 * together.
 */
static struct prb_error *stop_watched(struct attempt *a, bool everyone)
{
	struct prb_task_watch **task;
	struct prb_stop *stop;

	a->stops.count = 0;
	note_watched(a);
	prb_vec_each (task, &a->watched) {
		if (!everyone && prb_task_slept(&a->tasks, *task, false))
			continue;
		stop = prb_vec_push(&a->stops);
		if (!stop)
			return prb_error_nomem();

		struct prb_error *err = prb_stop_seize_after((*task)->tid, &a->patience, stop);

		if (err && err->code != PRB_ERROR_NO_PROCESS)
			return err;
		prb_error_destroy(err);
	}
	prb_vec_each (stop, &a->stops)
		if (stop->seized)
			PRB_TRY(prb_stop_ask(stop));
	prb_vec_each (stop, &a->stops) {
		struct prb_error *err = stop->seized ? prb_stop_wait(stop, STOP_TIMEOUT_MS) : NULL;

		if (err && err->code != PRB_ERROR_NO_PROCESS && err->code != PRB_ERROR_TIMEOUT)
			return err;
		prb_error_destroy(err);
	}
	return NULL;
}

static void resume(struct attempt *a)
{
	struct prb_stop *stop;
	double pause;

	prb_vec_each (stop, &a->stops) {
		prb_stop_end(stop, &pause);
		a->reading->pause_us += pause;
	}
}

/*
 * Copies the pages of the last reading while the threads are stopped. The last attempt also decodes
 * then.
 */
static struct prb_error *read_stopped_once(struct attempt *a, int attempt, bool *ret)
{
	bool inside = attempt == STOP_ATTEMPTS;
	/* A thread with very short sleeps may wake up each time: stop it too. */
	struct prb_error *err = stop_watched(a, attempt > DOUBTS);

	prb_view_new_epoch(a->view);
	if (!err)
		err = prb_view_prefetch(a->view);
	if (!err && inside)
		err = read_tasks(a);
	*ret = !err && all_slept(a);
	resume(a);
	if (err || inside)
		return err;
	prb_view_seal(a->view, &a->target->maps);
	err = read_tasks(a);
	*ret = *ret && !err && !prb_view_misses(a->view);
	return err;
}

static bool is_doubtful(const struct prb_asyncio_reading *reading)
{
	const struct prb_asyncio_task *task;

	if (reading->tasks.error)
		return true;
	prb_vec_each (task, &reading->tasks.list)
		if (task->error)
			return true;
	return false;
}

static struct prb_error *read_stopped(struct attempt *a, bool *ret)
{
	for (int i = 1; i <= STOP_ATTEMPTS; i++) {
		bool last = i == STOP_ATTEMPTS;
		struct prb_error *err = read_stopped_once(a, i, ret);

		prb_log("stop", 2,
			"tasks, attempt %d: %zu threads stopped, %.0f µs so far, %zu "
			"pages missing",
			i, a->stops.count, a->reading->pause_us, prb_view_misses(a->view));
		if (last || !is_passing(err))
			PRB_TRY(err);
		if (*ret && (i > DOUBTS || !is_doubtful(a->reading)))
			break;
		prb_error_destroy(err);
		if (!last) /* let a thread leave the operation that it was stopped in */
			nanosleep(&(struct timespec){.tv_nsec = 50000L << i}, NULL);
	}
	return NULL;
}

static bool same_frames(const struct prb_asyncio_task *task, const struct prb_asyncio_task *other)
{
	if (task->frames.count != other->frames.count || task->future != other->future ||
	    task->state != other->state)
		return false;
	for (size_t i = 0; i < task->frames.count; i++) {
		const struct prb_asyncio_task_frame *mine = &task->frames.items[i];
		const struct prb_asyncio_task_frame *theirs = &other->frames.items[i];

		if (mine->frame.address != theirs->frame.address ||
		    mine->frame.position != theirs->frame.position ||
		    mine->frame.code != theirs->frame.code || mine->coroutine != theirs->coroutine)
			return false;
	}
	return true;
}

/*
 * Reads without stopping threads: a task that is equal in two readings did not change in between.
 */
static struct prb_error *read_unstable(struct attempt *a)
{
	struct prb_asyncio_tasks before = a->reading->tasks;
	struct prb_asyncio_task *task;
	size_t index;

	a->reading->tasks = (struct prb_asyncio_tasks){};
	prb_view_new_epoch(a->view);

	struct prb_error *err = prb_view_prefetch(a->view);

	if (!err)
		err = read_tasks(a);
	prb_vec_each (task, &a->reading->tasks.list) {
		bool known = prb_number_map_get(&before.by_address, task->address, &index);

		if (err || task->error || (known && same_frames(task, &before.list.items[index])))
			continue;
		prb_asyncio_task_forget(task);
		task->error = strdup("it ran while it was read");
		if (!task->error)
			err = prb_error_nomem();
	}
	prb_asyncio_tasks_deinit(&before);
	return err;
}

static struct prb_error *read_process(struct attempt *a, enum prb_dump_mode mode)
{
	bool exact;

	PRB_TRY(read_asleep(a, &exact));
	a->reading->read = PRB_READ_IDLE;
	if (exact)
		return NULL;
	if (mode != PRB_DUMP_NONBLOCKING) {
		struct prb_error *err = read_stopped(a, &exact);

		a->reading->read = PRB_READ_STOPPED;
		/* Another tracer may hold the thread. */
		if (!prb_error_catch(&err, PRB_ERROR_PERMISSION))
			PRB_TRY(err);
		else
			exact = false;
	}
	if (exact)
		return NULL;
	a->reading->read = PRB_READ_UNSTABLE;
	return read_unstable(a);
}

static void attempt_guard(struct attempt *a)
{
	prb_view_destroy(a->view);
	prb_tasks_deinit(&a->tasks);
	prb_vec_free(&a->watched);
	prb_vec_free(&a->stops);
	prb_asyncio_reading_destroy(a->reading);
}

struct prb_error *prb_asyncio_reading_create(struct prb_target *target, struct prb_modules *modules,
					     struct prb_python *py, unsigned index,
					     enum prb_dump_mode mode, bool values,
					     struct prb_asyncio_reading **ret)
{
	/* The tasks' own view in a snapshot, under a number that no thread has. */
	pid_t recorded = TASKS_VIEW + (pid_t)(index % PYTHONS_MAX);
	struct prb_mem *mem = prb_snapshot_thread_mem(target, recorded);
	__attribute__((cleanup(attempt_guard))) struct attempt a = {
		.patience = PRB_STOP_PATIENCE,
		.target = target,
		.modules = modules,
		.py = py,
		.values = values,
		.reading = calloc(1, sizeof(*a.reading)),
	};

	if (!a.reading)
		return prb_error_nomem();
	PRB_TRY(prb_tasks_create(target, &a.tasks));
	PRB_TRY(prb_view_create(mem ? mem : target->mem, &a.view));
	if (target->live)
		PRB_TRY(read_process(&a, mode));
	else
		PRB_TRY(read_tasks(&a));
	/* After them: thousands take seconds, in which tasks go on and sleep anew. */
	a.reading->now = read_clock(target);
	prb_target_note_pages(target, recorded, a.view);
	*ret = prb_steal(&a.reading);
	return NULL;
}

void prb_asyncio_reading_destroy(struct prb_asyncio_reading *reading)
{
	if (!reading)
		return;
	prb_asyncio_tasks_deinit(&reading->tasks);
	free(reading);
}
